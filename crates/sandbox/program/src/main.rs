//! `gloveport-sandbox`: the program that providers put into sandboxes.

use std::{io::Write as _, process::ExitCode};

use clap::Parser;
use gloveport_sandbox::{Command, argv, run};

/// What a provider puts into a sandbox: its server, and the way out of a closed network. `gloveport` has the same
/// commands and all others.
#[derive(Debug, Parser)]
#[command(name = "gloveport-sandbox", version, about)]
struct Cli {
    /// What to do.
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    // Before all else: this may be the process that reads a document.
    if let Some(code) = gloveport_documents::run_if_asked(std::env::args_os()) {
        return code;
    }
    gloveport_documents::choose_program("/proc/self/exe");
    let cli = Cli::parse_from(argv::normalize(std::env::args_os().collect()));
    run(cli.command).unwrap_or_else(|error| {
        let _nobody_reads = writeln!(std::io::stderr(), "gloveport-sandbox: {error:#}");
        ExitCode::FAILURE
    })
}
