//! A sandbox as it is told, and whether its server lives.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::SystemTime,
};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use gloveport_hosted::{
    record::{self, Labelled, Record, filtered},
    server::{OVER, ended, is_over, not_yet},
};
use gloveport_protocol::Secret;
use gloveport_provider::{Lifetime, ListFilter, ProviderError, Restarts, Sandbox, SandboxId, SandboxState, SessionId};
use jiff::Timestamp;

use crate::{
    Traffic,
    inner::Inner,
    names::{self, LABELS, NAME},
    toolbox::{Fault, Toolbox},
    wire::{Phase, Preview, Told},
};

/// Sandboxes that are looked at at the same time.
const AT_ONCE: usize = 8;
/// The header with the token of a port.
const TOKEN: &str = "x-daytona-preview-token";
/// The header with which no page of a warning comes before what was asked for.
const NO_WARNING: &str = "x-daytona-skip-preview-warning";

/// What becomes of the server of a directory (`$1`): `none`, `running`, `killed`, or `ended` with its code. Numbers of processes
/// begin anew when a container starts, so the one that is known must be of this directory.
const STATE: &str = r#"if test -s "$1/pid" && ! test -e "$1/ended"; then
  pid=$(cat "$1/pid")
  if { tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null | grep -qF -e "$1"; then echo running; exit; fi
  test -e "$1/ended" || { echo killed; exit; }
fi
if test -e "$1/ended"; then echo "ended $(cat "$1/ended")"; else echo none; fi"#;

/// What becomes of our server in a sandbox that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    /// It was not started since the sandbox was.
    None,
    Running,
    Killed,
    /// With this code.
    Ended(String),
}

/// Asks in a sandbox what becomes of its server.
pub(crate) async fn server(toolbox: &Toolbox<'_>, record: &Record) -> Result<Server, Fault> {
    let action = "look after the server of a sandbox";
    let (code, said) = toolbox.run(action, STATE, &[&record.directory]).await?;
    match said.split_whitespace().collect::<Vec<_>>().as_slice() {
        ["none"] => Ok(Server::None),
        ["running"] => Ok(Server::Running),
        ["killed"] => Ok(Server::Killed),
        ["ended", code @ ..] => Ok(Server::Ended(code.concat())),
        _ => Err(toolbox.service.failed(action, format!("a script ended with code {code}: {said}")).into()),
    }
}

impl Inner {
    /// A sandbox by its id.
    pub(crate) async fn find(&self, id: &SandboxId) -> Result<Option<Sandbox>, ProviderError> {
        let told = self.control.get(id.as_str()).await?.filter(|told| told.id == *id);
        self.found(told, id).await
    }

    /// The sandbox of a session.
    pub(crate) async fn of_session(&self, session: &SessionId) -> Result<Option<Sandbox>, ProviderError> {
        let Some(told) = self.control.get(session.as_str()).await? else { return Ok(None) };
        if names::labelled(&told).is_none_or(|labelled| labelled.session != *session) {
            return Ok(None);
        }
        let id = told.id.clone();
        self.found(Some(told), &id).await
    }

    async fn found(&self, told: Option<Told>, id: &SandboxId) -> Result<Option<Sandbox>, ProviderError> {
        let mut told = told.filter(|told| told.phase() != Phase::Gone);
        let mut reason = String::new();
        // One that ends or rests while it is looked at is looked at once more.
        for _ in 0..3 {
            let Some(seen) = &told else {
                self.forget(id);
                return Ok(None);
            };
            match self.look(seen).await {
                Err(Fault::Gone(why)) => reason = why,
                Err(Fault::Other(error)) => return Err(error),
                Ok(found) => return Ok(found),
            }
            told = self.control.get(id.as_str()).await?.filter(|told| told.id == *id && told.phase() != Phase::Gone);
        }
        let Some((told, labelled)) = told.and_then(|told| names::labelled(&told).map(|labelled| (told, labelled)))
        else {
            return Ok(None);
        };
        let state = SandboxState::Unknown(format!("the service has it, and its daemon does not answer: {reason}"));
        Ok(Some(self.sandbox(&told, labelled, state, None, BTreeMap::new())))
    }

