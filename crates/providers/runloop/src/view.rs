//! A sandbox as it is told, and whether its server lives.

use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use gloveport_hosted::{
    record::{self, Labelled, Record, filtered},
    server::{self, OVER, is_over},
    service::{Again, Request},
};
use gloveport_provider::{Lifetime, ListFilter, ProviderError, Restarts, Sandbox, SandboxId, SandboxState, SessionId};
use http::{HeaderMap, HeaderValue, Method};

use crate::{
    inner::Inner,
    launch::{STATE, script},
    names::{LABELS, NAME},
    wire::Devbox,
};

/// Sandboxes that are looked at at the same time.
const AT_ONCE: usize = 8;
/// How long a server may take to say that it lives, before it is looked for in the sandbox.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);
/// The header that a tunnel asks for.
pub(crate) const TUNNEL: &str = "x-runloop-tunnel-authorization";

impl Inner {
    /// A sandbox by its id.
    pub(crate) async fn find(&self, id: &SandboxId) -> Result<Option<Sandbox>, ProviderError> {
        let found = match self.control.get(id).await? {
            Some(devbox) => self.look(devbox).await?,
            None => None,
        };
        if found.is_none() {
            self.backend.forget(id);
        }
        Ok(found)
    }

    /// All of ours that a filter lets through, the oldest first.
    pub(crate) async fn list(&self, filter: &ListFilter) -> Result<Vec<Sandbox>, ProviderError> {
        let has = |devbox: &Devbox| {
            let labels = LABELS.read(devbox.metadata.as_ref()).map(|labelled| labelled.labels);
            labels.is_some_and(|labels| filter.labels.iter().all(|(name, value)| labels.get(name) == Some(value)))
        };
        let devboxes = self.control.list().await?.into_iter().filter(has);
        let looked = stream::iter(devboxes).map(|devbox| self.look(devbox)).buffer_unordered(AT_ONCE);
        let found: Vec<Option<Sandbox>> = looked.try_collect().await?;
        Ok(filtered(found.into_iter().flatten().collect(), filter))
    }

    /// The sandboxes of a session, those that have ended among them.
    pub(crate) async fn of_session(&self, session: &SessionId) -> Result<Vec<Sandbox>, ProviderError> {
        let mut found = Vec::new();
        for devbox in self.control.list().await? {
            if LABELS.read(devbox.metadata.as_ref()).is_some_and(|labelled| labelled.session == *session) {
                found.extend(self.look(devbox).await?);
            }
        }
        Ok(found)
    }

    /// A sandbox of which the service has told; none if it is somebody else's, or has ended for good.
    pub(crate) async fn look(&self, devbox: Devbox) -> Result<Option<Sandbox>, ProviderError> {
        let Some(labelled) = LABELS.read(devbox.metadata.as_ref()) else { return Ok(None) };
        let state = match devbox.status.as_str() {
            "shutdown" => return Ok(None),
            "running" => match self.server(&devbox, &labelled.record).await? {
                Some(state) => state,
                // It rests or has ended since.
                None => match self.control.get(&devbox.id).await? {
                    None => return Ok(None),
                    Some(now) if now.status == "shutdown" => return Ok(None),
                    Some(now) => resting(&now, &labelled.record),
                },
            },
            _ => resting(&devbox, &labelled.record),
        };
        Ok(Some(self.sandbox(&devbox, &labelled, state)))
    }

