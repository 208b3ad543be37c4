//! Typed configuration from TOML, environment and flags.

mod free_form;
mod key;
mod kind;
mod mask;
mod mcp;
mod model;
mod node;
mod setting;

pub use free_form::FreeForm;
pub use mcp::{McpConfig, McpError, McpHttpServer, McpSseServer, McpStdioServer};
pub use model::{AgentConfig, CliConfig, Config, KubernetesConfig, LlmConfig, SandboxConfig, SecurityConfig};
