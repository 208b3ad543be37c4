//! The proxy between real clients and real services.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first broken assumption")]

mod requests;
mod services;
mod support;
mod upgrades;
