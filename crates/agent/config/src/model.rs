//! The configuration as types: one struct for each section, its fields named as the keys.

mod agent;
mod cli;
mod core;
mod kubernetes;
mod llm;
mod sandbox;
mod security;

pub use agent::AgentConfig;
pub use cli::CliConfig;
pub use core::Config;
pub(crate) use core::{BASE_AGENT, BASE_LLM};
pub use kubernetes::KubernetesConfig;
pub use llm::LlmConfig;
pub use sandbox::SandboxConfig;
pub(crate) use sandbox::USER_ID;
pub use security::SecurityConfig;
