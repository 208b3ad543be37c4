//! The tests of this crate, in one program.

mod actions;
mod common;
mod native;
mod retries;
mod server;
mod terminals;
