//! The server of a sandbox of the runtime `local`.

mod audit;
mod inside;
mod ports;
pub(crate) mod server;
pub mod trial;
