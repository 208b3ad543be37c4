//! What a session needs of a sandbox beside the execution of actions, and who gives it.

#[cfg(all(feature = "in-process", target_os = "linux"))]
mod cli;
mod connector;
mod hosted;
#[cfg(all(feature = "in-process", target_os = "linux"))]
mod in_process;
mod over_http;
mod sandbox;
mod server;
mod tools;

#[cfg(all(feature = "in-process", target_os = "linux"))]
pub use cli::Cli;
pub use connector::{ConnectRequest, Connector};
pub(crate) use hosted::urls;
pub use hosted::{FromConfig, Hosted, HostedOptions, WarmPool, delete};
#[cfg(all(feature = "in-process", target_os = "linux"))]
pub use in_process::InProcess;
pub use sandbox::{McpHost, SandboxConnection, ShellStream};
pub use server::ServerAt;
pub use tools::BroughtTools;
