//! What the server of SWE-ReX does for its clients, on the tools of a sandbox (docs/wires.md). The way over HTTP is the
//! server's.
//!
//! | module | idea |
//! |---|---|
//! | [`types`] | what is asked and answered |
//! | [`Exception`] | what a client raises |
//! | [`SweRex`] | all calls, and the sessions by name |
//! | `session` | a shell that a client talks to: commands, interactive programs, interrupts |
//! | `reader` | the output of a session, as it comes |
//! | `expect` | the strings that a client waits for |
//! | `output` | bytes of a terminal as a client gets them |
//! | `command` | programs without a session |
//! | `files` | texts, and what was uploaded |

mod command;
mod exception;
mod expect;
mod files;
mod output;
mod reader;
mod session;
pub mod types;
mod wire;

pub use exception::Exception;
pub use wire::{MOST_SESSIONS, SweRex};
