//! The only way out of and into a sandbox whose network is closed.
//!
//! A gate stands between a sandbox and everybody else. From outside it forwards TCP to ports of the sandbox
//! ([`Forward`]). From inside it is an HTTP proxy that lets through only what its [`Rules`] name: it looks names up
//! itself and connects to the very address that it has checked.

mod address;
mod forward;
mod gate;
mod headers;
mod host;
mod names;
mod proxy;
mod reach;
mod refusal;
mod rules;
mod watch;

pub use address::Network;
pub use forward::{Forward, ForwardError};
pub use gate::{Gate, GateError, GateOptions, Limits, ProxyOptions};
pub use host::{Host, HostError, Name, Target};
pub use names::{Names, NamesError};
pub use rules::{RuleError, Rules};
