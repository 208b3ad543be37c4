//! A sandbox as it is told, and whether its server lives.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use gloveport_hosted::{
    record::{self, Labelled, Record, filtered},
    server::{OVER, ended, is_over, not_yet},
    settings::is_host,
};
use gloveport_protocol::Secret;
use gloveport_provider::{
    Lifetime, ListFilter, ProviderError, Restarts, Sandbox, SandboxId, SandboxState, SessionId, container::KEY,
};
use jiff::Timestamp;

use crate::{
    agent::{Agent, Fault, Process},
    inner::{Inner, Tokens},
    names::{LABELS, NAME},
    wire::Told,
};

/// Sandboxes that are looked at at the same time.
const AT_ONCE: usize = 8;
/// A sandbox that only tells its token is not to end at once.
const MOMENT: Duration = Duration::from_secs(15);

/// What is found out by asking the agent.
struct Server {
    state: SandboxState,
    /// The key, where the agent tells what our server was started with.
    key: Option<Secret>,
}

impl Inner {
    /// A sandbox by its id.
    pub(crate) async fn find(&self, id: &SandboxId) -> Result<Option<Sandbox>, ProviderError> {
        // One that ends or rests while it is looked at is looked at once more.
        for _ in 0..2 {
            let Some(told) = self.control.get(id).await? else { break };
            match self.look(&told).await {
                Err(Fault::Gone(_)) => {}
                Err(Fault::Other(error)) => return Err(error),
                Ok(found) => return Ok(found),
            }
        }
        let Some(told) = self.control.get(id).await? else {
            self.forget(id);
            return Ok(None);
        };
        let Some(labelled) = LABELS.read(told.metadata.as_ref()) else { return Ok(None) };
        let state = SandboxState::Unknown("the service has it, and its agent does not answer".to_owned());
        Ok(Some(self.sandbox(&told, &labelled, &self.tokens(id), Server { state, key: None })))
    }

    /// All of ours that a filter lets through, the oldest first.
    pub(crate) async fn list(&self, filter: &ListFilter) -> Result<Vec<Sandbox>, ProviderError> {
        let told = self.control.list(&filter.labels).await?.into_iter();
        let ours = told.filter(|told| LABELS.read(told.metadata.as_ref()).is_some());
        let looked = stream::iter(ours).map(|told| async move {
            match self.look(&told).await {
                // It has changed since it was listed.
                Err(Fault::Gone(_)) => self.find(&told.id).await,
                Err(Fault::Other(error)) => Err(error),
                Ok(found) => Ok(found),
            }
        });
        let found: Vec<Option<Sandbox>> = looked.buffer_unordered(AT_ONCE).try_collect().await?;
        Ok(filtered(found.into_iter().flatten().collect(), filter))
    }

    /// The sandboxes of a session, those that have ended among them.
    pub(crate) async fn of_session(&self, session: &SessionId) -> Result<Vec<Sandbox>, ProviderError> {
        let labels: BTreeMap<String, String> = [(LABELS.session.to_owned(), session.to_string())].into();
        let mut found = Vec::new();
        for told in self.control.list(&labels).await? {
            let is_its = LABELS.read(told.metadata.as_ref()).is_some_and(|labelled| labelled.session == *session);
            if is_its && let Some(sandbox) = self.find(&told.id).await? {
                found.push(sandbox);
            }
        }
        Ok(found)
    }

    /// A sandbox of which the service has told; none if it is somebody else's.
    async fn look(&self, told: &Told) -> Result<Option<Sandbox>, Fault> {
        let Some(labelled) = LABELS.read(told.metadata.as_ref()) else { return Ok(None) };
        let (tokens, server) = match told.state.as_str() {
            "running" => {
                let tokens = self.tokens_of(told, &labelled.record).await?;
                let agent = self.agent(&told.id, &tokens)?;
                let server = server(&agent, &labelled.record).await?;
                (tokens, server)
            }
            "paused" => {
                let state = if is_over(&labelled.record) {
                    SandboxState::Stopped(OVER.to_owned())
                } else {
                    SandboxState::Paused
                };
                (self.tokens(&told.id), Server { state, key: None })
            }
            other => {
                let state = SandboxState::Unknown(format!("the service says `{other}`"));
                (self.tokens(&told.id), Server { state, key: None })
            }
        };
        Ok(Some(self.sandbox(told, &labelled, &tokens, server)))
    }

