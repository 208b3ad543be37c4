//! `container-install`: puts this program into a volume, from where another container starts it.

use std::{fs, io, os::unix::fs::PermissionsExt as _, path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use clap::Args;

#[derive(Debug, Args)]
pub struct InstallArgs {
    /// The new file. It appears when it is whole.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn install(arguments: &InstallArgs) -> anyhow::Result<ExitCode> {
    let file = &arguments.file;
    let own = std::env::current_exe().context("cannot tell where this program is; is /proc mounted?")?;
    let new = file.with_extension("new");
    let copied = || -> io::Result<()> {
        fs::copy(&own, &new)?;
        // Whoever the server works as starts it.
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755))?;
        fs::rename(&new, file)
    };
    copied().with_context(|| format!("cannot copy {} to {}", own.display(), file.display()))?;
    Ok(ExitCode::SUCCESS)
}
