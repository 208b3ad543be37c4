//! The sessions that files of this user tell of, for whoever must not wait for a runtime.

use std::{collections::BTreeMap, time::Duration};

use gloveport_provider::{ProviderContext, SessionId};

use super::history::History;
use crate::{here, names::LOCAL};

/// How long the histories are read.
const PATIENCE: Duration = Duration::from_millis(200);

/// Their ids, each with its runtime: those of the runtime `local` that have a sandbox, and those of other runtimes that have
/// a history, since only a runtime knows the rest; with `also_ended` all that have one of the two.
pub(crate) fn known(context: &ProviderContext, also_ended: bool) -> BTreeMap<String, String> {
    let mut known = BTreeMap::new();
    // Another store is not on this machine.
    if context.config.file_store == "local"
        && let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build()
    {
        let read = async { tokio::time::timeout(PATIENCE, hosted(context, &mut known)).await };
        // What was read until then is good.
        let _late = runtime.block_on(read);
        runtime.shutdown_background();
    }
    known.retain(|_, runtime| also_ended || runtime != LOCAL);
    known.extend(here::sessions(context, also_ended).into_iter().map(|id| (id, LOCAL.to_owned())));
    known
}

async fn hosted(context: &ProviderContext, known: &mut BTreeMap<String, String>) -> anyhow::Result<()> {
    for session in History::kept(context).await? {
        if SessionId::new(session.as_str()).is_err() {
            continue;
        }
        let Some(history) = History::of(context, &session)? else { continue };
        // One without a runtime is of the library, or of a program that is older.
        if let Some(runtime) = history.runtime().await? {
            known.insert(session, runtime);
        }
    }
    Ok(())
}
