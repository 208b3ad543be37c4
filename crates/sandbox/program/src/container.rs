//! The server of a sandbox of the runtime `docker`.

pub(crate) mod health;
pub(crate) mod server;
