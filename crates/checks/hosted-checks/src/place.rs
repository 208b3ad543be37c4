//! A service on this machine, and what backends have here.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, time::Duration};

use gloveport_provider::{Provider, Sandbox, SandboxState};
use gloveport_stand_ins::{Face, Fault, Kind, Seen, StandIn};
use http::Method;

use crate::steps::{Act, Call, running};

/// What is put into sandboxes: it says how it was started, keeps its secrets where a test finds them, and goes on until it is told
/// to end with a code, or for as long as a test may take.
const BEGIN: &str = r#"#!/bin/sh
echo "started with: $*"
echo "port=$port key=${SESSION_API_KEY:+set} input=${GLOVEPORT_INPUT:+set} A=$A"
while test "$1" != --workspace; do shift; done
cd "$2" || exit 9
echo start >>starts
case "$*" in *--input*) read -r line; printf '%s\n' "$line" >secrets;; esac
"#;
const UNTIL_THE_END: &str = r#"left=6000
while ! test -e end && test $left -gt 0; do sleep 0.05; left=$((left - 1)); done
exit "$(cat end)"
"#;

/// What checks ask of a service on this machine.
pub trait Service: Sized + 'static {
    /// Starts it on a port that is free.
    fn start(kind: Kind) -> impl Future<Output = Self>;
    /// A directory that sandboxes which are not apart may use.
    fn directory(&self) -> PathBuf;
    /// The next request with this method whose path has this part fails so.
    fn fail(&self, method: Method, part: &str, fault: Fault);
    /// Requests that came since this was asked last.
    fn seen(&self) -> Vec<Seen>;
    /// Ids of the sandboxes that it has and that have not ended.
    fn ids(&self) -> Vec<String>;
    /// Most members of a page of a list.
    fn set_page(&self, page: usize);
    /// Somebody deletes a sandbox, on a dashboard.
    fn delete(&self, id: &str);
}

impl<F: Face> Service for StandIn<F> {
    async fn start(kind: Kind) -> Self {
        Self::start(kind).await
    }

    fn directory(&self) -> PathBuf {
        self.directory()
    }

    fn fail(&self, method: Method, part: &str, fault: Fault) {
        self.fail(method, part, fault);
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen()
    }

    fn ids(&self) -> Vec<String> {
        self.ids()
    }

    fn set_page(&self, page: usize) {
        self.set_page(page);
    }

    fn delete(&self, id: &str) {
        self.delete(id);
    }
}

/// A hosted service and the provider for it.
pub trait Hosted: 'static {
    /// The service on this machine.
    type Service: Service;
    /// How the provider is made.
    type Options: Clone + Send + Sync + 'static;
    /// The provider.
    type Backend: Provider + 'static;

    /// The call that makes a sandbox: its method, and its path or the end of it.
    const WISH: Call<'static>;
    /// The calls of each act that the provider knows, the one that does it last. A deletion is the last act.
    const CALLS: &'static [(Act, &'static [Call<'static>])];
    /// The status of a refusal to whoever may not do something.
    const FORBIDDEN: u16 = 403;
    /// Whether a sandbox runs as soon as it is made, and is gone as soon as making it has failed. Else both take a moment.
    const AT_ONCE: bool = true;
    /// Whether the server of a sandbox has read its secrets when the sandbox is made. Else that takes a moment.
    const TOLD_AT_ONCE: bool = false;
    /// Lines of shell that the server of a sandbox executes before it waits for its end.
    const MORE: &'static str = "";

    /// How the provider is made for a service on this machine.
    fn options(service: &Self::Service, here: Here) -> Self::Options;

    /// The provider.
    fn backend(options: Self::Options) -> Self::Backend;

    /// Names of the snapshots that the service has and that end with sandboxes; none where there are no such.
    fn snapshots(service: &Self::Service) -> Vec<String>;
}

/// What a provider has on this machine, and how much time.
#[derive(Clone, Debug)]
pub struct Here {
    /// The program that is put into sandboxes.
    pub program: PathBuf,
    /// The directory of what backends say of themselves.
    pub backends: PathBuf,
    /// The directory of ours in a sandbox.
    pub directory: String,
    /// Where the work is in a sandbox; none is a place for each that is below the directory.
    pub workspace: Option<String>,
    /// The longest wait for an answer of the service.
    pub answer_within: Duration,
    /// The longest wait for a sandbox.
    pub start_within: Duration,
}

/// A service, and what backends have on this machine. The server of each sandbox is a small script.
pub struct Place<H: Hosted> {
    /// The service.
    pub service: H::Service,
    root: tempfile::TempDir,
}

impl<H: Hosted> Place<H> {
    /// A service that has no sandboxes yet.
    pub async fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let program = root.path().join("program");
        fs::write(&program, [BEGIN, H::MORE, UNTIL_THE_END].concat()).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { service: H::Service::start(Kind::Plain).await, root }
    }

    /// The program that is put into sandboxes.
    pub fn program(&self) -> PathBuf {
        self.root.path().join("program")
    }

    /// How a provider is made.
    pub fn options(&self) -> H::Options {
        let here = Here {
            program: self.program(),
            backends: self.root.path().join("backends"),
            directory: self.service.directory().display().to_string(),
            workspace: None,
            answer_within: Duration::from_secs(20),
            start_within: Duration::from_mins(1),
        };
        H::options(&self.service, here)
    }

    /// A provider, as another process would have it.
    pub fn backend(&self) -> H::Backend {
        H::backend(self.options())
    }

    /// A provider with other options.
    pub fn backend_with(&self, change: impl FnOnce(&mut H::Options)) -> H::Backend {
        let mut options = self.options();
        change(&mut options);
        H::backend(options)
    }
}

/// A sandbox that runs: now, or a moment later where the provider says so.
pub async fn runs<H: Hosted>(backend: &H::Backend, sandbox: &Sandbox) -> Sandbox {
    if !H::AT_ONCE {
        return running(backend, sandbox).await;
    }
    let found = backend.find(&sandbox.id).await.unwrap().unwrap();
    assert_eq!(found.state, SandboxState::Running);
    found
}
