//! The tests of this crate, in one program.

mod example;
mod manifest;
mod manifest_plugin;
mod registry;
mod service;
mod support;
