//! The tests of this crate, in one program.

mod actions;
mod browser;
mod common;
mod native;
mod retries;
mod server;
mod terminals;
