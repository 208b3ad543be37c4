//! Zip files as OpenHands exchanges them (`action-execution-api` 2.7 and 2.8, `action-execution-client` 5.1): regular
//! files only, stored without compression; directories exist as parts of names, and links to files as their contents.
//!
//! The format is written here and not by a library, because three things are wanted that depend on it: the exact length
//! before the first byte, an end that is only ever written behind complete contents, and a few dozen bytes of memory
//! for each entry, in both directions.

mod directory;
mod plan;
mod records;
mod unpack;

pub use plan::Plan;
pub use records::dos_time;
pub use unpack::{unpack, unpack_until};
