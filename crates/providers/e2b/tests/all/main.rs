//! The tests of this crate, in one program, against a service on this machine.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first broken assumption")]

mod faults;
mod life;
#[expect(dead_code, reason = "the tests with our real server use more of it")]
#[path = "../standin/mod.rs"]
mod standin;
mod support;
mod wire;
