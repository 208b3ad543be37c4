//! The tests of this crate, in one program.

mod authorization;
mod calls;
mod oauth;
mod pool;
mod program;
mod results;
mod sse;
mod streamable;
mod support;
