//! What tests do with sandboxes.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use futures_util::StreamExt as _;
use gloveport_protocol::Secret;
use gloveport_provider::{
    GcOptions, ListFilter, LogOptions, NetworkPolicy, Progress, Provider, ProviderError, Sandbox, SandboxId,
    SandboxSpec, SandboxState, SessionId,
};
use gloveport_testing::within;
use http::Method;

/// Longest wait for a state.
const LIMIT: Duration = Duration::from_secs(30);
/// A secret of a sandbox.
pub const SECRET: &str = "hunter2";
/// The variable `A` of a sandbox that has the secret.
pub const A: &str = "it's two words";

/// A session of this name.
pub fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

/// A sandbox for the session of this name that lives as long as its backend.
pub fn spec(name: &str) -> SandboxSpec {
    SandboxSpec::new(session(name))
}

/// A sandbox for the session of this name that is kept.
pub fn kept(name: &str) -> SandboxSpec {
    SandboxSpec { keep_alive: true, ..spec(name) }
}

/// The same with the secret `S`, [`SECRET`], and the variable [`A`].
pub fn with_secret(spec: SandboxSpec) -> SandboxSpec {
    let secrets = [("S".to_owned(), Secret::new(SECRET))].into();
    let environment = [("A".to_owned(), A.to_owned())].into();
    SandboxSpec { secrets, environment, ..spec }
}

/// The same with a network that leads to two places alone, one by its name and one by its addresses.
pub fn confined(spec: SandboxSpec) -> SandboxSpec {
    let network = NetworkPolicy::Only(vec!["pypi.org".to_owned(), "10.0.0.0/8".to_owned()]);
    SandboxSpec { network, ..spec }
}

/// The directory of a sandbox whose paths are those of this machine.
pub fn workspace(sandbox: &Sandbox) -> PathBuf {
    PathBuf::from(sandbox.workspace.as_ref().unwrap())
}

/// Whether the server of a sandbox was told the secret, and nothing else.
pub fn was_told_the_secret(sandbox: &Sandbox) -> bool {
    let expected = format!("{{\"secrets\":{{\"S\":\"{SECRET}\"}}}}\n");
    fs::read_to_string(workspace(sandbox).join("secrets")).is_ok_and(|told| told == expected)
}

/// Makes a sandbox, and tells nobody of the progress.
pub async fn create(backend: &impl Provider, spec: &SandboxSpec) -> Result<Sandbox, ProviderError> {
    backend.create(spec, &Progress::silent()).await
}

/// Lets the server of a sandbox end with this code, and waits until that is known.
pub async fn end(backend: &impl Provider, sandbox: &Sandbox, code: &str) -> Sandbox {
    let workspace = workspace(sandbox);
    // Whole before it has its name.
    fs::write(workspace.join("end.new"), code).unwrap();
    fs::rename(workspace.join("end.new"), workspace.join("end")).unwrap();
    found(backend, &sandbox.id, |found| !found.state.is_live()).await
}

/// Waits until the server of a sandbox runs.
pub async fn running(backend: &impl Provider, sandbox: &Sandbox) -> Sandbox {
    found(backend, &sandbox.id, |found| found.state == SandboxState::Running).await
}

async fn found(backend: &impl Provider, id: &SandboxId, is_it: impl Fn(&Sandbox) -> bool) -> Sandbox {
    let began = Instant::now();
    loop {
        let found = backend.find(id).await.unwrap().unwrap();
        if is_it(&found) {
            return found;
        }
        assert!(began.elapsed() < LIMIT, "{found:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The log of a sandbox.
pub async fn log_of(backend: &impl Provider, id: &SandboxId, options: LogOptions) -> String {
    let pieces: Vec<_> = within(backend.logs(id, options).await.unwrap().collect::<Vec<_>>()).await;
    let bytes: Vec<u8> = pieces.into_iter().flat_map(|piece| piece.unwrap().to_vec()).collect();
    String::from_utf8(bytes).unwrap()
}

/// A call of a service: its method, and a part of its path.
pub type Call<'a> = (Method, &'a str);

/// All that a provider does for a sandbox that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It is found by its id.
    Find,
    /// All are listed.
    List,
    /// What its server has written is read.
    Logs,
    /// The backend uses it from now on.
    Hold,
    /// It rests.
    Pause,
    /// It goes on.
    Resume,
    /// Its files are kept.
    Snapshot,
    /// Another session gets a copy.
    Fork,
    /// It is deleted.
    Delete,
    /// What nobody wants any more is removed.
    Garbage,
}

impl Act {
    /// Does it.
    pub async fn on(self, backend: &impl Provider, id: &SandboxId) -> Result<(), ProviderError> {
        match self {
            Self::Find => backend.find(id).await.map(drop),
            Self::List => backend.list(&ListFilter::default()).await.map(drop),
            Self::Logs => {
                log_of(backend, id, LogOptions::default()).await;
                Ok(())
            }
            Self::Hold => backend.hold(id).await,
            Self::Pause => backend.pause(id).await,
            Self::Resume => backend.resume(id).await,
            Self::Snapshot => backend.snapshot(id, "x").await.map(drop),
            Self::Fork => backend.fork(id, &session("f"), &Progress::silent()).await.map(drop),
            Self::Delete => backend.delete(id).await.map(drop),
            Self::Garbage => backend.collect_garbage(&GcOptions::default()).await.map(drop),
        }
    }

    /// Does all of these, one after the other.
    pub async fn all_on(acts: &[Self], backend: &impl Provider, id: &SandboxId) {
        for act in acts {
            act.on(backend, id).await.unwrap_or_else(|error| panic!("{act:?}: {error}"));
        }
    }

    /// Does it where there is nothing of ours that it could be done to.
    pub async fn finds_nothing(self, backend: &impl Provider, id: &SandboxId) {
        let result = self.on(backend, id).await;
        assert!(matches!(result, Err(ProviderError::NotFound(_))), "{self:?}: {result:?}");
    }
}
