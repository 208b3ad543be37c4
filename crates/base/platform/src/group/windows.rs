//! Trees of processes, which the system's own `taskkill` ends.

use std::{io, process::Stdio};

use tokio::process::{Child, Command};

/// `CREATE_NEW_PROCESS_GROUP`: C-c in the console is not for it.
const NEW_GROUP: u32 = 0x0000_0200;

pub(super) fn lead(command: &mut Command) {
    command.creation_flags(NEW_GROUP);
}

/// A program without a window has nothing that could be asked.
pub(super) fn ask_to_end(_leader: &Child) -> bool {
    false
}

pub(super) fn kill(leader: &Child) -> io::Result<()> {
    // An id is nobody else's as long as the process's handle is open, which it is until the end was waited for.
    let Some(id) = leader.id() else { return Ok(()) };
    let mut command = std::process::Command::new("taskkill");
    command.args(["/T", "/F", "/PID", &id.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("taskkill ended with {status}"))) }
}

pub(super) fn runs(leader: &Child) -> bool {
    leader.id().is_some()
}

/// That is not known here.
pub(super) fn others_run(_leader: &Child) -> bool {
    false
}

#[derive(Debug)]
pub(super) struct End;

impl End {
    pub(super) fn of(leader: &Child) -> io::Result<Self> {
        leader.id().map(|_runs| Self).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// The child keeps its end in mind: it can be waited for once more.
    pub(super) async fn reached(&self, leader: &mut Child) -> io::Result<()> {
        leader.wait().await.map(drop)
    }
}
