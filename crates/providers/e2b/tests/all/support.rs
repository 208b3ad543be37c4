//! Providers for the service on this machine, with a program in place of our server.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _, path::PathBuf, time::Duration};

use gloveport_protocol::Secret;
use gloveport_provider::{Progress, Provider as _, ProviderError, Sandbox, SandboxSpec, SessionId};
use gloveport_provider_e2b::{E2b, E2bOptions, Traffic};

use crate::standin::{KEY, StandIn};

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
    pub(crate) service: StandIn,
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

    pub(crate) fn options(&self) -> E2bOptions {
        E2bOptions {
            key: Some(Secret::new(KEY)),
            api_url: self.service.url.clone(),
            domain: "sandboxes.test".to_owned(),
            sandbox_url: Some(self.service.url.clone()),
            template: "base".to_owned(),
            templates: BTreeMap::new(),
            user: "root".to_owned(),
            directory: self.service.directory().display().to_string(),
            workspace: None,
            port: None,
            traffic: Traffic::Private,
            time_limit: Duration::from_mins(15),
            answer_within: Duration::from_secs(20),
            program: self.program(),
            backends: self.root.path().join("backends"),
        }
    }

    pub(crate) fn backend(&self) -> E2b {
        E2b::new(self.options())
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

pub(crate) async fn create(e2b: &E2b, spec: &SandboxSpec) -> Result<Sandbox, ProviderError> {
    e2b.create(spec, &Progress::silent()).await
}

/// Lets the server of a sandbox end with this code, and waits until that is known.
pub(crate) async fn end(e2b: &E2b, sandbox: &Sandbox, code: &str) -> Sandbox {
    let workspace = PathBuf::from(sandbox.workspace.as_ref().unwrap());
    // Whole before it has its name.
    fs::write(workspace.join("end.new"), code).unwrap();
    fs::rename(workspace.join("end.new"), workspace.join("end")).unwrap();
    let began = std::time::Instant::now();
    loop {
        let found = e2b.find(&sandbox.id).await.unwrap().unwrap();
        if !found.state.is_live() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{found:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
