//! A sandbox as it is told. It ends with our server, so how that is follows from how the sandbox is.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, SystemTime},
};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use gloveport_hosted::{
    record::{self, Labelled, filtered},
    server::{self, OVER},
    settings::is_at_hand,
};
use gloveport_provider::{Lifetime, ListFilter, ProviderError, Restarts, Sandbox, SandboxId, SandboxState, SessionId};

use crate::{
    control::Refused,
    grpc::Code,
    inner::Inner,
    names::{self, LABELS, NAME},
    wire::{FromName, Info, List, Listed, Outcome, Tags, Text, Tunnel, Tunnels, Waited, Within},
};

/// Sandboxes that are looked at at the same time.
const AT_ONCE: usize = 8;
/// Most pages of a list.
const PAGES: usize = 1000;
/// How long the service tells of sandboxes here that have ended. It never forgets them by itself, and none lives for a day.
const HISTORY: Duration = Duration::from_hours(48);
/// How long the ports of a sandbox are waited for that runs.
const TUNNELS: f32 = 10.0;

/// What a sandbox ended with that somebody has ended (`hosted-apis` 5.2).
pub(crate) const TERMINATED: i32 = 3;

impl Inner {
    /// How a sandbox has ended, waiting so long for that; none while it runs. The outer one is none if there is none.
    pub(crate) async fn outcome(
        &self,
        id: &SandboxId,
        within: Duration,
    ) -> Result<Option<Option<Outcome>>, ProviderError> {
        let wish = Within { id: id.to_string(), timeout: within.as_secs_f32() };
        let action = "look at a sandbox";
        let key = self.control.key(action)?;
        let limit = self.control.limit + within;
        let asked = self.control.ask_as(action, "SandboxWaitV2", &wish, &key, limit).await;
        let told: Option<Waited> = crate::control::found(asked)?;
        Ok(told.map(|told| told.result.filter(|result| result.status != 0)))
    }

    /// What the tags of a sandbox say; none for one of somebody else, or if there is none.
    pub(crate) async fn labelled(&self, id: &SandboxId) -> Result<Option<Labelled>, ProviderError> {
        let wish = Text { text: id.to_string() };
        let told: Option<Tags> = self.control.told("read the tags of a sandbox", "SandboxTagsGetV2", &wish).await?;
        Ok(told.and_then(|told| LABELS.read(Some(&names::labels(told.tags)))))
    }

    /// The ports of a sandbox that runs; none while nobody knows them.
    async fn tunnels(&self, id: &SandboxId) -> Result<Vec<Tunnel>, ProviderError> {
        let (action, wish) = ("tell the ports of a sandbox", Within { id: id.to_string(), timeout: TUNNELS });
        match self.control.ask::<_, Tunnels>(action, "SandboxGetTunnelsV2", &wish).await {
            Ok(told) => Ok(told.tunnels),
            // It has ended meanwhile.
            Err(Refused { code: Some(Code::NotFound | Code::FailedPrecondition), .. }) => Ok(Vec::new()),
            Err(refused) => Err(refused.error),
        }
    }

    /// A sandbox by its id.
    pub(crate) async fn find(&self, id: &SandboxId) -> Result<Option<Sandbox>, ProviderError> {
        let (outcome, labelled) = tokio::try_join!(self.outcome(id, Duration::ZERO), self.labelled(id))?;
        let found = match (outcome, labelled) {
            (Some(outcome), Some(labelled)) => self.look(id, outcome, &labelled, Vec::new()).await?,
            _ => None,
        };
        if found.is_none() {
            self.backend.forget(id);
        }
        Ok(found)
    }

