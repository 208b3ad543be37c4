//! `sandbox-server`: what the runtime `local` starts for each sandbox (`gloveport_contract::local::lifeline`).

use std::{
    ffi::OsString,
    fs::File,
    io,
    net::{IpAddr, SocketAddr},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use anyhow::Context as _;
use clap::Args;
use gloveport_contract::local::{
    directory::{GATE, OWN_CHANGES, OWN_ENGINE, OWN_HOME, OWN_TEMPORARY, OWN_TRUST, OWN_WORK, TRUST},
    lifeline::{Lifeline, Reply, Request, Start},
};
use gloveport_edge::trust::{BUNDLES, CERTIFICATES};
use gloveport_executor::Executor;
use gloveport_server::{DrainEnd, Occupancy, PauseListener, ServerOptions, SessionKey};
use gloveport_sys::{
    amounts::Amounts,
    confined::Confinement,
    container::{Container, ContainerError, Gate, Network, Place, Root},
    owners::Owners,
};
use rustix::{fs::FlockOperation, net::sockopt};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{gvisor, inside::Inside, ports, trial};
use crate::{
    Owner, audit, owner, plugins,
    tools::{self, bind},
};

/// Time that requests in flight have to end. Who deletes a sandbox does not want their answers.
const DRAIN: Duration = Duration::from_millis(200);
/// The name of this program in a container.
pub(super) const PROGRAM: &str = "/run/gloveport/program";
/// Ports that can be reserved at once.
const MOST_PORTS: usize = 64;

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct ServerArgs {
    /// State directory of the runtime; it is there for whoever looks at the list of processes.
    #[arg(long, value_name = "DIRECTORY")]
    state: PathBuf,
    /// Keep it and its tools to these places.
    #[arg(long)]
    confine: bool,
    /// A place in which tools write; may be repeated.
    #[arg(long, value_name = "PATH", requires = "confine")]
    write: Vec<PathBuf>,
    /// A place that tools read, beside the system; may be repeated.
    #[arg(long, value_name = "PATH", requires = "confine")]
    read: Vec<PathBuf>,
    /// Tools have no network.
    #[arg(long, requires = "confine")]
    no_network: bool,
    /// Go on in a container; this is the directory with what it has for itself.
    #[arg(long, value_name = "DIRECTORY", requires_all = ["confine", "home"])]
    container: Option<PathBuf>,
    /// Most processes and threads.
    #[arg(long, value_name = "COUNT", requires = "container")]
    processes: Option<u64>,
    /// Most memory of all its processes together, in bytes, its server included.
    #[arg(long, value_name = "BYTES", requires = "container")]
    memory: Option<u64>,
    /// Most time of processors, in thousandths of one.
    #[arg(long, value_name = "COUNT", requires = "container")]
    cpu_thousandths: Option<u64>,
    /// Tools reach this through a gate, and nothing else; may be repeated.
    #[arg(long, value_name = "RULE", requires = "container", conflicts_with = "no_network")]
    allow: Vec<String>,
    /// What the gate puts into requests comes as the first message of the backend, and programs trust what stands for it.
    #[arg(long, requires = "allow")]
    edge: bool,
    /// Record in this file what happens in it.
    #[arg(long, value_name = "FILE", requires_all = ["confine", "session"])]
    audit: Option<PathBuf>,
    /// The session of which it is recorded.
    #[arg(long, value_name = "ID", requires = "audit")]
    session: Option<String>,
    /// Run it and its tools there on a kernel of their own, which this `runsc` is.
    #[arg(long, value_name = "FILE")]
    gvisor: Option<PathBuf>,
    /// Be the server on such a kernel, which a front has started.
    #[arg(long, conflicts_with = "confine")]
    on_own_kernel: bool,
    /// The name of its home directory there.
    #[arg(long, value_name = "PATH", requires = "container")]
    home: Option<PathBuf>,
    /// Its root directory there is this one, which many can have, below a layer that takes what is changed.
    #[arg(long, value_name = "DIRECTORY", requires = "container")]
    root: Option<PathBuf>,
    /// Keep a shared lock of this file while it runs: what it needs is not removed.
    #[arg(long, value_name = "FILE", requires = "root")]
    lease: Option<PathBuf>,
    /// Its files belong to these beside the user, as JSON.
    #[arg(long, value_name = "JSON", requires = "root", value_parser = owners)]
    owners: Option<Box<Owners>>,
    /// Only try whether there can be a container, in which this directory is written.
    #[arg(long, value_name = "DIRECTORY")]
    try_container: Option<PathBuf>,
    /// The name of where it works there, if nothing else is given.
    #[arg(long, value_name = "PATH", requires = "container")]
    work: Option<PathBuf>,
}

impl ServerArgs {
    /// What came of a trial, if nothing else is asked for. Call it while this is the only thread.
    pub(crate) fn tried(&self) -> Option<ExitCode> {
        self.try_container.as_deref().map(|directory| trial::make_one(directory, self.gvisor.as_deref()))
    }

    /// Whom tools in a container can talk to.
    fn network(&self) -> Network {
        if self.allow.is_empty() {
            return if self.no_network { Network::None } else { Network::Machine };
        }
        let mut command: Vec<OsString> = ["/proc/self/exe", "gate", "--proxy-on-input"].map(OsString::from).into();
        for rule in &self.allow {
            command.extend(["--allow".into(), rule.into()]);
        }
        command.push("--more-on-output".into());
        Network::Gate(Gate { command, port: GATE })
    }

    /// The container that is asked for.
    fn container(&self, program: PathBuf) -> Option<Container> {
        let (directory, home) = (self.container.as_ref()?, self.home.as_ref()?);
        let work = self.work.as_ref().map(|work| (OWN_WORK, work.as_path()));
        // In another root the home directory is one of those that it has.
        let home = self.root.is_none().then_some((OWN_HOME, home.as_path()));
        let own = home
            .into_iter()
            .chain([(OWN_TEMPORARY, Path::new("/tmp"))])
            .chain(work)
            .map(|(name, target)| Place { target: target.to_owned(), source: directory.join(name), is_written: true });
        let same = |place: &PathBuf, is_written| Place { target: place.clone(), source: place.clone(), is_written };
        let read = self.read.iter().map(|place| same(place, false));
        // Whoever sees a process of it must not reach its file where that can be written.
        let program = Place { target: PROGRAM.into(), source: program, is_written: false };
        let write = self.write.iter().map(|place| same(place, true));
        let trust = if self.edge { trust(&directory.join(OWN_TRUST)) } else { Vec::new() };
        let engine = self.gvisor.as_deref().map(|runsc| gvisor::places(runsc, directory.join(OWN_ENGINE)));
        let engine = engine.into_iter().flatten();
        let root = self.root.as_ref().map(|lower| Root {
            lower: lower.clone(),
            changes: directory.join(OWN_CHANGES),
            owners: self.owners.as_deref().cloned(),
        });
        let most = |inside| if self.gvisor.is_some() { Some(gvisor::processes(inside)) } else { inside };
        Some(Container {
            root,
            places: own.chain([program]).chain(read).chain(write).chain(trust).chain(engine).collect(),
            network: self.network(),
            processes: most(self.processes),
            amounts: Amounts {
                memory: self.memory,
                processes: self.processes.and_then(|count| most(Some(count))),
                cpu_thousandths: self.cpu_thousandths,
            },
            nests: self.gvisor.is_some(),
        })
    }
}

fn owners(text: &str) -> Result<Box<Owners>, serde_json::Error> {
    serde_json::from_str(text)
}

/// Takes a shared lock of a file.
fn lease(file: &Path) -> io::Result<File> {
    let file = File::open(file)?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared)?;
    Ok(file)
}

