//! One run of a server, from its start to its end.

use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use gloveport_plugin::{ProgramLog, ended};
use rmcp::{Peer, RoleClient, model::ServerCapabilities};
use tokio::{sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{Server, Standing, start};
use crate::back::Back;

/// Time for a server to end when its input has ended.
const GRACE: Duration = Duration::from_secs(1);
/// Time for all of it to be gone.
pub(super) const END: Duration = Duration::from_secs(5);
/// Calls that one server works on at the same time; more are refused.
const CALLS: usize = 4096;
/// Time for the status of a server that closed its output.
const STATUS: Duration = Duration::from_millis(500);

/// A server that runs.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) name: String,
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) capabilities: ServerCapabilities,
    pub(crate) back: Arc<Back>,
    calls: watch::Sender<usize>,
    end: CancellationToken,
    /// Why it ended, once it did.
    ended: watch::Sender<Option<String>>,
}

/// Why a server does not answer, for people.
#[derive(Debug, thiserror::Error)]
#[error("the MCP server {0}")]
pub(crate) struct Gone(pub(crate) String);

/// A call that a server works on.
#[derive(Debug)]
pub(crate) struct Call<'a>(&'a Live);

impl Live {
    /// Notes a call, so that the server is not ended during it; `None` if it has too many.
    pub(crate) fn call(&self) -> Option<Call<'_>> {
        let has_room = self.calls.send_if_modified(|calls| {
            let has_room = *calls < CALLS;
            *calls += usize::from(has_room);
            has_room
        });
        has_room.then(|| Call(self))
    }

    /// Whether its connection is gone.
    pub(crate) fn has_ended(&self) -> bool {
        self.back.is_closed() || self.ended.borrow().is_some()
    }

    /// Why the connection broke during a call.
    pub(crate) async fn gone(&self) -> Gone {
        let mut ended = self.ended.subscribe();
        let reason = match timeout(END, ended.wait_for(Option::is_some)).await {
            Ok(Ok(reason)) => reason.clone().unwrap_or_default(),
            _ => "it ended".to_owned(),
        };
        Gone(format!("{} did not answer: {reason}. The next call starts it again", self.name))
    }

    /// Ends it.
    pub(super) fn end(&self) {
        self.end.cancel();
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.calls.send_modify(|calls| *calls -= 1);
    }
}

/// Starts a server after `tries` starts in a row that failed, and stays with it to its end.
pub(super) async fn keep(server: Weak<Server>, tries: u32) {
    let Some((entry, surroundings, log, audience, retired, waits)) = server.upgrade().map(|server| {
        let log: Arc<ProgramLog> = Arc::clone(&server.log);
        let retired = server.retired.subscribe();
        (server.entry.clone(), server.surroundings.clone(), log, server.audience.clone(), retired, server.waits)
    }) else {
        return;
    };
    let printed = log.total();
    let started = tokio::select! {
        started = start::start(&entry, &surroundings, &log, waits.start) => started,
        () = is_retired(retired.clone()) => Err("it is not configured any more".to_owned()),
    };
    let mut started = match started {
        Ok(started) => started,
        Err(reason) => {
            tracing::warn!(server = entry.name, "an MCP server cannot be started: {reason}");
            if let Some(server) = server.upgrade() {
                let failed = Standing::Failed { since: Instant::now(), reason, tries: tries + 1 };
                server.standing.send_replace(failed);
            }
            return;
        }
    };
    let info = started.service.peer().peer_info();
    let live = Arc::new(Live {
        name: entry.name.clone(),
        peer: started.service.peer().clone(),
        capabilities: info.map(|info| info.capabilities.clone()).unwrap_or_default(),
        back: Arc::clone(&started.back),
        calls: watch::Sender::new(0),
        end: CancellationToken::new(),
        ended: watch::Sender::new(None),
    });
    if let Some(server) = server.upgrade() {
        server.standing.send_replace(Standing::Up { since: Instant::now(), live: Arc::clone(&live) });
    }
    tracing::info!(server = entry.name, pid = started.process.pid(), "an MCP server runs");
    let passing_on = audience.pass_on(&entry.name, started.told);
    let wanted = async {
        tokio::select! {
            () = live.end.cancelled() => {}
            () = unused(&live, retired, waits.drain) => {}
        }
    };
    let broke_off = tokio::select! {
        exit = started.process.exited() => Some(ended(exit)),
        () = passing_on => None,
        () = wanted => Some("it was ended, because it is not configured any more".to_owned()),
        () = live.back.closed() => None,
    };
    // The end of its input asks it to end.
    let _closed = timeout(GRACE, started.service.close()).await;
    let reason = match (live.back.broken(), broke_off) {
        (Some(broken), _) => broken,
        (None, Some(reason)) => reason,
        (None, None) => match timeout(STATUS, started.process.exited()).await {
            Ok(exit) => ended(exit),
            Err(_) => "it closed its output".to_owned(),
        },
    };
    started.process.end(GRACE).await;
    let _rest = timeout(STATUS, started.errors).await;
    let reason = format!("{reason}{}", start::last_words(&log, printed));
    tracing::info!(server = entry.name, "an MCP server does not run any more: {reason}");
    if let Some(server) = server.upgrade() {
        server.standing.send_if_modified(|standing| {
            let is_own = matches!(standing, Standing::Up { live: own, .. } if Arc::ptr_eq(own, &live));
            if is_own {
                *standing = Standing::Idle;
            }
            is_own
        });
    }
    live.ended.send_replace(Some(reason));
}

/// Returns when the server is not wanted any more and has answered, or had its time for that.
async fn unused(live: &Live, retired: watch::Receiver<bool>, drain: Duration) {
    is_retired(retired).await;
    let mut calls = live.calls.subscribe();
    let _drained = timeout(drain, calls.wait_for(|calls| *calls == 0)).await;
}

async fn is_retired(mut retired: watch::Receiver<bool>) {
    // The end of the server itself counts as well.
    let _retired = retired.wait_for(|retired| *retired).await;
}
