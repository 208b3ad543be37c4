//! `gloveport session ls`.

use std::process::ExitCode;

use gloveport_provider::{Lifetime, ListFilter, Sandbox, SandboxState};

use super::{
    arguments::ListArgs,
    runtimes::{Found, Runtimes, Silent},
    table,
};
use crate::{
    output::{print, print_json, print_painted},
    paint::Paint,
};

pub(super) async fn list(runtimes: &Runtimes, arguments: ListArgs) -> anyhow::Result<ExitCode> {
    let filter = ListFilter { labels: arguments.label.into_iter().collect(), ended: arguments.all };
    let (mut found, silent) = runtimes.list(&filter).await;
    // The oldest first, over all runtimes.
    found.sort_by_key(|found| found.sandbox.created);
    warn(&silent);
    if arguments.json {
        print_json(&found.iter().map(|found| &found.sandbox).collect::<Vec<_>>())?;
    } else if arguments.quiet {
        print(&found.iter().flat_map(|found| [found.name(), "\n"]).collect::<String>())?;
    } else {
        print_painted(&text(&found, Paint::for_stdout()))?;
    }
    // That nobody could be asked is no empty list.
    let nobody = found.is_empty() && !silent.is_empty() && silent.len() == runtimes.names().len();
    Ok(if nobody { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Tells which runtimes could not be asked.
pub(super) fn warn(silent: &[Silent]) {
    for Silent { runtime, error } in silent {
        tracing::warn!("the runtime `{runtime}` could not be asked: {error}");
    }
}

const HEADING: [&str; 9] = ["SESSION", "SANDBOX", "RUNTIME", "STATE", "LIFETIME", "AGE", "EXPIRES", "URL", "WORKSPACE"];

fn text(found: &[Found], paint: Paint) -> String {
    let rows: Vec<Vec<String>> = found.iter().map(|found| row(&found.runtime, &found.sandbox)).collect();
    table::table(&HEADING, &rows, paint)
}

fn row(runtime: &str, sandbox: &Sandbox) -> Vec<String> {
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    vec![
        sandbox.session_id.to_string(),
        sandbox.id.to_string(),
        runtime.to_owned(),
        state(&sandbox.state),
        lifetime(sandbox.lifetime).to_owned(),
        table::age(sandbox.created),
        table::until(sandbox.expires),
        or_none(&sandbox.url),
        or_none(&sandbox.workspace),
    ]
}

/// The state with as much of its reason as fits into a table.
fn state(state: &SandboxState) -> String {
    const LONGEST: usize = 40;
    let text = state.to_string();
    if text.chars().count() <= LONGEST {
        return text;
    }
    text.chars().take(LONGEST - 1).chain(['…']).collect()
}

pub(super) const fn lifetime(lifetime: Lifetime) -> &'static str {
    match lifetime {
        Lifetime::Backend => "backend",
        Lifetime::Kept => "kept",
        Lifetime::Orphaned => "orphaned",
    }
}
