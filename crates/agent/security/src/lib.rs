//! Rates the risk of actions, and holds back what the user must confirm.
//!
//! An *analyzer* rates an action, the *gate* decides what follows from the rating. The gate asks nobody and runs
//! nothing: it says that an action goes on, waits for the user, or is refused, and the session acts on that.
//!
//! | module | idea |
//! |---|---|
//! | [`analyzer`](mod@analyzer) | what an analyzer is |
//! | `by_name` | which one a name means |
//! | [`gate`] | what a rating leads to, and the actions that wait for the user |
//! | [`analyzers`] | the analyzers: `llm`, `invariant`, `grayswan`, and `rules`, our own |
//!
//! None of this is a sandbox. An analyzer sees the text of an action and not what it does, and whoever wants to get
//! past one can. It helps against accidents; what an agent must not be able to do has to be impossible in its sandbox.

pub mod analyzer;
pub mod analyzers;
mod by_name;
mod error;
pub mod gate;
mod http;
mod options;

pub use analyzer::{Assessment, History, NoHistory, RuleMatch, SecurityAnalyzer, Unattended};
pub use by_name::{analyzer, refuses_unattended};
pub use error::AnalyzerError;
pub use gate::{Gate, GateError, GateOptions, PendingAction, Verdict, decided, refusal, rejection};
pub use options::AnalyzerOptions;
