//! `gloveport session gc`.

use std::{process::ExitCode, sync::Arc};

use gloveport_provider::{GcOptions, GcReport, Provider, Removed};
use serde_json::json;

use super::{
    arguments::GcArgs,
    list::warn,
    runtimes::{Runtimes, Silent},
};
use crate::{
    here,
    names::LOCAL,
    output::{print, print_json},
};

/// Why a server that waits is removed.
const WAITING: &str = "it waited for a session that did not come";

pub(super) async fn collect(runtimes: &Runtimes, arguments: &GcArgs) -> anyhow::Result<ExitCode> {
    let options = GcOptions { all: arguments.all, dry_run: arguments.dry_run };
    let collect =
        async |runtime: String, provider: Arc<dyn Provider>| Ok((runtime, provider.collect_garbage(&options).await?));
    let waiting = match runtimes.means(LOCAL) {
        true if arguments.dry_run => here::count_waiting(&runtimes.context).await,
        true => here::end_waiting(&runtimes.context).await?,
        false => 0,
    };
    let (mut reports, silent) = runtimes.ask(collect).await;
    warn(&silent);
    if let Some((_, report)) = reports.iter_mut().find(|(runtime, _)| runtime == LOCAL) {
        let one = || Removed { id: None, session_id: None, path: None, reason: WAITING.to_owned() };
        report.removed.extend((0..waiting).map(|_| one()));
    }
    for (runtime, report) in &reports {
        for failure in &report.failed {
            tracing::warn!("the runtime `{runtime}` could not remove everything: {failure}");
        }
    }
    if arguments.json {
        print_json(&as_json(&reports, &silent))?;
    } else {
        let lines = reports.iter().flat_map(|(runtime, report)| {
            report.removed.iter().map(move |removed| line(runtime, removed, arguments.dry_run))
        });
        print(&lines.collect::<String>())?;
    }
    let failed = !silent.is_empty() || reports.iter().any(|(_, report)| !report.failed.is_empty());
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn as_json(reports: &[(String, GcReport)], silent: &[Silent]) -> serde_json::Value {
    let done = reports
        .iter()
        .map(|(runtime, report)| json!({"runtime": runtime, "removed": report.removed, "failed": report.failed}));
    let not = silent
        .iter()
        .map(|silent| json!({"runtime": silent.runtime, "removed": [], "failed": [silent.error.to_string()]}));
    done.chain(not).collect()
}

fn line(runtime: &str, removed: &Removed, dry_run: bool) -> String {
    let what = match (&removed.session_id, &removed.id, &removed.path) {
        (Some(session), ..) => format!("session {session}"),
        (None, Some(id), _) => format!("sandbox {id}"),
        (None, None, Some(path)) => path.display().to_string(),
        (None, None, None) => "server".to_owned(),
    };
    let verb = if dry_run { "would remove" } else { "removed" };
    format!("{verb} {what} ({runtime}): {}\n", removed.reason)
}
