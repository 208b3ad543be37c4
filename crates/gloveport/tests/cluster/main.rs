//! The tests that need a cluster, in one program.

mod cluster;
#[expect(dead_code, reason = "the other program uses the rest of it")]
#[path = "../all/support/mod.rs"]
mod support;
