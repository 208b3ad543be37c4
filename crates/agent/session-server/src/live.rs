//! A session that is served here: its history is open, which keeps all others out.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use gloveport_config::{Config, McpStdioServer};
use gloveport_event_stream::{AddEventError, EventStream, Masker, SubscriberId};
use gloveport_protocol::{
    ErrorObservation, EventSource, ExecuteError, Observation, ObservationEvent, Secret, SecurityRisk,
};
use gloveport_provider::{ResourceLimits, SandboxSpec, SandboxState};
use gloveport_runtime::{
    Hosted, HostedOptions, Runtime, RuntimeError, RuntimeOptions, RuntimeStatus, StatusLevel,
    git_providers::{ProviderToken, ProviderTokens, ProviderType},
};
use gloveport_security::Assessment;
use tokio::{
    sync::{Mutex as AsyncMutex, watch},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    fault::Fault,
    ledger::Ledger,
    owner::Owner,
    record::{Files, Hidden, Key, Record, State, Wanted},
    tracker::Tracker,
};

/// The answer to an action whose server has died.
pub(crate) const LOST: &str = "the gateway that executed this action ended before it had an answer: whether it was done is not known. \
    Look before you do it again.";
/// How long a session may take to be let go.
const LETTING_GO: Duration = Duration::from_secs(30);
/// The name under which the key of a sandbox is hidden.
const SESSION_KEY: &str = "SESSION_API_KEY";

/// How far a session is on the way to its sandbox.
#[derive(Clone, Debug)]
pub(crate) enum Rise {
    /// Nobody has asked for the sandbox yet.
    Down,
    /// It is being made or found; `admitted` as soon as it is clear that the tenant may have it.
    Coming { admitted: bool },
    /// Actions are executed.
    Up,
    /// It did not work; the session has to be taken up anew.
    Over(Fault),
}

/// The latest status of a session.
#[derive(Debug)]
pub(crate) struct Status {
    /// Name and text.
    latest: Mutex<(&'static str, String)>,
    /// Counts errors.
    errors: watch::Sender<u64>,
}

impl Status {
    pub(crate) fn ready(&self) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = (RuntimeStatus::Ready.as_str(), String::new());
    }

    pub(crate) fn latest(&self) -> (&'static str, String) {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A session that is served here.
pub(crate) struct Live {
    pub(crate) key: Key,
    /// In whose name its sandbox is asked for.
    pub(crate) owner: Owner,
    pub(crate) files: Files,
    pub(crate) stream: EventStream,
    pub(crate) runtime: Runtime,
    pub(crate) tracker: Arc<Tracker>,
    pub(crate) record: AsyncMutex<Record>,
    pub(crate) hidden: AsyncMutex<Hidden>,
    pub(crate) status: Arc<Status>,
    pub(crate) rise: watch::Sender<Rise>,
    pub(crate) rising: Mutex<Option<AbortOnDropHandle<()>>>,
    /// Held by whoever answers what is unanswered.
    answering: Arc<AsyncMutex<()>>,
    /// Answers actions that gave no observation.
    _answers_failed: AbortOnDropHandle<()>,
    /// It was let go.
    pub(crate) gone: CancellationToken,
    used: Mutex<Instant>,
    /// One for each request that uses it, and ours.
    users: Arc<()>,
}

/// A request uses the session, so that it is not let go.
pub(crate) struct InUse {
    pub(crate) live: Arc<Live>,
    _user: Arc<()>,
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.live.touch();
    }
}

impl Live {
    /// Goes on with a session whose history was just opened. Actions that nobody has answered are answered with what is
    /// known of them, and questions wait again.
    pub(crate) async fn take_up(
        files: Files,
        key: Key,
        owner: Owner,
        stream: EventStream,
        mut record: Record,
    ) -> Result<Arc<Self>, Fault> {
        let hidden = files.hidden(&key).await?;
        stream.set_secrets(hidden.masked());
        let (mut ledger, next) = Ledger::read(stream.store(), record.settled).await?;
        for id in std::mem::take(&mut ledger.open).into_keys() {
            answer(&stream, id, LOST).await?;
        }
        record.settled = ledger.settled(stream.store().next_id().await?.max(next));
        files.mark(&key).await?;
        files.save(&key, &mut record).await?;
        let status = Arc::new(Status {
            latest: Mutex::new((RuntimeStatus::Stopped.as_str(), String::new())),
            errors: watch::Sender::new(0),
        });
        let runtime = Runtime::new(options(&key, &owner, &stream, (&record, &hidden), &status)?)?;
        for asked in ledger.asked.values() {
            let risk = asked.action.action.security_risk().unwrap_or(SecurityRisk::Unknown);
            runtime.wait_again(asked.action.clone(), Assessment::of(risk))?;
        }
        let tracker = Arc::new(Tracker::new(ledger, stream.store().latest_id().await?));
        let subscriber: Arc<Tracker> = Arc::clone(&tracker);
        stream
            .subscribe(SubscriberId::Server, "sessions", subscriber)
            .map_err(|error| Fault::later(error.to_string()))?;
        let answering = Arc::new(AsyncMutex::new(()));
        let answers_failed =
            answer_failed(stream.clone(), Arc::clone(&tracker), Arc::clone(&status), Arc::clone(&answering));
        Ok(Arc::new(Self {
            key,
            owner,
            files,
            stream,
            runtime,
            tracker,
            record: AsyncMutex::new(record),
            hidden: AsyncMutex::new(hidden),
            status,
            rise: watch::Sender::new(Rise::Down),
            rising: Mutex::new(None),
            answering,
            _answers_failed: AbortOnDropHandle::new(tokio::spawn(answers_failed)),
            gone: CancellationToken::new(),
            used: Mutex::new(Instant::now()),
            users: Arc::new(()),
        }))
    }

