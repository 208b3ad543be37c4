//! Sandboxes of a service that speaks the Remote Runtime API (`spec/remote-runtime-api.md`), such as `gloveport gateway`.
//!
//! | module | idea |
//! |---|---|
//! | [`Remote`] | the provider |
//! | [`RemoteOptions`] | which service, with which key |
//! | `service` | requests to the service, again where that helps, and which error an answer is |
//! | `wire` | the JSON of both directions |
//! | `capabilities` | what such a service can do |
//! | `native` | the native API of our gateway, which can do more |

mod capabilities;
mod native;
mod options;
mod provider;
mod service;
mod wire;

pub use options::RemoteOptions;
pub use provider::Remote;
