//! The tests of this crate, in one program.

mod misbehaving;
mod protocol;
mod support;
