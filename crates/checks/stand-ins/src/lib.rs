//! Hosted services on this machine, for tests (`spec/hosted-apis.md` 8): each speaks the API of a service, keeps state, really
//! writes files and really runs programs, and fails where a test wants it to.
//!
//! The core is the same for all, and a face is what one service says. Each face is proven by the service's own unmodified SDK
//! (`tests/hosted`), so that a client of ours is tested against formats that are not its own idea.
//!
//! | module | idea |
//! |---|---|
//! | [`StandIn`] | a service that listens, and what tests ask of it |
//! | [`Face`], [`World`], [`Sandbox`] | what a service says, and what it has |
//! | [`Fault`], [`Seen`] | what it does instead of answering; requests that came |
//! | [`Machine`], [`Kind`] | where the files and processes of a sandbox are |
//! | [`children`], [`signal`] | processes, whosesoever |
//! | [`Program`], [`Execution`] | a program in a sandbox |
//! | [`answers`] | what faces answer with |
//! | [`daytona`] | the face of Daytona |
//! | [`modal`] | the face of Modal |
//! | [`runloop`] | the face of Runloop |

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

pub mod answers;
pub mod daytona;
mod execution;
mod fault;
mod machine;
pub mod modal;
mod ports;
pub mod runloop;
mod stand_in;
mod world;

pub use execution::{Execution, Output, Program};
pub use fault::{Fault, Seen};
pub use machine::{Kind, Machine, can_be_apart, children, signal};
pub use stand_in::StandIn;
pub use world::{Asked, Face, Route, Sandbox, Shared, World, lock, milliseconds};
