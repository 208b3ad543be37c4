//! The server of a sandbox in a container, of the runtimes `docker` and `kubernetes`.

pub(crate) mod health;
pub(crate) mod install;
mod records;
pub(crate) mod server;
