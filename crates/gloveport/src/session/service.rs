//! A gateway as the runtime of session commands, without any configuration.

use std::path::PathBuf;

use clap::Args;
use gloveport_config::Loaded;
use gloveport_protocol::Secret;
use gloveport_provider_remote::Remote;

use crate::key_file;

/// The variable with the URL of a gateway.
const URL: &str = "GLOVEPORT_GATEWAY";
/// The variable with the file that has its key.
const KEY_FILE: &str = "GLOVEPORT_GATEWAY_KEY_FILE";
/// The variable with the key itself.
const KEY: &str = "GLOVEPORT_GATEWAY_KEY";
/// The variable that names a runtime.
const RUNTIME: &str = "GLOVEPORT_RUNTIME";

/// Which gateway is meant.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct GatewayFlags {
    /// Use the sandboxes of the gateway at this URL, such as https://sandboxes.example.org, which is the runtime `remote`
    /// without any configuration. [env: GLOVEPORT_GATEWAY=]
    #[arg(long, value_name = "URL", global = true)]
    gateway: Option<String>,
    /// File with the key of the gateway. The variable GLOVEPORT_GATEWAY_KEY can have the key itself. [env:
    /// GLOVEPORT_GATEWAY_KEY_FILE=]
    #[arg(long, value_name = "FILE", global = true)]
    gateway_key_file: Option<PathBuf>,
}

/// A gateway that commands use.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    url: String,
    /// The file that the command line names.
    key_file: Option<PathBuf>,
}

/// What is wrong with flags that contradict each other.
#[derive(Debug, thiserror::Error)]
#[error(
    "--gateway and --runtime {0} exclude each other: the sandboxes of a gateway are those of the runtime `remote`; leave one of \
     both out"
)]
pub(crate) struct Contradiction(String);

/// The value of a variable that is set to something.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl GatewayFlags {
    /// Whether the command line names one.
    pub(crate) fn is_given(&self) -> bool {
        self.gateway.is_some()
    }

    /// The gateway that is meant beside this runtime, which comes from its flag or its variable. A flag counts more than a
    /// variable, and the gateway of a variable more than the runtime of one.
    pub(crate) fn service(self, runtime: Option<&str>) -> Result<Option<Service>, Contradiction> {
        let runtime = runtime.filter(|name| !name.is_empty());
        let by_flag = runtime.filter(|name| variable(RUNTIME).as_deref() != Some(*name));
        let other = by_flag.filter(|name| *name != Remote::NAME);
        let url = match (self.gateway, other) {
            (Some(_), Some(other)) => return Err(Contradiction(other.to_owned())),
            (Some(url), None) => Some(url),
            (None, Some(_)) => None,
            (None, None) => variable(URL),
        };
        Ok(url.map(|url| Service { url, key_file: self.gateway_key_file }))
    }
}

impl Service {
    /// Sets what the configuration would say of it.
    pub(crate) fn put_into(self, loaded: &mut Loaded) -> anyhow::Result<()> {
        let file = self.key_file.or_else(|| variable(KEY_FILE).map(PathBuf::from).filter(|_| variable(KEY).is_none()));
        let key = match file {
            Some(file) => Some(key_file::given(&file)?),
            None => variable(KEY).map(|key| key.trim().to_owned()),
        };
        let sandbox = &mut loaded.config.sandbox;
        anyhow::ensure!(
            key.is_some() || sandbox.api_key.as_ref().is_some_and(|key| !key.is_empty()),
            "the gateway at {} needs a key; name its file with --gateway-key-file or {KEY_FILE}",
            self.url
        );
        sandbox.remote_runtime_api_url = Some(self.url);
        if let Some(key) = key {
            sandbox.api_key = Some(Secret::new(key));
        }
        Ok(())
    }
}
