//! Flags of what looks at sessions and ends them.

use std::time::Duration;

use clap::Args;

use crate::session::values;

#[derive(Debug, Args)]
pub(in crate::session) struct EventsArgs {
    /// The session. If its sandbox is gone, give the whole id.
    #[arg(value_name = "ID")]
    pub(in crate::session) id: String,
    /// Keep printing new events.
    #[arg(long, short)]
    pub(in crate::session) follow: bool,
    /// Begin with the event that has this number.
    #[arg(long, value_name = "NUMBER", default_value_t = 0, allow_negative_numbers = true)]
    pub(in crate::session) since: i64,
    /// Only these actions or observations, such as run or message; may be repeated.
    #[arg(long, value_name = "KIND")]
    pub(in crate::session) kind: Vec<String>,
    /// Print each event as one line of JSON.
    #[arg(long)]
    pub(in crate::session) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::session) struct ListArgs {
    /// Also list those that have ended and left something behind, such as their history.
    #[arg(long, short)]
    pub(in crate::session) all: bool,
    /// Only those with this label; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = values::pair)]
    pub(in crate::session) label: Vec<(String, String)>,
    /// Print JSON.
    #[arg(long)]
    pub(in crate::session) json: bool,
    /// Print the sessions' ids only.
    #[arg(long, short, conflicts_with = "json")]
    pub(in crate::session) quiet: bool,
}

#[derive(Debug, Args)]
pub(in crate::session) struct ShowArgs {
    /// The session.
    #[arg(value_name = "ID")]
    pub(in crate::session) id: String,
    /// Print JSON.
    #[arg(long)]
    pub(in crate::session) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::session) struct IdsArgs {
    /// The sessions.
    #[arg(value_name = "ID", required = true)]
    pub(in crate::session) ids: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub(in crate::session) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::session) struct ResumeArgs {
    /// The sessions.
    #[arg(value_name = "ID", required = true)]
    pub(in crate::session) ids: Vec<String>,
    /// Give up waiting for their servers after this time.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = values::duration, default_value = "2m")]
    pub(in crate::session) timeout: Duration,
    /// Print JSON.
    #[arg(long)]
    pub(in crate::session) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::session) struct RemoveArgs {
    /// The sessions.
    #[arg(value_name = "ID", required = true)]
    pub(in crate::session) ids: Vec<String>,
    /// Also remove sessions that run, and histories of sessions whose runtime cannot say whether they run.
    #[arg(long, short)]
    pub(in crate::session) force: bool,
    /// Print JSON.
    #[arg(long)]
    pub(in crate::session) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::session) struct LogsArgs {
    /// The session.
    #[arg(value_name = "ID")]
    pub(in crate::session) id: String,
    /// Keep printing until the sandbox ends.
    #[arg(long, short)]
    pub(in crate::session) follow: bool,
    /// Begin with this many lines from the end.
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(in crate::session) tail: Option<usize>,
    /// Print each line as one line of JSON.
    #[arg(long)]
    pub(in crate::session) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::session) struct AuditArgs {
    /// The session. It was started with --audit FILE.
    #[arg(value_name = "ID")]
    pub(in crate::session) id: String,
    /// Print each record as JSON, as it stands in the log; `gloveport audit verify` checks a file of them.
    #[arg(long)]
    pub(in crate::session) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::session) struct GcArgs {
    /// Also remove sessions that were to be kept and that no living program uses, such as those of `session start`.
    #[arg(long)]
    pub(in crate::session) all: bool,
    /// Only list what would be removed.
    #[arg(long)]
    pub(in crate::session) dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    pub(in crate::session) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::session) struct UrlArgs {
    /// The session.
    #[arg(value_name = "ID")]
    pub(in crate::session) id: String,
    /// The name of a port; by default the server itself.
    #[arg(value_name = "NAME")]
    pub(in crate::session) name: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(in crate::session) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::session) struct EnvArgs {
    /// The session.
    #[arg(value_name = "ID")]
    pub(in crate::session) id: String,
    /// Print JSON.
    #[arg(long)]
    pub(in crate::session) json: bool,
}
