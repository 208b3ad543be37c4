//! The task that owns a process: it moves its output, and sees its end.

use std::{future::pending, os::fd::OwnedFd, sync::Arc, time::Duration};

use gloveport_protocol::processes::{ProcessEnd, ProcessStream};
use gloveport_sys::session::{Exit, SessionProcess};
use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe::Receiver,
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::feed::Feed;

/// Most bytes of one piece.
const PIECE: usize = 32 * 1024;
/// What a program left behind may hold its output open; this long without any means that its own is complete.
const QUIET: Duration = Duration::from_millis(150);
/// Time to end by itself for a process whose time is over.
const TIME_OVER: Duration = Duration::from_millis(500);
/// Pause between two looks at what a program left behind.
const LOOK: Duration = Duration::from_millis(500);

/// An order to end, with the time that is left to the programs.
pub(super) type Order = watch::Receiver<Option<Duration>>;

/// A process that runs.
pub(super) struct Running {
    pub(super) process: SessionProcess,
    pub(super) output: OwnedFd,
    pub(super) errors: OwnedFd,
    pub(super) limit: Option<Duration>,
}

/// Moves output until the program has ended and nothing that it started is left, or until its time is over or its end is
/// ordered.
pub(super) async fn own(running: Running, feed: Arc<Feed>, mut order: Order) {
    let Running { mut process, output, errors, limit } = running;
    let mut moving = JoinSet::new();
    let (told, mut last) = watch::channel(());
    for (pipe, stream) in [(output, ProcessStream::Stdout), (errors, ProcessStream::Stderr)] {
        let (feed, told) = (Arc::clone(&feed), told.clone());
        moving.spawn(async move { pump(pipe, stream, &feed, &told).await });
    }
    drop(told);
    let over = async {
        match limit {
            Some(limit) => sleep(limit).await,
            None => pending().await,
        }
    };
    let (grace, timed_out) = tokio::select! {
        exit = process.exited() => {
            // Complete when both pipes are closed, or when what holds them open is silent.
            while let Ok(Ok(())) = timeout(QUIET, last.changed()).await {}
            feed.end(end_of(exit, false));
            let grace = tokio::select! {
                // Programs in the background live on, as they do when a shell ends.
                () = left_behind(&process) => Duration::ZERO,
                grace = ordered(&mut order) => grace,
            };
            (grace, false)
        }
        grace = ordered(&mut order) => (grace, false),
        () = over => (TIME_OVER, true),
    };
    let exit = process.watch_exit();
    process.end(grace).await;
    while let Ok(Ok(())) = timeout(QUIET, last.changed()).await {}
    moving.abort_all();
    let unknown = ProcessEnd { exit_code: None, signal: None, timed_out };
    let end = exit.borrow().map_or(unknown, |exit| end_of(exit, timed_out));
    feed.end(end);
}

fn end_of(exit: Exit, timed_out: bool) -> ProcessEnd {
    ProcessEnd { exit_code: exit.code, signal: exit.signal, timed_out }
}

/// Moves what comes through a pipe to its end.
async fn pump(pipe: OwnedFd, stream: ProcessStream, feed: &Feed, told: &watch::Sender<()>) {
    let Ok(mut pipe) = Receiver::from_owned_fd(pipe) else {
        tracing::warn!("the output of a process cannot be read");
        return;
    };
    let mut buffer = vec![0; PIECE];
    while let Ok(count) = pipe.read(&mut buffer).await
        && count > 0
    {
        told.send_replace(());
        feed.push(stream, buffer.get(..count).unwrap_or_default()).await;
        told.send_replace(());
    }
}

/// Returns when nothing is left of what a program has started.
async fn left_behind(process: &SessionProcess) {
    while !process.is_gone() {
        sleep(LOOK).await;
    }
}

/// Returns when the end is ordered, and at once if whoever could order it is gone.
async fn ordered(order: &mut Order) -> Duration {
    order.wait_for(Option::is_some).await.ok().and_then(|grace| *grace).unwrap_or_default()
}
