//! The sockets of a started kernel.

use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};
use zeromq::{
    DealerSocket, Socket as _, SocketEvent, SocketOptions, SocketRecv, SubSocket, ZmqError, util::PeerIdentity,
};

use crate::{
    message::{self, Content, Message},
    wire::{Connection, ConnectionFile},
};

/// Time for one connection or one request to reach the kernel.
const TIME: Duration = Duration::from_secs(10);
/// When the kernel is asked again whether its output arrives.
const AGAIN: Duration = Duration::from_millis(250);

/// Why nothing goes to or comes from the kernel.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChannelError {
    #[error(transparent)]
    Socket(#[from] ZmqError),
    #[error("the kernel has closed them")]
    Closed,
    #[error("it did not answer within {} s", .0.as_secs_f64())]
    Silent(Duration),
}

/// A message and where it came from.
#[derive(Debug)]
pub(crate) enum Received {
    /// What cells show.
    Output(Message),
    /// Answers to requests.
    Reply(Message),
    /// Answers of the control channel.
    Control,
}

/// The connections of one kernel.
pub(crate) struct Channels {
    shell: Connection<DealerSocket>,
    control: Connection<DealerSocket>,
    output: Connection<SubSocket>,
    monitor: futures_channel::mpsc::Receiver<SocketEvent>,
    /// The kernel has closed its side, and all output was read.
    closed: bool,
}

impl Channels {
    /// Connects to a kernel that has bound its sockets, and waits until its output arrives.
    pub(crate) async fn connect(file: &ConnectionFile, session: &str) -> Result<Self, ChannelError> {
        let connect = async {
            let named = || {
                let mut options = SocketOptions::default();
                options.peer_identity(PeerIdentity::try_from(session.as_bytes())?);
                Ok::<_, ZmqError>(DealerSocket::with_options(options))
            };
            let (mut shell, mut control, mut output) = (named()?, DealerSocket::new(), SubSocket::new());
            shell.connect(&file.shell()).await?;
            control.connect(&file.control()).await?;
            output.subscribe("").await?;
            output.connect(&file.output()).await?;
            let monitor = output.monitor();
            let key = file.signer();
            Ok::<_, ChannelError>(Self {
                shell: Connection::new(shell, key.clone(), session),
                control: Connection::new(control, key.clone(), session),
                output: Connection::new(output, key, session),
                monitor,
                closed: false,
            })
        };
        let mut channels = timeout(TIME, connect).await.map_err(|_| ChannelError::Silent(TIME))??;
        channels.wait_until_heard().await?;
        Ok(channels)
    }

    /// A subscription takes effect some time after the connection, so requests are sent until the output of one arrives.
    async fn wait_until_heard(&mut self) -> Result<(), ChannelError> {
        let deadline = Instant::now() + TIME;
        while Instant::now() < deadline {
            let id = self.shell.send("shell", "kernel_info_request", json!({})).await?;
            let again = Instant::now() + AGAIN;
            let (mut replied, mut idle) = (false, false);
            while let Ok(received) = timeout_at(again, self.receive()).await {
                match received? {
                    Received::Reply(message) if message.parent == id => replied = true,
                    Received::Output(Message { parent, content: Content::Idle }) if parent == id => idle = true,
                    _ => {}
                }
                if replied && idle {
                    return Ok(());
                }
            }
        }
        Err(ChannelError::Silent(TIME))
    }

    /// The next message that can be read.
    pub(crate) async fn receive(&mut self) -> Result<Received, ChannelError> {
        loop {
            let received = tokio::select! {
                raw = receive(&mut self.output) => raw?.map(Received::Output),
                raw = receive(&mut self.shell) => raw?.map(Received::Reply),
                raw = receive(&mut self.control) => raw?.map(|_| Received::Control),
                event = self.monitor.next() => match event {
                    // Seen when all that had come was read. A kernel that became another program lives, but not for us.
                    Some(SocketEvent::Disconnected(_)) | None => {
                        self.closed = true;
                        return Err(ChannelError::Closed);
                    }
                    Some(_) => None,
                },
            };
            if let Some(received) = received {
                return Ok(received);
            }
        }
    }

    /// The next output of a kernel that has ended; `None` when all of it has come.
    pub(crate) async fn rest(&mut self) -> Option<Message> {
        while !self.closed {
            tokio::select! {
                biased;
                output = receive(&mut self.output) => match output {
                    Ok(Some(message)) => return Some(message),
                    Ok(None) => {}
                    Err(_) => return None,
                },
                event = self.monitor.next() => match event {
                    // The end of a stream is noticed when all of it is read.
                    Some(SocketEvent::Disconnected(_)) | None => self.closed = true,
                    Some(_) => {}
                },
            }
        }
        None
    }

    /// Asks for a cell to be run; answers the id of the request.
    pub(crate) async fn execute(&mut self, code: String, silent: bool) -> Result<String, ChannelError> {
        let request = json!({
            "code": code,
            "silent": silent,
            "store_history": false,
            "user_expressions": {},
            "allow_stdin": false,
            "stop_on_error": false,
        });
        let sent = self.shell.send("shell", "execute_request", request);
        Ok(timeout(TIME, sent).await.map_err(|_| ChannelError::Silent(TIME))??)
    }

    /// Asks the kernel to interrupt what it does.
    pub(crate) async fn interrupt(&mut self) -> Result<(), ChannelError> {
        self.order("interrupt_request", json!({})).await
    }

    /// Asks the kernel to end.
    pub(crate) async fn shut_down(&mut self) -> Result<(), ChannelError> {
        self.order("shutdown_request", json!({"restart": false})).await
    }

    async fn order(&mut self, kind: &str, content: Value) -> Result<(), ChannelError> {
        let sent = self.control.send("control", kind, content);
        timeout(TIME, sent).await.map_err(|_| ChannelError::Silent(TIME))??;
        Ok(())
    }
}

/// One message, or `None` for one that says nothing: not signed, or not readable.
async fn receive<S: SocketRecv>(connection: &mut Connection<S>) -> Result<Option<Message>, ChannelError> {
    let parts = connection.receive().await?;
    if parts.is_none() {
        tracing::debug!("a message of the kernel is ignored: it is not signed as it must be");
    }
    Ok(parts.and_then(|parts| message::read(&parts)))
}