/// What programs trust, beside what the system has, and in its place.
fn trust(own: &Path) -> Vec<Place> {
    let bundles = BUNDLES.iter().filter_map(|bundle| std::fs::canonicalize(bundle).ok());
    let at = |target: PathBuf, source: PathBuf| Place { target, source, is_written: false };
    let mut places: Vec<Place> = bundles.map(|bundle| at(bundle, own.join(CERTIFICATES))).collect();
    places.push(at(TRUST.into(), own.to_owned()));
    places
}

/// What this process is by now.
#[derive(Debug)]
pub(crate) enum Entered {
    /// The server of a sandbox.
    Server(Inside, Owner),
    /// What stands in front of one that is on a kernel of its own, which has this many processes at most.
    Front(Inside, Option<u64>),
}

/// Takes over what the backend has given, and starts what owns the tools. Call it while this is the only thread.
pub(crate) fn enter(arguments: &ServerArgs) -> anyhow::Result<Entered> {
    if arguments.on_own_kernel {
        gloveport_documents::choose_program(PROGRAM);
        let inside = Inside::on_own_kernel().context("this command is started by a front")?;
        return Ok(Entered::Server(inside, Owner::start_on_own_kernel()?));
    }
    let inside = Inside::enter().with_context(|| {
        format!("this command is started by the runtime `local`, with a sandbox in {}", arguments.state.display())
    })?;
    if !arguments.confine {
        return Ok(Entered::Server(inside, Owner::start()?));
    }
    let inside = match (&arguments.audit, &arguments.session) {
        (Some(path), Some(session)) => inside.audited(path.clone(), session.clone()),
        _ => inside,
    };
    let own = std::env::current_exe().context("cannot find the program that runs")?;
    if let Some(container) = arguments.container(own.clone()) {
        // It reads documents in a process of its own.
        gloveport_documents::choose_program(PROGRAM);
        let for_gate = match container.network {
            Network::Gate(_) => Some(inside.for_gate(arguments.edge).context("cannot get what the gate needs")?),
            Network::Machine | Network::None => None,
        };
        // The keeper has it to the end; it is of no use inside.
        let lease =
            arguments.lease.as_deref().map(lease).transpose().context("cannot keep the image of the sandbox")?;
        let inside = inside.in_container(&container, for_gate).inspect_err(refuse)?;
        drop(lease);
        if arguments.gvisor.is_some() {
            return Ok(Entered::Front(inside, arguments.processes));
        }
        let has_owners = arguments.owners.is_some();
        return Ok(Entered::Server(inside, Owner::start_inside(container.network == Network::Machine, has_owners)?));
    }
    let network = !arguments.no_network;
    let mut read = arguments.read.clone();
    // The same here.
    read.push(own);
    let confinement = Confinement { read, write: arguments.write.clone(), network };
    // Clients ask the server for files, so its own directory is closed for it as well.
    let inside = inside.with_errands().context("cannot start what removes the sandbox")?;
    Ok(Entered::Server(inside, Owner::start_confined(&confinement)?))
}

