//! What a backend does with a sandbox that a provider hosts: it waits for its server, and asks it.

mod reach;
mod wait;

pub use reach::{Unreachable, client, client_options};
pub use wait::{WaitError, WaitOptions, wait_until_alive};
