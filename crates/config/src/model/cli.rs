//! The terminal interface.

use crate::key::section;

section! {
    /// The terminal interface of OpenHands. It has no section in the file; only the variable sets it (configuration 4).
    pub struct CliConfig = "cli" {
        /// Keys of vi in the input line.
        vi_mode: bool = false;
    }
}
