//! The terminal interface (configuration 4).

use crate::key::section;

section! {
    /// The terminal interface of OpenHands. It has no section in the file; only the variable sets it.
    pub struct CliConfig = "cli" {
        /// Use vi keys in the input line.
        vi_mode: bool = false;
    }
}
