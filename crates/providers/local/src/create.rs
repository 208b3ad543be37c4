//! Makes a sandbox.

use std::{
    collections::BTreeMap,
    fs, io,
    path::Path,
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime},
};

use gloveport_contract::local::{
    directory::RecordedWorkspace,
    lifeline::{Lifeline, Reply, Request, Start},
};
use gloveport_protocol::Secret;
use gloveport_provider::{
    Level, Phase, Progress, ProviderError, STARTED_AHEAD, Sandbox, SandboxId, SandboxSpec, Teller, Workspace,
    handed_over,
};
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::{
    audit, confine, delete,
    fault::{self, NAME, blocking, engine},
    image, keeper,
    launch::{STANDARD_PORTS, Server},
    logs,
    pool::Pool,
    provider::{CAPABILITIES, Inner},
    record::Record,
    state::{self, HOLDERS, VERSION, random_name},
    steps::Step,
    view,
};

/// Variables of the backend that tools do not get: its own keys.
const OWN: [&str; 3] = ["SESSION_API_KEY", "GLOVEPORT_KEY", "GLOVEPORT_URL"];
/// Time for a server that has waited to show that it is well.
const WELL: Duration = Duration::from_secs(1);
/// Names of the standard ports.
const STANDARD: [&str; STANDARD_PORTS] = ["vscode", "work-1", "work-2"];

/// That there is something of a sandbox which whoever closes the provider has to wait for.
type Begun = OnceLock<TaskTrackerToken>;

impl Inner {
    /// Makes a sandbox in a task of its own, so that nothing is left behind when the caller gives up.
    pub(crate) async fn create(
        self: &Arc<Self>,
        spec: &SandboxSpec,
        progress: &Progress,
    ) -> Result<Sandbox, ProviderError> {
        check(spec)?;
        let (inner, spec) = (Arc::clone(self), spec.clone());
        // It is there until what was made has been taken, or taken back.
        let begun = Arc::new(OnceLock::new());
        let until_then = Arc::clone(&begun);
        let making = |tell, _| async move { inner.make_apart(&spec, &tell, &begun).await };
        let inner = Arc::clone(self);
        let undo = |made: Result<Sandbox, ProviderError>| async move {
            let _until_then = until_then;
            let Ok(sandbox) = made else { return };
            let (removal, directory) = (inner.removal(), inner.state.sandbox(&sandbox.id));
            if let Err(error) = blocking(move || delete::end_and_remove(&removal, &directory)).await {
                tracing::warn!(%error, "a sandbox that nobody waits for stays until garbage is collected");
            }
        };
        handed_over(progress, making, undo).await.map_err(|error| engine("make a sandbox", error))?
    }

    /// Makes it on the strongest of the levels that it may have and the machine has.
    async fn make_apart(
        self: &Arc<Self>,
        spec: &SandboxSpec,
        progress: &Teller,
        begun: &Begun,
    ) -> Result<Sandbox, ProviderError> {
        let mut first = None;
        for candidate in confine::candidates(spec) {
            let made = match check(&candidate) {
                Ok(()) => self.make(&candidate, progress, begun).await,
                Err(error) => Err(error),
            };
            match made {
                Err(error) if confine::is_missing(&error) => {
                    tracing::debug!(%error, "a weaker level of isolation is tried, if it may be");
                    first.get_or_insert(error);
                }
                // A weaker level knows less of what is asked for.
                Err(error @ (ProviderError::Spec { .. } | ProviderError::Unsupported { .. })) => {
                    return Err(first.unwrap_or(error));
                }
                made => return made,
            }
        }
        Err(first.unwrap_or_else(|| engine("make a sandbox", "no level of isolation was asked for")))
    }

