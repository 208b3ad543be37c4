//! Where a check works: providers made anew, sandboxes that are ended afterwards.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::Write as _,
    process::Command,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use gloveport_client::ActionExecutionClient;
use gloveport_protocol::{Action, ActionEvent, ActionExecutor as _, Observation, RunAction, Secret};
use tokio::time::sleep;

use crate::{
    options::{Make, Options},
    problem::{At as _, Found, Problem},
};
use gloveport_hosting::{WaitOptions, wait_until_alive};
use gloveport_provider::{
    Capabilities, Confinement, GcOptions, Isolation, Level, ListFilter, Progress, Provider, Sandbox, SandboxId,
    SandboxSpec, SandboxState, SessionId, StandsFor,
};

/// Limit of a command in a sandbox, in seconds.
const COMMAND: f64 = 30.0;
/// Pause between two questions about something that no event tells.
const POLL: Duration = Duration::from_millis(20);

/// The labels of a sandbox that were asked for: how far it is kept apart is told by whoever does it.
pub(super) fn labels_of(sandbox: &Sandbox) -> BTreeMap<String, String> {
    let mut labels = sandbox.labels.clone();
    labels.remove(Level::LABEL);
    labels.remove(SandboxSpec::IMAGE_LABEL);
    labels
}

pub(super) struct Bench {
    make: Make,
    pub(super) options: Options,
    /// What all sessions of this check begin with.
    prefix: String,
    pub(super) provider: Arc<dyn Provider>,
    pub(super) can: Capabilities,
    pub(super) name: String,
    /// Other backends that are to be closed.
    others: Mutex<Vec<Arc<dyn Provider>>>,
}

/// A sandbox whose server answers.
pub(super) struct Live {
    pub(super) sandbox: Sandbox,
    pub(super) client: ActionExecutionClient,
    /// Its processes reach none outside, so what is done to its server is done from here.
    pub(super) is_apart: bool,
    /// It is on a kernel of its own, so that its processes have no numbers here.
    has_kernel: bool,
}

/// What becomes of a sandbox whose server was killed.
#[derive(Debug)]
pub(super) enum Fate {
    /// The engine knows nothing of it any more.
    Gone,
    /// It has ended.
    Ended(Sandbox),
    /// It rests, as one that is kept may: it can go on, with its files.
    Rests(Sandbox),
}

impl Bench {
    pub(super) async fn new(make: &Make, options: &Options, prefix: &str) -> Result<Self, Problem> {
        let provider = make().at("making the provider")?;
        provider.learn().await.at("asking what the engine can do")?;
        Ok(Self {
            make: Arc::clone(make),
            options: options.clone(),
            prefix: prefix.to_owned(),
            can: with_level(provider.capabilities(), options.level),
            name: provider.name().to_owned(),
            provider,
            others: Mutex::default(),
        })
    }

    /// Whether paths in a sandbox are those of this machine.
    pub(super) fn is_this_machine(&self) -> bool {
        matches!(self.can.isolation, Isolation::None | Isolation::Process)
            && self.can.stands_for != Some(StandsFor::Remote)
    }

