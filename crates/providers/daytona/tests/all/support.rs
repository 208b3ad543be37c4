//! Providers for the service on this machine, with a program in place of our server.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _, path::PathBuf, time::Duration};

use gloveport_protocol::Secret;
use gloveport_provider::{Progress, Provider as _, ProviderError, Sandbox, SandboxSpec, SessionId};
use gloveport_provider_daytona::{Daytona, DaytonaOptions, Traffic};
use gloveport_stand_ins::{Face as _, StandIn, daytona};

/// The key that the service takes.
pub(crate) const KEY: &str = daytona::Daytona::KEY;

/// What is uploaded: it says how it was started, keeps its secrets where a test finds them, and goes on until it is told to end
/// with a code.
const PROGRAM: &str = r#"#!/bin/sh
echo "started with: $*"
echo "port=$port key=${SESSION_API_KEY:+set} A=$A"
while test "$1" != --workspace; do shift; done
cd "$2" || exit 9
case "$*" in *--input*) read -r line; printf '%s\n' "$line" >secrets;; esac
while ! test -e end; do sleep 0.05; done
exit "$(cat end)"
"#;

/// A service, and what backends have on this machine.
pub(crate) struct Place {
    pub(crate) service: StandIn<daytona::Daytona>,
    root: tempfile::TempDir,
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

    pub(crate) fn options(&self) -> DaytonaOptions {
        DaytonaOptions {
            key: Some(Secret::new(KEY)),
            api_url: format!("{}/api", self.service.url),
            target: None,
            snapshot: None,
            image: None,
            snapshots: BTreeMap::new(),
            user: None,
            directory: self.service.directory().display().to_string(),
            workspace: None,
            port: None,
            traffic: Traffic::Private,
            auto_stop: true,
            time_limit: Duration::from_mins(15),
            answer_within: Duration::from_secs(20),
            start_within: Duration::from_secs(30),
            program: self.program(),
            backends: self.root.path().join("backends"),
        }
    }

    pub(crate) fn backend(&self) -> Daytona {
        Daytona::new(self.options())
    }

    /// Names of the snapshots that there are.
    pub(crate) fn snapshots(&self) -> Vec<String> {
        self.service.world().face.snapshots()
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

pub(crate) async fn create(daytona: &Daytona, spec: &SandboxSpec) -> Result<Sandbox, ProviderError> {
    daytona.create(spec, &Progress::silent()).await
}

/// Lets the server of a sandbox end with this code, and waits until that is known.
pub(crate) async fn end(daytona: &Daytona, sandbox: &Sandbox, code: &str) -> Sandbox {
    let workspace = PathBuf::from(sandbox.workspace.as_ref().unwrap());
    // Whole before it has its name.
    fs::write(workspace.join("end.new"), code).unwrap();
    fs::rename(workspace.join("end.new"), workspace.join("end")).unwrap();
    let began = std::time::Instant::now();
    loop {
        let found = daytona.find(&sandbox.id).await.unwrap().unwrap();
        if !found.state.is_live() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{found:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until the server of a sandbox runs.
pub(crate) async fn running(daytona: &Daytona, sandbox: &Sandbox) -> Sandbox {
    let began = std::time::Instant::now();
    loop {
        let found = daytona.find(&sandbox.id).await.unwrap().unwrap();
        if found.state == gloveport_provider::SandboxState::Running {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{found:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
