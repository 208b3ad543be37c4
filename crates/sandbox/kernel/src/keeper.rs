//! The task that owns a kernel: it starts it, gives it cells, and replaces it when it dies.

use std::{future::pending, sync::Arc, time::Duration};

use gloveport_sys::session::Exit;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    cell::{Cell, CellEnd, CellReport},
    environment,
    find::{self, Python},
    launch::{self, Failure, Launched},
    live::{Happened, Live, Purpose},
    options::KernelOptions,
    running::Running,
    state::{KernelError, KernelState, Step},
};

/// A kernel that dies within this time and without a cell has died right after its start.
const QUICK: Duration = Duration::from_secs(10);
/// How often kernels may die right after their start, one after the other.
const MOST_QUICK_DEATHS: u32 = 3;
/// Pause after the first such death; the next ones are twice as long each.
const PAUSE: Duration = Duration::from_millis(200);

/// Time for a kernel that has closed its channels to end by itself.
const PATIENCE: Duration = Duration::from_secs(1);

/// A cell and where its report goes.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) cell: Cell,
    pub(crate) answer: oneshot::Sender<Result<CellReport, KernelError>>,
}

/// What is to be done with the kernel itself.
#[derive(Debug)]
pub(crate) enum Order {
    Interrupt(oneshot::Sender<()>),
    Restart(oneshot::Sender<()>),
    Close(oneshot::Sender<()>),
}

enum Phase {
    Starting {
        task: AbortOnDropHandle<Result<Launched, Failure>>,
        cancel: CancellationToken,
    },
    Up(Box<Live>),
    /// Will be started then.
    Pausing(Instant),
    Failed,
}

enum Event {
    Order(Order),
    Cell(Request),
    Started(Box<Result<Launched, Failure>>),
    Happened(Happened),
    Time,
    /// All handles are gone.
    Unused,
}

struct Keeper {
    options: Arc<KernelOptions>,
    state: watch::Sender<KernelState>,
    cells: mpsc::Receiver<Request>,
    orders: mpsc::Receiver<Order>,
    phase: Phase,
    running: Option<Running>,
    generation: u64,
    quick_deaths: u32,
    lost: Option<Exit>,
}

/// Keeps a kernel until it is closed or nobody has a handle any more.
pub(crate) async fn keep(
    options: KernelOptions,
    state: watch::Sender<KernelState>,
    cells: mpsc::Receiver<Request>,
    orders: mpsc::Receiver<Order>,
) {
    let mut keeper = Keeper {
        options: Arc::new(options),
        state,
        cells,
        orders,
        phase: Phase::Failed,
        running: None,
        generation: 0,
        quick_deaths: 0,
        lost: None,
    };
    keeper.start();
    let done = loop {
        match keeper.next().await {
            Event::Order(Order::Close(done)) => break Some(done),
            Event::Unused => break None,
            event => keeper.handle(event).await,
        }
        keeper.advance().await;
    };
    keeper.close().await;
    if let Some(done) = done {
        let _nobody_waits = done.send(());
    }
}

impl Keeper {
    async fn next(&mut self) -> Event {
        let time = self.next_time();
        let running = self.running.is_some();
        tokio::select! {
            order = self.orders.recv() => order.map_or(Event::Unused, Event::Order),
            cell = self.cells.recv(), if !running => cell.map_or(Event::Unused, Event::Cell),
            event = next_of(&mut self.phase) => event,
            () = async { match time { Some(time) => sleep_until(time).await, None => pending().await } } => Event::Time,
        }
    }

    fn next_time(&self) -> Option<Instant> {
        let of_phase = match &self.phase {
            Phase::Up(live) => live.next_time(),
            Phase::Pausing(until) => Some(*until),
            Phase::Starting { .. } | Phase::Failed => None,
        };
        let of_cell = self.running.as_ref().and_then(Running::deadline);
        [of_phase, of_cell].into_iter().flatten().min()
    }

    async fn handle(&mut self, event: Event) {
        match event {
            Event::Cell(Request { cell, answer }) => {
                self.running = Some(Running::new(cell, answer, &self.options));
                if matches!(self.phase, Phase::Failed) {
                    self.quick_deaths = 0;
                    self.start();
                }
            }
            Event::Started(result) => self.started(*result),
            Event::Happened(happened) => self.happened(happened).await,
            Event::Time => self.on_time().await,
            Event::Order(Order::Interrupt(done)) => {
                if let Phase::Up(live) = &mut self.phase {
                    let happened = live.interrupt().await;
                    self.happened(happened).await;
                }
                let _nobody_waits = done.send(());
            }
            Event::Order(Order::Restart(done)) => {
                self.restart().await;
                let _nobody_waits = done.send(());
            }
            Event::Order(Order::Close(_)) | Event::Unused => {}
        }
    }

