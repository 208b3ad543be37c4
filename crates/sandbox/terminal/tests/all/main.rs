//! The tests of this crate, in one program.

mod bounds;
mod hard_cases;
mod raw_terminal;
