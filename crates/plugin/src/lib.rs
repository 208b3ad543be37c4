//! Plugins: manifests, services that are started when they are used, and the trait for plugins in Rust.
//!
//! | module | idea |
//! |---|---|
//! | [`plugin`] | what a plugin is to the sandbox, and how it stands |
//! | [`manifest`] | a plugin as a TOML file says it, and what is wrong with such a file |
//! | [`service`] | a program that serves: started when it is used, watched, stopped when nobody uses it |

mod http;
pub mod manifest;
pub mod plugin;
pub mod service;

pub use manifest::{Manifest, ManifestError};
pub use plugin::{Plugin, PluginError, PluginHost, PluginState};
pub use service::{Endpoint, Health, Lease, Listens, Service, ServiceSpec};
