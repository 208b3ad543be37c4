//! `gloveport gateway audit` and `sessions`: who did what, and what became of sandboxes.

use std::{process::ExitCode, time::Duration};

use clap::Args;
use gloveport_gateway_store::AuditFilter;

use super::database::{DatabaseArgs, when};
use crate::{
    output::{print_json, print_painted},
    paint::Paint,
    session::{table::table, values::duration},
};

/// Examples, and exit codes, of the audit log.
pub(super) const AUDIT_HELP: &str = "Example:\n  gloveport gateway audit --tenant team-a --since 24h --database gateway.db\n  \
    gloveport gateway audit --before 1234 --json --database gateway.db   # the page behind the line 1234\n\nExit codes: 0 \
    done, 1 failed, 2 wrong command line.";
/// Examples, and exit codes, of the history.
pub(super) const SESSIONS_HELP: &str = "Example:\n  gloveport gateway sessions --tenant team-a --database gateway.db\n\nExit \
    codes: 0 done, 1 failed, 2 wrong command line.";

#[derive(Debug, Args)]
pub(super) struct AuditArgs {
    /// Only lines of this tenant.
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Only lines with this action, such as start, or 'key refused'.
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,
    /// Only lines that are not older than this, such as 24h.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    since: Option<Duration>,
    /// Only lines before the one with this number: the next page.
    #[arg(long, value_name = "NUMBER")]
    before: Option<i64>,
    /// At most so many lines.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    lines: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Debug, Args)]
pub(super) struct SessionsArgs {
    /// Only sessions of this tenant.
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Only sessions made before this time, in milliseconds since 1970: the next page.
    #[arg(long, value_name = "NUMBER")]
    before: Option<i64>,
    /// At most so many.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    lines: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    database: DatabaseArgs,
}

pub(super) async fn audit(arguments: AuditArgs) -> anyhow::Result<ExitCode> {
    let store = arguments.database.open().await?;
    let since = match arguments.since {
        Some(since) => Some(store.now().await? - i64::try_from(since.as_millis())?),
        None => None,
    };
    let filter = AuditFilter {
        tenant: arguments.tenant,
        action: arguments.action,
        since,
        before: arguments.before,
        most: Some(arguments.lines),
    };
    let lines = store.audit(&filter).await?;
    if arguments.json {
        print_json(&lines)?;
        return Ok(ExitCode::SUCCESS);
    }
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let rows: Vec<Vec<String>> = lines
        .iter()
        .map(|line| {
            let first = vec![line.id.to_string(), when(Some(line.time)), text(&line.tenant), line.action.clone()];
            let rest = [&line.target, &line.key, &line.address].map(text);
            let last = [line.result.clone(), line.detail.clone().unwrap_or_default()];
            first.into_iter().chain(rest).chain(last).collect()
        })
        .collect();
    let heading = ["NUMBER", "TIME", "TENANT", "ACTION", "TARGET", "KEY", "FROM", "RESULT", "DETAIL"];
    print_painted(&table(&heading, &rows, Paint::for_stdout()))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn sessions(arguments: SessionsArgs) -> anyhow::Result<ExitCode> {
    let store = arguments.database.open().await?;
    let sessions = store.history(arguments.tenant.as_deref(), arguments.before, arguments.lines).await?;
    if arguments.json {
        print_json(&sessions)?;
        return Ok(ExitCode::SUCCESS);
    }
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let rows: Vec<Vec<String>> = sessions
        .iter()
        .map(|it| {
            let times = [Some(it.created), it.ended].map(when);
            let first = vec![it.tenant.clone(), it.session.clone(), text(&it.runtime), it.state.to_string()];
            first.into_iter().chain(times).chain([it.reason.clone().unwrap_or_default()]).collect()
        })
        .collect();
    print_painted(&table(
        &["TENANT", "SESSION", "SANDBOX", "STATE", "CREATED", "ENDED", "REASON"],
        &rows,
        Paint::for_stdout(),
    ))?;
    Ok(ExitCode::SUCCESS)
}
