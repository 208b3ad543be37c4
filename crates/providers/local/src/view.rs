//! Sandboxes as their directories and the operating system tell them.

use std::{collections::BTreeMap, fs, path::Path};

use gloveport_provider::{Lifetime, ListFilter, ProviderError, Restarts, Sandbox, SandboxId, SandboxState, SessionId};
use gloveport_sys::mark;

use crate::{
    LocalOptions, backend, delete,
    fault::NAME,
    lock, ports,
    record::Record,
    state::{self, ENDED, HOLDERS, LOCK, PAUSED, State},
};

/// The sandbox of this id.
pub(crate) fn sandbox(state: &State, id: &SandboxId) -> Result<Option<Sandbox>, ProviderError> {
    let directory = state.sandbox(id);
    let Some(record) = Record::read(&directory)? else { return Ok(None) };
    let lifetime = lifetime(state, &directory, &record);
    let doing = what_it_does(&directory, &record);
    let mut record = record;
    if doing.is_live() {
        let named: Vec<u16> = record.urls.values().filter_map(|url| port_of(url)).collect();
        let foreign = ports::of_others(&named);
        record.urls.retain(|name, url| {
            let is_foreign = port_of(url).is_some_and(|port| foreign.contains(&port));
            if is_foreign {
                tracing::warn!(%id, name, url, "another user of this machine listens there, so it is not told");
            }
            !is_foreign
        });
    }
    Ok(Some(Sandbox {
        id: id.clone(),
        state: doing,
        session_id: record.session_id,
        provider: NAME.to_owned(),
        url: Some(record.url),
        session_key: Some(record.session_key),
        ports: record.urls.iter().filter_map(|(name, url)| Some((name.clone(), port_of(url)?))).collect(),
        headers: BTreeMap::new(),
        urls: record.urls,
        labels: record.labels,
        image: None,
        workspace: Some(record.at.workspace.display().to_string()),
        lifetime,
        created: Some(record.created),
        expires: record.expires,
        restarts: Restarts::default(),
    }))
}

/// The port of a URL that has no path.
fn port_of(url: &str) -> Option<u16> {
    url.rsplit_once(':')?.1.trim_end_matches('/').parse().ok()
}

/// All sandboxes that the filter lets through, the oldest first.
pub(crate) fn list(state: &State, filter: &ListFilter) -> Result<Vec<Sandbox>, ProviderError> {
    let mut sandboxes = Vec::new();
    for id in ids(state)? {
        match sandbox(state, &id) {
            Ok(Some(sandbox)) => sandboxes.push(sandbox),
            Ok(None) => {}
            // One that cannot be understood does not hide the others.
            Err(error) => tracing::warn!(%error, %id, "a sandbox is left out of the list"),
        }
    }
    sandboxes.retain(|sandbox| {
        let labelled = filter.labels.iter().all(|(name, value)| sandbox.labels.get(name) == Some(value));
        labelled && (filter.ended || sandbox.state.is_live())
    });
    sandboxes.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
    Ok(sandboxes)
}

/// The ids of all sandboxes, also of what cannot be understood.
pub(crate) fn ids(state: &State) -> Result<Vec<SandboxId>, ProviderError> {
    Ok(state::names(&state.sandboxes())?.into_iter().filter_map(|name| SandboxId::new(name).ok()).collect())
}

/// The sessions that have a sandbox with these options, as their directories tell; with `also_ended` also those whose
/// sandbox has ended. Nothing is asked, locked or ended, so it costs no more than to read a few files.
pub fn sessions(options: &LocalOptions, also_ended: bool) -> Vec<SessionId> {
    let state = State::new(options.state.clone());
    let session = |id: SandboxId| {
        let record = Record::read(&state.sandbox(&id)).ok()??;
        (also_ended || record.server.is_alive()).then_some(record.session_id)
    };
    ids(&state).unwrap_or_default().into_iter().filter_map(session).collect()
}

fn what_it_does(directory: &Path, record: &Record) -> SandboxState {
    if !record.server.is_alive() || !is_locked(directory) {
        // Whoever looks at a sandbox whose owners were all killed ends what lives on of it. Where its server lives, the lock
        // is not seen: this is a copy of its directory, or lies below another root.
        let is_over = || !record.server.is_alive() && !is_locked(directory);
        if let Some(mark) = record.mark.as_deref().filter(|_| is_over()) {
            delete::sweep();
            let count = mark::end(mark);
            if count > 0 {
                tracing::warn!(count, "ended processes of a sandbox whose owners were killed");
            }
        }
        return match fs::read_to_string(directory.join(ENDED)) {
            Ok(reason) => SandboxState::Stopped(reason),
            Err(_) => SandboxState::Failed("its server was killed or has crashed; its log may tell more".to_owned()),
        };
    }
    if directory.join(PAUSED).exists() { SandboxState::Paused } else { SandboxState::Running }
}

/// Whether something of it runs.
pub(crate) fn is_locked(directory: &Path) -> bool {
    matches!(lock::try_lock(&directory.join(LOCK)), Ok(None))
}

fn lifetime(state: &State, directory: &Path, record: &Record) -> Lifetime {
    if !record.keep_alive {
        return Lifetime::Backend;
    }
    let holders = holders(directory);
    if holders.is_empty() || holders.iter().any(|holder| backend::lives(state, holder)) {
        Lifetime::Kept
    } else {
        Lifetime::Orphaned
    }
}

/// The backends that use a kept sandbox.
pub(crate) fn holders(directory: &Path) -> Vec<String> {
    state::names(&directory.join(HOLDERS)).unwrap_or_default()
}