    /// Begins a start in the background.
    fn start(&mut self) {
        let cancel = CancellationToken::new();
        let start = start(Arc::clone(&self.options), self.state.clone(), self.generation, cancel.clone());
        self.generation += 1;
        self.state.send_replace(KernelState::Starting(Step::Finding));
        self.phase = Phase::Starting { task: AbortOnDropHandle::new(tokio::spawn(start)), cancel };
    }

    fn started(&mut self, result: Result<Launched, Failure>) {
        match result {
            Ok(launched) => self.phase = Phase::Up(Box::new(Live::new(launched, &self.options.startup))),
            Err(failure) if failure.passing => self.died_quickly(failure),
            Err(failure) => self.fail(failure),
        }
    }

    fn died_quickly(&mut self, failure: Failure) {
        self.quick_deaths += 1;
        if self.quick_deaths >= MOST_QUICK_DEATHS {
            return self.fail(failure);
        }
        tracing::warn!("a kernel has ended right after its start: {}", failure.reason);
        self.state.send_replace(KernelState::Starting(Step::Launching));
        self.phase = Phase::Pausing(Instant::now() + PAUSE * 2_u32.pow(self.quick_deaths - 1));
    }

    fn fail(&mut self, Failure { reason, remedy, .. }: Failure) {
        self.phase = Phase::Failed;
        self.state.send_replace(KernelState::Failed { reason: reason.clone(), remedy: remedy.clone() });
        if let Some(running) = self.running.take() {
            running.refuse(KernelError::Failed { reason, remedy });
        }
    }

    async fn happened(&mut self, happened: Happened) {
        match happened {
            Happened::Shown(content) => {
                if let Some(running) = &mut self.running {
                    running.take(content);
                }
            }
            Happened::Done { purpose: Purpose::Cell, raised } => {
                let end = if raised { CellEnd::Raised } else { CellEnd::Completed };
                self.report(end);
            }
            Happened::Nothing | Happened::Done { .. } => {}
            Happened::Exited(exit) => {
                tracing::warn!(code = exit.code, signal = exit.signal, "the kernel has ended");
                self.ended(true, Duration::ZERO).await;
            }
            Happened::Broken(error) => {
                tracing::warn!("the channels of the kernel do not work, so it is ended: {error}");
                // Usually it is about to end, and its own status says more than a signal of ours.
                self.ended(true, PATIENCE).await;
            }
        }
    }

    fn report(&mut self, end: CellEnd) {
        let Phase::Up(live) = &self.phase else { return };
        let interpreter = live.launched.facts.interpreter.clone();
        if let Some(running) = self.running.take() {
            running.report(end, self.lost.take(), interpreter);
        }
    }

    /// Ends what is left of the kernel, reports its cell, and begins to start the next one.
    async fn ended(&mut self, by_itself: bool, patience: Duration) {
        let Phase::Up(live) = std::mem::replace(&mut self.phase, Phase::Failed) else { return };
        let (cells, age) = (live.cells, live.started.elapsed());
        let has_cell = live.busy.as_ref().is_some_and(|busy| busy.purpose == Purpose::Cell);
        let facts = live.launched.facts.clone();
        let (exit, contents) = live.bury(patience).await;
        if has_cell && let Some(mut running) = self.running.take() {
            for content in contents {
                running.take(content);
            }
            running.report(CellEnd::Died(exit), self.lost.take(), facts.interpreter.clone());
        } else if by_itself && cells > 0 {
            self.lost = Some(exit);
        }
        if by_itself && cells == 0 && age < QUICK {
            let reason = format!("it ended with status {} right after its start", exit.shell_status());
            let remedy = format!("see what `{} -m ipykernel_launcher` says", facts.interpreter);
            self.died_quickly(Failure { reason, remedy, passing: true, no_kernel: false });
        } else {
            self.quick_deaths = 0;
            self.start();
        }
    }

