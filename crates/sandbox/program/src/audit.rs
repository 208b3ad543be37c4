//! What happens in a sandbox is recorded out of its reach. A sandbox of which nothing can be recorded any more ends.

use std::{collections::BTreeMap, io, path::Path};

use anyhow::Context as _;
use gloveport_audit::{Event, Sink, Text, record, record_into};
use gloveport_contract::recorder::Audited;
use tokio::sync::watch;

/// Fewest bytes of a secret that is left out. What is shorter is in other texts by chance.
const SHORTEST: usize = 4;

/// The way to whoever adds to the log.
pub(crate) trait Channel: Send + Sync + 'static {
    /// Returns when it is written.
    fn tell(&self, event: Event) -> io::Result<()>;
}

/// What records, and says that it cannot.
struct Recorder<C> {
    channel: C,
    /// Names and values of what is left out.
    secrets: Vec<(String, String)>,
    broken: watch::Sender<Option<String>>,
}

impl<C: Channel> Sink for Recorder<C> {
    fn keep(&self, event: Event) {
        if let Err(error) = self.channel.tell(event.without(&self.secrets)) {
            tracing::error!(%error, "the audit log cannot be written");
            self.broken.send_replace(Some(format!("its audit log cannot be written: {error}")));
        }
    }
}

/// Records that a sandbox starts, and from now on all that happens in it. It gives where it is told that this fails. Of the
/// variables of the tools those are left out that are secret.
pub(crate) fn begin(
    channel: impl Channel,
    audited: &Audited,
    workspace: &Path,
    variables: &BTreeMap<String, String>,
) -> anyhow::Result<watch::Receiver<Option<String>>> {
    let Audited { isolation, network, edge_secrets, secrets } = audited.clone();
    let value = |name: String| variables.get(&name).cloned().map(|value| (name, value));
    let mut secrets: Vec<_> =
        secrets.into_iter().filter_map(value).filter(|(_, value)| value.len() >= SHORTEST).collect();
    // One may be a part of another.
    secrets.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
    let started = Event::Started {
        isolation,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        workspace: Text::of(workspace),
        network,
        secrets: edge_secrets,
    };
    channel.tell(started).context("its audit log cannot be written")?;
    let (broken, told) = watch::channel(None);
    record_into(Recorder { channel, secrets, broken });
    Ok(told)
}

/// Returns why nothing can be recorded any more.
pub(crate) async fn broken(told: Option<&mut watch::Receiver<Option<String>>>) -> String {
    let Some(told) = told else { return std::future::pending().await };
    match told.wait_for(Option::is_some).await.map(|reason| reason.clone()) {
        Ok(reason) => reason.unwrap_or_default(),
        // The other end is there as long as this process.
        Err(_) => std::future::pending().await,
    }
}

/// Records that it ends.
pub(crate) fn end(reason: &str) {
    record(|| Event::Ended { reason: Text::new(reason) });
}
