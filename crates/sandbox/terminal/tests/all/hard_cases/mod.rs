//! The hard cases of a persistent shell, each with real programs.
//!
//! | module | idea |
//! |---|---|
//! | `input` | what is typed: many lines, unfinished commands, very long ones, text that nobody reads |
//! | `keys` | control keys, idle and running, and terminal modes that programs change |
//! | `hooks` | a user who overrides everything that the shell reports with |
//! | `secrecy` | the machinery is not seen in output, log or history, and imitations of it are only output |
//! | `endings` | shells that end or replace themselves, and start-up files that fail |
//! | `named_keys` | keys with a name, into programs that show what they read, menus and an editor |
//! | `nested` | shells inside of the session's, which report like it, at any depth |
//! | `posix` | shells that serve where there is no bash |
//! | `programs` | nested shells, interpreters, full-screen programs, background jobs |
//! | `screen` | output as a terminal shows it, whatever the bytes |
//! | `redirected` | a shell whose own output goes to files, or that shows what it reads |
//! | `requests` | callers that leave, that queue, and that look on |

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "test programs stop at the first broken assumption, and say on the standard output what they skip"
)]

mod endings;
mod hooks;
mod input;
mod keys;
mod named_keys;
mod nested;
mod posix;
mod programs;
mod redirected;
mod requests;
mod screen;
mod secrecy;
mod support;
