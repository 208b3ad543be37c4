//! The tests of this crate, in one program.

mod calls;
mod pool;
mod program;
mod results;
mod sse;
mod streamable;
mod support;
