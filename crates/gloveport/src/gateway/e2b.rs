//! The API of E2B beside the interface of a gateway: what is said of it, and what its clients are told.

use std::{collections::BTreeMap, time::Duration};

use clap::Args;
use gloveport_e2b_face::{FaceOptions, Template};
use gloveport_gateway::Size;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::json;

use crate::session::values;

#[derive(Debug, Args)]
pub(super) struct E2bArgs {
    /// Speak the API of E2B, too, for its SDKs; the section [e2b] of the configuration file says more.
    #[arg(long)]
    pub(super) e2b: bool,
}

/// What a file says of it: the section `[e2b]`.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct E2bSettings {
    enabled: bool,
    templates: BTreeMap<String, TemplateSettings>,
    #[serde(deserialize_with = "time")]
    longest: Option<Duration>,
}

/// A template: an image, or more than that.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum TemplateSettings {
    Image(String),
    Table(TemplateTable),
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct TemplateTable {
    image: Option<String>,
    #[serde(default)]
    code_interpreter: bool,
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    values::duration(&text).map(Some).map_err(D::Error::custom)
}

impl TemplateSettings {
    fn template(&self) -> Template {
        let (image, code_interpreter) = match self {
            Self::Image(image) => (Some(image), false),
            Self::Table(TemplateTable { image, code_interpreter }) => (image.as_ref(), *code_interpreter),
        };
        Template { image: image.filter(|image| !image.is_empty()).cloned(), code_interpreter }
    }
}

impl E2bSettings {
    /// How the API is, if it is asked for.
    pub(super) fn options(&self, arguments: &E2bArgs, size: Size) -> anyhow::Result<Option<FaceOptions>> {
        if !self.enabled && !arguments.e2b {
            anyhow::ensure!(
                *self == Self::default(),
                "the section [e2b] of the configuration file has no effect without `enabled = true` there, or --e2b"
            );
            return Ok(None);
        }
        let mut options = FaceOptions::default();
        options.templates.extend(self.templates.iter().map(|(name, template)| (name.clone(), template.template())));
        options.longest = self.longest.unwrap_or(options.longest);
        options.cpus = u32::try_from(size.cpu_millis.div_ceil(1000)).unwrap_or(u32::MAX);
        options.memory_mib = size.memory_bytes / (1024 * 1024);
        Ok(Some(options))
    }
}

/// What the SDKs of E2B read, for a gateway at this URL whose key is in a file; both as words of a shell.
pub(super) fn env(url: &str, file: &str) -> String {
    format!("export E2B_API_URL={url}\nexport E2B_SANDBOX_URL={url}\nexport E2B_API_KEY=\"$(cat {file})\"\n")
}

/// The same as JSON.
pub(super) fn json(url: &str, file: &str) -> serde_json::Value {
    json!({"e2b_api_url": url, "e2b_sandbox_url": url, "api_key_file": file})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Result<E2bSettings, toml::de::Error> {
        toml::from_str(text)
    }

    #[test]
    fn templates_are_images_and_the_two_of_the_sdks_are_always_there() {
        let text = "enabled = true\nlongest = \"1h\"\n[templates]\nmine = \"debian:13\"\n\
            base = {image = \"python:3\", code_interpreter = true}\n";
        let options = settings(text).unwrap().options(&E2bArgs { e2b: false }, Size::default()).unwrap().unwrap();
        let image = |name: &str| options.templates[name].image.as_deref();
        assert_eq!(
            (image("mine"), image("base"), image("code-interpreter-v1")),
            (Some("debian:13"), Some("python:3"), None)
        );
        assert!(options.templates["base"].code_interpreter && !options.templates["mine"].code_interpreter);
        assert_eq!((options.longest, options.cpus, options.memory_mib), (Duration::from_hours(1), 1, 4096));
    }

    #[test]
    fn what_has_no_effect_or_no_meaning_is_an_error() {
        let off = E2bArgs { e2b: false };
        assert_eq!(E2bSettings::default().options(&off, Size::default()).unwrap().map(drop), None);
        assert!(settings("[templates]\nx = \"y\"\n").unwrap().options(&off, Size::default()).is_err());
        for wrong in ["enable = true", "longest = 5", "[templates]\nx = {picture = \"y\"}", "[templates]\nx = 1"] {
            assert!(settings(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_shell_gets_the_key_from_its_file() {
        let told = env("'http://127.0.0.1:8080'", "'/home/me/a key'");
        assert!(told.contains("E2B_SANDBOX_URL='http://127.0.0.1:8080'\n"), "{told}");
        assert!(told.ends_with("E2B_API_KEY=\"$(cat '/home/me/a key')\"\n"), "{told}");
    }
}
