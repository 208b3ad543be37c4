//! The flags of the keeper of waiting servers, as the session commands give them.

use std::time::Duration;

use clap::Args;

use crate::session::values;

/// After this time without a new session nothing is kept waiting.
const IDLE: &str = "15m";

#[derive(Debug, Args)]
pub(crate) struct SandboxKeeperArgs {
    /// So many servers wait.
    #[arg(long)]
    pub(crate) count: usize,
    /// It ends when nobody has wanted one for this time.
    #[arg(long, value_name = "TIME", value_parser = values::duration, default_value = IDLE)]
    pub(crate) idle: Duration,
}
