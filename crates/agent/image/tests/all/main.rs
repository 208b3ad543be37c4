//! The tests of this crate, in one program.

mod golden;
mod plan;
mod remote;
