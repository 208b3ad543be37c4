//! Trees of files as streams: [`zip`] and [`tar`], in and out.
//!
//! Packing never holds a file in memory, never waits on a FIFO or device, and fails rather than ending a stream that
//! does not have everything. Unpacking writes nothing outside of its destination, whatever names and links an archive
//! has, because the kernel resolves every path beneath it, and on Windows no link is followed or made; and it stops at
//! [`ArchiveLimits`].
//!
//! | module | idea |
//! |---|---|
//! | [`zip`] | what OpenHands clients and servers exchange: contents only, no modes, links or empty directories |
//! | [`tar`] | the native form: modes, owners, times, links and empty directories are kept |
//! | `limits` | bounds, and what has been done so far |
//! | `names` | names of entries |
//! | `unix`, `windows` | what comes into being beneath a directory, or does not |

mod buffer;
mod error;
mod limits;
mod names;
pub mod tar;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;
pub mod zip;

pub use error::ArchiveError;
pub use limits::{ArchiveLimits, Summary};
#[cfg(unix)]
use unix as beneath;
#[cfg(windows)]
use windows as beneath;

/// Bytes that are read or written at once.
pub(crate) const PIECE: usize = 256 * 1024;
