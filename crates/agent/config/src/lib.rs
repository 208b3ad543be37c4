//! Typed configuration from TOML, environment and flags.
//!
//! [`Config::load`] puts the configuration of OpenHands 0.62 together from the defaults, a file, the environment and
//! flags. It reads and changes nothing but that. Every value has an [`Origin`], and what is wrong is told as a [`Note`] with its
//! place.
//!
//! Keys are defined once, by `section!` in the modules of `model` and `mcp`. The structs, the variables, the reading
//! of the file, [`schema`], [`DEFAULT_TOML`] and the tables of the documentation follow from that.

mod effect;
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
mod suggest;
mod values;

pub use effect::{EFFECTS, Effect, Need};
pub use error::ConfigError;
pub use free_form::FreeForm;
pub use load::{Environment, LoadOptions, Loaded, Overrides, check, examine};
pub use mcp::{McpConfig, McpError, McpHttpServer, McpSseServer, McpStdioServer};
pub use model::{AgentConfig, CliConfig, Config, KubernetesConfig, LlmConfig, SandboxConfig, SecurityConfig};
pub use note::{Note, NoteKind, Place, Severity};
pub use origin::{Origin, Origins};
pub use render::{DEFAULT_TOML, effect_table, key_tables, render_default_toml, schema};
pub use sid::session_id;
pub use values::ShownValue;
