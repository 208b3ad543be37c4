//! Clones a repository, runs its tests through an event stream, and prints the observations.
//!
//! `cargo run -p gloveport-runtime --example session -- https://host/owner/name.git 'make test'`

#![expect(clippy::print_stdout, reason = "it shows what came of the commands")]

use std::{error::Error, sync::Arc};

use gloveport_config::Config;
use gloveport_event_stream::{BoxFuture, EventStream, LocalStore, Subscriber, SubscriberError, SubscriberId};
use gloveport_protocol::{Action, Event, EventSource, RunAction};
use gloveport_runtime::{InProcess, Runtime, RuntimeOptions};
use tokio::sync::mpsc;

struct Observations(mpsc::UnboundedSender<Arc<Event>>);

impl Subscriber for Observations {
    fn on_event(&self, event: Arc<Event>) -> BoxFuture<'_, Result<(), SubscriberError>> {
        Box::pin(async move {
            if matches!(*event, Event::Observation(_)) {
                self.0.send(event)?;
            }
            Ok(())
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(url), Some(tests)) = (arguments.next(), arguments.next()) else {
        return Err("usage: session URL COMMAND".into());
    };
    let workspace = tempfile::tempdir()?;
    let store = Arc::new(LocalStore::new(&workspace.path().join("history"), None)?);
    let stream = EventStream::open(store, "example", None).await?;
    let (sender, mut observations) = mpsc::unbounded_channel();
    stream.subscribe(SubscriberId::Main, "print", Arc::new(Observations(sender)))?;

    let sandbox = InProcess::in_directory(workspace.path());
    let runtime = Runtime::new(RuntimeOptions::new(Config::default(), sandbox).with_stream(&stream))?;
    runtime.connect().await?;
    for command in [format!("git clone {url} repository && cd repository"), tests] {
        stream.add(Action::Run(RunAction::new(command)), EventSource::Agent).await?;
        if let Some(event) = observations.recv().await {
            println!("{}", serde_json::to_string_pretty(&event.to_value())?);
        }
    }
    runtime.close().await;
    stream.close().await;
    Ok(())
}
