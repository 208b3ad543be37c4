//! How a sandbox is made: in a task of its own, for a wish, with a key and a record.

use std::time::{Duration, SystemTime};

use gloveport_protocol::Secret;
use gloveport_provider::{
    Progress, ProviderError, Sandbox, SandboxId, SandboxSpec, Teller, backend::random, handed_over,
};
use tokio_util::sync::CancellationToken;

use crate::{
    backend::Backend,
    ports::{self, Reserved},
    record::{self, Labels, Record},
    server::expires,
    service::Service,
};

/// What is done, for messages.
const ACTION: &str = "make a sandbox";
/// Pauses before a wish is looked for whose answer was lost: its sandbox may still be in the making.
pub const LOOKS: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(500), Duration::from_secs(2), Duration::from_secs(5)];
/// Tries of a wish of which the service knows nothing.
pub const WISHES: usize = 3;

/// What a sandbox begins with beside its spec.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The workspace of the sandbox that it is a fork of.
    pub workspace: Option<String>,
    /// The snapshot that it is made from, and that ends with it.
    pub snapshot: Option<String>,
}

/// What makes the sandboxes of one service.
#[derive(Clone, Copy)]
pub struct Maker<'a> {
    /// The name of the provider.
    pub name: &'a str,
    /// The backend.
    pub backend: &'a Backend,
    /// The service.
    pub service: &'a Service,
    /// The labels of its sandboxes.
    pub labels: &'a Labels,
    /// The directory of ours in sandboxes.
    pub directory: &'a str,
    /// Where the work is in all sandboxes; none is a place of its own for each.
    pub workspace: Option<&'a str>,
    /// The port of our server in all sandboxes; none is one by chance.
    pub port: Option<u16>,
    /// First of the ports that are taken by chance, and how many there are.
    pub by_chance: (u16, u16),
    /// Ports that the service has for itself.
    pub reserved: &'a Reserved,
    /// Whether requests to the ports of a sandbox need a token of the service.
    pub private: bool,
}

impl Maker<'_> {
    /// Makes a sandbox in a task of its own: what nobody waits for any more is taken back.
    ///
    /// # Errors
    ///
    /// The backend ends, or it cannot be made.
    pub async fn in_a_task<M, T>(
        &self,
        progress: &Progress,
        make: impl FnOnce(Teller, CancellationToken) -> M + Send + 'static,
        take_back: impl FnOnce(SandboxId) -> T + Send + 'static,
    ) -> Result<Sandbox, ProviderError>
    where
        M: Future<Output = Result<Sandbox, ProviderError>> + Send + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        // The end of the backend waits for what has begun before it.
        let token = self.backend.tasks.token();
        self.backend.check_open(self.name)?;
        let undo = |made: M::Output| async move {
            if let Ok(sandbox) = made {
                take_back(sandbox.id).await;
            }
            drop(token);
        };
        handed_over(progress, make, undo).await.map_err(|error| self.service.failed(ACTION, error))?
    }

    /// Nobody waits for the sandbox any more.
    ///
    /// # Errors
    ///
    /// That is one.
    pub fn unwanted<T>(&self) -> Result<T, ProviderError> {
        Err(self.service.failed(ACTION, "nobody waits for it any more"))
    }

    /// A name that nobody can guess: 32 hexadecimal digits.
    ///
    /// # Errors
    ///
    /// This machine gives no random numbers.
    pub fn random(&self) -> Result<String, ProviderError> {
        random().map_err(|error| self.service.failed("get random numbers", error))
    }

    /// The key of a sandbox: that of the spec, or a new one.
    ///
    /// # Errors
    ///
    /// This machine gives no random numbers.
    pub fn key(&self, spec: &SandboxSpec) -> Result<Secret, ProviderError> {
        spec.session_key.clone().map_or_else(|| self.random().map(Secret::new), Ok)
    }

    /// What the labels of a sandbox are to say that is made for this wish, with the key sealed by the key of the service.
    ///
    /// # Errors
    ///
    /// The service has no key, the backend leaves no traces, or a port is taken.
    pub fn record(
        &self,
        spec: &SandboxSpec,
        key: &Secret,
        wish: &str,
        origin: &Origin,
    ) -> Result<Record, ProviderError> {
        let now = SystemTime::now();
        let sealed = self.labels.seal(self.service.key()?, &spec.session_id, key);
        let by_chance = || wish.get(..4).and_then(|digits| u16::from_str_radix(digits, 16).ok()).unwrap_or_default();
        let port = self.port.unwrap_or_else(|| self.by_chance.0 + by_chance() % self.by_chance.1);
        let directory = format!("{}/{}", self.directory, wish.get(..16).unwrap_or(wish));
        let workspace = origin.workspace.as_deref().or(self.workspace).map(str::to_owned);
        Ok(Record {
            backend: self.backend.backends.label()?,
            kept: spec.keep_alive,
            created: record::seconds(now),
            expires: expires(spec, now),
            key: sealed.map_err(|error| self.service.failed("seal the key of a sandbox", error))?,
            port,
            ports: ports::ports(spec, port, self.reserved)?,
            workspace: workspace.unwrap_or_else(|| format!("{directory}/workspace")),
            directory,
            image: spec.image.clone(),
            private: self.private,
            fork: origin.snapshot.clone(),
        })
    }

    /// What came of a sandbox whose server was started, as it is found; `last_lines` are those of its log.
    ///
    /// # Errors
    ///
    /// It has ended, or is gone.
    pub async fn outcome(
        &self,
        found: Option<Sandbox>,
        last_lines: impl Future<Output = String>,
    ) -> Result<Sandbox, ProviderError> {
        match found {
            Some(found) if found.state.is_live() => Ok(found),
            Some(found) => Err(ProviderError::Start { reason: found.state.reason().to_owned(), log: last_lines.await }),
            None => Err(self.service.failed(ACTION, "it was deleted meanwhile")),
        }
    }
}

/// The session has this sandbox already.
pub fn exists(spec: &SandboxSpec, sandbox: SandboxId) -> ProviderError {
    ProviderError::SessionExists { session: spec.session_id.clone(), sandbox }
}