    async fn make(
        self: &Arc<Self>,
        spec: &SandboxSpec,
        progress: &Teller,
        begun: &Begun,
    ) -> Result<Sandbox, ProviderError> {
        progress.enter(Phase::Finding, "");
        let id = SandboxId::new(spec.session_id.as_str())?;
        {
            let (inner, id) = (Arc::clone(self), id.clone());
            blocking(move || inner.open_for(&id)).await?;
        }
        let image = image::prepare(spec, &self.options, progress).await?;
        // From here on `close` waits for it, or it does not begin.
        begun.get_or_init(|| self.making.token());
        self.check_open()?;
        progress.enter(Phase::Creating, "");
        let confined = {
            let (inner, spec, image) = (Arc::clone(self), spec.clone(), image.clone());
            blocking(move || confine::wanted(&spec, image, &inner.state, &inner.options.environment)).await?
        };
        if let Some(confined) = confined {
            let mut spec = image::labelled(spec);
            spec.environment.extend(confined.edge.iter().flat_map(|edge| edge.placeholders.clone()));
            // One that waits does not know yet what it may do, and cannot be told later.
            let server = Server::launch_confined(self, confined, id.clone()).await?;
            return self.start((server, false), &id, &spec, progress).await;
        }
        let made = loop {
            let own = if spec.warm { self.pool.take() } else { None };
            let warm = match own {
                None if spec.warm => keeper::claim(self).await,
                own => own,
            };
            let was_warm = warm.is_some();
            if was_warm {
                progress.enter(Phase::Creating, STARTED_AHEAD);
            }
            let server = match warm {
                Some(server) => server,
                None => Server::launch(self).await?,
            };
            match self.start((server, was_warm), &id, spec, progress).await {
                Err(error @ ProviderError::Start { .. }) if was_warm => {
                    tracing::warn!(%error, "a warm server is of no use; another one takes its place");
                }
                other => break other,
            }
        };
        if self.options.warm > 0 {
            let inner = Arc::clone(self);
            tokio::spawn(async move {
                if let Err(error) = Pool::fill(&inner, inner.options.warm).await {
                    tracing::warn!(%error, "no server waits for the next session");
                }
            });
        }
        made
    }

    /// Fails early where the session has a sandbox. Whether it has none is decided by the rename.
    fn open_for(&self, id: &SandboxId) -> Result<(), ProviderError> {
        self.check_open()?;
        self.state.prepare()?;
        self.backend.appear(&self.state)?;
        match view::sandbox(&self.state, id)? {
            Some(sandbox) if sandbox.state.is_live() => Err(exists(&sandbox)),
            _ => Ok(()),
        }
    }

    /// Makes a waiting server the one of a sandbox.
    async fn start(
        self: &Arc<Self>,
        (mut server, was_warm): (Server, bool),
        id: &SandboxId,
        spec: &SandboxSpec,
        progress: &Teller,
    ) -> Result<Sandbox, ProviderError> {
        let directory = server.directory.clone();
        let started = self.talk((&mut server, was_warm), id, spec, progress).await;
        let error = match started {
            Ok(()) => {
                let sandbox = {
                    let (inner, id) = (Arc::clone(self), id.clone());
                    blocking(move || view::sandbox(&inner.state, &id)).await?
                };
                let sandbox = sandbox.ok_or_else(|| ProviderError::NotFound(id.clone()))?;
                if spec.keep_alive {
                    self.holds(id.clone());
                } else {
                    self.keep(id.clone(), server)?;
                }
                return Ok(sandbox);
            }
            Err(error) => error,
        };
        // The end of the socket is the end of the server.
        let directory = if directory.exists() { directory } else { self.state.sandbox(id) };
        let Server { process, mark, lock, socket, .. } = server;
        drop(socket);
        let removal = self.removal();
        let removed = blocking(move || delete::remove_server(&removal, process, &mark, &lock, &directory)).await;
        if let Err(error) = removed {
            tracing::warn!(%error, "the rest of a sandbox that did not start stays until garbage is collected");
        }
        Err(error)
    }

