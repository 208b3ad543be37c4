//! The server of a sandbox of the runtime `local`.

pub(crate) mod gvisor;
pub(crate) mod inside;
mod ports;
pub(crate) mod server;
pub mod trial;