    /// What the sandbox is made from.
    pub(crate) fn spec(key: &Key, wanted: &Wanted) -> SandboxSpec {
        let mut spec = SandboxSpec::new(key.id.clone());
        spec.image.clone_from(&wanted.image);
        spec.runtime_class.clone_from(&wanted.runtime_class);
        spec.plugins.clone_from(&wanted.plugins);
        spec.limits = ResourceLimits { factor: wanted.resource_factor, ..ResourceLimits::default() };
        spec
    }

    pub(crate) fn in_use(self: Arc<Self>) -> InUse {
        let user = Arc::clone(&self.users);
        InUse { live: self, _user: user }
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether a request uses it. Whoever asks holds its slot.
    pub(crate) fn is_used(&self) -> bool {
        Arc::strong_count(&self.users) > 1
    }

    /// Whether nobody has used it for this long, and nothing is being done. Whoever asks holds its slot.
    pub(crate) fn is_idle(&self, limit: Duration) -> bool {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
        !self.is_used() && used >= limit && self.tracker.rests() && !self.is_rising()
    }

    pub(crate) fn is_rising(&self) -> bool {
        matches!(*self.rise.borrow(), Rise::Coming { .. })
    }

    /// Why it has to be taken up anew, if it has.
    pub(crate) fn over(&self) -> Option<Fault> {
        match &*self.rise.borrow() {
            Rise::Over(fault) => Some(fault.clone()),
            Rise::Down | Rise::Coming { .. } | Rise::Up => None,
        }
    }

    /// Why something could not be done; of a sandbox that does not answer, what became of it.
    pub(crate) async fn fault(&self, error: RuntimeError) -> Fault {
        // A sandbox that was paused a moment ago is still there to say so.
        let is_unready = matches!(error, RuntimeError::Execute(ExecuteError::Status { status: 503, .. }));
        if !error.is_lost() && !is_unready {
            return error.into();
        }
        tracing::warn!(session = %self.key.id, %error, "the sandbox of a session did not answer");
        match self.owner.provider.find_session(&self.key.id).await {
            Ok(found) if found.as_ref().is_none_or(|sandbox| !sandbox.state.is_live()) => {
                Fault::conflict("the sandbox of the session is gone")
            }
            Ok(Some(sandbox)) if sandbox.state == SandboxState::Paused => {
                Fault::conflict("the session is paused; resume it first")
            }
            _ => Fault::later("the sandbox of the session does not answer; ask again"),
        }
    }

    /// Whether it has to be taken up anew.
    pub(crate) fn is_spent(&self) -> bool {
        self.over().is_some()
    }

    /// Answers what is unanswered.
    pub(crate) async fn answer_open(&self, text: &str) {
        // Nothing is answered twice, and nothing that whoever was closed has just answered.
        let _alone = self.answering.lock().await;
        self.stream.settled().await;
        for id in self.tracker.ledger().open.into_keys() {
            if let Err(error) = answer(&self.stream, id, text).await {
                tracing::error!(session = %self.key.id, id, %error, "an action stays without an answer for now");
            }
        }
        self.stream.delivered().await;
    }

    /// Writes down what it has become.
    pub(crate) async fn change(&self, change: impl FnOnce(&mut Record)) -> Result<(), Fault> {
        let mut record = self.record.lock().await;
        change(&mut record);
        Ok(self.files.save(&self.key, &mut record).await?)
    }

    /// Notes up to where all is answered, so that whoever comes next reads no more than needed.
    pub(crate) async fn note_settled(&self, at_least: i64) {
        let Ok(next) = self.stream.store().next_id().await else { return };
        let settled = self.tracker.ledger().settled(next);
        let noted = async {
            let mut record = self.record.lock().await;
            if settled - record.settled < at_least {
                return Ok(());
            }
            record.settled = settled;
            self.files.save(&self.key, &mut record).await
        };
        if let Err(error) = noted.await {
            tracing::warn!(session = %self.key.id, %error, "how far a session is could not be noted");
        }
    }

    /// Lets it go: the sandbox stays, what is being done is answered with this text, and others can take the session up.
    pub(crate) async fn let_go(&self, text: &str) {
        let going = async {
            {
                // An answer that is being written is written, though nobody waits for it any more: it must be seen first.
                let _alone = self.answering.lock().await;
                drop(self.rising.lock().unwrap_or_else(PoisonError::into_inner).take());
            }
            self.runtime.close().await;
            self.answer_open(text).await;
            self.note_settled(1).await;
        };
        // As long as its history is open, nobody else marks it; and one that is not in order keeps its mark.
        if timeout(LETTING_GO, going).await.is_err() {
            tracing::warn!(session = %self.key.id, "a session was not let go in time; it is put in order when it is taken up");
        } else if let Err(error) = self.files.unmark(&self.key).await {
            tracing::warn!(session = %self.key.id, %error, "a session looks as if it was served");
        }
        self.stream.close().await;
        self.gone.cancel();
    }

    /// A text without the secrets of the session.
    pub(crate) async fn masked(&self, text: &str) -> String {
        let mut masker = Masker::default();
        masker.set(self.hidden.lock().await.masked());
        masker.mask(text).into_owned()
    }

    /// The key of the sandbox's server is none that the history shows.
    pub(crate) fn hide_session_key(&self) {
        if let Some(key) = self.runtime.session_api_key() {
            self.stream.update_secrets(BTreeMap::from([(SESSION_KEY.to_owned(), key)]));
        }
    }
}

impl std::fmt::Debug for Live {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Live")
            .field("key", &self.key)
            .field("rise", &*self.rise.borrow())
            .finish_non_exhaustive()
    }
}

/// Adds the answer to an action that has none.
pub(crate) async fn answer(stream: &EventStream, id: i64, text: &str) -> Result<(), AddEventError> {
    let mut event = ObservationEvent::from(Observation::Error(ErrorObservation::new(text)));
    event.cause = Some(id);
    stream.add(event, EventSource::Environment).await.map(drop)
}

/// Answers the actions that failed without an observation, with the status that told it.
async fn answer_failed(
    stream: EventStream,
    tracker: Arc<Tracker>,
    status: Arc<Status>,
    answering: Arc<AsyncMutex<()>>,
) {
    let mut errors = status.errors.subscribe();
    while errors.changed().await.is_ok() {
        let (_, text) = status.latest();
        // The ledger has all that was announced before the error.
        stream.delivered().await;
        let open = tracker.ledger().open;
        // And what of that was handled and has no answer gets none by itself.
        stream.delivered().await;
        let _alone = answering.lock().await;
        let left = tracker.ledger().open;
        for id in open.into_keys().filter(|id| left.contains_key(id)) {
            if let Err(error) = answer(&stream, id, &text).await {
                tracing::error!(id, %error, "an action stays without an answer for now");
            }
        }
        stream.delivered().await;
    }
}

fn options(
    key: &Key,
    owner: &Owner,
    stream: &EventStream,
    (record, hidden): (&Record, &Hidden),
    status: &Arc<Status>,
) -> Result<RuntimeOptions, Fault> {
    let wanted = &record.wanted;
    let mut config = Config::default();
    config.security.confirmation_mode = wanted.confirmation_mode;
    config.security.security_analyzer.clone_from(&wanted.analyzer);
    if let Some(seconds) = wanted.timeout {
        config.sandbox.timeout = seconds.into();
    }
    for server in &wanted.mcp_servers {
        let env = hidden.mcp_environments.get(&server.name).cloned().unwrap_or_default();
        let server = McpStdioServer::new(&server.name, &server.command, server.args.clone(), env)
            .map_err(|error| Fault::wrong(error.to_string()))?;
        config.mcp.stdio_servers.push(server);
    }
    let hosting = HostedOptions { keep_alive: true, ..HostedOptions::default() };
    let connector = Hosted::new(Arc::clone(&owner.provider), Live::spec(key, wanted), hosting);
    let tokens: ProviderTokens = hidden
        .git_tokens
        .iter()
        .filter_map(|(name, token)| Some((ProviderType::from_wire(name)?, ProviderToken::new(token.clone()))))
        .collect();
    let told = Arc::clone(status);
    Ok(RuntimeOptions {
        sid: key.id.to_string(),
        user_id: Some(key.tenant.clone()),
        plugins: wanted.plugins.clone(),
        env_vars: hidden.environment.clone(),
        secrets: hidden.secrets.clone(),
        git_provider_tokens: tokens,
        // One that is taken up has had its environment; its shell may be at work.
        attach_to_existing: record.state != State::Starting,
        status_callback: Some(Arc::new(move |level, status, text| {
            *told.latest.lock().unwrap_or_else(PoisonError::into_inner) = (status.as_str(), text.to_owned());
            if level == StatusLevel::Error {
                told.errors.send_modify(|count| *count += 1);
            }
        })),
        // The variables of the gateway are none of a tenant's.
        backend_environment: BTreeMap::<String, String>::new(),
        ..RuntimeOptions::new(config, connector)
    }
    .with_stream(stream))
}

/// Secrets with those that are added or replaced.
pub(crate) fn joined(old: &BTreeMap<String, Secret>, new: BTreeMap<String, Secret>) -> BTreeMap<String, Secret> {
    old.clone().into_iter().chain(new).collect()
}
