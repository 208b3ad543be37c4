//! The case table of `bash-session` §8, row by row, and the rules of its §§3 to 7, through the `ActionExecutor` trait.
//!
//! Whole observations are compared. Where a row only says "contains" and the rest is decided by us, the whole content
//! is still written out, so that a change of it is seen.
//!
//! | module | rows |
//! |---|---|
//! | `simple` | 1 to 9, 21 to 32, 41 to 43, 79, 80, 82 |
//! | `splitting` | 10, 11, and every example of §4 |
//! | `multi_line` | 12 to 20, 84, 86, and the rules of 5.1 |
//! | `rendering` | 33 to 40, 49 to 53, 83 |
//! | `programs` | 44 to 48, 52, 67, 77, 78, 85 |
//! | `waiting` | 54 to 76, 81 |
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
mod multi_line;
mod programs;
mod rendering;
mod simple;
mod splitting;
mod support;
mod waiting;
