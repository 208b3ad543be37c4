//! Tar streams: everything that a tree of files has, as GNU tar and POSIX write it.

mod header;
mod pack;
mod unpack;

pub use pack::pack;
pub use unpack::{Origin, unpack};

/// Bytes of a header, and the unit that contents are filled up to.
const BLOCK: usize = 512;

/// Bytes behind contents up to the next full block.
fn padding(size: u64) -> usize {
    let over = usize::try_from(size % BLOCK as u64).unwrap_or(0);
    if over == 0 { 0 } else { BLOCK - over }
}
