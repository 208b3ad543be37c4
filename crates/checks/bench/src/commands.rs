//! Measurements of commands as whole processes: `gloveport run --runtime cli` beside a bare `bash -c`, and `gloveport mcp`.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::Context as _;
use serde::Serialize;

use crate::{
    mcp::{self, McpAmount, McpNumbers},
    sample::Sample,
};

/// Whole processes, from their start to their end.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CommandNumbers {
    /// `bash -c true`.
    pub(crate) bash: Sample,
    /// `gloveport run --runtime cli true`.
    pub(crate) cli: Sample,
    /// `gloveport mcp`.
    pub(crate) mcp: McpNumbers,
}

/// Measures with this binary, both shells in turn, so that what else the machine does concerns both.
pub(crate) fn measure(binary: &Path, count: usize, mcp: McpAmount) -> anyhow::Result<CommandNumbers> {
    let home = tempfile::tempdir()?;
    let binary = binary.canonicalize()?;
    let once = |program: &Path, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(home.path()).env("HOME", home.path()).stdin(Stdio::null());
        let began = Instant::now();
        let status = command.status().with_context(|| format!("cannot start {}", program.display()))?;
        anyhow::ensure!(status.success(), "{} {arguments:?}: {status}", program.display());
        Ok(began.elapsed())
    };
    let (mut bash, mut cli) = (Vec::new(), Vec::new());
    for _ in 0..count {
        bash.push(once(Path::new("bash"), &["-c", "true"])?);
        cli.push(once(&binary, &["run", "--runtime", "cli", "true"])?);
    }
    Ok(CommandNumbers { bash: Sample::new(bash), cli: Sample::new(cli), mcp: mcp::measure(&binary, mcp)? })
}