    async fn talk(
        self: &Arc<Self>,
        (server, was_warm): (&mut Server, bool),
        id: &SandboxId,
        spec: &SandboxSpec,
        progress: &Teller,
    ) -> Result<(), ProviderError> {
        let lost = |error: io::Error| engine("talk to the server of the sandbox", error);
        let tell = |step| self.options.observer.tell(step);
        let ended = |directory: &Path, reason: &str| ProviderError::Start {
            reason: reason.to_owned(),
            log: logs::last_lines(directory),
        };
        let hung = |reason: &str| ended(&server.directory, reason);
        let socket = server.socket.try_clone().map_err(lost)?;
        let mut lifeline = Lifeline::new(socket).map_err(lost)?;
        let more = spec.ports.iter().filter(|port| port.port.is_none()).count();
        if more > 0 || was_warm {
            // One that waited shows that it is well before it gets a name.
            lifeline.send(&Request::Reserve { count: more }).await.map_err(|_| hung("its server has ended"))?;
            let reply = tokio::time::timeout(WELL, lifeline.receive()).await;
            match reply.map_err(|_| hung("its server does not answer"))?.map_err(lost)? {
                Some(Reply::Reserved { ports }) => server.reserved.extend(ports),
                Some(Reply::Failed { reason }) => return Err(ended(&server.directory, &reason)),
                _ => return Err(ended(&server.directory, "its server has ended")),
            }
        }
        let ports = self.ports(&server.reserved, spec)?;
        let published = self.state.sandbox(id);
        let (record, start) = self.describe((server, &published), spec, &ports)?;
        {
            let (inner, id, from, to) = (Arc::clone(self), id.clone(), server.directory.clone(), published.clone());
            if let Err(error) = blocking(move || inner.publish(&record, &id, &from, &to)).await {
                // A server that ends takes its directory with it.
                let is_there = server.directory.exists();
                return Err(if is_there { error } else { ended(&server.directory, "its server has ended") });
            }
        }
        tell(Step::Published);
        if lifeline.send(&Request::Start(Box::new(start))).await.is_err() {
            return Err(ended(&published, "its server has ended"));
        }
        tell(Step::StartSent);
        progress.enter(Phase::Started, "");
        let limit = self.options.start_limit;
        let reply = tokio::time::timeout(limit, lifeline.receive())
            .await
            .map_err(|_| ProviderError::Timeout { action: format!("the start of the sandbox `{id}`"), limit })?;
        match reply.map_err(lost)? {
            Some(Reply::Ready) => tell(Step::Ready),
            Some(Reply::Failed { reason }) => return Err(ended(&published, &reason)),
            _ => return Err(ended(&published, "its server has ended")),
        }
        lifeline.send(&Request::Commit).await.map_err(lost)?;
        tell(Step::Committed);
        Ok(())
    }

    /// Gives the sandbox its name, if nobody has one of this name.
    fn publish(&self, record: &Record, id: &SandboxId, from: &Path, to: &Path) -> Result<(), ProviderError> {
        if record.keep_alive {
            let holders = from.join(HOLDERS);
            let holder = holders.join(self.backend.name());
            fs::create_dir(&holders).and_then(|()| fs::write(&holder, "")).map_err(fault::file("make", &holder))?;
        }
        record.write(from)?;
        self.options.observer.tell(Step::RecordWritten);
        loop {
            if state::move_unless_there(from, to).map_err(fault::file("give the sandbox its place", to))? {
                return Ok(());
            }
            match view::sandbox(&self.state, id)? {
                Some(sandbox) if sandbox.state.is_live() => return Err(exists(&sandbox)),
                // What has ended makes room; whoever removes it first, the rename decides again.
                _ => delete::end_and_remove(&self.removal(), to)?,
            };
        }
    }

    /// All ports by name.
    fn ports(&self, reserved: &[u16], spec: &SandboxSpec) -> Result<Vec<(String, u16)>, ProviderError> {
        let mut reserved = reserved.iter().copied();
        let mut ports = Vec::new();
        // Whose port is asked for by its number, of those that every sandbox has.
        let asked = |name: &str| {
            let standard = spec.ports.iter().filter(|wanted| STANDARD.contains(&wanted.name.as_str()));
            standard.filter(|wanted| wanted.name == name).find_map(|wanted| wanted.port)
        };
        let few = || engine("reserve ports for the sandbox", "its server reserved too few");
        for (name, variables) in STANDARD.into_iter().zip([
            &["VSCODE_PORT"][..],
            &["WORK_PORT_1", "APP_PORT_1"],
            &["WORK_PORT_2", "APP_PORT_2"],
        ]) {
            let port = reserved.next().ok_or_else(few)?;
            let set = || variables.iter().find_map(|name| self.options.environment.get(*name)?.parse().ok());
            ports.push((name.to_owned(), asked(name).or_else(set).unwrap_or(port)));
        }
        for wanted in spec.ports.iter().filter(|wanted| asked(&wanted.name).is_none()) {
            let port = wanted.port.map_or_else(|| reserved.next().ok_or_else(few), Ok)?;
            ports.push((wanted.name.clone(), port));
        }
        Ok(ports)
    }

