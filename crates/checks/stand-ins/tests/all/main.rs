//! The tests of this crate, in one program.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

mod core;
