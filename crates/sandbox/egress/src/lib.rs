//! The only way out of and into a sandbox whose network is closed.
//!
//! A gate stands between a sandbox and everybody else. From outside it forwards TCP to ports of the sandbox
//! ([`Forward`]). From inside it is an HTTP proxy that lets through only what its [`Rules`](gloveport_allow_list::Rules) name: it looks names up
//! itself and connects to the very address that it has checked.

mod egress;
mod forward;
mod headers;
mod names;
mod proxy;
mod reach;
mod refusal;
mod watch;

pub use egress::{Egress, EgressError, EgressLimits, EgressOptions, ProxyOptions};
pub use forward::{Forward, ForwardError};
pub use names::{Names, NamesError};
