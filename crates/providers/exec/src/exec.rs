//! The provider: each method is one call of the program.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use gloveport_protocol::{BoxFuture, Secret};
use gloveport_provider::{
    Capabilities, Check, GcOptions, GcReport, ListFilter, LogOptions, LogStream, Phase, Progress, Provider,
    ProviderError, Sandbox, SandboxId, SandboxSpec, SessionId, WarmKind,
    backend::{self, BackendLock},
};
use serde::de::DeserializeOwned;

use crate::{
    ExecOptions, PROTOCOLS,
    answer::{self, About, CheckAnswer, DeleteAnswer, Done, GarbageAnswer, ListAnswer, OneAnswer, SandboxAnswer},
    call::Call,
    describe::{self, Description, Verb},
    logs,
    request::{Body, Request, ServerView, SpecView},
    stderr::Mask,
};

/// Sandboxes that are deleted at the same time when the backend ends.
const AT_ONCE: usize = 8;

/// Sandboxes of a program that speaks the provider protocol.
pub struct Exec {
    options: ExecOptions,
    description: Description,
    backend: BackendLock,
    /// Those that this backend made and that end with it.
    own: Mutex<BTreeSet<SandboxId>>,
    closed: AtomicBool,
}

impl Exec {
    /// Asks the program what it can do, which may take a few milliseconds and at most 10 s; it waits for no engine.
    pub fn start(options: ExecOptions) -> Result<Self, ProviderError> {
        let backend = BackendLock::start(&options.backends)?;
        let description = Description::unknown();
        let mut exec = Self { options, description, backend, own: Mutex::default(), closed: AtomicBool::new(false) };
        let call = exec.call(Verb::Describe, Body::Nothing {}, Mask::default());
        let name = exec.options.name.clone();
        let failed = |reason: String| describe::refused(format!("the runtime `{name}`"), reason);
        // A runtime of its own lets this wait in whatever thread it is called.
        let told = std::thread::scope(|scope| {
            let asked = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.map_err(|error| failed(error.to_string()))?;
                runtime.block_on(async {
                    let ended = call.run(None).await?;
                    answer::read(&call, &ended, &About::Nothing)
                })
            });
            asked.join().unwrap_or_else(|_| Err(failed("a thread panicked".to_owned())))
        })?;
        exec.description = Description::read(told).map_err(|reason| describe::refused(call.engine(), reason))?;
        Ok(exec)
    }

    fn call(&self, verb: Verb, body: Body<'_>, mask: Mask) -> Call {
        let describes = verb == Verb::Describe;
        let mut environment: Vec<(String, String)> = self
            .options
            .environment
            .iter()
            .filter(|(name, _)| self.description.wants(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let plain = [
            ("GLOVEPORT_VERB", verb.word().to_owned()),
            ("GLOVEPORT_PROTOCOL", self.description.protocol.max(PROTOCOLS[0]).to_string()),
            ("GLOVEPORT_BACKEND_ID", self.backend.id.clone()),
            ("GLOVEPORT_BACKEND_LOCK", self.backend.lock.display().to_string()),
        ];
        let all = plain.into_iter().chain(body.variables());
        environment.extend(all.map(|(name, value)| (name.to_owned(), value)));
        let request = Request {
            protocol: (!describes).then_some(self.description.protocol),
            protocols: describes.then_some(PROTOCOLS),
            verb,
            provider: &self.options.name,
            backend: (&self.backend).into(),
            body,
        };
        // Maps with text keys and numbers can always be written.
        let mut input = serde_json::to_vec(&request).unwrap_or_default();
        input.push(b'\n');
        Call {
            provider: self.options.name.clone(),
            program: self.options.program.clone(),
            verb,
            environment,
            input,
            limit: self.description.limit(verb),
            mask,
        }
    }

    async fn ask<T: DeserializeOwned>(&self, verb: Verb, body: Body<'_>, about: About<'_>) -> Result<T, ProviderError> {
        let call = self.call(verb, body, Mask::default());
        let ended = call.run(None).await?;
        answer::read(&call, &ended, &about)
    }

    /// One that a program may leave out.
    async fn ask_if_known(&self, verb: Verb, id: &SandboxId) -> Result<(), ProviderError> {
        if self.description.knows(verb) {
            let Done {} = self.ask(verb, Body::Sandbox { id }, About::Sandbox(id)).await?;
        }
        Ok(())
    }

    fn sandbox(&self, verb: Verb, answer: SandboxAnswer) -> Result<Sandbox, ProviderError> {
        answer.into_sandbox(&self.options.name).map_err(|reason| ProviderError::Engine {
            engine: format!("the provider program {}", self.options.program.display()),
            action: format!("answer `{}`", verb.word()),
            reason,
        })
    }

    fn own(&self) -> std::sync::MutexGuard<'_, BTreeSet<SandboxId>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn make(&self, spec: &SandboxSpec, progress: &Progress) -> Result<Sandbox, ProviderError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(ProviderError::Closed(self.options.name.clone()));
        }
        spec.check(&self.options.name, &self.description.capabilities)?;
        let key = match &spec.session_key {
            Some(key) => key.clone(),
            None => Secret::new(backend::random().map_err(|source| ProviderError::File {
                action: "read random numbers from",
                path: "/dev/urandom".into(),
                source,
            })?),
        };
        progress.enter(Phase::Creating, "");
        let server = ServerView::new(&self.options.server, Some(spec), &key);
        let body = Body::Create { server, spec: Box::new(SpecView::new(spec, &key)) };
        let call = self.call(Verb::Create, body, Mask::new(spec.secrets.values().chain([&key])));
        let ended = call.run(Some(progress)).await?;
        let answer: OneAnswer = answer::read(&call, &ended, &About::Session(&spec.session_id))?;
        let Some(answer) = answer.sandbox else {
            return Err(call.failed("its answer has no sandbox", &ended.lines));
        };
        let sandbox = self.sandbox(Verb::Create, answer)?;
        if sandbox.session_id != spec.session_id {
            let reason = format!("it made a sandbox for the session `{}`", sandbox.session_id);
            return Err(call.failed(&reason, &ended.lines));
        }
        if !spec.keep_alive {
            self.own().insert(sandbox.id.clone());
        }
        if self.closed.load(Ordering::Acquire) {
            self.remove(&sandbox.id).await?;
            return Err(ProviderError::Closed(self.options.name.clone()));
        }
        Ok(sandbox)
    }

    async fn remove(&self, id: &SandboxId) -> Result<bool, ProviderError> {
        let DeleteAnswer { deleted } = self.ask(Verb::Delete, Body::Sandbox { id }, About::Sandbox(id)).await?;
        self.own().remove(id);
        Ok(deleted)
    }

    async fn end(&self) {
        self.closed.store(true, Ordering::Release);
        let own: Vec<SandboxId> = self.own().iter().cloned().collect();
        let name = &self.options.name;
        let delete = |id: SandboxId| async move {
            if let Err(error) = self.remove(&id).await {
                tracing::warn!(%id, %error, runtime = name, "a sandbox is left; `gloveport session gc` removes it");
            }
        };
        stream::iter(own).for_each_concurrent(AT_ONCE, delete).await;
        if self.description.knows(Verb::Close)
            && let Err(error) = self.ask::<Done>(Verb::Close, Body::Nothing {}, About::Nothing).await
        {
            tracing::warn!(%error, runtime = name, "the runtime was not closed");
        }
    }
}

