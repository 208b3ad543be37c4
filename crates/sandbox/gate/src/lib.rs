//! The only way out of and into a sandbox whose network is closed.
//!
//! A gate stands between a sandbox and everybody else. From outside it forwards TCP to ports of the sandbox
//! ([`Forward`]). From inside it is an HTTP proxy that lets through only what its [`Rules`](gloveport_allow_list::Rules) name: it looks names up
//! itself and connects to the very address that it has checked.

mod forward;
mod gate;
mod headers;
mod names;
mod proxy;
mod reach;
mod refusal;
mod watch;

pub use forward::{Forward, ForwardError};
pub use gate::{Gate, GateError, GateOptions, Limits, ProxyOptions};
pub use names::{Names, NamesError};
