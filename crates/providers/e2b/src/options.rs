//! Which service, with which key, and how sandboxes are made (`hosted-apis` 2.1).

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use gloveport_config::{Config, SandboxConfig};
use gloveport_hosted::{
    fault::wrong,
    settings::{is_host, key, path, url},
};
use gloveport_protocol::Secret;
use gloveport_provider::{ProviderContext, ProviderError, backend, container::PORT};
use serde::Deserialize;
use serde_json::Value;

/// Where the keys are that OpenHands does not have.
const TABLE: &str = "[extended.e2b] of the configuration";
/// The domain of the service itself.
const DOMAIN: &str = "e2b.app";
/// The template of a sandbox that names none, as the service's own SDK has it.
const TEMPLATE: &str = "base";
/// The workspace, unless another one is named.
const WORKSPACE: &str = "/workspace";
/// Shortest time limit of sandboxes: making one may take as long.
const SHORTEST: Duration = Duration::from_mins(1);
/// Longest one that the service has for anybody.
const LONGEST: Duration = Duration::from_hours(24);

/// Who reaches the ports of a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Traffic {
    /// Who has the token of the sandbox, which our own clients send.
    #[default]
    Private,
    /// Everybody who knows the URL. Our server still asks for its key.
    Public,
}

/// Which service, with which key, and how sandboxes are made.
#[derive(Clone)]
pub struct E2bOptions {
    /// The key of the service. Without one, nothing is asked.
    pub key: Option<Secret>,
    /// URL of the control plane, without a slash at the end.
    pub api_url: String,
    /// Domain below which sandboxes have their host names.
    pub domain: String,
    /// One URL for all sandboxes, which are told apart by headers.
    pub sandbox_url: Option<String>,
    /// The template of a sandbox that names no image.
    pub template: String,
    /// Templates by image. What is not among these is the name of a template itself.
    pub templates: BTreeMap<String, String>,
    /// Whom our server works as in a sandbox.
    pub user: String,
    /// Directory of our own things in a sandbox. Absolute.
    pub directory: String,
    /// The workspace in a sandbox, absolute; `None` puts it into a directory of the sandbox's own.
    pub workspace: Option<String>,
    /// Port of our server in a sandbox; `None` takes one by chance, for sandboxes that share a network.
    pub port: Option<u16>,
    /// Who reaches the ports of a sandbox.
    pub traffic: Traffic,
    /// A sandbox that nobody holds any more goes on this long.
    pub time_limit: Duration,
    /// Time for each answer.
    pub answer_within: Duration,
    /// The file that is put into sandboxes.
    pub program: PathBuf,
    /// Where the files are that tell which backends live.
    pub backends: PathBuf,
}

impl fmt::Debug for E2bOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("E2bOptions")
            .field("has_key", &self.key.is_some())
            .field("api_url", &self.api_url)
            .field("domain", &self.domain)
            .field("sandbox_url", &self.sandbox_url)
            .field("template", &self.template)
            .finish_non_exhaustive()
    }
}

/// `[extended.e2b]` of the configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Extended {
    api_key_file: Option<PathBuf>,
    api_url: Option<String>,
    domain: Option<String>,
    sandbox_url: Option<String>,
    template: Option<String>,
    templates: BTreeMap<String, String>,
    user: Option<String>,
    directory: Option<String>,
    workspace: Option<String>,
    port: Option<u16>,
    traffic: Traffic,
    time_limit: Option<u64>,
    answer_within: Option<u64>,
}

impl Extended {
    fn of(config: &Config) -> Result<Self, ProviderError> {
        match config.extended.get("e2b") {
            None => Ok(Self::default()),
            Some(table @ Value::Object(_)) => Self::deserialize(table).map_err(|error| wrong(TABLE, error)),
            Some(other) => Err(wrong(TABLE, format!("{other} is no table"))),
        }
    }
}

impl E2bOptions {
    /// As configured: `[extended.e2b]` of the configuration file, and the variables of the service's own SDK (`E2B_API_KEY`,
    /// `E2B_DOMAIN`, `E2B_API_URL`, `E2B_SANDBOX_URL`), which count more.
    ///
    /// # Errors
    ///
    /// A setting cannot be used, or the file with the key cannot be read.
    pub fn new(context: &ProviderContext) -> Result<Self, ProviderError> {
        let told = Extended::of(&context.config)?;
        let variable = |name: &str| context.environment.get(name).filter(|value| !value.is_empty()).cloned();
        let key = key("E2B", variable("E2B_API_KEY"), told.api_key_file)?;
        let domain = variable("E2B_DOMAIN").or(told.domain).unwrap_or_else(|| DOMAIN.to_owned());
        if !is_host(&domain) {
            return Err(wrong(format!("domain in {TABLE}"), format!("`{domain}` is no domain, like {DOMAIN}")));
        }
        let api_url = variable("E2B_API_URL").or(told.api_url).unwrap_or_else(|| format!("https://api.{domain}"));
        let api_url = url(TABLE, "api_url", &api_url)?;
        // A service at hand has one address and no names of hosts for its sandboxes.
        let at_hand = api_url.starts_with("http://").then(|| api_url.clone());
        let sandbox_url = variable("E2B_SANDBOX_URL").or(told.sandbox_url).or(at_hand);
        let sandbox_url = sandbox_url.map(|given| url(TABLE, "sandbox_url", &given)).transpose()?;
        let directory = path(TABLE, "directory", told.directory.unwrap_or_else(|| "/opt/gloveport".to_owned()))?;
        let workspace = told.workspace.unwrap_or_else(|| WORKSPACE.to_owned());
        let workspace = Some(workspace).filter(|path| !path.is_empty());
        let time_limit = told.time_limit.map_or(Duration::from_mins(15), Duration::from_secs);
        if !(SHORTEST..=LONGEST).contains(&time_limit) {
            let reason =
                format!("{} s are none of {} to {}", time_limit.as_secs(), SHORTEST.as_secs(), LONGEST.as_secs());
            return Err(wrong(format!("time_limit in {TABLE}"), reason));
        }
        Ok(Self {
            key,
            api_url,
            domain,
            sandbox_url,
            template: told.template.unwrap_or_else(|| TEMPLATE.to_owned()),
            templates: told.templates,
            user: told.user.unwrap_or_else(|| "root".to_owned()),
            directory,
            workspace: workspace.map(|given| path(TABLE, "workspace", given)).transpose()?,
            port: told.port.map_or(Some(PORT), |port| Some(port).filter(|port| *port != 0)),
            traffic: told.traffic,
            time_limit,
            answer_within: Duration::from_secs(told.answer_within.filter(|seconds| *seconds > 0).unwrap_or(60)),
            program: context.inside.clone(),
            backends: backend::directory(&context.environment),
        })
    }

