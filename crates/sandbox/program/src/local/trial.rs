//! Whether this machine can make containers, found out by making one that does nothing.

use std::{
    io::Write as _,
    path::Path,
    process::{Command, ExitCode, Stdio},
};

use anyhow::Context as _;
use gloveport_contract::local::lifeline::Reply;
use gloveport_sys::{
    amounts::Amounts,
    container::{self, Container, ContainerError, Network, Place},
};

use super::{gvisor, server::PROGRAM};

/// Why there are no containers, and what helps.
pub type Missing = String;

/// Has this program, by its file, try it.
///
/// # Errors
///
/// It cannot be tried.
pub fn containers(program: &Path) -> anyhow::Result<Result<(), Missing>> {
    try_out(program, None)
}

/// Has this program try whether a container can have a kernel of its own, which this `runsc` is.
///
/// # Errors
///
/// It cannot be tried.
pub fn kernels(program: &Path, runsc: &Path) -> anyhow::Result<Result<(), Missing>> {
    try_out(program, Some(runsc))
}

fn try_out(program: &Path, runsc: Option<&Path>) -> anyhow::Result<Result<(), Missing>> {
    let directory = std::env::temp_dir();
    let directory = std::fs::canonicalize(&directory).with_context(|| format!("cannot use {}", directory.display()))?;
    // A sandbox has directories of its own there, in which nobody has mounted anything.
    let place = tempfile::tempdir_in(&directory);
    let place = place.with_context(|| format!("cannot make a directory in {}", directory.display()))?;
    let mut command = Command::new(program);
    command.args(["sandbox-server", "--state", "/", "--try-container"]).arg(place.path());
    if let Some(runsc) = runsc {
        command.arg("--gvisor").arg(runsc);
    }
    let ran = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {}", program.display()))?;
    if ran.status.success() {
        return Ok(Ok(()));
    }
    let told: Option<Reply> = serde_json::from_slice(&ran.stdout).ok();
    Ok(Err(match told {
        Some(Reply::Refused { reason } | Reply::Failed { reason }) => reason,
        _ => format!("it ended with {}: {}", ran.status, String::from_utf8_lossy(&ran.stderr).trim()),
    }))
}

/// Tries it here, with a directory that is written in it.
pub(super) fn make_one(directory: &Path, runsc: Option<&Path>) -> ExitCode {
    let place = |target: &str, source: &Path, is_written| Place {
        target: target.into(),
        source: source.to_owned(),
        is_written,
    };
    let mut places = vec![place("/tmp", directory, true)];
    if let Some(runsc) = runsc {
        places.extend(gvisor::places(runsc, directory.to_owned()));
        places.extend(std::env::current_exe().ok().map(|program| place(PROGRAM, &program, false)));
    }
    let container = Container {
        root: None,
        places,
        network: Network::Machine,
        processes: None,
        amounts: Amounts::default(),
        nests: runsc.is_some(),
    };
    let tried = match container::enter(&container, None, |(): ()| Ok(Vec::new())) {
        Ok(_) if runsc.is_some() => try_kernel(),
        Ok(_) => Ok(()),
        Err(error) => Err(why_not(&error)),
    };
    let Err(told) = tried else { return ExitCode::SUCCESS };
    let _nobody_reads = told.tell(std::io::stdout()).and_then(|()| std::io::stdout().flush());
    ExitCode::FAILURE
}

fn try_kernel() -> Result<(), Reply> {
    let failed = |error: std::io::Error| Reply::Failed { reason: error.to_string() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(gvisor::try_it()).map_err(|reason| Reply::Refused { reason })
}

/// What a backend is told of it.
pub(super) fn why_not(error: &ContainerError) -> Reply {
    match error.refusal() {
        Some(reason) => Reply::Refused { reason },
        None => Reply::Failed { reason: error.to_string() },
    }
}
