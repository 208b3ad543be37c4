//! `[security]` (configuration 6).

use crate::key::section;

section! {
    /// When an action needs a person's consent, and who judges its risk.
    pub struct SecurityConfig = "security" {
        /// Ask for confirmation before actions that the analyzer finds risky.
        confirmation_mode: bool = false;
        /// Name of the analyzer that judges the risk of each action. Any name is accepted here; one that is not known
        /// is reported by the session that is to use it.
        security_analyzer: Option<String> = None, example = "\"llm\"";
    }
}
