//! Reads and writes conversations from the command line; the tests drive it.
//!
//! ```text
//! history append ROOT SID WRITERS        adds messages for ever; prints `open` and then `ID TEXT` for each stored one
//! history add ROOT SID [USER]            adds the events of standard input, {"source": …, "event": …} per line;
//!                                        answers each with the event as it is stored, or {"error": …}
//! history search ROOT SID SEARCH [USER]  prints the events of a search, which is a JSON object
//! history save ROOT SID PATH             saves the trajectory
//! history load PATH                      prints what is played again of a trajectory: the task, then the actions
//! ```

#![expect(clippy::print_stdout, reason = "a program that prints what it reads")]

use std::{
    io::{self, BufRead as _, Write as _},
    path::Path,
    sync::Arc,
};

use anyhow::{Context as _, bail};
use gloveport_event_stream::{
    EventFilter, EventStore, EventStream, EventType, LocalStore, Search,
    trajectory::{self, Replay, Screenshots},
};
use gloveport_protocol::{Action, Event, EventSource, MessageAction};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match *arguments.as_slice() {
        ["append", root, sid, writers] => append(root, sid, writers.parse()?).await,
        ["add", root, sid] => add(root, sid, None).await,
        ["add", root, sid, user] => add(root, sid, Some(user)).await,
        ["search", root, sid, search] => find(root, sid, search, None).await,
        ["search", root, sid, search, user] => find(root, sid, search, Some(user)).await,
        ["save", root, sid, path] => save(root, sid, path).await,
        ["load", path] => load(path).await,
        _ => bail!("wrong arguments: {arguments:?}"),
    }
}

async fn append(root: &str, sid: &str, writers: usize) -> anyhow::Result<()> {
    let stream = EventStream::open_local(Path::new(root), None, sid, None).await?;
    println!("open");
    let process = std::process::id();
    let tasks = (0..writers).map(|writer| {
        let stream = stream.clone();
        tokio::spawn(async move {
            for count in 0.. {
                let text = format!("{process}-{writer}-{count}-{}", "x".repeat(count * 37 % 1_500));
                let event = stream.add(Action::Message(MessageAction::new(&text)), EventSource::Agent).await?;
                writeln!(io::stdout().lock(), "{} {text}", event.id().unwrap_or(-1))?;
            }
            anyhow::Ok(())
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await??;
    }
    Ok(())
}

async fn add(root: &str, sid: &str, user: Option<&str>) -> anyhow::Result<()> {
    let stream = EventStream::open_local(Path::new(root), None, sid, user).await?;
    for line in io::stdin().lock().lines() {
        let mut line: Value = serde_json::from_str(&line?)?;
        let source = line["source"].as_str().and_then(EventSource::parse).context("no source")?;
        let answer = match stream.add(Event::from_value(line["event"].take())?, source).await {
            Ok(event) => event.to_value(),
            Err(error) => json!({"error": error.to_string()}),
        };
        println!("{answer}");
    }
    stream.close().await;
    Ok(())
}

async fn find(root: &str, sid: &str, search: &str, user: Option<&str>) -> anyhow::Result<()> {
    let store = EventStore::new(Arc::new(LocalStore::new(Path::new(root), None)?), sid, user);
    let mut events = store.search(parse_search(&serde_json::from_str(search)?)?);
    while let Some(event) = events.next().await? {
        println!("{}", event.to_value());
    }
    Ok(())
}

fn parse_search(search: &Value) -> anyhow::Result<Search> {
    let text = |key: &str| search[key].as_str().map(str::to_owned);
    let types = |key: &str| -> anyhow::Result<Vec<EventType>> {
        let names = search[key].as_array().cloned().unwrap_or_default();
        names
            .iter()
            .map(|name| match name.as_str().and_then(|name| name.split_once(' ')) {
                Some(("action", kind)) => Ok(EventType::action(kind.to_owned())),
                Some(("observation", kind)) => Ok(EventType::observation(kind.to_owned())),
                _ => bail!("{name} is no type of event"),
            })
            .collect()
    };
    let filter = EventFilter {
        include_types: types("include_types")?,
        exclude_types: types("exclude_types")?,
        source: search["source"].as_str().and_then(EventSource::parse),
        start_date: text("start_date"),
        end_date: text("end_date"),
        exclude_hidden: search["exclude_hidden"] == json!(true),
        query: text("query"),
    };
    Ok(Search {
        start: search["start_id"].as_i64().unwrap_or(0),
        end: search["end_id"].as_i64(),
        reverse: search["reverse"] == json!(true),
        filter,
        limit: search["limit"].as_u64().map(usize::try_from).transpose()?,
    })
}

async fn save(root: &str, sid: &str, path: &str) -> anyhow::Result<()> {
    let store = EventStore::new(Arc::new(LocalStore::new(Path::new(root), None)?), sid, None);
    let place = trajectory::save(Path::new(path), sid, &mut store.search(Search::default()), Screenshots::Drop).await?;
    println!("{}", place.display());
    Ok(())
}

async fn load(path: &str) -> anyhow::Result<()> {
    let trajectory = trajectory::load(Path::new(path)).await?;
    println!("{}", trajectory.task.to_value());
    let mut replay = Replay::new(trajectory.events);
    while replay.should_replay() {
        if let Some(action) = replay.step() {
            println!("{}", action.to_value());
        }
    }
    Ok(())
}
