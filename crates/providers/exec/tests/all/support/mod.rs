//! Provider programs written in the test, as shell scripts.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use gloveport_provider::{ProviderError, SandboxSpec, SessionId};
use gloveport_provider_exec::{Exec, ExecOptions};
use tempfile::TempDir;

/// What a well-behaved program says of itself.
pub(crate) const DESCRIBED: &str = r#"{"protocol": 1, "capabilities": {"logs": true, "pause": true}}"#;

/// A sandbox of the session `s`.
pub(crate) const SANDBOX: &str =
    r#"{"id": "b", "session_id": "s", "state": "running", "lifetime": "backend", "url": "http://127.0.0.1:1/"}"#;

/// A program in a directory of its own.
pub(crate) struct Program {
    pub(crate) directory: TempDir,
    pub(crate) path: PathBuf,
}

impl Program {
    /// With this description, and this body for all other verbs. `$DIR` is its directory and `$SANDBOX` a sandbox.
    pub(crate) fn new(described: &str, body: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("program");
        let place = directory.path().display();
        let script = format!(
            "#!/bin/sh\nDIR='{place}'\nSANDBOX='{SANDBOX}'\nif test \"$1\" = describe; then cat <<'END'\n{described}\nEND\n\
             exit; fi\n{body}\n"
        );
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        Self { directory, path }
    }

    pub(crate) fn options(&self) -> ExecOptions {
        ExecOptions {
            name: "exec:test".to_owned(),
            program: self.path.clone(),
            server: "/opt/gloveport".into(),
            environment: [("PATH", std::env::var("PATH").unwrap_or_default()), ("OTHER_SECRET", "x".to_owned())]
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
            backends: self.directory.path().join("backends"),
        }
    }

    pub(crate) fn start(&self) -> Result<Exec, ProviderError> {
        Exec::start(self.options())
    }

    pub(crate) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.directory.path().join(name)).unwrap_or_default()
    }
}

/// A provider whose program does this for all verbs but `describe`.
pub(crate) fn exec(body: &str) -> (Program, Exec) {
    let program = Program::new(DESCRIBED, body);
    let exec = program.start().unwrap();
    (program, exec)
}

pub(crate) fn spec() -> SandboxSpec {
    SandboxSpec::new(SessionId::new("s").unwrap())
}
