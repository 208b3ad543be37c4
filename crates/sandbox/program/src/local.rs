//! The server of a sandbox of the runtime `local`.

mod inside;
pub(crate) mod server;
