//! Providers for the service on this machine, with a program in place of our server.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, time::Duration};

use gloveport_protocol::Secret;
use gloveport_provider::{Progress, Provider as _, ProviderError, Sandbox, SandboxSpec, SessionId};
use gloveport_provider_modal::{Modal, ModalOptions};
use gloveport_stand_ins::{Face as _, StandIn, modal};

/// What is mounted: it says how it was started, keeps its secrets where a test finds them, and goes on until it is told to end
/// with a code, or for as long as a test may take.
const PROGRAM: &str = r#"#!/bin/sh
echo "started with: $*"
echo "port=$port key=${SESSION_API_KEY:+set} input=${GLOVEPORT_INPUT:+set} A=$A"
while test "$1" != --workspace; do shift; done
cd "$2" || exit 9
test -e fail && exit "$(cat fail)"
echo start >>starts
case "$*" in *--input*) read -r line; printf '%s\n' "$line" >secrets;; esac
python3 -c '
import os, socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
parent = os.getppid()
listener.settimeout(0.5)
while os.getppid() == parent:
    try: listener.accept()[0].close()
    except TimeoutError: pass
' "$port" &
left=6000
while ! test -e end && test $left -gt 0; do sleep 0.05; left=$((left - 1)); done
exit "$(cat end)"
"#;

/// A service, and what backends have on this machine.
pub(crate) struct Place {
    pub(crate) service: StandIn<modal::Modal>,
    root: tempfile::TempDir,
}

pub(crate) fn options(service: &StandIn<modal::Modal>, program: PathBuf, backends: PathBuf) -> ModalOptions {
    ModalOptions {
        token_id: Some(modal::Modal::TOKEN_ID.to_owned()),
        token_secret: Some(Secret::new(modal::Modal::KEY)),
        server_url: service.url.clone(),
        app: "tests".to_owned(),
        environment: String::new(),
        image: "debian:13".to_owned(),
        isolation: None,
        regions: Vec::new(),
        cloud: String::new(),
        cpu: 1.0,
        memory: 512,
        directory: service.directory().display().to_string(),
        workspace: None,
        // They share a network.
        port: None,
        time_limit: Duration::from_hours(1),
        answer_within: Duration::from_secs(20),
        start_within: Duration::from_mins(1),
        build_within: Duration::from_mins(1),
        program,
        backends,
    }
}

impl Place {
    pub(crate) async fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let program = root.path().join("program");
        fs::write(&program, PROGRAM).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { service: StandIn::plain().await, root }
    }

    pub(crate) fn program(&self) -> PathBuf {
        self.root.path().join("program")
    }

    pub(crate) fn options(&self) -> ModalOptions {
        options(&self.service, self.program(), self.root.path().join("backends"))
    }

    pub(crate) fn backend(&self) -> Modal {
        Modal::new(self.options())
    }
}

pub(crate) fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

pub(crate) fn spec(name: &str) -> SandboxSpec {
    SandboxSpec::new(session(name))
}

pub(crate) fn kept(name: &str) -> SandboxSpec {
    SandboxSpec { keep_alive: true, ..spec(name) }
}

pub(crate) async fn create(backend: &Modal, spec: &SandboxSpec) -> Result<Sandbox, ProviderError> {
    backend.create(spec, &Progress::silent()).await
}

/// Lets the server of a sandbox end with this code, and waits until that is known.
pub(crate) async fn end(backend: &Modal, sandbox: &Sandbox, code: &str) -> Sandbox {
    let workspace = PathBuf::from(sandbox.workspace.as_ref().unwrap());
    // Whole before it has its name.
    fs::write(workspace.join("end.new"), code).unwrap();
    fs::rename(workspace.join("end.new"), workspace.join("end")).unwrap();
    let began = std::time::Instant::now();
    loop {
        let found = backend.find(&sandbox.id).await.unwrap().unwrap();
        if !found.state.is_live() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{found:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Longest wait for anything, on a machine with much else to do.
const LIMIT: Duration = Duration::from_mins(1);

/// What comes of some work that ends in time.
pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, work).await.unwrap()
}

/// Waits for something that no event tells of.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !holds() {
        assert!(began.elapsed() < LIMIT, "not within {LIMIT:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
