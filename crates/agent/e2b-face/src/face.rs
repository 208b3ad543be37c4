//! The whole.

use std::{sync::Arc, time::Duration};

use axum::{Router, extract::Request, response::Response};
use gloveport_client::Pool;
use tokio::{sync::Mutex, time::sleep};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    FaceOptions, Host, contexts::Contexts, control, inside, lives::Lives, place::Places, shared::Shared,
    watchers::Watchers,
};

/// Pause between two looks at watches that nobody asks about.
const PRUNE: Duration = Duration::from_mins(1);

/// Sandboxes as the API of E2B.
#[derive(Clone, Debug)]
pub struct E2bFace {
    pub(crate) shared: Arc<Shared>,
}

impl E2bFace {
    /// The sandboxes of this host, reached over these connections.
    pub fn new(host: Arc<dyn Host>, options: FaceOptions, pool: Pool) -> Self {
        let shared = Shared {
            host,
            options,
            lives: Lives::default(),
            places: Places::new(pool),
            watchers: Watchers::default(),
            contexts: Contexts::default(),
            keys: Mutex::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The control plane. Each request may have the address of its client, an [`IpAddr`](std::net::IpAddr), as an extension.
    pub fn control(&self) -> Router {
        control::router(&self.shared)
    }

    /// Answers a request that names a sandbox in the header [`ID_HEADER`](crate::ID_HEADER).
    pub async fn inside(&self, request: Request) -> Response {
        inside::answer(&self.shared, request).await
    }

    /// Ends sandboxes when their time is over, until `stop` is cancelled. Then what goes on behind answers is ended.
    pub async fn care(&self, stop: CancellationToken) {
        let pruning = async {
            while stop.run_until_cancelled(sleep(PRUNE)).await.is_some() {
                self.shared.watchers.prune();
            }
        };
        tokio::join!(self.shared.lives.care(&self.shared.host, self.shared.options.longest, &stop), pruning);
        self.shared.stop.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}
