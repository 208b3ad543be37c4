//! What all handlers share.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use gloveport_executor::Executor;
use gloveport_mcp::{Face, Proxy, Streamable};
use gloveport_mcp_server::{McpServer, Tool};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    agent_server::{face::Face as AgentServerFace, hosted::Hosted, waiting::Waiting},
    computer::Inside,
    metrics::Metrics,
    options::{ServerOptions, Wire},
    passage::Passage,
    swerex::face::Face as SweRexFace,
    transfer::Transfers,
    views::Views,
};

/// The executor, the options, and what is counted.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) executor: Arc<Executor>,
    pub(crate) options: ServerOptions,
    pub(crate) metrics: Metrics,
    pub(crate) transfers: Transfers,
    pub(crate) passage: Passage,
    /// What lets a person's browser look at the browser of the sandbox.
    pub(crate) views: Views,
    /// The MCP servers of the sandbox.
    pub(crate) mcp: Face,
    /// The sandbox as an MCP server.
    pub(crate) computer: Streamable<McpServer>,
    /// What clients of SWE-ReX see of it.
    pub(crate) swerex: Option<SweRexFace>,
    /// What clients of OpenHands' SDK 1.x see of it.
    pub(crate) agent_server: Option<AgentServerFace>,
    /// How far it is that is told its settings later.
    pub(crate) waiting: Option<Waiting>,
    /// The server stops: whoever holds a connection open for long gives it up.
    pub(crate) stop: CancellationToken,
    /// Requests that go on without their clients.
    apart: TaskTracker,
    started: Instant,
    /// When the last action arrived, in microseconds after `started`.
    last_action: AtomicU64,
}

impl App {
    pub(crate) fn new(executor: Arc<Executor>, options: ServerOptions, stop: CancellationToken) -> Arc<Self> {
        let (metrics, started, last_action) = (Metrics::default(), Instant::now(), AtomicU64::new(0));
        let transfers = Transfers::new(&options.limits);
        let (passage, views) = (Passage::new(), Views::new());
        let mcp = Face::new(Proxy::new(executor.surroundings()), stop.clone());
        let shared = McpServer::new(Arc::new(Inside::new(&executor)), tools(&executor));
        let computer = Streamable::new(move || Ok(shared.for_another()), &stop);
        let (mut swerex, mut agent_server, mut waiting) = (None, None, None);
        match &options.wire {
            Wire::OpenHands => {}
            Wire::SweRex => swerex = Some(SweRexFace::new(&executor)),
            Wire::AgentServer(options) => agent_server = Some(AgentServerFace::new(&executor, options, &stop)),
            Wire::Deferred(deferred) => waiting = Some(Waiting::new(deferred.clone())),
        }
        Arc::new(Self {
            executor,
            options,
            metrics,
            transfers,
            passage,
            views,
            mcp,
            computer,
            swerex,
            agent_server,
            waiting,
            stop,
            apart: TaskTracker::new(),
            started,
            last_action,
        })
    }

    /// Where work goes on without its client, as it does on the servers of OpenHands' SDK 1.x and of SWE-ReX; none where
    /// a client that goes away is told to the executor, and when as many go on as there may be connections.
    pub(crate) fn room_apart(&self) -> Option<&TaskTracker> {
        let goes_on = !matches!(self.options.wire, Wire::OpenHands);
        (goes_on && self.apart.len() < self.options.limits.connections).then_some(&self.apart)
    }

    /// The server of an agent behind this one.
    pub(crate) fn hosted_agent(&self) -> Option<&Arc<Hosted>> {
        self.agent_server.as_ref()?.hosted.as_ref()
    }

    /// The one that answers: another one where the settings have come.
    pub(crate) fn current(self: &Arc<Self>) -> &Arc<Self> {
        self.waiting.as_ref().and_then(Waiting::app).unwrap_or(self)
    }

    /// Pages of other origins that may ask, where clients of OpenHands' SDK 1.x are served.
    pub(crate) fn origins(&self) -> Option<&[String]> {
        match (&self.agent_server, &self.waiting) {
            (Some(face), _) => Some(&face.origins),
            (None, Some(waiting)) => Some(waiting.origins()),
            (None, None) => None,
        }
    }

    /// Ends what clients have started.
    pub(crate) async fn close(&self) {
        self.mcp.proxy().stop().await;
        if let Some(swerex) = &self.swerex {
            swerex.close().await;
        }
        if let Some(agent_server) = &self.agent_server {
            agent_server.close().await;
        }
        if let Some(waiting) = &self.waiting {
            waiting.close().await;
        }
    }

    /// Notes that an action arrived.
    pub(crate) fn action_arrived(&self) {
        self.last_action.store(self.micros(), Ordering::Relaxed);
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Time since the last action arrived, or since the start if there was none.
    pub(crate) fn idle_time(&self) -> Duration {
        Duration::from_micros(self.micros().saturating_sub(self.last_action.load(Ordering::Relaxed)))
    }

    fn micros(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// The tools that a sandbox has for MCP clients: Python is one where it can run cells.
fn tools(executor: &Executor) -> Vec<Tool> {
    let has_python = executor.plugins().notebook().is_some();
    Tool::ALL.into_iter().filter(|tool| *tool != Tool::Python || has_python).collect()
}
