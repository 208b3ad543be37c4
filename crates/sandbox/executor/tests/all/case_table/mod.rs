//! What of the case table (`bash-session` §8) and of the rules of its §§3 to 7 cannot be seen through a server, or not
//! with the options that a server has, through the `ActionExecutor` trait. The table itself is the suite `commands` of
//! `crates/checks/conformance`, which is run there against our own server.
//!
//! Whole observations are compared. Where a row only says "contains" and the rest is decided by us, the whole content
//! is still written out, so that a change of it is seen.
//!
//! | module | rows |
//! |---|---|
//! | `simple` | 1 to 5, 28 and 43 |
//! | `texts` | what reaches the shell, and as how many commands (§§4 and 5.1) |
//! | `rendering` | 51 and 53 |
//! | `programs` | 44, 52, 67, 77 and 78 |
//! | `waiting` | 54 to 57, and 81 |
//! | `losses` | what is said when the shell itself ends (3.5) |
//! | `busy` | the table of 3.5, the keys of 5.2, input (5.3) and the order of the time limits (3.1) |

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test programs stop at the first broken assumption"
)]

mod busy;
mod losses;
mod programs;
mod rendering;
mod simple;
mod support;
mod texts;
mod waiting;
