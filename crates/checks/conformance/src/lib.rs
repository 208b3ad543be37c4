//! Checks of a live server against the OpenHands 0.62 protocol, and of two servers against each other.
//!
//! Everything goes through HTTP: the server may run anywhere, and nothing needs to share a file system with it. Checks
//! work in a directory of their own below the sandbox's `/tmp`, which they make and remove through the protocol itself.
//!
//! | module | idea |
//! |---|---|
//! | `suites` | the checks, by group |
//! | `check`, `bench`, `runner` | what a check is, where it works, and how it is run |
//! | `report` | results for people and for programs |
//! | [`differ`] | the same operations on two servers, and where they differ |
//! | `server` | requests and their whole answers |

mod bench;
mod check;
pub mod differ;
pub mod report;
mod runner;
mod server;
mod suites;

pub use check::{Check, Problem};
pub use runner::{CheckResult, RunOptions, Verdict, run, select};
pub use server::{ConformanceError, Server};
pub use suites::checks;
