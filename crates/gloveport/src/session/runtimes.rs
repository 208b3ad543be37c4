//! Finds sessions in the runtimes of this binary.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::future::join_all;
use gloveport_client::ActionExecutionClient;
use gloveport_config::{Loaded, Origin};
use gloveport_hosting::{WaitOptions, client, wait_until_alive};
use gloveport_provider::{
    ListFilter, Progress, Provider, ProviderContext, ProviderError, Registry, Sandbox, SandboxId, SandboxState,
    SessionId,
};
use gloveport_provider_remote::Remote;

use super::{
    service::{GatewayFlags, Service},
    settings,
};
use crate::{here, providers};

/// How long the server of a session that should be there is waited for.
const ALIVE: Duration = Duration::from_secs(30);
/// Most sessions that an error names.
const NAMED: usize = 5;

/// The runtimes that the command line means.
pub(super) struct Runtimes {
    registry: Registry,
    pub(super) context: ProviderContext,
    /// What the context was made of, with the places of the settings.
    pub(super) loaded: Loaded,
    chosen: Option<String>,
    /// The one that the configuration names.
    configured: Option<String>,
}

/// A sandbox, and who hosts it.
#[derive(Clone)]
pub(super) struct Found {
    /// The name by which its runtime is chosen.
    pub(super) runtime: String,
    pub(super) provider: Arc<dyn Provider>,
    pub(super) sandbox: Sandbox,
}

/// A runtime that could not be asked.
pub(super) struct Silent {
    pub(super) runtime: String,
    pub(super) error: ProviderError,
}

impl Silent {
    fn note(&self) -> String {
        format!("\n(the runtime `{}` did not answer: {})", self.runtime, self.error)
    }
}

/// There is no such session. The histories of sessions that have no sandbox are not looked at.
#[derive(Debug, thiserror::Error)]
#[error("there is no session or sandbox `{reference}`{}; list them with `gloveport session ls --all`{notes}", place(runtime.as_deref()))]
pub(super) struct Missing {
    reference: String,
    /// The only runtime that was asked, if it was chosen.
    runtime: Option<String>,
    /// What could not be asked.
    notes: String,
}

fn place(runtime: Option<&str>) -> String {
    runtime.map(|runtime| format!(" in the runtime `{runtime}`")).unwrap_or_default()
}

impl Runtimes {
    /// The one that was chosen, or all.
    pub(super) fn new(chosen: Option<String>) -> anyhow::Result<Self> {
        Self::of(providers::load()?, chosen)
    }

    /// The same, or a gateway.
    pub(super) fn with(chosen: Option<String>, service: Option<Service>) -> anyhow::Result<Self> {
        let Some(service) = service else { return Self::new(chosen) };
        let mut loaded = providers::load()?;
        service.put_into(&mut loaded)?;
        Self::of(loaded, Some(Remote::NAME.to_owned()))
    }

    /// All, or the gateway that the environment names.
    pub(super) fn of_environment() -> anyhow::Result<Self> {
        Self::with(None, GatewayFlags::default().service(None)?)
    }

    /// The same with this configuration.
    pub(super) fn of(loaded: Loaded, chosen: Option<String>) -> anyhow::Result<Self> {
        let chosen = chosen.filter(|name| !name.is_empty());
        let context = providers::context_of(&loaded)?;
        let configured = settings::runtime(&loaded);
        Ok(Self { registry: providers::registry(), context, loaded, chosen, configured })
    }

    /// The one that was chosen.
    pub(super) fn chosen(&self) -> Option<&str> {
        self.chosen.as_deref()
    }

    /// The one that was chosen, or that the configuration names.
    pub(super) fn named(&self) -> Option<&str> {
        self.chosen.as_deref().or(self.configured.as_deref())
    }

    /// Whether this one is among those that are meant.
    pub(super) fn means(&self, runtime: &str) -> bool {
        self.chosen().is_none_or(|chosen| chosen == runtime)
    }

    /// The runtime that makes a new sandbox, and its name.
    pub(super) fn one(&self) -> anyhow::Result<(String, Arc<dyn Provider>)> {
        let name = self.named().unwrap_or(here::DEFAULT_RUNTIME);
        let made = self.registry.make(name, &self.context);
        match (made, self.loaded.origins.of("core", "runtime")) {
            (Ok(provider), _) => Ok((name.to_owned(), provider)),
            (Err(error @ ProviderError::UnknownProvider { .. }), Origin::Set(place)) if self.chosen.is_none() => {
                let what = format!("{place}: `runtime` in [core] cannot be used here; --runtime names another one");
                Err(anyhow::Error::from(error).context(what))
            }
            (Err(error), _) => Err(error.into()),
        }
    }

    /// The names of all that are meant.
    pub(super) fn names(&self) -> Vec<String> {
        if let Some(name) = &self.chosen {
            return vec![name.clone()];
        }
        let mut names = providers::names_in_use(&self.registry, &self.context);
        // One with an argument is not among them.
        let is_new = |name: &&String| !names.contains(name) && self.registry.make(name, &self.context).is_ok();
        let configured = self.configured.as_ref().filter(is_new);
        names.extend(configured.cloned());
        names
    }

    /// Asks each that is meant; one that cannot be asked is told with its error.
    pub(super) async fn ask<T, A>(&self, ask: A) -> (Vec<T>, Vec<Silent>)
    where
        A: AsyncFn(String, Arc<dyn Provider>) -> Result<T, ProviderError>,
    {
        let answers = self.names().into_iter().map(async |runtime| {
            let answer = match self.registry.make(&runtime, &self.context) {
                Ok(provider) => ask(runtime.clone(), provider).await,
                Err(error) => Err(error),
            };
            answer.map_err(|error| Silent { runtime, error })
        });
        let (mut given, mut silent) = (Vec::new(), Vec::new());
        for answer in join_all(answers).await {
            match answer {
                Ok(answer) => given.push(answer),
                Err(error) => silent.push(error),
            }
        }
        (given, silent)
    }

