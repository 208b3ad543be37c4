//! What holds whatever happens to a browser: how it starts and ends, pages that misbehave, and what pages cannot reach.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "test programs stop at the first broken assumption, and say what they leave out"
)]

mod apart;
mod authority;
mod ending;
mod house;
mod large;
mod misbehaving;
#[path = "../support/site.rs"]
mod site;
mod starting;