    /// The sandbox of a session: the one that lives, else the one that has ended last.
    pub(crate) async fn of_session(&self, session: &SessionId) -> Result<Option<Sandbox>, ProviderError> {
        for include_terminated in [false, true] {
            let Some(id) = self.by_name(session, include_terminated).await? else { continue };
            let found = self.find(&id).await?.filter(|found| found.session_id == *session);
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The id of the sandbox that has the name of a session.
    pub(crate) async fn by_name(
        &self,
        session: &SessionId,
        include_terminated: bool,
    ) -> Result<Option<SandboxId>, ProviderError> {
        let action = "look for a sandbox by its name";
        let wish = FromName {
            sandbox_name: names::of(session),
            environment_name: self.options.environment.clone(),
            app_name: self.options.app.clone(),
            include_terminated,
        };
        let told: Option<Text> = self.control.told(action, "SandboxGetFromNameV2", &wish).await?;
        Ok(told.map(|told| SandboxId::new(told.text)).transpose()?)
    }

    /// All of ours that a filter lets through, the oldest first.
    pub(crate) async fn list(&self, filter: &ListFilter) -> Result<Vec<Sandbox>, ProviderError> {
        let all = self.told(&filter.labels, filter.ended).await?;
        let looked = stream::iter(all).map(|info| self.of_list(info)).buffer_unordered(AT_ONCE);
        let found: Vec<Option<Sandbox>> = looked.try_collect().await?;
        Ok(filtered(found.into_iter().flatten().collect(), filter))
    }

    async fn of_list(&self, info: Info) -> Result<Option<Sandbox>, ProviderError> {
        let Some(labelled) = LABELS.read(Some(&names::labels(info.tags))) else { return Ok(None) };
        let outcome = info.task_info.and_then(|task| task.result).filter(|result| result.status != 0);
        self.look(&SandboxId::new(info.id)?, outcome, &labelled, info.tunnels).await
    }

    /// What the service lists: all with these tags that run, and those that have ended of late if that is wanted.
    async fn told(&self, labels: &BTreeMap<String, String>, ended: bool) -> Result<Vec<Info>, ProviderError> {
        let action = "list sandboxes";
        let oldest = record::seconds(SystemTime::now().checked_sub(HISTORY).unwrap_or(SystemTime::UNIX_EPOCH));
        let (mut all, mut seen) = (Vec::new(), BTreeSet::new());
        let mut wish = List {
            app_id: self.app().await?.to_owned(),
            before_timestamp: 0.0,
            environment_name: self.options.environment.clone(),
            include_finished: ended,
            tags: names::tags(labels),
        };
        for _ in 0..PAGES {
            let page: Listed = self.control.ask(action, "SandboxListV2", &wish).await?;
            let Some(last) = page.sandboxes.last().map(|info| info.created_at) else { return Ok(all) };
            // One that is told again is told of once.
            let before = all.len();
            all.extend(page.sandboxes.into_iter().filter(|info| seen.insert(info.id.clone())));
            if all.len() == before || (ended && last < oldest) {
                return Ok(all);
            }
            wish.before_timestamp = last;
        }
        Err(self.control.service.failed(action, format!("its list has more than {PAGES} pages")))
    }

    /// A sandbox of which the service has told; none if somebody has ended it.
    async fn look(
        &self,
        id: &SandboxId,
        outcome: Option<Outcome>,
        labelled: &Labelled,
        tunnels: Vec<Tunnel>,
    ) -> Result<Option<Sandbox>, ProviderError> {
        if outcome.as_ref().is_some_and(|outcome| outcome.status == TERMINATED) {
            return Ok(None);
        }
        let tunnels = if outcome.is_none() && tunnels.is_empty() { self.tunnels(id).await? } else { tunnels };
        let state = match &outcome {
            Some(outcome) => ended(outcome),
            None if tunnels.is_empty() => SandboxState::Pending,
            None => SandboxState::Running,
        };
        let urls = if outcome.is_none() { self.urls(tunnels)? } else { BTreeMap::new() };
        Ok(Some(self.sandbox(id, labelled, state, &urls)))
    }

    /// URLs of ports. They go over TLS, but for those of a service on this machine.
    fn urls(&self, tunnels: Vec<Tunnel>) -> Result<BTreeMap<u32, String>, ProviderError> {
        let is_here = is_at_hand(&self.options.server_url);
        let url = |tunnel: Tunnel| {
            if !gloveport_hosted::settings::is_host(&tunnel.host) {
                let reason = format!("it names `{}`, which is no host", tunnel.host);
                return Err(self.control.service.failed("tell the ports of a sandbox", reason));
            }
            let scheme = if is_here { "http" } else { "https" };
            let port = if tunnel.port == 443 { String::new() } else { format!(":{}", tunnel.port) };
            Ok((tunnel.container_port, format!("{scheme}://{}{port}", tunnel.host)))
        };
        tunnels.into_iter().map(url).collect()
    }

    fn sandbox(
        &self,
        id: &SandboxId,
        labelled: &Labelled,
        state: SandboxState,
        urls: &BTreeMap<u32, String>,
    ) -> Sandbox {
        let Labelled { session, record, labels, .. } = labelled;
        let opened = self.options.token_secret.as_ref().and_then(|secret| LABELS.key(secret, labelled));
        let url = |port: u16| urls.get(&u32::from(port)).cloned();
        Sandbox {
            id: id.clone(),
            session_id: session.clone(),
            provider: NAME.to_owned(),
            state,
            url: url(record.port),
            session_key: opened,
            urls: record.ports.iter().filter_map(|(name, port)| Some((name.clone(), url(*port)?))).collect(),
            ports: record.ports.clone(),
            headers: BTreeMap::new(),
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

/// Why a sandbox has ended (`hosted-apis` 5.2).
pub(crate) fn ended(outcome: &Outcome) -> SandboxState {
    let failed = |reason: &str| match outcome.exception.as_str() {
        "" => SandboxState::Failed(reason.to_owned()),
        said => SandboxState::Failed(format!("{reason}: {said}")),
    };
    match outcome.status {
        1 | 2 => server::ended(&outcome.exitcode.to_string()),
        TERMINATED => SandboxState::Stopped("somebody has ended it".to_owned()),
        4 => SandboxState::Stopped(OVER.to_owned()),
        5 => failed("it could not be started"),
        6 => failed("the service failed"),
        7 => SandboxState::Stopped("nobody used it".to_owned()),
        8..=10 => failed("it ran out of memory; ask for more"),
        other => failed(&format!("the service says that it has ended as {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_sandbox_has_ended_is_told_in_words() {
        for (status, exitcode, exception, word, reason) in [
            (1, 0, "", "stopped", "told to end"),
            (2, 80, "", "stopped", OVER),
            (2, 81, "", "stopped", "nobody used it"),
            (2, 3, "", "failed", "ended with code 3"),
            (4, 0, "", "stopped", OVER),
            (5, 0, "no such file", "failed", "could not be started: no such file"),
            (7, 0, "", "stopped", "nobody used it"),
            (10, 137, "", "failed", "ask for more"),
            (99, 0, "", "failed", "as 99"),
        ] {
            let state = ended(&Outcome { status, exception: exception.to_owned(), exitcode });
            assert!(state.word() == word && state.reason().contains(reason), "{status}: {state}");
        }
    }
}
