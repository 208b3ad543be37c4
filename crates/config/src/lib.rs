//! Typed configuration from TOML, environment and flags.

mod error;
mod free_form;
mod key;
mod keys;
mod kind;
mod load;
mod mask;
mod mcp;
mod model;
mod node;
mod note;
mod origin;
mod render;
mod setting;
mod sid;
mod start;
mod suggest;
mod values;

pub use error::ConfigError;
pub use free_form::FreeForm;
pub use load::{Environment, LoadOptions, Loaded, Overrides, check};
pub use mcp::{McpConfig, McpError, McpHttpServer, McpSseServer, McpStdioServer};
pub use model::{AgentConfig, CliConfig, Config, KubernetesConfig, LlmConfig, SandboxConfig, SecurityConfig};
pub use note::{Note, NoteKind, Place, Severity};
pub use origin::{Origin, Origins};
pub use render::{DEFAULT_TOML, key_tables, render_default_toml, schema};
pub use sid::session_id;
pub use start::{LocalSecretStore, SecretStore};
pub use values::ShownValue;
