//! The plugin with real servers of VS Code.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first broken assumption"
)]

mod real;
mod support;
mod table;