    /// Another backend on the same engine.
    pub(super) fn another(&self) -> Result<Arc<dyn Provider>, Problem> {
        let other = (self.make)().at("making the provider once more")?;
        self.others.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&other));
        Ok(other)
    }

    /// Another backend that the check ends itself.
    pub(super) fn mortal(&self) -> Result<Arc<dyn Provider>, Problem> {
        (self.make)().at("making the provider once more")
    }

    pub(super) fn session(&self, name: &str) -> Result<SessionId, Problem> {
        SessionId::new(format!("{}-{name}", self.prefix)).at("naming a session")
    }

    /// Whether a session belongs to this run, whichever check made it.
    pub(super) fn is_ours(&self, session: &SessionId) -> bool {
        let run = self.prefix.rsplit_once('-').map_or("", |(run, _)| run);
        session.as_str().starts_with(run)
    }

    /// Whether sandboxes are made from an image that was named.
    pub(super) const fn has_image(&self) -> bool {
        self.options.image.is_some()
    }

    pub(super) fn spec(&self, name: &str) -> Result<SandboxSpec, Problem> {
        let confinement = self.options.level.map(|level| Confinement { level, ..Confinement::default() });
        let image = self.options.image.clone();
        Ok(SandboxSpec { image, confinement, warm: false, ..SandboxSpec::new(self.session(name)?) })
    }

    pub(super) async fn create(&self, spec: &SandboxSpec) -> Result<Sandbox, Problem> {
        self.provider.create(spec, &Progress::silent()).await.at("create")
    }

    /// Creates a sandbox and waits until its server answers.
    pub(super) async fn start(&self, spec: &SandboxSpec) -> Result<Live, Problem> {
        let sandbox = self.create(spec).await?;
        self.live(&*self.provider, sandbox).await
    }

    pub(super) async fn live(&self, provider: &dyn Provider, sandbox: Sandbox) -> Result<Live, Problem> {
        let options = WaitOptions { limit: self.options.alive_within, ..WaitOptions::default() };
        let sandbox =
            wait_until_alive(provider, sandbox, &options, &Progress::silent()).await.at("wait until alive")?;
        let client = client(&sandbox, sandbox.session_key.as_ref())?;
        let is_apart = self.options.level.is_some_and(|level| level != Level::None);
        let has_kernel = self.options.level == Some(Level::Gvisor);
        Ok(Live { sandbox, client, is_apart, has_kernel })
    }

    pub(super) async fn find(&self, id: &SandboxId) -> Result<Option<Sandbox>, Problem> {
        self.provider.find(id).await.at("find")
    }

    /// All of this check, also those that have ended.
    pub(super) async fn all(&self, provider: &dyn Provider) -> Result<Vec<Sandbox>, Problem> {
        let mut all = provider.list(&ListFilter { ended: true, ..ListFilter::default() }).await.at("list")?;
        all.retain(|sandbox| sandbox.session_id.as_str().starts_with(&format!("{}-", self.prefix)));
        Ok(all)
    }

    /// Waits until a sandbox has ended or is gone.
    pub(super) async fn ended(&self, id: &SandboxId, limit: Duration) -> Result<(), Problem> {
        self.fate(id, limit, false).await.map(drop)
    }

    /// Kills the server of a sandbox, and waits for what becomes of that.
    pub(super) async fn killed(&self, live: &Live, limit: Duration) -> Result<Fate, Problem> {
        live.kill().await?;
        self.fate(&live.sandbox.id, limit, true).await
    }

    async fn fate(&self, id: &SandboxId, limit: Duration, may_rest: bool) -> Result<Fate, Problem> {
        let began = Instant::now();
        loop {
            match self.find(id).await? {
                None => return Ok(Fate::Gone),
                Some(sandbox) if !sandbox.state.is_live() => return Ok(Fate::Ended(sandbox)),
                Some(sandbox) if may_rest && sandbox.state == SandboxState::Paused => return Ok(Fate::Rests(sandbox)),
                Some(sandbox) => {
                    if began.elapsed() > limit {
                        let got = format!("it is {} after {} s", sandbox.state, began.elapsed().as_secs());
                        return Err(Problem::new("waiting for the end of the sandbox", "an end", got));
                    }
                }
            }
            sleep(POLL.max(self.provider.poll_interval())).await;
        }
    }

    /// What a collection would remove, if nothing of others is among it; else the check is skipped.
    pub(super) async fn only_ours(&self, provider: &dyn Provider, all: bool) -> Found {
        let plan = provider.collect_garbage(&GcOptions { all, dry_run: true }).await.at("collect garbage, dry")?;
        for removed in plan.removed {
            // What was given up before it had a record has its name only.
            let by_name = || removed.path.as_ref().is_some_and(|path| path.to_string_lossy().contains(&*self.prefix));
            if !removed.session_id.as_ref().map_or_else(by_name, |session| self.is_ours(session)) {
                return Err(Problem::skip(format!("garbage of others is there and stays: {removed:?}")));
            }
        }
        Ok(())
    }

    /// Ends all that the check made, and says if something stays.
    pub(super) async fn clean(&self) -> Found {
        let last = self.mortal()?;
        for sandbox in self.all(&*last).await? {
            last.delete(&sandbox.id).await.at("delete what the check left")?;
        }
        let left = self.all(&*last).await?;
        let others = std::mem::take(&mut *self.others.lock().unwrap_or_else(PoisonError::into_inner));
        for provider in others.iter().chain([&self.provider, &last]) {
            provider.close().await;
        }
        super::check::must(left.is_empty(), "cleaning up", "nothing left", &left)
    }
}

/// A client with this key.
pub(super) fn client(sandbox: &Sandbox, key: Option<&Secret>) -> Result<ActionExecutionClient, Problem> {
    if sandbox.url.is_none() {
        return Err(Problem::new("asking the server", "a URL of the server", format!("{sandbox:?}")));
    }
    let with_key = Sandbox { session_key: key.cloned(), ..sandbox.clone() };
    gloveport_hosting::client(&with_key).at("making a client")
}

/// A line of what this machine tells of a process.
fn status(pid: u32, name: &str) -> Option<String> {
    let all = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    all.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned()))
}

/// What a provider can do where it keeps sandboxes apart.
fn with_level(can: Capabilities, level: Option<Level>) -> Capabilities {
    can.kept_apart(level.unwrap_or_default())
}

impl Live {
    /// Runs a command and gives its output, without the white space around it.
    pub(super) async fn run(&self, command: &str) -> Result<String, Problem> {
        let action = RunAction::new(command);
        let event = ActionEvent { timeout: Some(COMMAND), ..ActionEvent::from(Action::Run(action)) };
        match self.client.execute(&event).await.at(&format!("the action `{command}`"))? {
            Observation::Run(run) => Ok(run.content.trim().to_owned()),
            other => Err(Problem::new(format!("the action `{command}`"), "an observation of it", format!("{other:?}"))),
        }
    }

