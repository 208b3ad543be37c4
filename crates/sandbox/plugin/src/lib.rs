//! Plugins: manifests, services that are started when they are used, and the trait for plugins in Rust.
//!
//! | module | idea |
//! |---|---|
//! | [`plugin`] | what a plugin is to the sandbox, and how it stands |
//! | [`manifest`] | a plugin as a TOML file says it, and what is wrong with such a file |
//! | [`manifest_plugin`] | the plugin that a manifest describes |
//! | [`registry`] | the plugins that there are, and their order |
//! | [`initialize`] | all at the same time, each after what it requires |
//! | [`service`] | a program that serves: started when it is used, watched, stopped when nobody uses it |

mod error;
mod http;
pub mod initialize;
pub mod manifest;
pub mod manifest_plugin;
pub mod plugin;
pub mod registry;
pub mod service;
mod state;
mod text;

pub use initialize::{initialize_all, stop_all};
pub use manifest::{Manifest, ManifestError};
pub use manifest_plugin::ManifestPlugin;
pub use plugin::{Plugin, PluginError, PluginHost, PluginState};
pub use registry::{Registry, RegistryError};
pub use service::{Endpoint, Health, Lease, Listens, ProgramLog, Service, ServiceSpec, connect_socket, ended};
