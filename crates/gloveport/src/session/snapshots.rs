//! `gloveport session snapshots`: lists the snapshots of the runtimes, and deletes them.

use std::{cmp::Reverse, process::ExitCode, sync::Arc, time::UNIX_EPOCH};

use gloveport_provider::{Provider, ProviderError, Snapshot};
use serde_json::{Value, json};

use super::{
    arguments::{ListSnapshotsArgs, RemoveSnapshotsArgs},
    life::each,
    list::warn,
    runtimes::{Runtimes, Silent},
    table,
};
use crate::{
    output::{print_json, print_painted},
    paint::Paint,
};

const HEADING: [&str; 5] = ["IMAGE", "NAME", "SESSION", "RUNTIME", "AGE"];

/// A snapshot, and who has it.
struct Kept {
    runtime: String,
    provider: Arc<dyn Provider>,
    snapshot: Snapshot,
}

fn as_json(runtime: &str, snapshot: &Snapshot) -> Value {
    let Snapshot { image, name, session, created } = snapshot;
    let created = created.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map(|since| since.as_secs_f64());
    json!({"image": image, "name": name, "session_id": session, "provider": runtime, "created": created})
}

fn row(runtime: &str, snapshot: &Snapshot) -> Vec<String> {
    let Snapshot { image, name, session, created } = snapshot;
    let session = session.as_deref().unwrap_or("-");
    vec![image.clone(), name.clone(), session.to_owned(), runtime.to_owned(), table::age(*created)]
}

/// Lists the snapshots, the newest first, over all runtimes.
pub(super) async fn list(runtimes: &Runtimes, arguments: &ListSnapshotsArgs) -> anyhow::Result<ExitCode> {
    let (mut kept, silent) = kept(runtimes).await?;
    kept.sort_by_key(|kept| Reverse(kept.snapshot.created));
    warn(&silent);
    if arguments.json {
        print_json(&kept.iter().map(|kept| as_json(&kept.runtime, &kept.snapshot)).collect::<Vec<_>>())?;
    } else {
        let rows: Vec<_> = kept.iter().map(|kept| row(&kept.runtime, &kept.snapshot)).collect();
        print_painted(&table::table(&HEADING, &rows, Paint::for_stdout()))?;
    }
    // That somebody could not be asked is no empty list.
    Ok(if kept.is_empty() && !silent.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Deletes snapshots, and prints each that is gone.
pub(super) async fn remove(runtimes: &Runtimes, arguments: &RemoveSnapshotsArgs) -> anyhow::Result<ExitCode> {
    let (kept, silent) = kept(runtimes).await?;
    warn(&silent);
    each(&arguments.images, arguments.json, async |image| {
        let mut having = kept.iter().filter(|kept| kept.snapshot.image == image);
        let missing = || anyhow::anyhow!("there is no snapshot `{image}`; `gloveport session snapshots ls` lists them");
        let one = having.next().ok_or_else(missing)?;
        // The same name may mean different files elsewhere.
        if let Some(other) = having.next() {
            let (one, other) = (&one.runtime, &other.runtime);
            anyhow::bail!("the runtimes `{one}` and `{other}` both have a snapshot `{image}`; choose with --runtime");
        }
        if one.provider.delete_snapshot(image).await? { Ok(image.to_owned()) } else { Err(missing()) }
    })
    .await
}

/// The snapshots of all runtimes that are meant. Those without lists of snapshots are left out, but for one that was chosen.
async fn kept(runtimes: &Runtimes) -> anyhow::Result<(Vec<Kept>, Vec<Silent>)> {
    let ask = async |runtime: String, provider: Arc<dyn Provider>| {
        let snapshots = provider.snapshots().await?;
        let kept = |snapshot| Kept { runtime: runtime.clone(), provider: Arc::clone(&provider), snapshot };
        Ok(snapshots.into_iter().map(kept).collect::<Vec<_>>())
    };
    let (lists, mut silent) = runtimes.ask(ask).await;
    if runtimes.chosen().is_some()
        && let Some(Silent { error, .. }) = silent.pop()
    {
        return Err(error.into());
    }
    silent.retain(|silent| !matches!(silent.error, ProviderError::Unsupported { .. }));
    Ok((lists.into_iter().flatten().collect(), silent))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_an_engine_does_not_tell_is_left_open() {
        let created = UNIX_EPOCH.checked_add(Duration::from_millis(7_500));
        let whole = Snapshot { image: "i:a".to_owned(), name: "a".to_owned(), session: Some("s".to_owned()), created };
        let bare = Snapshot { session: None, created: None, ..whole.clone() };
        assert_eq!(row("docker", &whole)[..4], ["i:a", "a", "s", "docker"]);
        assert_eq!(row("e2b", &bare), ["i:a", "a", "-", "e2b", "-"]);
        let expected = json!({"image": "i:a", "name": "a", "session_id": "s", "provider": "docker", "created": 7.5});
        assert_eq!(as_json("docker", &whole), expected);
        let expected = json!({"image": "i:a", "name": "a", "session_id": null, "provider": "e2b", "created": null});
        assert_eq!(as_json("e2b", &bare), expected);
    }
}
