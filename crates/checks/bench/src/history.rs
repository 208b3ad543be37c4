//! Measurements of the history of a conversation, in this process: the event stream has no server of its own.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use gloveport_event_stream::{EventStream, FileStore, LocalStore, Search};
use gloveport_protocol::{Action, EventSource, RunAction};
use serde::Serialize;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HistoryAmount {
    /// Events that one writer, and then all writers, append.
    pub(crate) appended: u32,
    /// Events of the long conversation.
    pub(crate) long: u32,
}

/// Writers at once.
const WRITERS: u32 = 8;

/// Numbers of the history.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct HistoryNumbers {
    /// Events a second that one writer appends, each after the one before is durable.
    pub(crate) appended_by_one: f64,
    /// Events a second that eight writers append.
    pub(crate) appended_by_many: f64,
    /// Milliseconds until a long conversation is open.
    pub(crate) open_ms: f64,
    /// Seconds in which all of its events are read.
    pub(crate) read_seconds: f64,
    /// Bytes by which this process grew while they were read.
    pub(crate) read_growth: u64,
}

/// Measures in a directory of the disk that the current one is on.
pub(crate) fn measure(amount: HistoryAmount) -> anyhow::Result<HistoryNumbers> {
    let directory = tempfile::tempdir_in(".").context("cannot make a directory for the history")?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(measure_in(directory.path(), amount))
}

async fn measure_in(directory: &Path, amount: HistoryAmount) -> anyhow::Result<HistoryNumbers> {
    let stream = open(directory, "one").await?;
    let started = Instant::now();
    append(&stream, amount.appended).await?;
    let appended_by_one = rate(amount.appended, started.elapsed());
    stream.close().await;

    let stream = open(directory, "many").await?;
    let started = Instant::now();
    append_by_many(&stream, amount.appended / WRITERS).await?;
    let appended_by_many = rate(amount.appended / WRITERS * WRITERS, started.elapsed());
    stream.close().await;

    let stream = open(directory, "long").await?;
    append_by_many(&stream, amount.long / WRITERS).await?;
    stream.close().await;
    let started = Instant::now();
    let stream = open(directory, "long").await?;
    let open_ms = started.elapsed().as_secs_f64() * 1000.0;
    let before = resident()?;
    let started = Instant::now();
    let mut events = stream.store().search(Search::default());
    let mut count = 0;
    while events.next().await?.is_some() {
        count += 1;
    }
    anyhow::ensure!(count == amount.long / WRITERS * WRITERS, "{count} events of {} were read", amount.long);
    let read_seconds = started.elapsed().as_secs_f64();
    let read_growth = resident()?.saturating_sub(before);
    stream.close().await;
    Ok(HistoryNumbers { appended_by_one, appended_by_many, open_ms, read_seconds, read_growth })
}

async fn open(directory: &Path, sid: &str) -> anyhow::Result<EventStream> {
    let store: Arc<dyn FileStore> = Arc::new(LocalStore::new(directory, None)?);
    Ok(EventStream::open(store, sid, None).await?)
}

async fn append(stream: &EventStream, count: u32) -> anyhow::Result<()> {
    for number in 0..count {
        let action = RunAction::new(format!("echo {number} of a command with some words in it"));
        stream.add(Action::Run(action), EventSource::Agent).await?;
    }
    Ok(())
}

async fn append_by_many(stream: &EventStream, each: u32) -> anyhow::Result<()> {
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| {
            let stream = stream.clone();
            tokio::spawn(async move { append(&stream, each).await })
        })
        .collect();
    for writer in writers {
        writer.await??;
    }
    Ok(())
}

fn rate(count: u32, time: Duration) -> f64 {
    f64::from(count) / time.as_secs_f64()
}

/// Resident memory of this process in bytes.
fn resident() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib * 1024)
}
