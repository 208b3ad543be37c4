//! The program that the tests of this crate have documents read by.

use std::process::ExitCode;

fn main() -> ExitCode {
    gloveport_documents::run_if_asked(std::env::args_os()).unwrap_or(ExitCode::FAILURE)
}
