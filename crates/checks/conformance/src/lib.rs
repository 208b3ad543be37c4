//! Checks of a live server against the protocol of OpenHands 0.62, the workspace API of OpenHands' SDK 1.x or the API of
//! SWE-ReX, and of two servers against each other.
//!
//! Everything goes through HTTP: the server may run anywhere, and nothing needs to share a file system with it. Checks
//! work in a directory of their own below the sandbox's `/tmp`, which they make and remove through the protocol itself.
//!
//! | module | idea |
//! |---|---|
//! | `suites` | the checks, by group |
//! | `check`, `bench`, `runner` | what a check is, where it works, and how it is run |
//! | `wire`, `ground` | the protocols, and commands and files by each of them |
//! | `recognise` | what a server speaks that cannot be checked |
//! | `report` | results for people and for programs |
//! | [`differ`] | the same operations on two servers, and where they differ |
//! | `server`, `socket` | requests and their whole answers, and WebSockets |

mod bench;
mod check;
pub mod differ;
mod ground;
mod recognise;
pub mod report;
mod runner;
mod server;
mod socket;
mod suites;
mod wire;

pub use check::{Check, Problem};
pub use runner::{CheckResult, RunOptions, Verdict, run, select};
pub use server::{ConformanceError, Server};
pub use suites::checks;
pub use wire::Wire;
