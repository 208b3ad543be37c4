//! The task that owns a service: one program at a time, and whoever waits for it.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use gloveport_sys::Exit;
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::{sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    Endpoint, ServiceSpec, SetUp, Standing,
    attempt::{Starter, Up},
    failure::{Failure, Hope},
    log::ProgramLog,
    pauses::Pauses,
    place::Places,
    program::ended,
};
use crate::plugin::{PluginError, PluginHost, PluginState};

/// Failed starts in a row after which it is given up.
const STARTS: u32 = 5;
/// Ports that are tried at once when the ones before were taken in the last moment.
const PORTS: u32 = 10;
/// Most that wait for one service.
const WAITING: usize = 1024;

/// What is asked of the task.
#[derive(Debug)]
pub(crate) enum Request {
    /// A use.
    Lease(oneshot::Sender<Result<Grant, PluginError>>),
    /// The end. The answer comes when nothing is left.
    Stop(oneshot::Sender<()>),
}

/// A use that was granted.
#[derive(Debug)]
pub(crate) struct Grant {
    pub(crate) endpoint: Option<Endpoint>,
    pub(crate) used: Use,
}

/// Counts as a use until it is dropped.
#[derive(Debug)]
pub(crate) struct Use(Arc<Uses>);

/// How many uses there are.
#[derive(Debug, Default)]
struct Uses {
    count: AtomicUsize,
    last_ended: Notify,
}

impl Use {
    fn new(uses: &Arc<Uses>) -> Self {
        uses.count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(uses))
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.last_ended.notify_one();
        }
    }
}

/// The task of a service.
pub(crate) struct Supervisor {
    starter: Arc<Starter>,
    standing: Standing,
    requests: mpsc::Receiver<Request>,
    places: Places,
    uses: Arc<Uses>,
    waiting: Vec<oneshot::Sender<Result<Grant, PluginError>>>,
    stops: Vec<oneshot::Sender<()>>,
    is_set_up: bool,
    /// How long the next start has to wait, and why.
    pause: Option<(Duration, String)>,
    pauses: Pauses,
}

/// How a healthy program came to its end.
enum Ended {
    Crashed(Exit),
    Idle,
    Stopped,
}

impl Supervisor {
    pub(crate) fn new(
        spec: ServiceSpec,
        host: PluginHost,
        standing: Standing,
        log: Arc<ProgramLog>,
        requests: mpsc::Receiver<Request>,
    ) -> Self {
        Self {
            places: Places::new(spec.listens.clone(), host.surroundings.identity.clone()),
            starter: Arc::new(Starter { spec, host, log, cancel: CancellationToken::new() }),
            standing,
            requests,
            uses: Arc::default(),
            waiting: Vec::new(),
            stops: Vec::new(),
            is_set_up: false,
            pause: None,
            pauses: Pauses::default(),
        }
    }

    /// Lives until the service is stopped or dropped.
    pub(crate) async fn run(mut self) {
        let mut wanted = self.starter.spec.eager;
        while !self.is_stopping() {
            if wanted || !self.waiting.is_empty() {
                wanted = self.serve().await;
            } else {
                let request = self.requests.recv().await;
                self.accept(request);
            }
        }
        self.requests.close();
        while let Ok(request) = self.requests.try_recv() {
            // Whoever waits for a use sees that the task is gone.
            if let Request::Stop(reply) = request {
                self.stops.push(reply);
            }
        }
        drop(self.places);
        self.waiting.clear();
        self.standing.set(PluginState::Stopped);
        for reply in self.stops {
            let _gone = reply.send(());
        }
    }

    fn is_stopping(&self) -> bool {
        self.starter.cancel.is_cancelled()
    }

    /// Takes a request while there is no healthy program.
    fn accept(&mut self, request: Option<Request>) {
        match request {
            Some(Request::Lease(reply)) => {
                self.waiting.retain(|waiting| !waiting.is_closed());
                if self.waiting.len() < WAITING {
                    self.waiting.push(reply);
                } else {
                    let reason = format!("{WAITING} requests wait for {} already", self.starter.spec.name);
                    let _gone = reply.send(Err(PluginError::new(reason, "try again later")));
                }
            }
            Some(Request::Stop(reply)) => {
                self.stops.push(reply);
                self.starter.cancel.cancel();
            }
            None => self.starter.cancel.cancel(),
        }
    }

