//! The tests of this crate, in one program.

mod golden;
mod round_trip;
mod tables;
