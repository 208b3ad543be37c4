//! The analyzers that a configuration can name.

mod grayswan;
mod invariant;
mod llm;
mod rules;
mod unknown;

pub use grayswan::{GraySwan, Thresholds};
pub use invariant::{DockerHost, FixedHost, Invariant, InvariantHost, InvariantOptions, Retries};
pub use llm::Llm;
pub use rules::Rules;
pub use unknown::UnknownAnalyzer;
