//! Who gives a session its sandbox.

use std::{fmt, sync::Arc};

use gloveport_protocol::BoxFuture;

use super::{Hosted, SandboxConnection};
use crate::{InitialEnvironment, RuntimeError, StatusReporter};

/// Gives a session its sandbox.
pub trait Connector: Send + Sync {
    /// Makes the sandbox, or finds it, and waits until its tools answer.
    fn connect<'a>(
        &'a self,
        request: ConnectRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn SandboxConnection>, RuntimeError>>;

    /// Gives up the sandbox. It is called once, and also after a `connect` that failed or was given up.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// [`close`](Self::close) for connectors whose sandbox may refuse to end. A session calls only this.
    fn end(&self) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(async {
            self.close().await;
            Ok(())
        })
    }

    /// The sandbox's provider, if it has one.
    fn hosted(&self) -> Option<&Hosted> {
        None
    }
}

/// What a connector is told.
pub struct ConnectRequest<'a> {
    /// The session.
    pub sid: &'a str,
    /// Only what already runs is used.
    pub attach_to_existing: bool,
    /// Is told how far it is (runtime-interface 4, table of `connect`).
    pub status: &'a Arc<StatusReporter>,
    /// What the sandbox needs when it comes back from a pause. The session sets it up in a new one.
    pub environment: &'a Arc<InitialEnvironment>,
}

impl fmt::Debug for ConnectRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectRequest").field("sid", &self.sid).field("attach", &self.attach_to_existing).finish()
    }
}
