//! What an edit changed, and what it broke.
//!
//! | module | idea |
//! |---|---|
//! | [`diff`] | two texts as a unified diff |
//! | [`lint`] | issues of a linter that were not there before |

pub mod diff;
pub mod lint;

use gloveport_text::python;
