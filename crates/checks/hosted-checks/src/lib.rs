//! Checks that the providers of all hosted services share, against a service on this machine (`spec/hosted-apis.md` 8).
//!
//! A provider says in one implementation of [`Hosted`] how its service is started and how it is made, and has tests of its own
//! names, which call these bodies with what differs: paths, answers, messages. What one service alone can do is a test of that
//! provider.
//!
//! | module | idea |
//! |---|---|
//! | [`Hosted`], [`Service`], [`Place`], [`runs`] | a service, and a provider for it with all that it has on this machine |
//! | [`context`] | what a provider is made from that has such settings |
//! | [`steps`] | what tests do with sandboxes |
//! | [`faults`] | what a service, a network or somebody at a dashboard can do at each call |
//! | [`life`] | sandboxes are made, found, listed and copied |
//! | [`ends`] | they rest, go on and end, and nothing is left of them |
//! | [`logs`] | what the server of a sandbox writes |
//! | [`wire`] | requests beside those of a service's own SDK |
//! | [`suite`] | our real server in sandboxes: the suite of all providers |

#![expect(
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a check stops at the first assumption that does not hold"
)]

pub mod ends;
pub mod faults;
pub mod life;
pub mod logs;
mod place;
mod settings;
pub mod steps;
pub mod suite;
pub mod wire;

pub use place::{Here, Hosted, Place, Service, runs};
pub use settings::context;
