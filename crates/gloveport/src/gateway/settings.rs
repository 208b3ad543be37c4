//! The configuration file of a gateway.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use gloveport_allow_list::Network;
use gloveport_gateway::WarmPool;
use gloveport_gateway_store::Limits;
use gloveport_protocol::Secret;
use gloveport_provider::Level;
use serde::{Deserialize, Deserializer, de::Error as _};

use super::e2b::E2bSettings;
use crate::session::values;

/// All of it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    gateway: Settings,
    #[serde(default)]
    e2b: E2bSettings,
    #[serde(default)]
    warm: Vec<WarmSettings>,
}

/// What a file says of sandboxes that are started ahead.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WarmSettings {
    name: Option<String>,
    image: Option<String>,
    resource_factor: Option<u32>,
    #[serde(default)]
    plugins: Vec<String>,
    floor: usize,
    ceiling: Option<usize>,
}

impl WarmSettings {
    fn pool(self, number: usize) -> WarmPool {
        let Self { name, image, resource_factor, plugins, floor, ceiling } = self;
        let (name, ceiling) = (name.unwrap_or_else(|| format!("warm-{number}")), ceiling.unwrap_or(floor));
        WarmPool { name, image, resource_factor, plugins, floor, ceiling }
    }
}

/// What a file says of the gateway. Paths are those of the file, with its directory before them.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Settings {
    pub(super) runtime: Option<String>,
    pub(super) host: Option<IpAddr>,
    pub(super) port: Option<u16>,
    pub(super) key_file: Option<PathBuf>,
    pub(super) public_url: Option<String>,
    pub(super) domain: Option<String>,
    pub(super) tls_cert: Option<PathBuf>,
    pub(super) tls_key: Option<PathBuf>,
    pub(super) acme: bool,
    pub(super) acme_email: Option<String>,
    pub(super) acme_directory: Option<String>,
    pub(super) acme_root: Option<PathBuf>,
    pub(super) acme_dns_hook: Option<PathBuf>,
    pub(super) acme_store: Option<PathBuf>,
    #[serde(deserialize_with = "networks")]
    pub(super) trusted_proxies: Vec<Network>,
    pub(super) allow_origins: Vec<String>,
    pub(super) build_images: bool,
    pub(super) image_prefix: Option<String>,
    pub(super) wake: bool,
    #[serde(deserialize_with = "level")]
    pub(super) isolation: Option<Level>,
    pub(super) metrics_address: Option<SocketAddr>,
    #[serde(deserialize_with = "time")]
    pub(super) drain: Option<Duration>,
    #[serde(deserialize_with = "time")]
    pub(super) ttl: Option<Duration>,
    #[serde(deserialize_with = "time")]
    pub(super) idle_stop: Option<Duration>,
    pub(super) sessions_directory: Option<PathBuf>,
    #[serde(deserialize_with = "time")]
    pub(super) session_idle: Option<Duration>,
    pub(super) database: Option<Secret>,
    pub(super) database_file: Option<PathBuf>,
    /// Processors that a sandbox of factor 1 counts for.
    #[serde(deserialize_with = "processors")]
    pub(super) sandbox_cpus: Option<u64>,
    /// Memory that a sandbox of factor 1 counts for.
    #[serde(deserialize_with = "size")]
    pub(super) sandbox_memory: Option<u64>,
    pub(super) tenants: BTreeMap<String, TenantSettings>,
    /// The section `[e2b]`.
    #[serde(skip)]
    pub(super) e2b: E2bSettings,
    /// Of the sections `[[warm]]`.
    #[serde(skip)]
    pub(super) warm: Vec<WarmPool>,
}

/// What a file says of a tenant.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TenantSettings {
    running: Option<u64>,
    #[serde(deserialize_with = "processors")]
    cpus: Option<u64>,
    #[serde(deserialize_with = "size")]
    memory: Option<u64>,
    starts_per_minute: Option<u64>,
    snapshots: Option<u64>,
    images: Option<Vec<String>>,
    classes: Option<Vec<String>>,
    largest_factor: Option<u64>,
    #[serde(deserialize_with = "time")]
    longest_life: Option<Duration>,
    #[serde(deserialize_with = "time")]
    longest_idle: Option<Duration>,
    pub(super) disabled: bool,
}

impl TenantSettings {
    pub(super) fn limits(&self) -> Limits {
        Limits {
            running: self.running,
            cpu_millis: self.cpus,
            memory_bytes: self.memory,
            starts_per_minute: self.starts_per_minute,
            snapshots: self.snapshots,
            images: self.images.clone(),
            classes: self.classes.clone(),
            largest_factor: self.largest_factor,
            longest_life: self.longest_life.map(|time| time.as_secs()),
            longest_idle: self.longest_idle.map(|time| time.as_secs()),
        }
    }
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    values::duration(&text).map(Some).map_err(D::Error::custom)
}

fn level<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Level>, D::Error> {
    let text = String::deserialize(deserializer)?;
    values::level(&text).map(Some).map_err(D::Error::custom)
}

fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Network>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
}

fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(deserializer)?;
    values::memory(&text).map(Some).map_err(D::Error::custom)
}

fn processors<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let number = f64::deserialize(deserializer)?;
    thousandths(&number.to_string()).map(Some).map_err(D::Error::custom)
}

/// A number of processors, in thousandths.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is positive and at most 4,096")]
pub(super) fn thousandths(text: &str) -> Result<u64, String> {
    values::processors(text).map(|number| (number * 1000.0).ceil() as u64)
}

/// Reads a file. Its lines are not shown in errors, as one of them may have a password.
pub(super) fn read(path: &Path) -> anyhow::Result<Settings> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read the configuration file {shown}"))?;
    let file: File = toml::from_str(&text).map_err(|error| {
        let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        let line = line.map_or_else(String::new, |line| format!(", line {line}"));
        anyhow::anyhow!("{shown}{line}: {}", error.message())
    })?;
    let mut settings = file.gateway;
    settings.e2b = file.e2b;
    settings.warm = (1..).zip(file.warm).map(|(number, warm)| warm.pool(number)).collect();
    anyhow::ensure!(
        settings.database.is_none() || settings.database_file.is_none(),
        "{shown}: `database` and `database_file` cannot both be given"
    );
    let directory = path.parent().unwrap_or(Path::new(""));
    let files = [
        &mut settings.key_file,
        &mut settings.database_file,
        &mut settings.tls_cert,
        &mut settings.tls_key,
        &mut settings.acme_root,
        &mut settings.acme_dns_hook,
        &mut settings.acme_store,
        &mut settings.sessions_directory,
    ];
    for file in files.into_iter().flatten() {
        *file = directory.join(&*file);
    }
    if let Some(database) = &mut settings.database
        && !database.expose().contains("://")
    {
        let joined = directory.join(database.expose());
        *database = Secret::new(joined.to_str().context("the path of the database is not UTF-8")?);
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> anyhow::Result<Settings> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gateway.toml");
        std::fs::write(&path, text).unwrap();
        read(&path)
    }

    #[test]
    fn a_file_says_how_a_gateway_is_and_what_its_tenants_may() {
        let read = settings(
            "[gateway]\nruntime = \"docker\"\nhost = \"0.0.0.0\"\nttl = \"12h\"\nsandbox_cpus = 0.5\ndatabase = \"gateway.db\"\n\
             [gateway.tenants.a]\nrunning = 3\ncpus = 2\nmemory = \"8GiB\"\nimages = [\"x/*\"]\nlongest_life = \"1h\"\n",
        )
        .unwrap();
        assert_eq!(
            (read.runtime.as_deref(), read.ttl, read.sandbox_cpus),
            (Some("docker"), Some(Duration::from_hours(12)), Some(500))
        );
        assert!(read.database.unwrap().expose().ends_with("/gateway.db"));
        let limits = read.tenants["a"].limits();
        assert_eq!(
            (limits.cpu_millis, limits.memory_bytes, limits.longest_life),
            (Some(2000), Some(8 << 30), Some(3600))
        );
        assert!(settings("").unwrap().database.is_none());
        let pools = "[[warm]]\nimage = \"x\"\nplugins = [\"vscode\"]\nfloor = 2\nceiling = 8\n[[warm]]\nfloor = 1\n";
        let [first, second]: [WarmPool; 2] = settings(pools).unwrap().warm.try_into().unwrap();
        assert_eq!(
            (first.name.as_str(), first.image.as_deref(), first.floor, first.ceiling),
            ("warm-1", Some("x"), 2, 8)
        );
        assert_eq!((second.name.as_str(), second.image, second.floor, second.ceiling), ("warm-2", None, 1, 1));
    }

    #[test]
    fn what_is_wrong_in_a_file_is_told_with_its_line_and_without_what_it_says() {
        for (text, expected) in [
            ("[gateway]\n\nruntme = \"docker\"\n", "line 3: unknown field `runtme`"),
            ("[gatway]\n", "line 1: unknown field `gatway`"),
            ("[gateway.tenants.a]\nrunning = -1\n", "line 2: invalid value"),
            ("[gateway.tenants.a]\nlimit = 1\n", "line 2: unknown field `limit`"),
            ("[e2b]\nenable = true\n", "line 2: unknown field `enable`"),
            ("[[warm]]\nfloor = 1\nroof = 2\n", "line 3: unknown field `roof`"),
            ("[[warm]]\nimage = \"x\"\n", "missing field `floor`"),
            ("[gateway]\nttl = \"soon\"\n", "line 2: it must be a time"),
            ("[gateway]\ndatabase = postgres://me:hunter2@db/x\n", "line 2: "),
            ("[gateway]\ndatabase = \"a\"\ndatabase_file = \"b\"\n", "cannot both be given"),
        ] {
            let error = settings(text).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains("hunter2"), "{text}: {error}");
        }
    }
}
