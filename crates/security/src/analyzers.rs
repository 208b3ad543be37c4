//! The analyzers that a configuration can name.

mod llm;
mod rules;
mod unknown;

pub use llm::Llm;
pub use rules::Rules;
pub use unknown::UnknownAnalyzer;