    /// All of ours that a filter lets through, the oldest first. Lists are late, so each is looked at.
    pub(crate) async fn list(&self, filter: &ListFilter) -> Result<Vec<Sandbox>, ProviderError> {
        let mut labels = names::all();
        labels.extend(filter.labels.clone());
        let listed = self.control.list(&labels).await?;
        let mut ids: BTreeSet<SandboxId> =
            listed.into_iter().filter(|told| names::labelled(told).is_some()).map(|told| told.id).collect();
        ids.extend(self.made().iter().cloned());
        let looked = stream::iter(ids).map(|id| async move { self.find(&id).await });
        let found: Vec<Option<Sandbox>> = looked.buffer_unordered(AT_ONCE).try_collect().await?;
        Ok(filtered(found.into_iter().flatten().collect(), filter))
    }

    /// A sandbox of which the service has told; none if it is somebody else's.
    async fn look(&self, told: &Told) -> Result<Option<Sandbox>, Fault> {
        let Some(labelled) = names::labelled(told) else { return Ok(None) };
        let record = &labelled.record;
        let state = match told.phase() {
            Phase::Pending => SandboxState::Pending,
            Phase::Running => match server(&self.toolbox(told)?, record).await? {
                Server::Running => SandboxState::Running,
                Server::None => not_yet(record),
                Server::Killed => SandboxState::Failed(
                    "its server was killed, or the sandbox was started elsewhere; resume it to start it again"
                        .to_owned(),
                ),
                Server::Ended(code) => ended(&code),
            },
            Phase::Paused(_) if is_over(record) => SandboxState::Stopped(OVER.to_owned()),
            Phase::Paused(_) => SandboxState::Paused,
            Phase::Gone => return Ok(None),
            Phase::Failed => SandboxState::Failed(told.reason()),
            Phase::Unknown => SandboxState::Unknown(told.reason()),
        };
        let (mut preview, mut urls) = (None, BTreeMap::new());
        if told.phase() == Phase::Running {
            preview = Some(self.preview(told, record.port).await?);
            // Without a token, a URL is all that is needed.
            if !record.private {
                for (name, port) in &record.ports {
                    urls.insert(name.clone(), self.preview(told, *port).await?.url);
                }
            }
        }
        Ok(Some(self.sandbox(told, labelled, state, preview, urls)))
    }

    fn sandbox(
        &self,
        told: &Told,
        labelled: Labelled,
        state: SandboxState,
        preview: Option<Preview>,
        urls: BTreeMap<String, String>,
    ) -> Sandbox {
        let session_key = self.options.key.as_ref().and_then(|api_key| LABELS.key(api_key, &labelled));
        let Labelled { session, record, labels, .. } = labelled;
        let destroyed = told.auto_destroy_at.as_deref().and_then(|at| at.parse::<Timestamp>().ok());
        let expires = record.expires.and_then(record::time);
        let mut headers = BTreeMap::new();
        if let Some(token) = preview.as_ref().filter(|_| record.private).and_then(|preview| preview.token.clone()) {
            headers.insert(TOKEN.to_owned(), token);
            headers.insert(NO_WARNING.to_owned(), Secret::new("true"));
        }
        Sandbox {
            id: told.id.clone(),
            session_id: session,
            provider: NAME.to_owned(),
            state,
            url: preview.map(|preview| preview.url),
            session_key,
            urls,
            ports: record.ports,
            headers,
            labels,
            image: record.image,
            workspace: Some(record.workspace),
            lifetime: if record.kept { Lifetime::Kept } else { Lifetime::Backend },
            created: record::time(record.created),
            expires: expires.into_iter().chain(destroyed.map(SystemTime::from)).min(),
            restarts: Restarts::default(),
        }
    }

    /// Whether ports of sandboxes ask for a token.
    pub(crate) fn is_private(&self) -> bool {
        self.options.traffic == Traffic::Private
    }
}
