//! Which database a command uses: that of a flag, of the environment, or of the configuration file.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use gloveport_gateway_store::{AuditEvent, Location, Store};

use super::settings::{self, Settings};

/// The variable with the database.
const VARIABLE: &str = "GLOVEPORT_GATEWAY_DATABASE";

#[derive(Args)]
pub(super) struct DatabaseArgs {
    /// Database of tenants, keys and sessions: a file of SQLite, which is made if there is none, or a URL such as
    /// postgres://USER@HOST/DATABASE.
    #[arg(long, value_name = "FILE|URL", env = VARIABLE, hide_env_values = true)]
    pub(super) database: Option<String>,
    /// Configuration file of the gateway, in TOML; what flags say counts more.
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
}

impl std::fmt::Debug for DatabaseArgs {
    /// Without the URL, which may have a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DatabaseArgs").field("config", &self.config).finish_non_exhaustive()
    }
}

impl DatabaseArgs {
    /// What the configuration file says.
    pub(super) fn settings(&self) -> anyhow::Result<Settings> {
        self.config.as_deref().map_or_else(|| Ok(Settings::default()), settings::read)
    }

    /// The database, if one is given.
    pub(super) fn location(&self, settings: &Settings) -> anyhow::Result<Option<Location>> {
        if let Some(text) = &self.database {
            let is_variable = std::env::var(VARIABLE).is_ok_and(|value| value == *text);
            if !is_variable && text.split_once("://").is_some_and(|(_, rest)| rest.contains(':') && rest.contains('@'))
            {
                tracing::warn!(
                    "everyone on this machine can see a password in the arguments; use {VARIABLE}, or database_file in the \
                     configuration file"
                );
            }
            return Ok(Some(Location::parse(text)?));
        }
        if let Some(file) = &settings.database_file {
            let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
            let location = Location::parse(&text);
            return Ok(Some(location.with_context(|| format!("{} has no database", file.display()))?));
        }
        Ok(settings.database.as_ref().map(|database| Location::parse(database.expose())).transpose()?)
    }

    /// The open database of a command that needs one that is there.
    pub(super) async fn open(&self) -> anyhow::Result<Store> {
        let location = self.needed()?;
        if let Location::File(path) = &location {
            anyhow::ensure!(
                path.exists(),
                "there is no database {location}; `gloveport gateway tenant create` makes it with the first tenant"
            );
        }
        Ok(Store::open(&location).await?)
    }

    /// The same, and a file that is not there is made.
    pub(super) async fn open_or_make(&self) -> anyhow::Result<Store> {
        Ok(Store::open(&self.needed()?).await?)
    }

    fn needed(&self) -> anyhow::Result<Location> {
        let location = self.location(&self.settings()?)?;
        location.with_context(|| {
            format!("no database is given; use --database FILE, the variable {VARIABLE}, or --config FILE")
        })
    }
}

/// Notes in the audit log what the command line has changed.
pub(super) async fn note(
    store: &Store,
    action: &str,
    tenant: &str,
    target: &str,
    detail: Option<String>,
) -> anyhow::Result<()> {
    let event = AuditEvent {
        time: store.now().await?,
        tenant: Some(tenant.to_owned()),
        action: action.to_owned(),
        target: Some(target.to_owned()),
        address: Some("command line".to_owned()),
        result: "done".to_owned(),
        detail,
        ..AuditEvent::default()
    };
    let noted = store.append_audit(&[event]).await;
    noted.with_context(|| format!("the {action} was done, but is not in the audit log"))
}

/// A time of the database for people.
pub(super) fn when(millis: Option<i64>) -> String {
    let time = millis.and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
    time.map_or_else(|| "-".to_owned(), |time| time.strftime("%Y-%m-%d %H:%M:%SZ").to_string())
}
