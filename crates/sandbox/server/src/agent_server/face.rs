//! What a server keeps for clients of the SDK, and how it knows them.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use gloveport_bash_events::{Bash, BashOptions};
use gloveport_executor::Executor;
use tokio_util::sync::CancellationToken;

use super::hosted::Hosted;
use crate::options::{AgentServerOptions, EditorPlace};

/// The version of the SDK whose API this is.
pub(crate) const OF_SDK: &str = "1.58.2";
/// Clients that may follow the events at the same time.
const FOLLOWERS: usize = 50;

/// Whether a path belongs to this interface alone.
pub(crate) fn owns(path: &str) -> bool {
    path == "/health" || path.starts_with("/api/") || path.starts_with("/sockets/")
}

/// The commands, and who follows them.
#[derive(Debug)]
pub(crate) struct Face {
    pub(super) bash: Arc<Bash>,
    followers: Arc<AtomicUsize>,
    /// Pages that may ask from a browser, beside those of this machine.
    pub(crate) origins: Vec<String>,
    /// The server of an agent, if there is one.
    pub(crate) hosted: Option<Arc<Hosted>>,
    /// Where people reach VS Code, if it is switched on.
    pub(super) editor: Option<EditorPlace>,
}

impl Face {
    pub(crate) fn new(executor: &Arc<Executor>, options: &AgentServerOptions, stop: &CancellationToken) -> Self {
        let mut surroundings = executor.surroundings();
        let agent = surroundings.variable("AI_AGENT").unwrap_or_default();
        if agent.to_string_lossy().trim().is_empty() {
            surroundings.set("AI_AGENT", "openhands");
        }
        let bash = Bash::new(BashOptions {
            surroundings,
            shell: options.shell.clone(),
            events: options.events.clone(),
            retention: options.retention,
        });
        let hosted = options.agent.as_ref().and_then(|agent| {
            let made = Hosted::new(executor, agent, stop.clone());
            made.inspect_err(|error| tracing::error!(%error, "there is no agent: the system has no random numbers"))
                .ok()
        });
        Self {
            bash,
            followers: Arc::default(),
            origins: options.origins.clone(),
            hosted: hosted.map(Arc::new),
            editor: options.editor.clone(),
        }
    }

    /// A place among those who follow the events; none if there are too many.
    pub(super) fn follower(&self) -> Option<FollowerPlace> {
        let place = FollowerPlace(Arc::clone(&self.followers));
        (place.0.fetch_add(1, Relaxed) < FOLLOWERS).then_some(place)
    }

    /// Ends all commands, and the server of the agent.
    pub(crate) async fn close(&self) {
        let agent = async {
            if let Some(hosted) = &self.hosted {
                hosted.close().await;
            }
        };
        tokio::join!(self.bash.close(), agent);
    }
}

/// A place among those who follow the events, given back when this is dropped.
pub(super) struct FollowerPlace(Arc<AtomicUsize>);

impl Drop for FollowerPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
