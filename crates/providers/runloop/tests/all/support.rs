//! Providers for the service on this machine, with a program in place of our server.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _, path::PathBuf, time::Duration};

use gloveport_protocol::Secret;
use gloveport_provider::{Progress, Provider as _, ProviderError, Sandbox, SandboxSpec, SessionId};
use gloveport_provider_runloop::{Runloop, RunloopOptions, Tunnel};
use gloveport_stand_ins::{Face as _, StandIn, runloop};

/// What is mounted: it says how it was started, keeps its secrets where a test finds them, and goes on until it is told to end
/// with a code, or for as long as a test may take.
const PROGRAM: &str = r#"#!/bin/sh
echo "started with: $*"
echo "port=$port key=${SESSION_API_KEY:+set} input=${GLOVEPORT_INPUT:+set} A=$A"
while test "$1" != --workspace; do shift; done
cd "$2" || exit 9
echo start >>starts
case "$*" in *--input*) read -r line; printf '%s\n' "$line" >secrets;; esac
left=6000
while ! test -e end && test $left -gt 0; do sleep 0.05; left=$((left - 1)); done
exit "$(cat end)"
"#;

/// A service, and what backends have on this machine.
pub(crate) struct Place {
    pub(crate) service: StandIn<runloop::Runloop>,
    root: tempfile::TempDir,
}

pub(crate) fn options(service: &StandIn<runloop::Runloop>, program: PathBuf, backends: PathBuf) -> RunloopOptions {
    RunloopOptions {
        key: Some(Secret::new(runloop::Runloop::KEY)),
        api_url: service.url.clone(),
        port_url: format!("{}/tunnels/{{tunnel_key}}/{{port}}", service.url),
        blueprint: None,
        blueprints: BTreeMap::new(),
        size: "SMALL".to_owned(),
        directory: service.directory().display().to_string(),
        workspace: None,
        // They share a network.
        port: None,
        tunnel: Tunnel::Authenticated,
        time_limit: Duration::from_mins(15),
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

    pub(crate) fn options(&self) -> RunloopOptions {
        options(&self.service, self.program(), self.root.path().join("backends"))
    }

    pub(crate) fn backend(&self) -> Runloop {
        Runloop::new(self.options())
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

pub(crate) async fn create(runloop: &Runloop, spec: &SandboxSpec) -> Result<Sandbox, ProviderError> {
    runloop.create(spec, &Progress::silent()).await
}

/// Lets the server of a sandbox end with this code, and waits until that is known.
pub(crate) async fn end(runloop: &Runloop, sandbox: &Sandbox, code: &str) -> Sandbox {
    let workspace = PathBuf::from(sandbox.workspace.as_ref().unwrap());
    // Whole before it has its name.
    fs::write(workspace.join("end.new"), code).unwrap();
    fs::rename(workspace.join("end.new"), workspace.join("end")).unwrap();
    let began = std::time::Instant::now();
    loop {
        let found = runloop.find(&sandbox.id).await.unwrap().unwrap();
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
