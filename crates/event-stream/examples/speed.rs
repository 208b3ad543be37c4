//! Measures a history: how fast events are added, and what a long one costs to open and to read.
//!
//! ```text
//! speed DIRECTORY [EVENTS]    default: 100000 events; the directory is created and stays
//! ```

#![expect(clippy::print_stdout, reason = "a program that prints numbers")]

use std::{fs, path::Path, sync::Arc, time::Duration, time::Instant};

use anyhow::Context as _;
use gloveport_event_stream::{
    BoxFuture, EventStore, EventStream, LocalStore, Search, Subscriber, SubscriberError, SubscriberId,
};
use gloveport_protocol::{Event, EventSource, ObservationEvent, RunObservation};

/// Content of each observation: what a short command prints.
const CONTENT: usize = 400;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let root = arguments.next().context("which directory?")?;
    let count: i64 = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    let root = Path::new(&root);
    for writers in [1, 8, 64] {
        appended(root, writers).await?;
    }
    slow_subscriber(root).await?;
    generate(&root.join("sessions/long"), count)?;
    opened(root, "long").await?;
    read(root, count).await
}

fn observation() -> anyhow::Result<Event> {
    let metadata = gloveport_protocol::CommandMetadata::default();
    let run = RunObservation::new("ls", "x".repeat(CONTENT), false, metadata);
    Ok(ObservationEvent::from(gloveport_protocol::Observation::Run(run)).into())
}

async fn appended(root: &Path, writers: usize) -> anyhow::Result<()> {
    let stream = EventStream::open_local(root, None, &format!("add-{writers}"), None).await?;
    let each = 8_000 / writers;
    let began = Instant::now();
    let tasks: Vec<_> = (0..writers)
        .map(|_| {
            let stream = stream.clone();
            tokio::spawn(async move {
                let mut longest = Duration::ZERO;
                for _ in 0..each {
                    let began = Instant::now();
                    stream.add(observation()?, EventSource::Agent).await?;
                    longest = longest.max(began.elapsed());
                }
                anyhow::Ok(longest)
            })
        })
        .collect();
    let mut longest = Duration::ZERO;
    for task in tasks {
        longest = longest.max(task.await??);
    }
    let took = began.elapsed();
    let rate = u32::try_from(each * writers).map(f64::from)? / took.as_secs_f64();
    println!("{writers} writers: {rate:.0} events/s, longest add {:.1} ms", longest.as_secs_f64() * 1e3);
    let began = Instant::now();
    stream.close().await;
    println!("  close: {:.1} ms", began.elapsed().as_secs_f64() * 1e3);
    Ok(())
}

struct Slow;

impl Subscriber for Slow {
    fn on_event(&self, _event: Arc<Event>) -> BoxFuture<'_, Result<(), SubscriberError>> {
        Box::pin(std::future::pending())
    }
}

async fn slow_subscriber(root: &Path) -> anyhow::Result<()> {
    let stream = EventStream::open_local(root, None, "slow", None).await?;
    stream.subscribe(SubscriberId::Test, "slow", Arc::new(Slow))?;
    let before = resident()?;
    for _ in 0..20_000 {
        stream.add(observation()?, EventSource::Agent).await?;
    }
    println!("20000 events with a subscriber that stands still: {} KiB more memory", resident()? - before);
    stream.unsubscribe(SubscriberId::Test, "slow").await;
    stream.close().await;
    Ok(())
}

/// Writes events without the care that a stream takes.
fn generate(conversation: &Path, count: i64) -> anyhow::Result<()> {
    fs::create_dir_all(conversation.join("events"))?;
    fs::create_dir_all(conversation.join("event_cache"))?;
    let mut page = Vec::new();
    for id in 0..count {
        let mut event = observation()?;
        event.place(id, "2025-07-18T17:01:36.799608".to_owned(), EventSource::Agent);
        let text = event.to_value().to_string();
        fs::write(conversation.join(format!("events/{id}.json")), &text)?;
        page.push(text);
        // Half of the history has pages.
        if page.len() == 25 {
            if id < count / 2 {
                let name = format!("event_cache/{}-{}.json", id - 24, id + 1);
                fs::write(conversation.join(name), format!("[{}]", page.join(", ")))?;
            }
            page.clear();
        }
    }
    Ok(())
}

async fn opened(root: &Path, sid: &str) -> anyhow::Result<()> {
    let before = resident()?;
    let began = Instant::now();
    let stream = EventStream::open_local(root, None, sid, None).await?;
    let took = began.elapsed();
    let next = stream.store().next_id().await?;
    println!("open with {next} events: {:.0} ms, {} KiB more memory", took.as_secs_f64() * 1e3, resident()? - before);
    stream.close().await;
    Ok(())
}

async fn read(root: &Path, count: i64) -> anyhow::Result<()> {
    let store = EventStore::new(Arc::new(LocalStore::new(root, None)?), "long", None);
    let half = count / 2;
    for (name, start, end) in [("with pages", 0, half - 1), ("without pages", half, count - 1)] {
        let before = resident()?;
        let began = Instant::now();
        let mut events = store.search(Search { start, end: Some(end), ..Search::default() });
        let (mut found, mut most) = (0_u32, 0);
        while events.next().await?.is_some() {
            found += 1;
            if found.is_multiple_of(5_000) {
                most = most.max(resident()? - before);
            }
        }
        let rate = f64::from(found) / began.elapsed().as_secs_f64();
        println!("read {found} events {name}: {rate:.0} events/s, at most {most} KiB more memory");
    }
    Ok(())
}

/// Memory of this process in KiB.
fn resident() -> anyhow::Result<i64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
