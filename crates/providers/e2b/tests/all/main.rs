//! The tests of this crate, in one program, against a service on this machine.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

mod faults;
mod life;
mod standin;
mod suite;
mod support;
mod wire;