impl fmt::Debug for Exec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exec")
            .field("name", &self.options.name)
            .field("program", &self.options.program)
            .field("protocol", &self.description.protocol)
            .finish_non_exhaustive()
    }
}

impl Provider for Exec {
    fn name(&self) -> &str {
        &self.options.name
    }

    fn capabilities(&self) -> Capabilities {
        self.description.capabilities.clone()
    }

    fn create<'a>(
        &'a self,
        spec: &'a SandboxSpec,
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Sandbox, ProviderError>> {
        Box::pin(self.make(spec, progress))
    }

    fn find<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<Option<Sandbox>, ProviderError>> {
        Box::pin(async move {
            let found: OneAnswer = self.ask(Verb::Find, Body::Sandbox { id }, About::Nothing).await?;
            found.sandbox.map(|sandbox| self.sandbox(Verb::Find, sandbox)).transpose()
        })
    }

    fn find_session<'a>(&'a self, session_id: &'a SessionId) -> BoxFuture<'a, Result<Option<Sandbox>, ProviderError>> {
        Box::pin(async move {
            let body = Body::Session { session_id };
            let found: OneAnswer = self.ask(Verb::FindSession, body, About::Nothing).await?;
            found.sandbox.map(|sandbox| self.sandbox(Verb::FindSession, sandbox)).transpose()
        })
    }

