//! Where it is recorded what happens in a sandbox.

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use gloveport_audit::Log;
use gloveport_contract::recorder::Audited;
use gloveport_provider::{Level, LogStream, NetworkPolicy, ProviderError, SandboxId, SandboxSpec, SessionId};

use crate::{
    fault::{self, NAME, blocking},
    state::State,
    view,
};

/// The field of a sandbox that names it.
const FIELD: &str = "audit";
/// The label that says which file it is.
pub(crate) const LABEL: &str = "gloveport.audit";
/// Largest piece of a log.
const PIECE: usize = 64 * 1024;

/// The file by its own name, where the sandbox does not write. It is made if it is missing.
pub(crate) fn place(path: &Path, write: &[PathBuf]) -> Result<PathBuf, ProviderError> {
    let wrong = |reason: String| ProviderError::Spec {
        field: FIELD.to_owned(),
        reason: format!("{} cannot be used: {reason}", path.display()),
    };
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(wrong("it names no file".to_owned()));
    };
    let real = std::fs::canonicalize(directory)
        .map_err(|error| wrong(format!("its directory cannot be entered: {error}")))?
        .join(name);
    if let Some(place) = write.iter().find(|place| real.starts_with(place)) {
        let reason = format!("the sandbox writes in {} and could change it; name a file elsewhere", place.display());
        return Err(wrong(reason));
    }
    Log::open(&real).map_err(|error| wrong(error.to_string()))?;
    Ok(real)
}

/// That a sandbox could change its own log.
pub(crate) fn nobody_keeps_it() -> ProviderError {
    let reason = "a sandbox that is kept from nothing could change it; choose --isolation container or files";
    ProviderError::Spec { field: FIELD.to_owned(), reason: reason.to_owned() }
}

/// What the log is told first.
pub(crate) fn first(spec: &SandboxSpec, level: Level) -> Audited {
    let network = match &spec.network {
        NetworkPolicy::Full => vec!["full".to_owned()],
        NetworkPolicy::None => vec!["none".to_owned()],
        NetworkPolicy::Only(hosts) => hosts.clone(),
    };
    let edge_secrets = spec.edge_secrets.iter().map(|(name, secret)| format!("{name}@{}", secret.hosts.join(",")));
    Audited {
        isolation: level.name().to_owned(),
        network,
        edge_secrets: edge_secrets.collect(),
        secrets: spec.secrets.keys().cloned().collect(),
    }
}

/// What is in the file that a sandbox records into. Others may share it.
pub(crate) async fn stream(state: State, session: &SessionId) -> Result<LogStream, ProviderError> {
    let id = SandboxId::new(session.as_str())?;
    let opened = blocking(move || {
        let sandbox = view::sandbox(&state, &id)?.ok_or_else(|| ProviderError::NotFound(id.clone()))?;
        let path = sandbox.labels.get(LABEL).map(PathBuf::from).ok_or_else(|| ProviderError::Unsupported {
            provider: NAME.to_owned(),
            what: format!("the audit log of `{id}`, which was started without one (`--audit FILE`)"),
        })?;
        let file = File::open(&path).map_err(fault::file("read", &path))?;
        Ok((file, path))
    });
    let next = |(file, path): (File, PathBuf)| async move {
        let read = blocking(move || {
            let mut piece = Vec::with_capacity(PIECE);
            let count = (&file).take(PIECE as u64).read_to_end(&mut piece).map_err(fault::file("read", &path))?;
            Ok((count > 0).then(|| (Bytes::from(piece), (file, path))))
        });
        read.await
    };
    Ok(stream::try_unfold(opened.await?, next).boxed())
}
