//! The tests of this crate, in one program.

mod cases;
mod common;
mod files;
mod golden;
mod properties;