    /// Takes requests while something is done.
    async fn meanwhile<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            let stopping = self.is_stopping();
            tokio::select! {
                biased;
                result = &mut work => return result,
                request = self.requests.recv(), if !stopping => self.accept(request),
            }
        }
    }

    /// Brings the service up and watches it until it ends. Tells whether it is to be started again.
    async fn serve(&mut self) -> bool {
        let up = match self.bring_up().await {
            Ok(up) => up,
            Err(failure) if failure.hope == Hope::Stopped => return false,
            Err(Failure { error, .. }) => {
                tracing::warn!(service = self.starter.spec.name, "{}; {}", first_line(&error.reason), error.remedy);
                self.pause = None;
                self.pauses.forget();
                let PluginError { reason, remedy } = error.clone();
                self.standing.set(PluginState::Failed { reason, remedy });
                for reply in self.waiting.drain(..) {
                    let _gone = reply.send(Err(error.clone()));
                }
                return false;
            }
        };
        self.watch(up).await
    }

    /// Starts the program until it is healthy, or is given up.
    async fn bring_up(&mut self) -> Result<Up, Failure> {
        self.set_up().await?;
        let (mut failed, mut moved) = (0, 0);
        loop {
            self.wait_for_pause().await?;
            self.standing.set(PluginState::Starting { step: "starting".into() });
            let starter = Arc::clone(&self.starter);
            let mut places = std::mem::replace(&mut self.places, Places::new(super::Listens::Nowhere, None));
            let attempt = self.meanwhile(starter.attempt(&mut places)).await;
            self.places = places;
            let failure = match attempt {
                Ok(up) => return Ok(up),
                Err(failure) => failure,
            };
            match failure.hope {
                Hope::OtherPort if moved < PORTS => moved += 1,
                Hope::Again | Hope::OtherPort if failed + 1 < STARTS => {
                    failed += 1;
                    self.pause_for(&failure.error.reason);
                }
                Hope::Again | Hope::OtherPort => {
                    let PluginError { reason, remedy } = failure.error;
                    let reason = format!("{STARTS} starts in a row failed; the last one: {reason}");
                    return Err(Failure::new(Hope::None, reason, remedy));
                }
                Hope::None | Hope::Stopped => return Err(failure),
            }
        }
    }

    /// Runs the set-up command, if it has not succeeded before.
    async fn set_up(&mut self) -> Result<(), Failure> {
        let starter = Arc::clone(&self.starter);
        let Starter { spec, host, log, cancel } = &*starter;
        let Some(command) = spec.set_up.clone().filter(|_| !self.is_set_up) else { return Ok(()) };
        self.standing.set(PluginState::Starting { step: "running its set-up command".into() });
        let set_up = SetUp { name: spec.name.clone(), command, limit: spec.set_up_limit };
        self.meanwhile(set_up.run(host, log, cancel)).await?;
        self.is_set_up = true;
        Ok(())
    }

    /// The next start has to wait, each time twice as long.
    fn pause_for(&mut self, reason: &str) {
        self.pause = Some((self.pauses.next(), reason.to_owned()));
    }

    async fn wait_for_pause(&mut self) -> Result<(), Failure> {
        let Some((pause, reason)) = self.pause.take() else { return Ok(()) };
        let seconds = pause.as_secs_f64();
        let reason = first_line(&reason);
        tracing::warn!(service = self.starter.spec.name, "{reason}; starting it again in {seconds} s");
        let step = format!("starting again after {seconds} s: {reason}");
        self.standing.set(PluginState::Starting { step });
        let starter = Arc::clone(&self.starter);
        let wait = async {
            tokio::select! {
                () = sleep(pause) => Ok(()),
                () = starter.cancel.cancelled() => Err(Failure::stopped(&starter.spec.name)),
            }
        };
        self.meanwhile(wait).await
    }

    /// Watches a healthy program until its end. Tells whether it is to be started again.
    async fn watch(&mut self, mut up: Up) -> bool {
        let healthy_since = Instant::now();
        self.standing.set(PluginState::Ready);
        for reply in std::mem::take(&mut self.waiting) {
            self.grant(reply, up.endpoint.as_ref());
        }
        match self.watch_until(&mut up).await {
            Ended::Crashed(exit) => {
                self.pauses.was_healthy(healthy_since.elapsed());
                let starter = Arc::clone(&self.starter);
                self.standing.set(PluginState::Starting { step: format!("starting again, as {}", ended(exit)) });
                self.meanwhile(up.program.end(Duration::ZERO)).await;
                let rest = starter.log.last_lines(up.log_before);
                self.pause_for(&format!("{} failed: {}{rest}", starter.spec.name, ended(exit)));
                true
            }
            Ended::Idle => {
                self.standing.set(PluginState::Starting { step: "stopping because it is not in use".into() });
                let grace = self.starter.spec.end_grace;
                self.meanwhile(up.program.end(grace)).await;
                self.pauses.forget();
                self.standing.set(PluginState::Idle);
                false
            }
            Ended::Stopped => {
                up.program.end(self.starter.spec.end_grace).await;
                false
            }
        }
    }

    async fn watch_until(&mut self, up: &mut Up) -> Ended {
        let uses = Arc::clone(&self.uses);
        let idle_stop = self.starter.spec.idle_stop;
        let mut unused_since = Instant::now();
        loop {
            let deadline = idle_stop.filter(|_| uses.count.load(Ordering::SeqCst) == 0).map(|idle| unused_since + idle);
            tokio::select! {
                biased;
                exit = up.program.exited() => return Ended::Crashed(exit),
                request = self.requests.recv() => match request {
                    Some(Request::Lease(reply)) => {
                        self.grant(reply, up.endpoint.as_ref());
                    }
                    stop => {
                        self.accept(stop);
                        return Ended::Stopped;
                    }
                },
                () = uses.last_ended.notified() => unused_since = Instant::now(),
                () = until(deadline) => return Ended::Idle,
            }
        }
    }

    fn grant(&self, reply: oneshot::Sender<Result<Grant, PluginError>>, endpoint: Option<&Endpoint>) {
        // One that was given up meanwhile counts no more as soon as it is dropped here.
        let _given_up = reply.send(Ok(Grant { endpoint: endpoint.cloned(), used: Use::new(&self.uses) }));
    }
}

/// A reason without what the program printed, which may be secret.
fn first_line(reason: &str) -> &str {
    reason.lines().next().unwrap_or_default()
}

/// Returns at this time; never, if there is none.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