    /// A command that puts the process id of the server into `$p`.
    async fn climb(&self) -> Result<&'static str, Problem> {
        // shell, owner, guard, server
        let climb = "p=$$; for i in 1 2 3; do p=$(cut -d' ' -f4 /proc/$p/stat); test $i = 2 && cat /proc/$p/comm; done";
        if self.run(climb).await?.starts_with("gloveport-guar") {
            return Ok(climb);
        }
        Err(Problem::skip("which process is the server cannot be told from within"))
    }

    /// The processes of this machine that are the shell, its owner, the guard, the server and who has started that.
    async fn processes(&self) -> Result<[u32; 5], Problem> {
        self.climb().await?;
        let told = self.run("echo $$ $(readlink /proc/self/ns/pid)").await?;
        let wrong = || Problem::new("asking which process is the shell", "a process of this machine", told.clone());
        let (number, namespace) = told.split_once(' ').ok_or_else(wrong)?;
        // It may be counted anew where it is, and has a number here all the same.
        let is_it = |pid: &u32| {
            let numbers = status(*pid, "NSpid").unwrap_or_default();
            let here = fs::read_link(format!("/proc/{pid}/ns/pid"));
            numbers.split_ascii_whitespace().last() == Some(number)
                && here.is_ok_and(|here| here.as_os_str() == namespace)
        };
        let all = fs::read_dir("/proc").at("looking at processes")?.flatten();
        let mut all = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut found = [all.find(is_it).ok_or_else(wrong)?; 5];
        for at in 1..found.len() {
            let parent = status(found[at - 1], "PPid").and_then(|parent| parent.parse().ok());
            found[at] = parent.ok_or_else(wrong)?;
        }
        Ok(found)
    }

    /// The process of this machine that is the server, or stands in front of it, and who has started that.
    async fn server(&self) -> Result<[u32; 2], Problem> {
        if !self.has_kernel {
            let [.., server, keeper] = self.processes().await?;
            return Ok([server, keeper]);
        }
        let id = self.sandbox.id.as_str();
        let wrong = || Problem::new("asking which process stands in front of the server", "one of this machine", id);
        let numbers = || -> Result<Vec<u32>, Problem> {
            let all = fs::read_dir("/proc").at("looking at processes")?.flatten();
            Ok(all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
        };
        // It writes the log of its sandbox.
        let keeps = |pid: &u32| {
            status(*pid, "Name").is_some_and(|name| name == "gloveport-keep")
                && fs::read_link(format!("/proc/{pid}/fd/2")).is_ok_and(|log| log.iter().any(|part| part == id))
        };
        let keeper = numbers()?.into_iter().find(keeps).ok_or_else(wrong)?;
        let is_front = |pid: &u32| {
            let parent = status(*pid, "PPid").and_then(|parent| parent.parse().ok());
            parent == Some(keeper) && status(*pid, "NSpid").is_some_and(|numbers| numbers.contains('\t'))
        };
        Ok([numbers()?.into_iter().find(is_front).ok_or_else(wrong)?, keeper])
    }

    /// Lets the server write lines, as if something had gone wrong in it. False if it lets nobody in the sandbox write
    /// in its name.
    pub(super) async fn complain(&self, lines: &str) -> Result<bool, Problem> {
        if self.is_apart {
            // In a container the server is closed to others, and who keeps it has the same log.
            let [server, keeper] = self.server().await?;
            let is_kept = status(keeper, "Name").is_some_and(|name| name == "gloveport-keep");
            let log = format!("/proc/{}/fd/2", if is_kept { keeper } else { server });
            let text = lines.replace("\\n", "\n");
            let written = OpenOptions::new().append(true).open(log).and_then(|mut log| log.write_all(text.as_bytes()));
            return written.at("writing in the name of the server").map(|()| true);
        }
        let climb = self.climb().await?;
        let written =
            self.run(&format!("{climb} >/dev/null; printf '{lines}' >> /proc/$p/fd/2 && echo written")).await?;
        Ok(written == "written")
    }

    /// Kills the server as an out-of-memory killer would.
    pub(super) async fn kill(&self) -> Found {
        if self.is_apart {
            let [server, _] = self.server().await?;
            Command::new("kill").args(["-9", &server.to_string()]).status().at("killing the server")?;
            self.until_silent().await;
            return Ok(());
        }
        let climb = self.climb().await?;
        let event = ActionEvent {
            timeout: Some(COMMAND),
            ..ActionEvent::from(Action::Run(RunAction::new(format!("{climb}; kill -9 $p"))))
        };
        // The answer dies with its server, and asking again would only wait.
        tokio::select! {
            asked = self.client.execute(&event) => match asked {
                Ok(observation) => Err(Problem::new("killing the server", "no answer", format!("{observation:?}"))),
                Err(_) => Ok(()),
            },
            () = self.until_silent() => Ok(()),
        }
    }

    async fn until_silent(&self) {
        while self.client.probe().await.is_ok() {
            sleep(POLL).await;
        }
    }

    /// Nothing answers any more under the URL of the sandbox, or somebody who does not know its key.
    pub(super) async fn silent(&self) -> Found {
        if self.client.probe().await.is_ok() {
            return Err(Problem::new("asking the server", "no answer", "an answer"));
        }
        Ok(())
    }
}
