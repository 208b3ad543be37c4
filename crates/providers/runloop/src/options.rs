//! Which service, with which key, and how sandboxes are made (`hosted-apis` 4.1).

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use gloveport_config::{Config, SandboxConfig};
use gloveport_hosted::{
    fault::wrong,
    settings::{self, is_at_hand, is_safe},
};
use gloveport_protocol::Secret;
use gloveport_provider::{ProviderContext, ProviderError, backend, container::PORT};
use serde::Deserialize;
use serde_json::Value;

use crate::{names::NAME, sizes};

/// Where the keys are that OpenHands does not have.
const TABLE: &str = "[extended.runloop] of the configuration";
/// The service itself.
const SERVICE: &str = "https://api.runloop.ai";
/// URL of a port, as the service has it.
const PORTS: &str = "https://{port}-{tunnel_key}.tunnel.runloop.ai";
/// The size of OpenHands' sandboxes.
const SIZE: &str = "LARGE";
/// Shortest time after which a sandbox that nobody holds ends, or rests: making one may take as long.
const SHORTEST: Duration = Duration::from_mins(1);
/// Longest one.
const LONGEST: Duration = Duration::from_hours(24);

/// Who reaches the ports of a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tunnel {
    /// Who has the token of the tunnel, which our own clients send.
    #[default]
    Authenticated,
    /// Everybody who knows the URL. Our server still asks for its key.
    Open,
}

/// What a sandbox is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Image<'a> {
    /// What the service takes if nobody names anything.
    Default,
    /// A blueprint, by its name.
    Blueprint(&'a str),
    /// A snapshot, by its id.
    Snapshot(&'a str),
    /// An image of a registry, of which a blueprint is made.
    Registry(&'a str),
}

/// Which service, with which key, and how sandboxes are made.
#[derive(Clone)]
pub struct RunloopOptions {
    /// The key of the service. Without one, nothing is asked.
    pub key: Option<Secret>,
    /// URL of the service, without a slash at the end.
    pub api_url: String,
    /// URL of a port of a sandbox, with `{port}` and `{tunnel_key}` in it.
    pub port_url: String,
    /// The blueprint of a sandbox that names no image; `None` for the service's own.
    pub blueprint: Option<String>,
    /// Blueprints by image.
    pub blueprints: BTreeMap<String, String>,
    /// The size of a sandbox without limits.
    pub size: String,
    /// Directory of our own things in a sandbox. Absolute.
    pub directory: String,
    /// The workspace in a sandbox, absolute; `None` puts it into a directory of the sandbox's own.
    pub workspace: Option<String>,
    /// Port of our server in a sandbox; `None` takes one by chance, for sandboxes that share a network.
    pub port: Option<u16>,
    /// Who reaches the ports of a sandbox.
    pub tunnel: Tunnel,
    /// A sandbox that nobody holds any more goes on this long.
    pub time_limit: Duration,
    /// Time for each answer.
    pub answer_within: Duration,
    /// Time for a sandbox to start, rest, or go on.
    pub start_within: Duration,
    /// Time for a blueprint to be built from an image.
    pub build_within: Duration,
    /// The file that is put into sandboxes.
    pub program: PathBuf,
    /// Where the files are that tell which backends live.
    pub backends: PathBuf,
}

impl fmt::Debug for RunloopOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunloopOptions")
            .field("has_key", &self.key.is_some())
            .field("api_url", &self.api_url)
            .field("port_url", &self.port_url)
            .field("blueprint", &self.blueprint)
            .finish_non_exhaustive()
    }
}

/// `[extended.runloop]` of the configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Extended {
    api_key_file: Option<PathBuf>,
    api_url: Option<String>,
    port_url: Option<String>,
    blueprint: Option<String>,
    blueprints: BTreeMap<String, String>,
    size: Option<String>,
    directory: Option<String>,
    workspace: Option<String>,
    port: Option<u16>,
    tunnel: Tunnel,
    time_limit: Option<u64>,
    answer_within: Option<u64>,
    start_within: Option<u64>,
    build_within: Option<u64>,
}

impl Extended {
    fn of(config: &Config) -> Result<Self, ProviderError> {
        match config.extended.get(NAME) {
            None => Ok(Self::default()),
            Some(table @ Value::Object(_)) => Self::deserialize(table).map_err(|error| wrong(TABLE, error)),
            Some(other) => Err(wrong(TABLE, format!("{other} is no table"))),
        }
    }
}

