//! The tests of this crate, in one program, against a service on this machine.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first broken assumption")]

mod faults;
mod life;
#[path = "../standin/mod.rs"]
mod standin;
mod support;
mod wire;
