//! The tests of this crate, in one program.

mod environment;
mod file;
mod finalization;
mod properties;
mod secrets;
mod support;