/// Tells the backend why there is no container.
fn refuse(error: &ContainerError) {
    let told = Inside::socket().and_then(|socket| trial::why_not(error).tell(socket));
    if let Err(error) = told {
        tracing::debug!(%error, "the backend does not listen");
    }
}

/// How a server ends.
#[derive(Debug)]
enum End {
    /// Its backend is gone, or its time is over: nothing is left.
    Removed(&'static str),
    /// It was told to, or nobody uses it: what it was stays to be seen.
    Stopped(String),
}

/// What is the same before and after the start.
pub(super) struct Waiting {
    inside: Inside,
    pub(super) lifeline: Lifeline,
    pub(super) stop: CancellationToken,
    pub(super) listener: Option<TcpListener>,
    reserved: Vec<OwnedFd>,
}

pub(crate) async fn serve(inside: Inside, owner: &Owner) -> anyhow::Result<ExitCode> {
    let socket = Inside::socket().context("this command is started by the runtime `local`")?;
    let lifeline = Lifeline::new(socket).context("cannot use the socket to the backend")?;
    let stop = tools::stop_signal()?;
    let mut waiting = Waiting::new(inside.clone(), lifeline, stop);
    let end = match waiting.start().await? {
        Some(start) => run(waiting, *start, owner).await?,
        None => End::Removed("it was not needed"),
    };
    match end {
        End::Removed(reason) => {
            tracing::info!(reason, "the sandbox ends");
            audit::end(reason);
            inside.remove().context("cannot remove the sandbox")?;
        }
        End::Stopped(reason) => {
            tracing::info!(reason, "the server ends");
            audit::end(&reason);
            // Without a directory there is nobody to tell.
            if let Err(error) = inside.tell_ended(&reason) {
                tracing::debug!(%error, "nobody is told");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Waiting {
    pub(super) const fn new(inside: Inside, lifeline: Lifeline, stop: CancellationToken) -> Self {
        Self { inside, lifeline, stop, listener: None, reserved: Vec::new() }
    }

    /// Does what the backend says until that is the start; `None` if the backend is gone before.
    pub(super) async fn start(&mut self) -> anyhow::Result<Option<Box<Start>>> {
        loop {
            let request = tokio::select! {
                request = self.lifeline.receive() => request.context("cannot understand the backend")?,
                () = self.stop.cancelled() => None,
            };
            let reply = match request {
                None | Some(Request::Stop) => return Ok(None),
                Some(Request::Listen { host, reserve }) => self.listen(host, reserve).await,
                Some(Request::Reserve { count }) => self.reserve(count).map(|ports| Reply::Reserved { ports }),
                Some(Request::Start(start)) => return Ok(Some(start)),
                Some(Request::Commit) => Err(anyhow::anyhow!("there is nothing to commit")),
            };
            self.answer(reply).await;
        }
    }

    /// Tells the backend. That it is gone is seen by what is received next.
    async fn answer(&mut self, reply: anyhow::Result<Reply>) {
        self.tell(&reply.unwrap_or_else(|error| Reply::Failed { reason: format!("{error:#}") })).await;
    }

    pub(super) async fn tell(&mut self, reply: &Reply) {
        if let Err(error) = self.lifeline.send(reply).await {
            tracing::debug!(%error, "the backend does not listen");
        }
    }

    async fn listen(&mut self, host: IpAddr, reserve: usize) -> anyhow::Result<Reply> {
        let listener = if self.inside.has_own_network() {
            let listener = self.inside.listen_outside(host).with_context(|| format!("cannot listen on {host}"))?;
            listener.set_nonblocking(true)?;
            TcpListener::from_std(listener)?
        } else {
            bind(SocketAddr::new(host, 0)).await?
        };
        let port = listener.local_addr()?.port();
        self.listener = Some(listener);
        let reserved = self.reserve(reserve)?;
        Ok(Reply::Listening { port, reserved })
    }

    fn reserve(&mut self, count: usize) -> anyhow::Result<Vec<u16>> {
        anyhow::ensure!(count <= MOST_PORTS, "{count} ports are too many at once, {MOST_PORTS} are possible");
        let mut ports = Vec::with_capacity(count);
        for _ in 0..count {
            let (socket, port) = self.inside.reserve().context("cannot reserve a port for programs of the sandbox")?;
            self.reserved.push(socket);
            ports.push(port);
        }
        Ok(ports)
    }

    /// Lets the programs of the sandbox have its ports.
    pub(super) fn open_ports(&mut self) -> anyhow::Result<()> {
        if !self.inside.has_own_network() {
            return open(&self.reserved).context("cannot give reserved ports to the programs of the sandbox");
        }
        self.reserved.drain(..).try_for_each(|socket| ports::lead(socket, self.stop.clone()))
    }
}

/// Lets programs have a reserved port that ask for this very one and set `SO_REUSEADDR` first, as servers do; the system
/// still gives it to nobody who asks for any port. The kernel cannot tell the programs of the sandbox from those of other
/// users there, so it is done as late as possible, and who lists the sandbox looks whose program listens.
fn open(reserved: &[OwnedFd]) -> io::Result<()> {
    reserved.iter().try_for_each(|socket| Ok(sockopt::set_socket_reuseaddr(socket, true)?))
}

/// The life of a sandbox.
async fn run(mut waiting: Waiting, start: Start, owner: &Owner) -> anyhow::Result<End> {
    let listener = waiting.listener.take();
    let mut recorder = None;
    let made = match listener {
        Some(listener) => {
            waiting.open_ports()?;
            if let Some(audited) = &start.audit {
                recorder = Some(audit::begin(waiting.inside.clone(), audited, &start.workspace, &start.environment)?);
            }
            let origins = tools::origins(start.environment.get(tools::ALLOWED_ORIGINS).map(String::as_str), true);
            match origins {
                Ok(origins) => make(&waiting.inside, &start, owner).await.map(|executor| (listener, executor, origins)),
                Err(error) => Err(error),
            }
        }
        None => Err(anyhow::anyhow!("it was not told to listen")),
    };
    let (listener, executor, origins) = match made {
        Ok(made) => made,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "the sandbox cannot be started");
            waiting.answer(Err(error)).await;
            return Ok(End::Removed("it could not be started"));
        }
    };
    let occupancy = Arc::new(Occupancy::limited(start.idle_stop));
    let inside = waiting.inside.clone();
    let options = ServerOptions {
        session_key: Some(SessionKey::new(start.session_key)),
        origins,
        occupancy: Arc::clone(&occupancy),
        pause_listener: Some(PauseListener::new(move |paused| {
            if let Err(error) = inside.tell_paused(paused) {
                tracing::warn!(%error, paused, "others are not told of it");
            }
        })),
        ..ServerOptions::default()
    };
    let stop = CancellationToken::new();
    let server = gloveport_server::serve(listener, Arc::clone(&executor), options, stop.clone(), DRAIN);
    let watch = async {
        waiting.answer(Ok(Reply::Ready)).await;
        let end = tokio::select! {
            () = waiting.stop.cancelled() => End::Stopped("its server was told to end".to_owned()),
            () = owner.lost() => End::Stopped(owner::LOST.to_owned()),
            () = backend_gone(&mut waiting.lifeline, start.keep_alive, &waiting.stop) => End::Removed("its backend has ended"),
            reason = audit::broken(recorder.as_mut()) => End::Stopped(reason),
            () = expired(start.expires) => End::Removed("its time is over"),
            limit = unused(&occupancy, &executor) => {
                End::Stopped(format!("nobody used it for {} s", limit.as_secs_f64()))
            }
        };
        stop.cancel();
        end
    };
    let (drained, end) = tokio::join!(server, watch);
    executor.close().await;
    if let DrainEnd::CutOff { open } = drained? {
        tracing::info!(open, "requests were cut off");
    }
    Ok(end)
}

async fn make(inside: &Inside, start: &Start, owner: &Owner) -> anyhow::Result<Arc<Executor>> {
    let environment: Vec<(OsString, OsString)> =
        start.environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let plugins = plugins::asked(&start.plugins, &environment)?;
    inside
        .make_workspace(&start.workspace)
        .with_context(|| format!("cannot make the workspace {}", start.workspace.display()))?;
    let mut options = tools::executor_options(owner, tools::existing_directory(&start.workspace)?)?;
    options.environment = environment;
    options.memory_limit = start.memory_limit;
    options.plugins = plugins;
    Ok(Executor::start(options).await?)
}

/// Ends with the backend, unless the sandbox is made and outlives it.
pub(super) async fn backend_gone(lifeline: &mut Lifeline, keep_alive: bool, stop: &CancellationToken) {
    let mut committed = false;
    loop {
        match lifeline.receive().await {
            Ok(Some(Request::Commit)) => committed = true,
            Ok(Some(Request::Stop)) => stop.cancel(),
            Ok(Some(other)) => tracing::warn!(?other, "the backend asks for what only a waiting server can do"),
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(%error, "the backend cannot be understood");
                break;
            }
        }
    }
    if committed && keep_alive {
        std::future::pending::<()>().await;
    }
}

/// Ends at this time of the clock.
pub(crate) async fn expired(expires: Option<SystemTime>) {
    /// The clock may be set meanwhile.
    const LOOK: Duration = Duration::from_mins(1);
    let Some(expires) = expires else { return std::future::pending().await };
    while let Ok(left) = expires.duration_since(SystemTime::now()) {
        tokio::time::sleep(left.min(LOOK)).await;
    }
}

/// Ends when nobody has used the server for as long as it says. One that is paused rests by the will of somebody, and time in
/// which its process was stopped does not count.
pub(crate) async fn unused(occupancy: &Occupancy, executor: &Executor) -> Duration {
    /// Shortest and longest time between two looks.
    const LOOK: (Duration, Duration) = (Duration::from_millis(10), Duration::from_mins(1));
    /// Looks until the limit, so that most of a time in which the server was stopped is noticed.
    const LOOKS: u32 = 10;
    /// How much later than it was to be a look is at least after which the server has been stopped, as by the engine that
    /// paused its container, and not only waited for its turn.
    const STOPPED: Duration = Duration::from_millis(250);
    let Some(limit) = occupancy.limit() else { return std::future::pending().await };
    let longest = (limit / LOOKS).clamp(LOOK.0, LOOK.1);
    let (mut looked, mut wait) = (Instant::now(), Duration::ZERO);
    loop {
        let idle = occupancy.idle();
        // Taken after that, so that a stop in between is noticed, too.
        let since = looked.elapsed();
        looked += since;
        if since.saturating_sub(wait) >= STOPPED.max(wait) {
            // Nobody could use it then; and who lets it go on wants to.
            occupancy.touch();
            wait = Duration::ZERO;
            continue;
        }
        if idle >= limit && !executor.is_paused() {
            return limit;
        }
        wait = limit.saturating_sub(idle).clamp(LOOK.0, longest);
        tokio::time::sleep(wait).await;
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use rustix::net::{self, AddressFamily, SocketFlags, SocketType};

    use super::*;

    fn socket() -> OwnedFd {
        net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap()
    }

    fn listens(port: u16) -> bool {
        let socket = socket();
        sockopt::set_socket_reuseaddr(&socket, true).unwrap();
        net::bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, port))).is_ok() && net::listen(&socket, 1).is_ok()
    }

    #[test]
    fn a_reserved_port_is_nobodys_until_the_sandbox_starts() {
        let reserved = socket();
        net::bind(&reserved, &SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))).unwrap();
        let port = SocketAddr::try_from(net::getsockname(&reserved).unwrap()).unwrap().port();
        assert!(!listens(port));
        open(&[reserved]).unwrap();
        assert!(listens(port));
    }
}
