//! Sandboxes as containers of a Docker engine.

pub mod inside;
