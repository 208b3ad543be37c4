//! The flags of `gloveport ipython`, and those that every cell has.

use std::path::PathBuf;

use clap::Args;
use gloveport_protocol::kernels::DEFAULT_KERNEL;

use crate::session::values::limit;

/// Exit codes, as `--help` shows them.
pub(crate) const EXIT_CODES: &str = "Exit codes: 0 if the cell ran to its end, 1 if it raised an exception, 124 if the \
    time limit passed, 125 if gloveport itself failed or the kernel ended, 130 if a second C-c left it running (with --url; \
    the first one interrupts it), 2 for a wrong command line.";

#[derive(Debug, Args)]
pub(crate) struct IpythonArgs {
    #[command(flatten)]
    pub(crate) cell: CellArgs,
    /// Run it on this server, in a kernel that stays, instead of in a fresh kernel on this machine.
    #[arg(long, value_name = "URL", env = "GLOVEPORT_URL")]
    pub(crate) url: Option<String>,
    /// Key of that server.
    #[arg(long, env = "GLOVEPORT_KEY", hide_env_values = true, requires = "url")]
    pub(crate) key: Option<String>,
    /// File with the key of that server. Prefer it to --key: everyone on this machine can see arguments.
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) key_file: Option<PathBuf>,
    /// Name of the kernel on that server. The agent's kernel is `default`.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_KERNEL, requires = "url")]
    pub(crate) kernel: String,
    /// Python for a fresh kernel; by default gloveport looks for one.
    #[arg(long, value_name = "FILE", env = "GLOVEPORT_PYTHON", conflicts_with = "url")]
    pub(crate) python: Option<PathBuf>,
}

/// A cell, and how it is shown.
#[derive(Debug, Args)]
pub(crate) struct CellArgs {
    /// The cell; several words are joined by blanks. Flags come before its first word. `-` or nothing: from standard input.
    #[arg(trailing_var_arg = true)]
    pub(crate) code: Vec<String>,
    /// Interrupt the cell after this time, such as 2.5, 90s or 15m.
    #[arg(long, value_name = "TIME", value_parser = limit)]
    pub(crate) timeout: Option<f64>,
    /// Write images into this directory, as 1.png, 2.png and so on.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) images: Option<PathBuf>,
    /// Print JSON after the cell has ended, instead of its output as it comes: `text`, `images` as `data:` URLs, and
    /// `end`.
    #[arg(long, conflicts_with = "images")]
    pub(crate) json: bool,
}
