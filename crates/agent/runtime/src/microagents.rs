//! Microagents: texts in a repository that tell an agent how to work there (runtime-interface 13).
//!
//! Nothing here reads from a sandbox. [`load_directory`] reads a directory of this machine, into which the caller has
//! copied what the sandbox has; [`Microagent::parse`] takes a text; [`places`] says where to look and in which order.
//!
//! | module | idea |
//! |---|---|
//! | `microagent` | one microagent: its kind, its triggers, its content |
//! | `front_matter`, `metadata`, `mcp_tools` | what stands above the content, and what it may be |
//! | `data`, `yaml`, `yaml_scalar` | values as the reference's YAML library reads them, within bounds |
//! | `directory` | all microagents of a directory |
//! | [`places`] | directories, old-style instructions, and the repository of an organisation |

mod data;
mod directory;
mod error;
mod front_matter;
mod mcp_tools;
mod metadata;
mod microagent;
pub mod places;
mod yaml;
mod yaml_scalar;

pub use directory::{MAX_FILE_BYTES, MAX_FILES, MAX_TOTAL_BYTES, Microagents, load_directory};
pub use error::{InvalidKind, MicroagentError};
pub use front_matter::MAX_FRONT_MATTER_BYTES;
pub use metadata::{Input, Metadata};
pub use microagent::{Microagent, MicroagentKind};
pub use places::{OrgRepository, org_config_repository};
