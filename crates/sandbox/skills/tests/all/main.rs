//! The tests of this crate, in one program.

mod common;
mod python;
mod socket;