    /// Whether there seems to be a key.
    pub(crate) fn is_expected(context: &ProviderContext) -> bool {
        context.environment.get("E2B_API_KEY").is_some_and(|key| !key.is_empty())
            || Extended::of(&context.config).is_ok_and(|told| told.api_key_file.is_some())
    }

    /// The template for an image.
    pub(crate) fn template<'a>(&'a self, image: Option<&'a str>) -> &'a str {
        // What OpenHands takes where nobody names an image is one of Docker's.
        let default = SandboxConfig::default().base_container_image;
        let Some(image) =
            image.filter(|image| self.templates.contains_key(*image) || default.as_deref() != Some(image))
        else {
            return &self.template;
        };
        self.templates.get(image).map_or(image, String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use gloveport_hosted_checks::context;
    use serde_json::json;

    use super::*;

    fn options(table: &Value, variables: &[(&str, &str)]) -> Result<E2bOptions, String> {
        E2bOptions::new(&context("e2b", table, variables)).map_err(|error| error.to_string())
    }

    #[test]
    fn without_settings_it_is_the_service_itself() {
        let options = options(&json!({}), &[("E2B_API_KEY", "e2b_hidden")]).unwrap();
        assert_eq!((options.api_url.as_str(), options.sandbox_url.as_deref()), ("https://api.e2b.app", None));
        assert_eq!((options.template(None), options.template(Some("mine:1"))), ("base", "mine:1"));
        assert_eq!((options.port, options.workspace.as_deref()), (Some(60_000), Some("/workspace")));
        assert_eq!((options.traffic, options.time_limit.as_secs()), (Traffic::Private, 900));
        assert!(!format!("{options:?}").contains("hidden"));
    }

    #[test]
    fn variables_count_more_than_the_file_and_a_key_may_be_in_one() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "e2b_of_file\n").unwrap();
        let table = json!({
            "api_key_file": file.path(), "domain": "a.test", "api_url": "https://b.test/", "port": 0, "workspace": "",
            "templates": {"debian:12": "deb"},
        });
        let of_file = options(&table, &[]).unwrap();
        assert_eq!(of_file.key, Some(Secret::new("e2b_of_file")));
        assert_eq!((of_file.api_url.as_str(), of_file.template(Some("debian:12"))), ("https://b.test", "deb"));
        assert_eq!((of_file.port, of_file.workspace), (None, None));
        let variables = [("E2B_API_KEY", "k"), ("E2B_DOMAIN", "c.test"), ("E2B_API_URL", "http://127.0.0.1:1")];
        let of_variables = options(&table, &variables).unwrap();
        assert_eq!((of_variables.key, of_variables.domain.as_str()), (Some(Secret::new("k")), "c.test"));
        // A service on this machine is reached there, sandboxes included.
        assert_eq!(of_variables.sandbox_url.as_deref(), Some("http://127.0.0.1:1"));
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_its_key() {
        for (table, expected) in [
            (json!(1), "1 is no table"),
            (json!({"traffik": "public"}), "unknown field `traffik`"),
            (json!({"api_url": "http://example.org"}), "api_url in [extended.e2b]"),
            (json!({"api_url": "https://key@example.org"}), "keys go over it"),
            (json!({"sandbox_url": "ftp://localhost"}), "sandbox_url in [extended.e2b]"),
            (json!({"domain": "a/b"}), "`a/b` is no domain"),
            (json!({"directory": "opt"}), "`opt` is no absolute path"),
            (json!({"workspace": "/a b"}), "`/a b` is no absolute path"),
            (json!({"workspace": "/a/../b"}), "`/a/../b` is no absolute path"),
            (json!({"time_limit": 1}), "time_limit in [extended.e2b]"),
            (json!({"api_key_file": "/nonexistent/key"}), "cannot read the key of a service in /nonexistent/key"),
        ] {
            let error = options(&table, &[]).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
