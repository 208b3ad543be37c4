//! The tests of this crate, in one program.

mod case_table;
mod documents;
mod files;
mod git;
mod memory_limit;
mod notebook;
mod search;
