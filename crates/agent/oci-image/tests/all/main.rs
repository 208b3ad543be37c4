//! The tests of this crate, in one program.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first broken assumption")]

mod attacks;
mod local;
mod owners;
mod processes;
mod registry;
mod server;
mod support;
