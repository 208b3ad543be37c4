//! The names of runtimes that the program itself knows.

/// Sandboxes as processes of this machine.
pub(crate) const LOCAL: &str = "local";
/// The runtime that has neither sandboxes nor a provider: commands run as those of this program.
pub(crate) const CLI: &str = "cli";
