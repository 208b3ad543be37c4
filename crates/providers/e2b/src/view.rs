//! A sandbox as it is told, and whether its server lives.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use gloveport_protocol::Secret;
use gloveport_provider::{
    Lifetime, ListFilter, ProviderError, Restarts, Sandbox, SandboxId, SandboxState, SessionId,
    container::{EXPIRED, KEY, UNUSED},
};
use jiff::Timestamp;

use crate::{
    agent::{Agent, Fault, Process},
    inner::{Inner, Tokens},
    names::{self, NAME, SESSION},
    options::is_host,
    record::{Labelled, Record},
    wire::Told,
};

/// Sandboxes that are looked at at the same time.
const AT_ONCE: usize = 8;
/// How long the making of a sandbox may take before it is taken for one that was given up.
const MAKING: Duration = Duration::from_mins(15);
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
        let Some(labelled) = Labelled::of(told.metadata.as_ref()) else { return Ok(None) };
        let state = SandboxState::Unknown("the service has it, and its agent does not answer".to_owned());
        Ok(Some(self.sandbox(&told, &labelled, &self.tokens(id), Server { state, key: None })))
    }

    /// All of ours that a filter lets through, the oldest first.
    pub(crate) async fn list(&self, filter: &ListFilter) -> Result<Vec<Sandbox>, ProviderError> {
        let told = self.control.list(&filter.labels).await?.into_iter();
        let ours = told.filter(|told| Labelled::of(told.metadata.as_ref()).is_some());
        let looked = stream::iter(ours).map(|told| async move {
            match self.look(&told).await {
                // It has changed since it was listed.
                Err(Fault::Gone(_)) => self.find(&told.id).await,
                Err(Fault::Other(error)) => Err(error),
                Ok(found) => Ok(found),
            }
        });
        let found: Vec<Option<Sandbox>> = looked.buffer_unordered(AT_ONCE).try_collect().await?;
        let mut found: Vec<Sandbox> = found.into_iter().flatten().collect();
        let labelled = |one: &Sandbox| filter.labels.iter().all(|(name, value)| one.labels.get(name) == Some(value));
        found.retain(|sandbox| labelled(sandbox) && (filter.ended || sandbox.state.is_live()));
        found.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
        Ok(found)
    }

    /// The sandboxes of a session, those that have ended among them.
    pub(crate) async fn of_session(&self, session: &SessionId) -> Result<Vec<Sandbox>, ProviderError> {
        let labels: BTreeMap<String, String> = [(SESSION.to_owned(), session.to_string())].into();
        let mut found = Vec::new();
        for told in self.control.list(&labels).await? {
            let is_its = Labelled::of(told.metadata.as_ref()).is_some_and(|labelled| labelled.session == *session);
            if is_its && let Some(sandbox) = self.find(&told.id).await? {
                found.push(sandbox);
            }
        }
        Ok(found)
    }

    /// A sandbox of which the service has told; none if it is somebody else's.
    async fn look(&self, told: &Told) -> Result<Option<Sandbox>, Fault> {
        let Some(labelled) = Labelled::of(told.metadata.as_ref()) else { return Ok(None) };
        let (tokens, server) = match told.state.as_str() {
            "running" => {
                let tokens = self.tokens_of(told, &labelled.record).await?;
                let agent = self.agent(&told.id, &tokens)?;
                let server = server(&agent, &labelled.record).await?;
                (tokens, server)
            }
            "paused" => {
                let is_over =
                    labelled.record.expires.is_some_and(|expires| expires <= names::seconds(SystemTime::now()));
                let state = if is_over { SandboxState::Stopped(OVER.to_owned()) } else { SandboxState::Paused };
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
        if record.private {
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
        let opened = self.options.key.as_ref().and_then(|api_key| labelled.key(api_key));
        let ends = told.end_at.as_deref().and_then(|at| at.parse::<Timestamp>().ok()).map(SystemTime::from);
        let expires = record.expires.and_then(names::time);
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
            created: names::time(record.created),
            // One that is kept rests at the service's limit, and does not end.
            expires: if record.kept { expires } else { expires.into_iter().chain(ends).min() },
            restarts: Restarts::default(),
        }
    }
}

/// Why a sandbox has ended whose time is over.
const OVER: &str = "its time is over";

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
        None => {
            let made = names::time(record.created).and_then(|made| made.elapsed().ok());
            if made.is_none_or(|since| since < MAKING) {
                SandboxState::Pending
            } else {
                SandboxState::Failed("its server was never started; who made it gave up".to_owned())
            }
        }
    };
    Ok(Server { state, key: None })
}

/// What the exit code of our server means.
fn ended(code: &str) -> SandboxState {
    match code.parse::<i64>() {
        Ok(EXPIRED) => SandboxState::Stopped(OVER.to_owned()),
        Ok(UNUSED) => SandboxState::Stopped("nobody used it".to_owned()),
        Ok(0) => SandboxState::Stopped("its server was told to end".to_owned()),
        Ok(code) => SandboxState::Failed(format!(
            "its server ended with code {code}; its log has the reason, as long as it is there"
        )),
        Err(_) => SandboxState::Failed("its server ended, and how is not known".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_a_server_says_why_it_has_ended() {
        for (code, word, reason) in [
            ("80", "stopped", OVER),
            ("81", "stopped", "nobody used it"),
            ("0", "stopped", "its server was told to end"),
            ("137", "failed", "its server ended with code 137"),
            ("", "failed", "how is not known"),
        ] {
            let state = ended(code);
            assert!(state.word() == word && state.reason().contains(reason), "{code}: {state}");
        }
    }
}
