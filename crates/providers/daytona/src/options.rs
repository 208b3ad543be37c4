//! Which service, with which key, and how sandboxes are made (`hosted-apis` 3.1, `third-party-runtimes` 3.1).

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use gloveport_config::Config;
use gloveport_hosted::{
    fault::wrong,
    settings::{key, path, url},
};
use gloveport_protocol::Secret;
use gloveport_provider::{ProviderContext, ProviderError, backend, container::PORT};
use serde::Deserialize;
use serde_json::Value;

/// Where the keys are that OpenHands does not have.
const TABLE: &str = "[extended.daytona] of the configuration";
/// The service itself.
const API: &str = "https://app.daytona.io/api";
/// The workspace, unless another one is named.
const WORKSPACE: &str = "/workspace";
/// Longest time after which a sandbox that nobody uses is stopped.
const LONGEST: Duration = Duration::from_hours(24 * 7);
/// How long the service may take to make a sandbox: it may build an image.
const START: Duration = Duration::from_mins(15);

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
pub struct DaytonaOptions {
    /// The key of the service. Without one, nothing is asked.
    pub key: Option<Secret>,
    /// URL of the API, without a slash at the end.
    pub api_url: String,
    /// The region; `None` is the organization's own.
    pub target: Option<String>,
    /// The snapshot of a sandbox that names no image; `None` is the organization's own.
    pub snapshot: Option<String>,
    /// The image of a sandbox that names none, in place of a snapshot.
    pub image: Option<String>,
    /// Snapshots by image.
    pub snapshots: BTreeMap<String, String>,
    /// Whom programs in a sandbox work as; `None` is the user of the snapshot.
    pub user: Option<String>,
    /// Directory of our own things in a sandbox. Absolute.
    pub directory: String,
    /// The workspace in a sandbox, absolute; `None` puts it into a directory of the sandbox's own.
    pub workspace: Option<String>,
    /// Port of our server in a sandbox; `None` takes one by chance, for sandboxes that share a network.
    pub port: Option<u16>,
    /// Who reaches the ports of a sandbox.
    pub traffic: Traffic,
    /// The service stops kept sandboxes that nobody uses.
    pub auto_stop: bool,
    /// A sandbox that nobody holds goes on this long. Whole minutes for the service.
    pub time_limit: Duration,
    /// Time for each answer.
    pub answer_within: Duration,
    /// Time until a sandbox runs, images that are built included.
    pub start_within: Duration,
    /// The file that is put into sandboxes.
    pub program: PathBuf,
    /// Where the files are that tell which backends live.
    pub backends: PathBuf,
}

impl fmt::Debug for DaytonaOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DaytonaOptions")
            .field("has_key", &self.key.is_some())
            .field("api_url", &self.api_url)
            .field("target", &self.target)
            .field("snapshot", &self.snapshot)
            .field("image", &self.image)
            .finish_non_exhaustive()
    }
}

/// `[extended.daytona]` of the configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Extended {
    api_key_file: Option<PathBuf>,
    api_url: Option<String>,
    target: Option<String>,
    snapshot: Option<String>,
    image: Option<String>,
    snapshots: BTreeMap<String, String>,
    user: Option<String>,
    directory: Option<String>,
    workspace: Option<String>,
    port: Option<u16>,
    traffic: Traffic,
    auto_stop: Option<bool>,
    time_limit: Option<u64>,
    answer_within: Option<u64>,
    start_within: Option<u64>,
}

impl Extended {
    fn of(config: &Config) -> Result<Self, ProviderError> {
        match config.extended.get("daytona") {
            None => Ok(Self::default()),
            Some(table @ Value::Object(_)) => Self::deserialize(table).map_err(|error| wrong(TABLE, error)),
            Some(other) => Err(wrong(TABLE, format!("{other} is no table"))),
        }
    }
}

