//! Clients of their own of the same browser: their sessions are nobody else's.

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{CdpError, Connection, SessionId, Waiter};

/// Messages for the client of a tunnel that wait until it reads.
const MOST_WAITING: usize = 4096;
/// Sessions of one client.
const MOST_SESSIONS: usize = 1024;

/// All of a connection, by the session with the browser that each began with.
#[derive(Default)]
pub(super) struct Tunnels(HashMap<SessionId, End>);

/// Where the messages of one go.
struct End {
    sender: mpsc::Sender<Value>,
    sessions: HashSet<SessionId>,
}

impl Tunnels {
    /// The tunnel that a session is part of.
    pub(super) fn of(&self, session: &SessionId) -> Option<SessionId> {
        self.0
            .iter()
            .find(|(root, end)| *root == session || end.sessions.contains(session))
            .map(|(root, _)| root.clone())
    }

    /// A message for the client; one that does not read loses its tunnel.
    pub(super) fn deliver(&mut self, root: &SessionId, message: Value) {
        if let Some(end) = self.0.get(root)
            && end.sender.try_send(message).is_err()
        {
            self.0.remove(root);
        }
    }

    /// An event of one of its sessions.
    pub(super) fn event(&mut self, root: &SessionId, session: &SessionId, method: &str, parameters: &Value) {
        let Some(end) = self.0.get_mut(root) else { return };
        let named = || parameters.get("sessionId").and_then(Value::as_str).map(SessionId::from);
        match method {
            "Target.attachedToTarget" if end.sessions.len() < MOST_SESSIONS => end.sessions.extend(named()),
            "Target.detachedFromTarget" => {
                if let Some(named) = named() {
                    end.sessions.remove(&named);
                }
            }
            _ => {}
        }
        let mut message = json!({ "method": method, "params": parameters });
        if session != root
            && let Some(members) = message.as_object_mut()
        {
            members.insert("sessionId".to_owned(), Value::String(session.to_string()));
        }
        self.deliver(root, message);
    }
}

/// A client of its own of the browser, which knows nothing of the other sessions, nor they of its.
pub struct Tunnel {
    connection: Connection,
    root: SessionId,
    messages: mpsc::Receiver<Value>,
}

impl fmt::Debug for Tunnel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tunnel").field("root", &self.root).finish_non_exhaustive()
    }
}

impl Tunnel {
    /// A new one.
    pub(crate) async fn open(connection: &Connection) -> Result<Self, CdpError> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Attached {
            session_id: SessionId,
        }
        let Attached { session_id: root } = connection.browser().ask("Target.attachToBrowserTarget", json!({})).await?;
        let (sender, messages) = mpsc::channel(MOST_WAITING);
        connection.tunnels().0.insert(root.clone(), End { sender, sessions: HashSet::new() });
        Ok(Self { connection: connection.clone(), root, messages })
    }

    /// The next message for its client; none when the browser has ended or the client was too slow.
    pub async fn next(&mut self) -> Option<Value> {
        self.messages.recv().await
    }

    /// Sends a message of its client, which is a call with an id of the client's.
    pub fn send(&self, message: Value) -> Result<(), CdpError> {
        let wrong = |reason: &str| CdpError::Unexpected { method: "the message".to_owned(), reason: reason.to_owned() };
        let Value::Object(mut message) = message else { return Err(wrong("it is no object")) };
        let id = message.remove("id").ok_or_else(|| wrong("it has no id"))?;
        let Some(Value::String(method)) = message.remove("method") else { return Err(wrong("it has no method")) };
        let session = match message.remove("sessionId") {
            None => self.root.clone(),
            // A session of somebody else is none for this client.
            Some(Value::String(session)) if self.owns(&session) => SessionId::from(session),
            Some(_) => return Err(wrong("no such session")),
        };
        let parameters = message.remove("params").unwrap_or_else(|| json!({}));
        let waiter = Waiter::Tunnel { session: self.root.clone(), id };
        self.connection.send(Some(session), &method, parameters, waiter).map(|_| ())
    }

    fn owns(&self, session: &str) -> bool {
        self.connection.tunnels().of(&SessionId::from(session)).is_some_and(|root| root == self.root)
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.connection.tunnels().0.remove(&self.root);
        self.connection.browser().tell("Target.detachFromTarget", json!({ "sessionId": self.root.to_string() }));
    }
}
