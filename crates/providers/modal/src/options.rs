//! Which service, with which token, and how sandboxes are made (`hosted-apis` 5.1, 9).

use std::{fmt, path::PathBuf, time::Duration};

use gloveport_config::{Config, SandboxConfig};
use gloveport_hosted::{fault::wrong, settings};
use gloveport_protocol::Secret;
use gloveport_provider::{ProviderContext, ProviderError, backend, container::PORT};
use serde::Deserialize;
use serde_json::Value;

use crate::{definition::thousandths, names::NAME};

/// Where the keys are that OpenHands does not have.
const TABLE: &str = "[extended.modal] of the configuration";
/// The service itself.
const SERVICE: &str = "https://api.modal.com";
/// The app of OpenHands' sandboxes.
const APP: &str = "openhands";
/// Shortest life of a sandbox: making one may take as long.
const SHORTEST: Duration = Duration::from_mins(1);
/// Longest one, by the documents of the service.
const LONGEST: Duration = Duration::from_hours(24);
/// The kinds of sandboxes.
const KINDS: [&str; 2] = ["gvisor", "vm"];
/// Most characters of the name of an app or an environment.
const NAME_LENGTH: usize = 63;

/// What a sandbox is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Image<'a> {
    /// An image of the service, by its id.
    Id(&'a str),
    /// An image of a registry.
    Registry(&'a str),
}

/// Which service, with which token, and how sandboxes are made.
#[derive(Clone)]
pub struct ModalOptions {
    /// The id of the token. Without a token, nothing is asked.
    pub token_id: Option<String>,
    /// Its secret.
    pub token_secret: Option<Secret>,
    /// URL of the service, without a slash at the end.
    pub server_url: String,
    /// The app in which sandboxes are.
    pub app: String,
    /// The environment of that; empty for the workspace's own choice.
    pub environment: String,
    /// The image of a sandbox that names none.
    pub image: String,
    /// What keeps sandboxes apart, `gvisor` or `vm`; `None` for the service's choice.
    pub isolation: Option<String>,
    /// Regions in which sandboxes may be; none for all.
    pub regions: Vec<String>,
    /// The cloud in which they are; empty for any.
    pub cloud: String,
    /// Processors that a sandbox without limits gets at least.
    pub cpu: f64,
    /// Memory that it gets at least, in MiB.
    pub memory: u32,
    /// Directory of our own things in a sandbox. Absolute.
    pub directory: String,
    /// The workspace in a sandbox, absolute; `None` puts it into a directory of the sandbox's own.
    pub workspace: Option<String>,
    /// Port of our server in a sandbox; `None` takes one by chance, for sandboxes that share a network.
    pub port: Option<u16>,
    /// How long a sandbox lives at most.
    pub time_limit: Duration,
    /// Time for each answer.
    pub answer_within: Duration,
    /// Time for a sandbox to start, and to end.
    pub start_within: Duration,
    /// Time for an image to be built.
    pub build_within: Duration,
    /// The file that is put into sandboxes.
    pub program: PathBuf,
    /// Where the files are that tell which backends live.
    pub backends: PathBuf,
}

impl fmt::Debug for ModalOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModalOptions")
            .field("has_token", &(self.token_id.is_some() && self.token_secret.is_some()))
            .field("server_url", &self.server_url)
            .field("app", &self.app)
            .field("environment", &self.environment)
            .finish_non_exhaustive()
    }
}