impl RunloopOptions {
    /// As configured: `[extended.runloop]` of the configuration file, and the variables of the service's own SDK
    /// (`RUNLOOP_API_KEY`, `RUNLOOP_BASE_URL`), which count more.
    ///
    /// # Errors
    ///
    /// A setting cannot be used, or the file with the key cannot be read.
    pub fn new(context: &ProviderContext) -> Result<Self, ProviderError> {
        let told = Extended::of(&context.config)?;
        let variable = |name: &str| context.environment.get(name).filter(|value| !value.is_empty()).cloned();
        let key = settings::key("Runloop", variable("RUNLOOP_API_KEY"), told.api_key_file)?;
        let api_url = variable("RUNLOOP_BASE_URL").or(told.api_url).unwrap_or_else(|| SERVICE.to_owned());
        let api_url = settings::url(TABLE, "api_url", &api_url)?;
        let port_url = port_url(told.port_url, &api_url)?;
        let size = told.size.unwrap_or_else(|| SIZE.to_owned());
        if !sizes::NAMES.contains(&size.as_str()) {
            let reason = format!("`{size}` is none of {}", sizes::NAMES.join(", "));
            return Err(wrong(format!("size in {TABLE}"), reason));
        }
        let directory = told.directory.unwrap_or_else(|| "/opt/gloveport".to_owned());
        let workspace = told.workspace.unwrap_or_else(|| "/workspace".to_owned());
        let workspace = Some(workspace).filter(|path| !path.is_empty());
        let time_limit = told.time_limit.map_or(Duration::from_mins(15), Duration::from_secs);
        if !(SHORTEST..=LONGEST).contains(&time_limit) {
            let reason =
                format!("{} s are none of {} to {}", time_limit.as_secs(), SHORTEST.as_secs(), LONGEST.as_secs());
            return Err(wrong(format!("time_limit in {TABLE}"), reason));
        }
        let within = |told: Option<u64>, otherwise| Duration::from_secs(told.filter(|it| *it > 0).unwrap_or(otherwise));
        Ok(Self {
            key,
            api_url,
            port_url,
            blueprint: told.blueprint.filter(|name| !name.is_empty()),
            blueprints: told.blueprints,
            size,
            directory: settings::path(TABLE, "directory", directory)?,
            workspace: workspace.map(|given| settings::path(TABLE, "workspace", given)).transpose()?,
            port: told.port.map_or(Some(PORT), |port| Some(port).filter(|port| *port != 0)),
            tunnel: told.tunnel,
            time_limit,
            answer_within: within(told.answer_within, 30),
            start_within: within(told.start_within, 300),
            build_within: within(told.build_within, 1800),
            program: context.inside.clone(),
            backends: backend::directory(&context.environment),
        })
    }

    /// Whether there seems to be a key.
    pub(crate) fn is_expected(context: &ProviderContext) -> bool {
        context.environment.get("RUNLOOP_API_KEY").is_some_and(|key| !key.is_empty())
            || Extended::of(&context.config).is_ok_and(|told| told.api_key_file.is_some())
    }

    /// What a name of an image means.
    pub(crate) fn image<'a>(&'a self, image: Option<&'a str>) -> Image<'a> {
        let default = || self.blueprint.as_deref().map_or(Image::Default, Image::Blueprint);
        let Some(image) = image else { return default() };
        if let Some(blueprint) = self.blueprints.get(image) {
            return Image::Blueprint(blueprint);
        }
        // What OpenHands takes where nobody names an image is one of Docker's.
        if SandboxConfig::default().base_container_image.as_deref() == Some(image) {
            return default();
        }
        match image.split_once(':') {
            Some(("blueprint", name)) => Image::Blueprint(name),
            Some(("snapshot", id)) => Image::Snapshot(id),
            _ => Image::Registry(image),
        }
    }

    /// URL of a port of a sandbox, without a slash at the end.
    pub(crate) fn url_of(&self, tunnel_key: &str, port: u16) -> String {
        self.port_url.replace("{port}", &port.to_string()).replace("{tunnel_key}", tunnel_key)
    }
}