    async fn restart(&mut self) {
        match &self.phase {
            Phase::Up(_) => self.ended(false, Duration::ZERO).await,
            Phase::Starting { .. } => {
                self.call_off().await;
                self.start();
            }
            Phase::Pausing(_) | Phase::Failed => {
                self.quick_deaths = 0;
                self.start();
            }
        }
    }

    async fn on_time(&mut self) {
        let now = Instant::now();
        if matches!(&self.phase, Phase::Pausing(until) if *until <= now) {
            self.start();
        }
        if self.running.as_ref().and_then(Running::deadline).is_some_and(|deadline| deadline <= now) {
            self.out_of_time().await;
        }
        if let Phase::Up(live) = &mut self.phase {
            let happened = live.on_time().await;
            self.happened(happened).await;
        }
    }

    /// Reports the cell whose time is over at once, and sees to it that what it does ends.
    async fn out_of_time(&mut self) {
        if let Phase::Up(live) = &mut self.phase
            && let Some(busy) = &mut live.busy
            && matches!(busy.purpose, Purpose::Cell | Purpose::Directory)
        {
            busy.purpose = Purpose::Abandoned;
            let happened = live.interrupt_until_done().await;
            self.report(CellEnd::TimedOut);
            self.happened(happened).await;
        } else if let Some(running) = self.running.take() {
            running.refuse_late();
        }
    }

    /// Gives the kernel what comes next.
    async fn advance(&mut self) {
        let Phase::Up(live) = &mut self.phase else { return };
        let cell = self.running.as_ref().map(|running| (running.cell.code.as_str(), running.cell.directory.as_deref()));
        let advanced = live.advance(cell).await;
        if live.is_ready() {
            let ready = KernelState::Ready(live.launched.facts.clone());
            self.state.send_if_modified(|state| {
                let changed = *state != ready;
                *state = ready;
                changed
            });
        }
        if let Err(error) = advanced {
            self.happened(Happened::Broken(error)).await;
        }
    }

    /// Ends a start, and waits until nothing of it is left.
    async fn call_off(&mut self) {
        if let Phase::Starting { task, cancel } = &mut self.phase {
            cancel.cancel();
            if let Ok(Ok(launched)) = task.await {
                launched.process.end(Duration::ZERO).await;
            }
            self.phase = Phase::Failed;
        }
    }

    async fn close(mut self) {
        self.cells.close();
        self.call_off().await;
        if let Phase::Up(live) = std::mem::replace(&mut self.phase, Phase::Failed) {
            live.close().await;
        }
        if let Some(running) = self.running.take() {
            running.refuse(KernelError::Closed);
        }
        self.state.send_replace(KernelState::Closed);
    }
}

async fn next_of(phase: &mut Phase) -> Event {
    match phase {
        Phase::Starting { task, .. } => {
            let result = task.await.unwrap_or_else(|error| {
                Err(Failure::lasting(format!("its start broke off: {error}"), "see the log of the server"))
            });
            Event::Started(Box::new(result))
        }
        Phase::Up(live) => Event::Happened(live.next().await),
        Phase::Pausing(_) | Phase::Failed => pending().await,
    }
}

/// One whole start.
async fn start(
    options: Arc<KernelOptions>,
    state: watch::Sender<KernelState>,
    generation: u64,
    cancelled: CancellationToken,
) -> Result<Launched, Failure> {
    let called_off = || Failure::lasting("the start was called off", "start it again");
    let found = tokio::select! {
        () = cancelled.cancelled() => Err(called_off()),
        found = find::find(&options) => found,
    }?;
    if found.has_kernel {
        state.send_replace(KernelState::Starting(Step::Launching));
        match launch::launch(&options, &found, generation, &cancelled).await {
            Err(failure) if failure.no_kernel => tracing::warn!("{}", failure.reason),
            launched => return launched,
        }
    }
    let python = tokio::select! {
        () = cancelled.cancelled() => Err(called_off()),
        python = in_environment(&options, &found, &state) => python,
    }?;
    state.send_replace(KernelState::Starting(Step::Launching));
    launch::launch(&options, &python, generation, &cancelled).await
}

/// The interpreter of our own environment, which is made if need be.
async fn in_environment(
    options: &KernelOptions,
    found: &Python,
    state: &watch::Sender<KernelState>,
) -> Result<Python, Failure> {
    if let Some(existing) = environment::existing(options, found).await {
        return Ok(existing);
    }
    state.send_replace(KernelState::Starting(Step::Installing));
    environment::install(options, found).await
}
