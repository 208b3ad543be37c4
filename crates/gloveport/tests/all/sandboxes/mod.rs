//! A state directory of its own, and what is in it and lives.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use gloveport_client::ActionExecutionClient;
use gloveport_protocol::{Action, ActionEvent, ActionExecutor as _, ExecuteError, Observation, RunAction};
use gloveport_provider::{Sandbox, SandboxSpec, SessionId};
use gloveport_provider_local::{Local, LocalOptions, Observer};
use gloveport_sys::process;
pub(crate) use gloveport_testing::until;
use tempfile::TempDir;

/// Longest wait for anything.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// Whether this machine can make containers; if not, why is printed for the test that is skipped.
#[expect(clippy::print_stderr, reason = "it is told to whoever reads the output of the tests")]
pub(crate) fn has_containers() -> bool {
    let tried = gloveport_sandbox::trial::containers(Path::new(env!("CARGO_BIN_EXE_gloveport"))).unwrap();
    if let Err(why) = &tried {
        eprintln!("skipped: there are no containers here: {why}");
    }
    tried.is_ok()
}

/// Whether a container can have a kernel of its own; if not, why is printed for the test that is skipped.
#[expect(clippy::print_stderr, reason = "it is told to whoever reads the output of the tests")]
pub(crate) fn has_kernels() -> bool {
    let path = std::env::var("PATH").unwrap();
    let tried = match gloveport_provider_local::runsc(&path) {
        Some(runsc) => gloveport_sandbox::trial::kernels(Path::new(env!("CARGO_BIN_EXE_gloveport")), &runsc).unwrap(),
        None => Err("there is no `runsc`".to_owned()),
    };
    if let Err(why) = &tried {
        eprintln!("skipped: no sandbox can have a kernel of its own here: {why}");
    }
    tried.is_ok()
}

/// A home for backends that share their sandboxes.
pub(crate) struct Place {
    root: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for directory in ["home", "tmp"] {
            fs::create_dir(root.path().join(directory)).unwrap();
        }
        Self { root }
    }

    pub(crate) fn path(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    pub(crate) fn options(&self) -> LocalOptions {
        options_at(self.path())
    }

    pub(crate) fn backend(&self) -> Local {
        Local::new(self.options()).unwrap()
    }

    /// All files that are left of sandboxes and servers, below the place. The journals of file writers are not theirs.
    pub(crate) fn left(&self) -> Vec<String> {
        let directories = ["state/new", "state/sandboxes", "state/old", "state/backends", "tmp"];
        let mut left = Vec::new();
        for directory in directories {
            for entry in fs::read_dir(self.path().join(directory)).into_iter().flatten() {
                left.push(format!("{directory}/{}", entry.unwrap().file_name().display()));
                left.retain(|path| !path.contains("/.gloveport-"));
            }
        }
        left
    }
}

/// Options of a backend whose place is this directory.
pub(crate) fn options_at(root: &Path) -> LocalOptions {
    let path = |name: &str| root.join(name).display().to_string();
    let environment: BTreeMap<String, String> = [
        ("PATH".to_owned(), std::env::var("PATH").unwrap()),
        ("HOME".to_owned(), path("home")),
        ("TMPDIR".to_owned(), path("tmp")),
    ]
    .into();
    LocalOptions {
        program: env!("CARGO_BIN_EXE_gloveport").into(),
        state: root.join("state"),
        temporary: root.join("tmp"),
        environment,
        url: "http://localhost".to_owned(),
        warm: 0,
        start_limit: Duration::from_mins(1),
        grace: Duration::from_secs(5),
        observer: Observer::default(),
    }
}

pub(crate) fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

pub(crate) fn spec(name: &str) -> SandboxSpec {
    SandboxSpec::new(session(name))
}

pub(crate) fn client(sandbox: &Sandbox) -> ActionExecutionClient {
    gloveport_hosting::client(sandbox).unwrap()
}

/// Runs a command in a sandbox and gives its output.
pub(crate) async fn run(sandbox: &Sandbox, command: &str) -> String {
    try_run(sandbox, command).await.unwrap()
}

/// The same where it may fail.
pub(crate) async fn try_run(sandbox: &Sandbox, command: &str) -> Result<String, ExecuteError> {
    let event = ActionEvent::from(Action::Run(RunAction::new(command)));
    Ok(match client(sandbox).execute(&event).await? {
        Observation::Run(observation) => observation.content,
        other => format!("{other:?}"),
    })
}

/// The command lines of all living processes that have something to do with the place: by their arguments, their
/// directory, or the locks that they hold.
pub(crate) fn alive_in(place: &Place) -> Vec<String> {
    let root = place.path().display().to_string();
    let mut alive = Vec::new();
    for pid in process::all() {
        if pid == std::process::id() || process::stat(pid).is_none_or(|stat| stat.state == 'Z') {
            continue;
        }
        let line = process::command_line(pid).unwrap_or_default();
        let directory = process::working_directory(pid).unwrap_or_default();
        let locks = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let holds = locks
            .filter_map(|entry| fs::read_link(entry.path()).ok())
            .any(|target| target.starts_with(place.state()) && target.to_string_lossy().contains("/lock"));
        if line.contains(&root) || directory.starts_with(place.path()) || holds {
            alive.push(format!("{pid} {line} in {}", directory.display()));
        }
    }
    alive
}
