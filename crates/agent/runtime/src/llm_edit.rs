//! Edits of files that a language model makes (runtime-interface 15).
//!
//! An agent gives a draft of some lines of a file; a cheaper model, the *draft editor*, merges it into them. The files
//! are in a sandbox, behind [`EditFiles`]; the model is behind any endpoint that speaks OpenAI's chat completions.
//!
//! | module | idea |
//! |---|---|
//! | `editor` | one edit from its request to its observation, with the corrections that a linter asks for |
//! | `files`, `options` | what an editor works on, and what it can be told |
//! | `range`, `similarity` | which lines are edited, and where others may be meant |
//! | `chat`, `answer`, `prompt` | the endpoint, what models say, what they are told |
//! | `metrics` | what it cost |

mod answer;
mod chat;
mod editor;
mod error;
mod files;
mod metrics;
mod options;
mod prompt;
mod range;
mod similarity;

pub use editor::{Edited, LlmEditor};
pub use error::{LlmEditError, LlmError};
pub use files::{EditFiles, ReadFailure};
pub use options::{LlmOptions, Retries};
