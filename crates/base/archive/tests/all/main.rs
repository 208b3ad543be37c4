//! The tests of this crate, in one program.

mod support;
mod tar;
mod zip;
