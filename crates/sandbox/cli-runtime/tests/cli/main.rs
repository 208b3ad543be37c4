//! The runtime as its callers see it, with real commands and real files.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that fails is a test that fails")]

mod commands;
mod files;
mod hostile;
mod support;
mod transfer;