impl DaytonaOptions {
    /// As configured: `[extended.daytona]` of the configuration file, and the variables of OpenHands and of the service's own SDK
    /// (`DAYTONA_API_KEY`, `DAYTONA_API_URL`, `DAYTONA_TARGET`, `DAYTONA_DISABLE_AUTO_STOP`), which count more.
    ///
    /// # Errors
    ///
    /// A setting cannot be used, or the file with the key cannot be read.
    pub fn new(context: &ProviderContext) -> Result<Self, ProviderError> {
        let told = Extended::of(&context.config)?;
        let variable = |name: &str| context.environment.get(name).filter(|value| !value.is_empty()).cloned();
        let api_url = variable("DAYTONA_API_URL").or(told.api_url).unwrap_or_else(|| API.to_owned());
        let directory = path(TABLE, "directory", told.directory.unwrap_or_else(|| "/opt/gloveport".to_owned()))?;
        let workspace = told.workspace.unwrap_or_else(|| WORKSPACE.to_owned());
        let workspace = Some(workspace).filter(|path| !path.is_empty());
        let time_limit = told.time_limit.map_or(Duration::from_mins(15), Duration::from_secs);
        if !(Duration::from_mins(1)..=LONGEST).contains(&time_limit) || !time_limit.as_secs().is_multiple_of(60) {
            let reason = format!("{} s are no whole minutes, from 60 to {}", time_limit.as_secs(), LONGEST.as_secs());
            return Err(wrong(format!("time_limit in {TABLE}"), reason));
        }
        if told.snapshot.is_some() && told.image.is_some() {
            let reason = "a sandbox is made from a snapshot or from an image; name one of them";
            return Err(wrong(format!("snapshot and image in {TABLE}"), reason));
        }
        let is_off = variable("DAYTONA_DISABLE_AUTO_STOP").map(|text| text.eq_ignore_ascii_case("true"));
        let seconds = |given: Option<u64>| given.filter(|seconds| *seconds > 0).map(Duration::from_secs);
        Ok(Self {
            key: key("Daytona", variable("DAYTONA_API_KEY"), told.api_key_file)?,
            api_url: url(TABLE, "api_url", &api_url)?,
            target: variable("DAYTONA_TARGET").or(told.target),
            snapshot: told.snapshot,
            image: told.image,
            snapshots: told.snapshots,
            user: told.user,
            directory,
            workspace: workspace.map(|given| path(TABLE, "workspace", given)).transpose()?,
            port: told.port.map_or(Some(PORT), |port| Some(port).filter(|port| *port != 0)),
            traffic: told.traffic,
            auto_stop: is_off.map_or(told.auto_stop.unwrap_or(true), |is_off| !is_off),
            time_limit,
            answer_within: seconds(told.answer_within).unwrap_or(Duration::from_mins(1)),
            start_within: seconds(told.start_within).unwrap_or(START),
            program: context.inside.clone(),
            backends: backend::directory(&context.environment),
        })
    }

    /// Whether there seems to be a key.
    pub(crate) fn is_expected(context: &ProviderContext) -> bool {
        context.environment.get("DAYTONA_API_KEY").is_some_and(|key| !key.is_empty())
            || Extended::of(&context.config).is_ok_and(|told| told.api_key_file.is_some())
    }
}

#[cfg(test)]
mod tests {
    use gloveport_hosted_checks::context;
    use serde_json::json;

    use super::*;

    fn options(table: &Value, variables: &[(&str, &str)]) -> Result<DaytonaOptions, String> {
        DaytonaOptions::new(&context("daytona", table, variables)).map_err(|error| error.to_string())
    }

    #[test]
    fn without_settings_it_is_the_service_itself() {
        let options = options(&json!({}), &[("DAYTONA_API_KEY", "dtn_hidden")]).unwrap();
        assert_eq!((options.api_url.as_str(), &options.target), ("https://app.daytona.io/api", &None));
        assert_eq!((options.port, options.workspace.as_deref()), (Some(60_000), Some("/workspace")));
        assert_eq!((options.traffic, options.time_limit.as_secs(), options.auto_stop), (Traffic::Private, 900, true));
        assert!(!format!("{options:?}").contains("hidden"));
    }

    #[test]
    fn variables_count_more_than_the_file() {
        let table =
            json!({"api_url": "https://b.test/", "target": "us", "auto_stop": true, "port": 0, "workspace": ""});
        let of_file = options(&table, &[]).unwrap();
        assert_eq!((of_file.api_url.as_str(), of_file.target.as_deref()), ("https://b.test", Some("us")));
        assert_eq!((of_file.port, of_file.workspace, of_file.key), (None, None, None));
        let variables = [
            ("DAYTONA_API_KEY", "k"),
            ("DAYTONA_API_URL", "http://127.0.0.1:1/api"),
            ("DAYTONA_TARGET", "eu"),
            ("DAYTONA_DISABLE_AUTO_STOP", "true"),
        ];
        let of_variables = options(&table, &variables).unwrap();
        assert_eq!((of_variables.api_url.as_str(), of_variables.auto_stop), ("http://127.0.0.1:1/api", false));
        assert_eq!((of_variables.target.as_deref(), of_variables.key), (Some("eu"), Some(Secret::new("k"))));
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_its_key() {
        for (table, expected) in [
            (json!(1), "1 is no table"),
            (json!({"traffik": "public"}), "unknown field `traffik`"),
            (json!({"api_url": "http://example.org"}), "api_url in [extended.daytona]"),
            (json!({"directory": "opt"}), "`opt` is no absolute path"),
            (json!({"workspace": "/a b"}), "`/a b` is no absolute path"),
            (json!({"time_limit": 90}), "time_limit in [extended.daytona]"),
            (json!({"snapshot": "a", "image": "b"}), "snapshot and image in [extended.daytona]"),
            (json!({"api_key_file": "/nonexistent/key"}), "/nonexistent/key"),
        ] {
            let error = options(&table, &[]).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
