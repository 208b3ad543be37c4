//! The tests of this crate, in one program.

mod forward;
mod proxy;
mod support;