    /// The sandboxes of all that are meant.
    pub(super) async fn list(&self, filter: &ListFilter) -> (Vec<Found>, Vec<Silent>) {
        let list = async |runtime: String, provider: Arc<dyn Provider>| {
            let sandboxes = provider.list(filter).await?;
            let found = |sandbox| Found { runtime: runtime.clone(), provider: Arc::clone(&provider), sandbox };
            Ok(sandboxes.into_iter().map(found).collect::<Vec<_>>())
        };
        let (lists, silent) = self.ask(list).await;
        (lists.into_iter().flatten().collect(), silent)
    }

    /// The sandbox that a person means: a session's or sandbox's id, or the beginning of one.
    pub(super) async fn find(&self, reference: &str) -> anyhow::Result<Found> {
        SessionId::new(reference)?;
        let exact = match self.one() {
            Ok((runtime, provider)) => exactly(&runtime, provider, reference).await.map_err(anyhow::Error::from),
            Err(error) => Err(error),
        };
        match exact {
            Ok(Some(found)) => return Ok(found),
            Err(error) if self.chosen.is_some() => return Err(error),
            // The list tells the error once more, if it matters.
            Ok(None) | Err(_) => {}
        }
        let (found, silent) = self.list(&ListFilter { ended: true, ..ListFilter::default() }).await;
        self.choose(reference, found, &silent)
    }

    /// Makes sure that a session without a sandbox really has none: the runtime that hosted it is asked, or all if nobody
    /// knows which one that was.
    pub(super) async fn ensure_gone(&self, session: &SessionId, hosted_by: Option<String>) -> anyhow::Result<()> {
        let names = match hosted_by {
            Some(name) => vec![name],
            None => providers::names_in_use(&self.registry, &self.context),
        };
        for runtime in names {
            let found = match self.registry.make(&runtime, &self.context) {
                Ok(provider) => provider.find_session(session).await,
                Err(error) => Err(error),
            };
            match found {
                Ok(None) => {}
                Ok(Some(sandbox)) if !sandbox.state.is_live() => {}
                Ok(Some(sandbox)) => anyhow::bail!(
                    "the session `{session}` is {} in the runtime `{runtime}`; remove it with `gloveport session rm -f \
                     --runtime {runtime} {session}`",
                    sandbox.state
                ),
                Err(error) => anyhow::bail!(
                    "the session `{session}` may run in the runtime `{runtime}`, which does not tell: {error}; its history \
                     is kept (-f removes it all the same)"
                ),
            }
        }
        Ok(())
    }

    fn choose(&self, reference: &str, found: Vec<Found>, silent: &[Silent]) -> anyhow::Result<Found> {
        let ids = |found: &Found| [found.sandbox.session_id.as_str().to_owned(), found.sandbox.id.as_str().to_owned()];
        let exact = found.iter().any(|found| ids(found).iter().any(|id| id == reference));
        let fits = |id: &String| if exact { id == reference } else { id.starts_with(reference) };
        // One for each session: that which lives, or the latest.
        let mut sessions: BTreeMap<(String, SessionId), Found> = BTreeMap::new();
        for found in found.into_iter().filter(|found| ids(found).iter().any(fits)) {
            let key = (found.runtime.clone(), found.sandbox.session_id.clone());
            if !sessions.get(&key).is_some_and(|other| other.sandbox.state.is_live()) {
                sessions.insert(key, found);
            }
        }
        if sessions.len() > 1 {
            let mut names: Vec<String> =
                sessions.keys().take(NAMED).map(|(runtime, id)| format!("{id} ({runtime})")).collect();
            if sessions.len() > NAMED {
                names.push(format!("{} more", sessions.len() - NAMED));
            }
            anyhow::bail!(
                "`{reference}` is ambiguous, it fits {}; give more of the id, or --runtime",
                names.join(", ")
            );
        }
        let missing = || Missing {
            reference: reference.to_owned(),
            runtime: self.chosen.clone(),
            notes: silent.iter().map(Silent::note).collect::<Vec<_>>().concat(),
        };
        Ok(sessions.into_values().next().ok_or_else(missing)?)
    }
}

/// The sandbox with exactly this id, or of the session with it.
async fn exactly(runtime: &str, provider: Arc<dyn Provider>, reference: &str) -> Result<Option<Found>, ProviderError> {
    let mut sandbox = provider.find_session(&SessionId::new(reference)?).await?;
    if sandbox.is_none() {
        sandbox = provider.find(&SandboxId::new(reference)?).await?;
    }
    Ok(sandbox.map(|sandbox| Found { runtime: runtime.to_owned(), provider, sandbox }))
}

impl Found {
    /// The name by which a person calls it again.
    pub(super) fn name(&self) -> &str {
        self.sandbox.session_id.as_str()
    }

    /// A client of its server, which answers now.
    pub(super) async fn client(&mut self) -> anyhow::Result<ActionExecutionClient> {
        match &self.sandbox.state {
            SandboxState::Paused => {
                anyhow::bail!("the session `{0}` is paused; resume it with `gloveport session resume {0}`", self.name())
            }
            state if !state.is_live() => {
                anyhow::bail!(
                    "the session `{}` is {state}; start a new one with `gloveport session start`",
                    self.name()
                )
            }
            _ => {}
        }
        let options = WaitOptions { limit: ALIVE, ..WaitOptions::default() };
        self.sandbox = wait_until_alive(&*self.provider, self.sandbox.clone(), &options, &Progress::silent()).await?;
        Ok(client(&self.sandbox)?)
    }
}
