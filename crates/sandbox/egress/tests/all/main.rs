//! The tests of this crate, in one program.

mod edge;
mod edge_answers;
mod edge_connections;
mod forward;
mod proxy;
mod support;