/// The URL of ports. It is to be the service's own, or this machine's if the service is there: tokens go over it.
fn port_url(told: Option<String>, api_url: &str) -> Result<String, ProviderError> {
    let field = || format!("port_url in {TABLE}");
    let Some(given) = told else {
        if is_at_hand(api_url) {
            return Ok(format!("{api_url}/tunnels/{{tunnel_key}}/{{port}}"));
        }
        return Ok(PORTS.to_owned());
    };
    if !given.contains("{port}") || !given.contains("{tunnel_key}") {
        return Err(wrong(
            field(),
            format!("`{given}` has no {{port}} or no {{tunnel_key}}; the service's is {PORTS}"),
        ));
    }
    let example = given.replace("{port}", "1").replace("{tunnel_key}", "k");
    if !is_safe(&example) {
        return Err(wrong(field(), "it must be https://HOST, or http:// to this machine: tokens go over it"));
    }
    Ok(given.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use gloveport_hosted_checks::context;
    use serde_json::json;

    use super::*;

    fn options(table: &Value, variables: &[(&str, &str)]) -> Result<RunloopOptions, String> {
        RunloopOptions::new(&context("runloop", table, variables)).map_err(|error| error.to_string())
    }

    #[test]
    fn without_settings_it_is_the_service_itself() {
        let options = options(&json!({}), &[("RUNLOOP_API_KEY", "ak_hidden")]).unwrap();
        assert_eq!(options.api_url, "https://api.runloop.ai");
        assert_eq!(options.url_of("key", 8000), "https://8000-key.tunnel.runloop.ai");
        assert_eq!((options.port, options.workspace.as_deref()), (Some(PORT), Some("/workspace")));
        assert_eq!(
            (options.tunnel, options.time_limit.as_secs(), options.size.as_str()),
            (Tunnel::Authenticated, 900, "LARGE")
        );
        assert!(!format!("{options:?}").contains("hidden"));
    }

    #[test]
    fn variables_count_more_than_the_file_and_a_key_may_be_in_one() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "ak_of_file\n").unwrap();
        let table = json!({"api_key_file": file.path(), "api_url": "https://b.test/", "port": 0, "workspace": ""});
        let of_file = options(&table, &[]).unwrap();
        assert_eq!((of_file.key, of_file.api_url), (Some(Secret::new("ak_of_file")), "https://b.test".to_owned()));
        assert_eq!((of_file.port, of_file.workspace), (None, None));
        let variables = [("RUNLOOP_API_KEY", "k"), ("RUNLOOP_BASE_URL", "http://127.0.0.1:1")];
        let of_variables = options(&table, &variables).unwrap();
        assert_eq!(of_variables.key, Some(Secret::new("k")));
        // A service on this machine is reached there, sandboxes included.
        assert_eq!(of_variables.url_of("key", 80), "http://127.0.0.1:1/tunnels/key/80");
    }

    #[test]
    fn the_name_of_an_image_says_what_it_is() {
        let table = json!({"blueprint": "mine", "blueprints": {"debian:12": "deb"}});
        let options = options(&table, &[]).unwrap();
        for (image, expected) in [
            (None, Image::Blueprint("mine")),
            (SandboxConfig::default().base_container_image.as_deref(), Image::Blueprint("mine")),
            (Some("debian:12"), Image::Blueprint("deb")),
            (Some("debian:13"), Image::Registry("debian:13")),
            (Some("blueprint:b"), Image::Blueprint("b")),
            (Some("snapshot:snp_1"), Image::Snapshot("snp_1")),
        ] {
            assert_eq!(options.image(image), expected);
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_its_key() {
        for (table, expected) in [
            (json!(1), "1 is no table"),
            (json!({"tunel": "open"}), "unknown field `tunel`"),
            (json!({"api_url": "http://example.org"}), "api_url in [extended.runloop]"),
            (json!({"port_url": "https://example.org/{port}"}), "no {tunnel_key}"),
            (json!({"port_url": "http://example.org/{port}/{tunnel_key}"}), "tokens go over it"),
            (json!({"size": "HUGE"}), "`HUGE` is none of X_SMALL"),
            (json!({"directory": "opt"}), "`opt` is no absolute path"),
            (json!({"time_limit": 1}), "time_limit in [extended.runloop]"),
            (json!({"api_key_file": "/nonexistent/key"}), "/nonexistent/key"),
        ] {
            let error = options(&table, &[]).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
