//! Whom a sandbox may reach: hosts and networks, as whoever writes them and whoever enforces them understand them.
//!
//! | module | idea |
//! |---|---|
//! | [`Rules`] | what may be reached |
//! | [`Host`], [`Name`], [`Target`] | what is asked for |
//! | [`Network`] | ranges of addresses, and those that nobody outside of a machine may reach |

mod address;
mod host;
mod rules;

pub use address::{Network, is_closed};
pub use host::{Host, HostError, Name, Target, port_number};
pub use rules::{RuleError, Rules, in_words, rule_for};