    /// What the sandbox is, for the file and for the server.
    fn describe(
        &self,
        (server, directory): (&Server, &Path),
        spec: &SandboxSpec,
        ports: &[(String, u16)],
    ) -> Result<(Record, Start), ProviderError> {
        let level = confine::level(spec);
        let own_key = || self.options.environment.get("SESSION_API_KEY").filter(|key| !key.is_empty());
        let session_key = match (&spec.session_key, own_key()) {
            (Some(key), _) => key.clone(),
            (None, Some(key)) => Secret::new(key.as_str()),
            (None, None) => Secret::new(random_name()?),
        };
        let (workspace, temporary) = match &spec.workspace {
            Workspace::Directory(directory) => (directory.clone(), false),
            // It goes with the directory that it is in.
            Workspace::Temporary if level != Level::None => {
                (confine::workspace(directory, server.image.is_some()), false)
            }
            Workspace::Temporary | Workspace::Volume(_) => {
                let name = format!("openhands_workspace_{}-{}", spec.session_id, random_name()?);
                (self.options.temporary.join(name), true)
            }
        };
        let expires = spec.time_to_live.and_then(|time| SystemTime::now().checked_add(time));
        let has_editor = spec.plugins.iter().any(|plugin| plugin == "vscode");
        let urls = ports.iter().filter(|(name, _)| name != "vscode" || has_editor);
        let mut environment = self.environment(server, spec, ports);
        if level != Level::None {
            if server.image.is_none() {
                confine::environment(directory, level, &mut environment);
            }
            confine::way_out(spec, &mut environment);
            // What was asked for by name counts more.
            environment.extend(spec.environment.clone());
            if server.image.is_none() {
                confine::name_active(&mut environment);
            }
        }
        let record = Record {
            version: VERSION,
            session_id: spec.session_id.clone(),
            backend: self.backend.name().to_owned(),
            server: server.process,
            mark: Some(server.mark.clone()),
            url: self.urls.server(server.port),
            urls: urls.map(|(name, port)| (name.clone(), self.urls.port(name, *port))).collect(),
            session_key: session_key.clone(),
            labels: spec.labels.clone(),
            at: RecordedWorkspace { workspace: workspace.clone(), temporary },
            keep_alive: spec.keep_alive,
            created: SystemTime::now(),
            expires,
        };
        let start = Start {
            workspace,
            environment,
            session_key: session_key.expose().to_owned(),
            memory_limit: spec.limits.memory,
            plugins: spec.plugins.clone(),
            expires,
            idle_stop: spec.idle_stop,
            keep_alive: spec.keep_alive,
            audit: spec.audit.is_some().then(|| audit::first(spec, level)),
        };
        Ok((record, start))
    }

    /// Variables of the tools (`local-and-cli-runtime` A6).
    fn environment(&self, server: &Server, spec: &SandboxSpec, ports: &[(String, u16)]) -> BTreeMap<String, String> {
        let of_image = server.image.as_ref().map(|image| image.environment());
        let mut environment = of_image.unwrap_or(&self.options.environment).clone();
        environment.retain(|name, _| !OWN.contains(&name.as_str()));
        environment.insert("LOCAL_RUNTIME_MODE".to_owned(), "1".to_owned());
        for (name, port) in ports.iter().take(STANDARD_PORTS) {
            let variables: &[&str] = match name.as_str() {
                "vscode" => &["VSCODE_PORT"],
                "work-1" => &["WORK_PORT_1", "APP_PORT_1"],
                _ => &["WORK_PORT_2", "APP_PORT_2"],
            };
            environment.extend(variables.iter().map(|variable| ((*variable).to_owned(), port.to_string())));
        }
        environment.extend(spec.environment.clone());
        environment.extend(spec.secrets.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())));
        environment
    }
}

/// Whether it can be made on its level.
fn check(spec: &SandboxSpec) -> Result<(), ProviderError> {
    if confine::level(spec) == Level::None && spec.audit.is_some() {
        return Err(audit::nobody_keeps_it());
    }
    if spec.image.is_some() && !confine::level(spec).has_root() {
        let what = "an image without the level `container` (`--isolation container`) or `gvisor`".to_owned();
        return Err(ProviderError::Unsupported { provider: NAME.to_owned(), what });
    }
    let can = confine::capabilities(confine::level(spec), &CAPABILITIES);
    if spec.limits.cpus.is_some() && !can.limit_cpus {
        return Err(confine::no_processors(confine::level(spec)));
    }
    spec.check(NAME, &can)
}

fn exists(sandbox: &Sandbox) -> ProviderError {
    ProviderError::SessionExists { session: sandbox.session_id.clone(), sandbox: sandbox.id.clone() }
}