    /// What a sandbox that runs is reached with. Lists do not tell it, and what private ports ask for is told only by a call
    /// that would also wake the sandbox.
    pub(crate) async fn tokens_of(&self, told: &Told, record: &Record) -> Result<Tokens, Fault> {
        let mut tokens = self.tokens(&told.id);
        let (same, new) = (tokens.since == told.started_at, tokens.since.is_none());
        if tokens.whole && (same || new) {
            if new {
                tokens.since.clone_from(&told.started_at);
                self.remember(&told.id, tokens.clone());
            }
            return Ok(tokens);
        }
        let gone = || Fault::Gone("it was listed and is gone".to_owned());
        // A service with one URL for all may ask for a token whatever was wished, as a gateway of this project does whose
        // sandboxes have no ports of their own.
        if record.private || self.options.sandbox_url.is_some() {
            let made = self.control.connect(&told.id, MOMENT).await?.ok_or_else(gone)?;
            tokens = self.reached(made);
        } else {
            let whole = if told.envd_access_token.is_some() {
                told.clone()
            } else {
                self.control.get(&told.id).await?.ok_or_else(gone)?
            };
            tokens.agent = whole.envd_access_token;
            tokens.domain = whole.domain.filter(|domain| is_host(domain));
            tokens.whole = true;
        }
        tokens.since.clone_from(&told.started_at);
        self.remember(&told.id, tokens.clone());
        Ok(tokens)
    }

    fn sandbox(&self, told: &Told, labelled: &Labelled, tokens: &Tokens, server: Server) -> Sandbox {
        let Labelled { session, record, labels, .. } = labelled;
        let id = &told.id;
        let opened = self.options.key.as_ref().and_then(|api_key| LABELS.key(api_key, labelled));
        let ends = told.end_at.as_deref().and_then(|at| at.parse::<Timestamp>().ok()).map(SystemTime::from);
        let expires = record.expires.and_then(record::time);
        let urls = record.ports.iter().map(|(name, port)| (name.clone(), self.url(id, tokens, *port)));
        let headers = self.headers(id, tokens, record.port).into_iter();
        Sandbox {
            id: id.clone(),
            session_id: session.clone(),
            provider: NAME.to_owned(),
            state: server.state,
            url: Some(self.url(id, tokens, record.port)),
            session_key: opened.or(server.key),
            // One URL for all sandboxes leads to none of their ports.
            urls: if self.options.sandbox_url.is_none() { urls.collect() } else { BTreeMap::new() },
            ports: record.ports.clone(),
            headers: headers.map(|(name, value)| (name.to_owned(), value)).collect(),
            labels: labels.clone(),
            image: record.image.clone(),
            workspace: Some(record.workspace.clone()),
            lifetime: if record.kept { Lifetime::Kept } else { Lifetime::Backend },
            created: record::time(record.created),
            // One that is kept rests at the service's limit, and does not end.
            expires: if record.kept { expires } else { expires.into_iter().chain(ends).min() },
            restarts: Restarts::default(),
        }
    }
}

/// What becomes of our server in a sandbox that runs.
async fn server(agent: &Agent<'_>, record: &Record) -> Result<Server, Fault> {
    let processes = agent.processes().await?;
    if let Some(process) = processes.iter().find(|process| process.is_server()) {
        let key = Process::variable(process, KEY).map(|key| Secret::new(key.as_str()));
        return Ok(Server { state: SandboxState::Running, key });
    }
    let state = match agent.read(&format!("{}/ended", record.directory)).await? {
        Some(code) => ended(code.trim()),
        None if agent.read(&format!("{}/pid", record.directory)).await?.is_some() => {
            SandboxState::Failed("its server was killed together with what watches it".to_owned())
        }
        None => not_yet(record),
    };
    Ok(Server { state, key: None })
}
