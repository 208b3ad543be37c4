//! The small program from outside, as providers and engines start it.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

mod command_line;
mod sandboxes;

/// The program that is tried.
const PROGRAM: &str = env!("CARGO_BIN_EXE_gloveport-sandbox");
