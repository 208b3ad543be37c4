//! The largest document and the largest drawing, for those who read and draw and those who believe them.

/// Bytes of the largest document.
pub(crate) const INPUT: u64 = 64 * 1024 * 1024;
/// Most pages that are drawn.
pub const PAGES: u32 = 200;
/// Longest side of a picture, in dots. Larger pages are drawn smaller.
pub const SIDE: u16 = 4096;
