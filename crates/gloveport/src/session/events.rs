//! `gloveport session events`.

use std::{process::ExitCode, time::Duration};

use gloveport_event_stream::{EventFilter, EventType, Search};
use gloveport_protocol::Event;
use gloveport_provider::SessionId;
use tokio::time::sleep;

use super::{
    arguments::EventsArgs,
    history::History,
    runtimes::{Missing, Runtimes},
};
use crate::{
    describe,
    follow::{Wanted, write},
    visible,
};

/// How often it is looked for more: histories of other processes tell nobody that they grow.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) async fn events(runtimes: &Runtimes, arguments: &EventsArgs) -> anyhow::Result<ExitCode> {
    let history = history(runtimes, &arguments.id).await?;
    let store = history.events();
    let filter = EventFilter { include_types: types(&arguments.kind), ..EventFilter::default() };
    let mut start = arguments.since.max(0);
    loop {
        let next = store.next_id().await?;
        if next > start {
            let search = Search { start, end: Some(next - 1), filter: filter.clone(), ..Search::default() };
            let mut found = store.search(search);
            while let Some(event) = found.next().await? {
                let line = if arguments.json { format!("{}\n", event.to_value()) } else { text(&event) };
                if write(line.as_bytes())? == Wanted::NoMore {
                    return Ok(ExitCode::SUCCESS);
                }
            }
            start = next;
        }
        if !arguments.follow {
            return Ok(ExitCode::SUCCESS);
        }
        sleep(PAUSE).await;
    }
}

/// The history of a session; one without a sandbox is meant by its whole id.
async fn history(runtimes: &Runtimes, id: &str) -> anyhow::Result<History> {
    let (sid, missing) = match runtimes.find(id).await {
        Ok(found) => (found.name().to_owned(), None),
        Err(error) if error.is::<Missing>() => (SessionId::new(id)?.into(), Some(error)),
        Err(error) => return Err(error),
    };
    let Some(history) = History::of(&runtimes.context, &sid)? else {
        anyhow::bail!("the configuration keeps histories in memory (`file_store`), so there is none to show");
    };
    match missing {
        Some(error) if !history.exists().await? => Err(error),
        _ => Ok(history),
    }
}

/// What `--kind` lets through: the actions and the observations of these names.
fn types(kinds: &[String]) -> Vec<EventType> {
    let both = |kind: &String| [EventType::action(kind.clone()), EventType::observation(kind.clone())];
    kinds.iter().flat_map(both).collect()
}

/// An event for people: number, time and source, then what it is.
fn text(event: &Event) -> String {
    let time = event.timestamp().and_then(|time| time.get(..19)).unwrap_or("-").replace('T', " ");
    let source = event.source().map_or("-", |source| source.as_str());
    let cause = event.cause().map(|cause| format!(" of {cause}")).unwrap_or_default();
    let body = match event {
        Event::Action(action) => describe::action(action),
        Event::Observation(observation) => describe::observation(&observation.observation),
    };
    // What a program wrote is not meant for our terminal.
    format!("# {}{cause}  {time}  {source}\n{}", event.id().unwrap_or(-1), visible::lines(&body))
}
