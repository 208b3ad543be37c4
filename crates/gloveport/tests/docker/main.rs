//! The tests that need an engine, in one program.

mod approval;
mod audit;
mod docker;
mod edge;
mod faults;
mod gateway_images;
mod gateway_native;
mod gateway_warm;
mod hardening;
mod inside;
mod mcp;
mod network;
#[expect(dead_code, reason = "the other program uses the rest of it")]
#[path = "../all/sessions/mod.rs"]
mod sessions;
mod snapshots;
#[expect(dead_code, reason = "the other program uses the rest of it")]
#[path = "../all/support/mod.rs"]
mod support;
