//! Which Docker engine is used, how it is reached, and its images.
//!
//! | module | idea |
//! |---|---|
//! | [`Endpoint`] | which engine: `DOCKER_HOST`, contexts of the Docker command line, the usual sockets |
//! | [`Engine`] | a connection to it, made when it is needed first |
//! | [`images`] | whether an image is there, and its pull with progress |
//! | [`EngineError`] | what went wrong with it, in words and with what to do |
//!
//! Podman's socket speaks the same interface; [`Engine::about`] tells which one answers.

mod endpoint;
mod engine;
mod error;
pub mod images;
mod transport;

pub use endpoint::{Address, Endpoint, EndpointError, Tls};
pub use engine::{About, Engine};
pub use error::EngineError;
