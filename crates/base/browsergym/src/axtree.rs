//! The accessibility trees of a page: one of all frames, and its text (spec/browser.md §7).

mod flatten;
mod merge;

pub use flatten::flatten;
pub use merge::{FrameTree, merge};