/// `[extended.modal]` of the configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Extended {
    token_id: Option<String>,
    token_secret_file: Option<PathBuf>,
    server_url: Option<String>,
    app: Option<String>,
    environment: Option<String>,
    generation: Option<u8>,
    image: Option<String>,
    isolation: Option<String>,
    regions: Vec<String>,
    cloud: Option<String>,
    cpu: Option<f64>,
    memory: Option<u32>,
    directory: Option<String>,
    workspace: Option<String>,
    port: Option<u16>,
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

    /// Refuses what no sandbox can be made with.
    fn check(&self) -> Result<(), ProviderError> {
        let refused = |key: &str, reason: String| Err(wrong(format!("{key} in {TABLE}"), reason));
        if self.generation.is_some_and(|generation| generation != 2) {
            let reason = "Modal's second generation of sandboxes is the only one that is spoken; leave it out";
            return refused("generation", reason.to_owned());
        }
        for (key, given) in [("app", &self.app), ("environment", &self.environment)] {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            let is_name = |name: &String| name.len() <= NAME_LENGTH && name.bytes().all(allowed);
            if let Some(name) = given.as_ref().filter(|name| !is_name(name)) {
                return refused(key, format!("`{name}` is no name of letters, digits, `-`, `.` and `_`"));
            }
        }
        if let Some(kind) = self.isolation.as_ref().filter(|kind| !KINDS.contains(&kind.as_str())) {
            return refused("isolation", format!("`{kind}` is none of {}", KINDS.join(", ")));
        }
        if let Some(error) = self.cpu.and_then(|cpu| thousandths(cpu).err()) {
            return refused("cpu", error.to_string());
        }
        let limit = self.time_limit.map(Duration::from_secs);
        if let Some(limit) = limit.filter(|limit| !(SHORTEST..=LONGEST).contains(limit)) {
            let reason = format!("{} s are none of {} to {}", limit.as_secs(), SHORTEST.as_secs(), LONGEST.as_secs());
            return refused("time_limit", reason);
        }
        Ok(())
    }
}

/// A variable that says something: the first of these names that does.
fn variable(context: &ProviderContext, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| context.environment.get(*name).filter(|value| !value.is_empty()).cloned())
}

/// The variables with the token: those of the service's own SDK, and those of older releases of OpenHands.
const ID: [&str; 2] = ["MODAL_TOKEN_ID", "MODAL_API_TOKEN_ID"];
const SECRET: [&str; 2] = ["MODAL_TOKEN_SECRET", "MODAL_API_TOKEN_SECRET"];

impl ModalOptions {
    /// As configured: `[extended.modal]` of the configuration file, and the variables of the service's own SDK
    /// (`MODAL_TOKEN_ID`, `MODAL_TOKEN_SECRET`, `MODAL_SERVER_URL`, `MODAL_ENVIRONMENT`), which count more.
    ///
    /// # Errors
    ///
    /// A setting cannot be used, or the file with the secret cannot be read.
    pub fn new(context: &ProviderContext) -> Result<Self, ProviderError> {
        let told = Extended::of(&context.config)?;
        told.check()?;
        let named = variable(context, &["MODAL_SERVER_URL"]).or(told.server_url);
        // Those behind a comma are for when the first one fails.
        let server_url = named.as_deref().and_then(|all| all.split(',').next()).unwrap_or(SERVICE).trim();
        let own = SandboxConfig::default().base_container_image;
        let directory = told.directory.unwrap_or_else(|| "/opt/gloveport".to_owned());
        let workspace = told.workspace.unwrap_or_else(|| "/workspace".to_owned());
        let workspace = Some(workspace).filter(|path| !path.is_empty());
        let within = |told: Option<u64>, otherwise| Duration::from_secs(told.filter(|it| *it > 0).unwrap_or(otherwise));
        let id = settings::key("the id of Modal's token", variable(context, &ID).or(told.token_id), None)?;
        Ok(Self {
            token_id: id.map(|id| id.expose().to_owned()),
            token_secret: settings::key("Modal", variable(context, &SECRET), told.token_secret_file)?,
            server_url: settings::url(TABLE, "server_url", server_url)?,
            app: told.app.filter(|app| !app.is_empty()).unwrap_or_else(|| APP.to_owned()),
            environment: variable(context, &["MODAL_ENVIRONMENT"]).or(told.environment).unwrap_or_default(),
            image: told.image.filter(|image| !image.is_empty()).or(own).unwrap_or_default(),
            isolation: told.isolation,
            regions: told.regions,
            cloud: told.cloud.unwrap_or_default(),
            cpu: told.cpu.unwrap_or(1.0),
            memory: told.memory.unwrap_or(2048),
            directory: settings::path(TABLE, "directory", directory)?,
            workspace: workspace.map(|given| settings::path(TABLE, "workspace", given)).transpose()?,
            port: told.port.map_or(Some(PORT), |port| Some(port).filter(|port| *port != 0)),
            time_limit: told.time_limit.map_or(LONGEST, Duration::from_secs),
            answer_within: within(told.answer_within, 30),
            start_within: within(told.start_within, 300),
            build_within: within(told.build_within, 1800),
            program: context.inside.clone(),
            backends: backend::directory(&context.environment),
        })
    }

    /// Whether there seems to be a token.
    pub(crate) fn is_expected(context: &ProviderContext) -> bool {
        let told = Extended::of(&context.config).unwrap_or_default();
        let has_secret = variable(context, &SECRET).is_some() || told.token_secret_file.is_some();
        has_secret && (variable(context, &ID).is_some() || told.token_id.is_some())
    }