    /// What becomes of our server in a sandbox that runs: it says so itself, or a script there does. None if the sandbox does not
    /// run any more.
    async fn server(&self, devbox: &Devbox, record: &Record) -> Result<Option<SandboxState>, ProviderError> {
        if self.says_that_it_lives(devbox, record).await {
            return Ok(Some(SandboxState::Running));
        }
        let told = self.control.run("look at a server", &devbox.id, &script(STATE, &[&record.directory])).await;
        let said = match told {
            Ok(Some((0, said))) => said,
            Ok(Some((code, said))) => {
                let reason = format!("the script that looks at its server ended with code {code}: {said}");
                return Ok(Some(SandboxState::Unknown(reason)));
            }
            // It is refused where it does not run.
            Ok(None) | Err(ProviderError::Spec { .. } | ProviderError::Engine { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(match said.split_once(' ') {
            Some(("ended", code)) => server::ended(code.trim()),
            _ if said == "ended" => server::ended(""),
            _ if said == "runs" => SandboxState::Running,
            _ => server::not_yet(record),
        }))
    }

    async fn says_that_it_lives(&self, devbox: &Devbox, record: &Record) -> bool {
        let Some(tunnel) = &devbox.tunnel else { return false };
        let mut headers = HeaderMap::new();
        if let Some(token) = &tunnel.auth_token {
            let Ok(mut value) = HeaderValue::from_str(&format!("Bearer {}", token.expose())) else { return false };
            value.set_sensitive(true);
            headers.insert(TUNNEL, value);
        }
        let url = format!("{}/alive", self.options.url_of(&tunnel.tunnel_key, record.port));
        let request = Request {
            method: Method::GET,
            url,
            headers,
            body: bytes::Bytes::new(),
            again: Again::Refused,
            limit: SIGN_OF_LIFE,
        };
        let answer = self.control.service.send("ask a server for a sign of life", &request).await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    pub(crate) fn sandbox(&self, devbox: &Devbox, labelled: &Labelled, state: SandboxState) -> Sandbox {
        let Labelled { session, record, labels, .. } = labelled;
        let opened = self.options.key.as_ref().and_then(|api_key| LABELS.key(api_key, labelled));
        let url = |port: u16| Some(self.options.url_of(&devbox.tunnel.as_ref()?.tunnel_key, port));
        let token = devbox.tunnel.as_ref().and_then(|tunnel| tunnel.auth_token.as_ref());
        let header = token.map(|token| (TUNNEL.to_owned(), format!("Bearer {}", token.expose()).into()));
        let urls = record.ports.iter().filter_map(|(name, port)| Some((name.clone(), url(*port)?)));
        Sandbox {
            id: devbox.id.clone(),
            session_id: session.clone(),
            provider: NAME.to_owned(),
            state,
            url: url(record.port),
            session_key: opened,
            urls: urls.collect(),
            ports: record.ports.clone(),
            headers: header.into_iter().collect(),
            labels: labels.clone(),
            image: record.image.clone(),
            workspace: Some(record.workspace.clone()),
            lifetime: if record.kept { Lifetime::Kept } else { Lifetime::Backend },
            created: record::time(record.created),
            expires: record.expires.and_then(record::time),
            restarts: Restarts::default(),
        }
    }
}

/// The state of a sandbox that does not run.
fn resting(devbox: &Devbox, record: &Record) -> SandboxState {
    match devbox.status.as_str() {
        "scheduled" | "queued" | "provisioning" | "initializing" | "resuming" => SandboxState::Pending,
        "suspending" | "suspended" if is_over(record) => SandboxState::Stopped(OVER.to_owned()),
        "suspending" | "suspended" => SandboxState::Paused,
        "failure" => SandboxState::Failed(failure(devbox)),
        other => SandboxState::Unknown(format!("the service says `{other}`")),
    }
}

/// Why a sandbox failed, and what to do.
pub(crate) fn failure(devbox: &Devbox) -> String {
    match devbox.failure_reason.as_deref() {
        Some("out_of_memory") => "it ran out of memory; ask for more, or for a larger size".to_owned(),
        Some("out_of_disk") => "its disk is full; ask for a larger one".to_owned(),
        Some("execution_failed") => "it could not be started; its log on the dashboard has the reason".to_owned(),
        Some("health_check_failed") => "it did not answer any more; it may need a larger size".to_owned(),
        Some(other) => format!("the service says `{other}`"),
        None => "the service does not say why".to_owned(),
    }
}

/// When a sandbox began, by the clock of the service.
pub(crate) fn begun(devbox: &Devbox) -> (u64, SandboxId) {
    (devbox.create_time_ms, devbox.id.clone())
}
