//! What happens in a sandbox is recorded out of its reach. A sandbox of which nothing can be recorded any more ends.

use anyhow::Context as _;
use gloveport_audit::{Event, Sink, Text, record, record_into};
use gloveport_contract::local::lifeline::{Audited, Start};
use tokio::sync::watch;

use super::inside::Inside;

/// Fewest bytes of a secret that is left out. What is shorter is in other texts by chance.
const SHORTEST: usize = 4;

/// What records, and says that it cannot.
struct Recorder {
    inside: Inside,
    /// Names and values of what is left out.
    secrets: Vec<(String, String)>,
    broken: watch::Sender<Option<String>>,
}

impl Sink for Recorder {
    fn keep(&self, event: Event) {
        if let Err(error) = self.inside.record(event.without(&self.secrets)) {
            tracing::error!(%error, "the audit log cannot be written");
            self.broken.send_replace(Some(format!("its audit log cannot be written: {error}")));
        }
    }
}

/// Records that a sandbox starts, and from now on all that happens in it. It gives where it is told that this fails.
pub(super) fn begin(
    inside: &Inside,
    audited: &Audited,
    start: &Start,
) -> anyhow::Result<watch::Receiver<Option<String>>> {
    let Audited { isolation, network, edge_secrets, secrets } = audited.clone();
    let value = |name: String| start.environment.get(&name).cloned().map(|value| (name, value));
    let mut secrets: Vec<_> =
        secrets.into_iter().filter_map(value).filter(|(_, value)| value.len() >= SHORTEST).collect();
    // One may be a part of another.
    secrets.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
    let started = Event::Started {
        isolation,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        workspace: Text::of(&start.workspace),
        network,
        secrets: edge_secrets,
    };
    inside.record(started).context("its audit log cannot be written")?;
    let (broken, told) = watch::channel(None);
    record_into(Recorder { inside: inside.clone(), secrets, broken });
    Ok(told)
}

/// Returns why nothing can be recorded any more.
pub(super) async fn broken(told: Option<&mut watch::Receiver<Option<String>>>) -> String {
    let Some(told) = told else { return std::future::pending().await };
    match told.wait_for(Option::is_some).await.map(|reason| reason.clone()) {
        Ok(reason) => reason.unwrap_or_default(),
        // The other end is there as long as this process.
        Err(_) => std::future::pending().await,
    }
}

/// Records that it ends.
pub(super) fn end(reason: &str) {
    record(|| Event::Ended { reason: Text::new(reason) });
}
