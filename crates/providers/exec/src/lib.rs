//! Sandboxes of a program that gets a verb and JSON, and answers JSON (`docs/exec-providers.md`).
//!
//! The program is named by its path (`exec:/path/to/program`), or found in `PATH` as `gloveport-provider-NAME` when
//! nobody registered `NAME`.
//!
//! | module | idea |
//! |---|---|
//! | [`Exec`] | the provider: each method is one call of the program |
//! | [`ExecOptions`] | which program, with which variables |
//! | `request`, `answer` | the JSON of both directions, and which error an answer is |
//! | `call` | one call: input, output, limits, and the end of the process group |
//! | `stderr` | what the program writes for people |

mod answer;
mod call;
mod describe;
mod exec;
mod logs;
mod options;
mod request;
mod stderr;

#[cfg(fuzzing)]
pub use answer::fuzz as fuzz_answer;
pub use exec::Exec;
pub use options::{ExecOptions, register};

/// Versions of the protocol that are spoken, the best first.
pub const PROTOCOLS: &[u32] = &[1];
