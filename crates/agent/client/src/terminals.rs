//! Terminals: programs that a person sits at, and that live on when the connection does not.

mod attached;
mod connection;
mod link;
mod typed;

use std::sync::Arc;

use gloveport_protocol::terminals::{TerminalRequest, TerminalSize, TerminalStatus};
use reqwest::Method;
use serde::Deserialize;

use crate::{
    ActionExecutionClient, ClientError,
    call::Call,
    exec::{random_id, segment},
    session::Session,
};
pub use attached::{AttachOptions, AttachedTerminal, TerminalEvent, TerminalInput};

const PATH: &str = "v1/terminals";

/// The terminals of a server.
#[derive(Debug, Clone)]
pub struct Terminals {
    session: Arc<Session>,
}

#[derive(Deserialize)]
struct List {
    terminals: Vec<TerminalStatus>,
}

impl ActionExecutionClient {
    /// The terminals of the server.
    pub fn terminals(&self) -> Terminals {
        Terminals { session: Arc::clone(&self.shared.session) }
    }
}

impl Terminals {
    /// Starts a terminal, or finds the one that was started by the same request before. A request without an id gets a
    /// random one; then nothing can be started twice, and a request whose answer was lost is sent once more.
    pub async fn start(&self, mut request: TerminalRequest) -> Result<TerminalStatus, ClientError> {
        if request.id.is_none() {
            request.id = Some(random_id(self.session.base().as_str())?);
        }
        let call = Call::post(PATH, &request, Some(self.session.limits.other))?;
        match self.session.once_json(&call).await {
            Err(ClientError::Incomplete { .. } | ClientError::Broken { .. }) => self.session.once_json(&call).await,
            result => result,
        }
    }

    /// The terminals that the server knows.
    pub async fn list(&self) -> Result<Vec<TerminalStatus>, ClientError> {
        let answer: List = self.session.once_json(&Call::get(PATH, self.session.limits.other)).await?;
        Ok(answer.terminals)
    }

    /// How a terminal stands.
    pub async fn status(&self, id: &str) -> Result<TerminalStatus, ClientError> {
        self.session.once_json(&Call::get(&path(id), self.session.limits.other)).await
    }

    /// Sets the size of a terminal.
    pub async fn resize(&self, id: &str, size: TerminalSize) -> Result<TerminalStatus, ClientError> {
        let path = format!("{}/resize", path(id));
        self.session.once_json(&Call::post(&path, &size, Some(self.session.limits.other))?).await
    }

    /// Ends a terminal with everything that it started, and answers with how it ended.
    pub async fn remove(&self, id: &str) -> Result<TerminalStatus, ClientError> {
        let path = path(id);
        self.session.once_json(&Call { method: Method::DELETE, ..Call::get(&path, self.session.limits.other) }).await
    }

    /// Attaches to a terminal. The connection is made again when it breaks; nothing that is typed or written is lost or
    /// doubled by that.
    pub async fn attach(&self, id: &str, options: AttachOptions) -> Result<AttachedTerminal, ClientError> {
        AttachedTerminal::new(Arc::clone(&self.session), id, options).await
    }
}

fn path(id: &str) -> String {
    format!("{PATH}/{}", segment(id))
}
