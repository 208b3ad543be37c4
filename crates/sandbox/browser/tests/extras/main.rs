//! The browser for programs: real Chromium, small pages.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "test programs stop at the first broken assumption, and say what they leave out"
)]

mod acting;
mod going;
mod paper;
#[path = "../support/site.rs"]
mod site;
mod storing;
mod support;
mod traffic;
mod watching;