    fn list<'a>(&'a self, filter: &'a ListFilter) -> BoxFuture<'a, Result<Vec<Sandbox>, ProviderError>> {
        Box::pin(async move {
            let found: ListAnswer = self.ask(Verb::List, Body::list(filter), About::Nothing).await?;
            let sandboxes = found.sandboxes.into_iter().map(|sandbox| self.sandbox(Verb::List, sandbox));
            let mut sandboxes = sandboxes.collect::<Result<Vec<_>, _>>()?;
            // A program may leave this to us.
            let labelled =
                |sandbox: &Sandbox| filter.labels.iter().all(|(name, value)| sandbox.labels.get(name) == Some(value));
            sandboxes.retain(|sandbox| labelled(sandbox) && (filter.ended || sandbox.state.is_live()));
            sandboxes.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
            Ok(sandboxes)
        })
    }

    fn pause<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(async move {
            self.needs(self.description.capabilities.pause, "pausing sandboxes")?;
            let Done {} = self.ask(Verb::Pause, Body::Sandbox { id }, About::Sandbox(id)).await?;
            Ok(())
        })
    }

    fn resume<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(async move {
            self.needs(self.description.capabilities.pause, "resuming sandboxes")?;
            let Done {} = self.ask(Verb::Resume, Body::Sandbox { id }, About::Sandbox(id)).await?;
            Ok(())
        })
    }

    fn delete<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<bool, ProviderError>> {
        Box::pin(self.remove(id))
    }

    fn logs<'a>(&'a self, id: &'a SandboxId, options: LogOptions) -> BoxFuture<'a, Result<LogStream, ProviderError>> {
        Box::pin(async move {
            self.needs(self.description.capabilities.logs, "logs")?;
            self.needs(!options.follow || self.description.capabilities.follow_logs, "following logs")?;
            // A stream tells too late that there is no such sandbox.
            if self.find(id).await?.is_none() {
                return Err(ProviderError::NotFound(id.clone()));
            }
            logs::stream(self.call(Verb::Logs, Body::logs(id, options), Mask::default()), id, options.follow)
        })
    }

    fn collect_garbage<'a>(&'a self, options: &'a GcOptions) -> BoxFuture<'a, Result<GcReport, ProviderError>> {
        Box::pin(async move {
            let answer: GarbageAnswer = self.ask(Verb::CollectGarbage, Body::garbage(options), About::Nothing).await?;
            Ok(answer.into())
        })
    }

    fn hold<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(self.ask_if_known(Verb::Hold, id))
    }

    fn release<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(self.ask_if_known(Verb::Release, id))
    }

    /// The program knows one kind, and ends none that wait.
    fn keep_warm<'a>(&'a self, kinds: &'a [WarmKind]) -> BoxFuture<'a, Result<Vec<usize>, ProviderError>> {
        Box::pin(async move {
            self.needs(self.description.capabilities.warm, "warm sandboxes")?;
            self.needs(kinds.iter().all(WarmKind::is_default), "warm sandboxes of an image or a size")?;
            let count = kinds.iter().map(|kind| kind.least).sum();
            let no_key = Secret::new("");
            let server = ServerView::new(&self.options.server, None, &no_key);
            let Done {} = self.ask(Verb::Warm, Body::Warm { server, count }, About::Nothing).await?;
            Ok(kinds.iter().map(|kind| kind.least).collect())
        })
    }

    fn check(&self) -> BoxFuture<'_, Vec<Check>> {
        Box::pin(async move {
            let program = self.options.program.display();
            match self.ask::<CheckAnswer>(Verb::Check, Body::Nothing {}, About::Nothing).await {
                Ok(answer) => answer.into(),
                Err(error) => vec![Check {
                    name: "provider program".to_owned(),
                    works: false,
                    found: error.to_string(),
                    remedy: Some(format!("run `{program} check </dev/null` to see what it says")),
                }],
            }
        })
    }

    fn poll_interval(&self) -> Duration {
        self.description.poll_interval
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.end())
    }
}

impl Exec {
    fn needs(&self, can: bool, what: &str) -> Result<(), ProviderError> {
        if can {
            return Ok(());
        }
        Err(ProviderError::Unsupported { provider: self.options.name.clone(), what: what.to_owned() })
    }
}
