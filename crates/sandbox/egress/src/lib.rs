//! The only way out of and into a sandbox whose network is closed.
//!
//! A gate stands between a sandbox and everybody else. From outside it forwards TCP to ports of the sandbox
//! ([`Forward`]). From inside it is an HTTP proxy that lets through only what its [`Rules`](gloveport_allow_list::Rules) name: it looks names up
//! itself and connects to the very address that it has checked. Secrets that only some hosts may get it puts in itself
//! ([`Edge`]), so that the sandbox does not hold them.

mod edge;
mod egress;
mod forward;
mod headers;
mod limits;
mod log;
mod names;
mod policy;
mod proxy;
mod reach;
mod refusal;
mod watch;

pub use edge::{Edge, EdgeError, Roots, Used};
pub use egress::{Egress, EgressError, EgressOptions, ProxyOptions};
pub use forward::{Forward, ForwardError};
pub use limits::EgressLimits;
pub use names::{Names, NamesError};
pub use policy::{Asked, Policy, PolicyState, TooManyRules};
