//! `gloveport session ls`.

use std::process::ExitCode;

use gloveport_provider::{Lifetime, ListFilter, Sandbox, SandboxState};
use serde_json::{Value, json};

use super::{
    arguments::ListArgs,
    history::History,
    runtimes::{Found, Runtimes, Silent},
    table,
};
use crate::{
    here,
    names::LOCAL,
    output::{print, print_json, print_painted, tell},
    paint::Paint,
};

pub(super) async fn list(runtimes: &Runtimes, arguments: ListArgs) -> anyhow::Result<ExitCode> {
    let with_histories = arguments.all && arguments.label.is_empty();
    let filter = ListFilter { labels: arguments.label.into_iter().collect(), ended: arguments.all };
    let (mut found, silent) = runtimes.list(&filter).await;
    let mut kept = if with_histories { histories(runtimes, &found).await? } else { Vec::new() };
    kept.retain(|kept| silent.iter().all(|silent| Some(&silent.runtime) != kept.runtime.as_ref()));
    // The oldest first, over all runtimes.
    found.sort_by_key(|found| found.sandbox.created);
    warn(&silent);
    if arguments.json {
        let sandboxes = found.iter().map(|found| serde_json::to_value(&found.sandbox));
        let all: Vec<Value> = sandboxes.chain(kept.iter().map(|kept| Ok(kept.as_json()))).collect::<Result<_, _>>()?;
        print_json(&all)?;
    } else if arguments.quiet {
        let names = found.iter().map(Found::name).chain(kept.iter().map(|kept| kept.session.as_str()));
        print(&names.flat_map(|name| [name, "\n"]).collect::<String>())?;
    } else {
        print_painted(&text(&found, &kept, Paint::for_stdout()))?;
        if runtimes.means(LOCAL)
            && let waiting @ 1.. = here::count_waiting(&runtimes.context).await
        {
            let servers = if waiting == 1 { "server waits" } else { "servers wait" };
            tell(&format!("{waiting} {servers} for the next session of the runtime `local`"));
        }
    }
    // That nobody could be asked is no empty list.
    let nobody = found.is_empty() && !silent.is_empty() && silent.len() == runtimes.names().len();
    Ok(if nobody { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A session that has ended, and whose history is kept.
struct Kept {
    session: String,
    /// Who hosted it, if that was written down.
    runtime: Option<String>,
}

impl Kept {
    fn as_json(&self) -> Value {
        json!({"session_id": self.session, "provider": self.runtime, "state": "ended", "history": true})
    }

    fn row(&self) -> Vec<String> {
        let mut row = vec!["-".to_owned(); HEADING.len()];
        let cells = [&self.session, "-", self.runtime.as_deref().unwrap_or("-"), "ended, history kept"];
        row.splice(..cells.len(), cells.map(str::to_owned));
        row
    }
}

/// The sessions without a sandbox whose history is kept, of the runtime that is meant. One whose runtime could not be
/// asked is not among them: it may run.
async fn histories(runtimes: &Runtimes, found: &[Found]) -> anyhow::Result<Vec<Kept>> {
    let mut kept = Vec::new();
    for session in History::kept(&runtimes.context).await? {
        if found.iter().any(|found| found.name() == session) {
            continue;
        }
        let Some(history) = History::of(&runtimes.context, &session)? else { continue };
        let runtime = history.runtime().await?;
        if runtimes.chosen().is_none_or(|chosen| runtime.as_deref() == Some(chosen)) {
            kept.push(Kept { session, runtime });
        }
    }
    kept.sort_by(|one, other| one.session.cmp(&other.session));
    Ok(kept)
}

/// Tells which runtimes could not be asked.
pub(super) fn warn(silent: &[Silent]) {
    for Silent { runtime, error } in silent {
        tracing::warn!("the runtime `{runtime}` could not be asked: {error}");
    }
}

const HEADING: [&str; 9] = ["SESSION", "SANDBOX", "RUNTIME", "STATE", "LIFETIME", "AGE", "EXPIRES", "URL", "WORKSPACE"];

fn text(found: &[Found], kept: &[Kept], paint: Paint) -> String {
    let mut rows: Vec<Vec<String>> = found.iter().map(|found| row(&found.runtime, &found.sandbox)).collect();
    rows.extend(kept.iter().map(Kept::row));
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