    /// What a name of an image means.
    pub(crate) fn image<'a>(&'a self, image: Option<&'a str>) -> Image<'a> {
        let named = match image {
            // What OpenHands takes where nobody names an image.
            Some(image) if SandboxConfig::default().base_container_image.as_deref() != Some(image) => image,
            _ => &self.image,
        };
        match named.split_once(':') {
            Some(("image", id)) => Image::Id(id),
            _ => Image::Registry(named),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use gloveport_hosted_checks::context;
    use serde_json::json;

    use super::*;

    fn options(table: &Value, variables: &[(&str, &str)]) -> Result<ModalOptions, String> {
        ModalOptions::new(&context("modal", table, variables)).map_err(|error| error.to_string())
    }

    #[test]
    fn without_settings_it_is_the_service_itself() {
        let token = [("MODAL_TOKEN_ID", "ak-1"), ("MODAL_TOKEN_SECRET", "as-hidden")];
        let options = options(&json!({}), &token).unwrap();
        assert_eq!((options.server_url.as_str(), options.app.as_str()), ("https://api.modal.com", "openhands"));
        assert_eq!((options.port, options.workspace.as_deref()), (Some(PORT), Some("/workspace")));
        assert_eq!(
            (options.time_limit.as_secs(), options.memory, options.token_id.as_deref()),
            (86_400, 2048, Some("ak-1"))
        );
        let own = SandboxConfig::default().base_container_image.unwrap();
        assert_eq!(options.image(None), Image::Registry(&own));
        assert!(!format!("{options:?}").contains("hidden"));
        assert!(ModalOptions::is_expected(&context("modal", &json!({}), &token)));
        assert!(!ModalOptions::is_expected(&context("modal", &json!({}), &token[..1])));
    }

    #[test]
    fn variables_count_more_than_the_file_and_a_secret_may_be_in_one() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "as-of-file\n").unwrap();
        let table = json!({
            "token_id": "ak-of-file", "token_secret_file": file.path(), "server_url": "https://b.test/", "port": 0,
            "workspace": "", "environment": "dev",
        });
        let of_file = options(&table, &[]).unwrap();
        assert_eq!(
            (of_file.token_secret, of_file.server_url),
            (Some(Secret::new("as-of-file")), "https://b.test".to_owned())
        );
        assert_eq!((of_file.port, of_file.workspace, of_file.environment.as_str()), (None, None, "dev"));
        let variables = [
            ("MODAL_API_TOKEN_SECRET", "old"),
            ("MODAL_SERVER_URL", "http://127.0.0.1:1,https://c.test"),
            ("MODAL_ENVIRONMENT", "prod"),
        ];
        let of_variables = options(&table, &variables).unwrap();
        assert_eq!(of_variables.token_secret, Some(Secret::new("old")));
        assert_eq!(
            (of_variables.server_url.as_str(), of_variables.environment.as_str()),
            ("http://127.0.0.1:1", "prod")
        );
    }

    #[test]
    fn the_name_of_an_image_says_what_it_is() {
        let options = options(&json!({"image": "image:im-1"}), &[]).unwrap();
        for (image, expected) in [
            (None, Image::Id("im-1")),
            (SandboxConfig::default().base_container_image.as_deref(), Image::Id("im-1")),
            (Some("debian:13"), Image::Registry("debian:13")),
            (Some("image:im-2"), Image::Id("im-2")),
        ] {
            assert_eq!(options.image(image), expected);
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_its_key() {
        for (table, expected) in [
            (json!(1), "1 is no table"),
            (json!({"ap": "x"}), "unknown field `ap`"),
            (json!({"server_url": "http://example.org"}), "server_url in [extended.modal]"),
            (json!({"generation": 1}), "the only one that is spoken"),
            (json!({"app": "a b"}), "`a b` is no name"),
            (json!({"isolation": "runc"}), "`runc` is none of gvisor, vm"),
            (json!({"cpu": 0.0}), "cpu in [extended.modal]"),
            (json!({"directory": "opt"}), "`opt` is no absolute path"),
            (json!({"time_limit": 1}), "time_limit in [extended.modal]"),
            (json!({"token_secret_file": "/nonexistent/key"}), "/nonexistent/key"),
        ] {
            let error = options(&table, &[]).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
