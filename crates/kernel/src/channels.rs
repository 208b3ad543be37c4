//! The sockets of a started kernel.

use std::time::Duration;

use futures_util::StreamExt as _;
use jupyter_protocol::{
    ConnectionInfo, ExecuteRequest, InterruptRequest, JupyterMessage, KernelInfoRequest, ShutdownRequest,
};
use jupyter_zmq_client::{
    ClientControlConnection, ClientIoPubConnection, ClientShellConnection, RawMessage, RuntimeError,
    create_client_control_connection, create_client_iopub_connection, create_client_shell_connection_with_identity,
    peer_identity_for_session,
};
use tokio::time::{Instant, timeout, timeout_at};
use zeromq::{Socket as _, SocketEvent, SocketRecv};

use crate::message::{self, Content, Message};

/// Time for one connection or one request to reach the kernel.
const TIME: Duration = Duration::from_secs(10);
/// When the kernel is asked again whether its output arrives.
const AGAIN: Duration = Duration::from_millis(250);

/// Why nothing goes to or comes from the kernel.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChannelError {
    #[error(transparent)]
    Library(#[from] RuntimeError),
    #[error(transparent)]
    Socket(#[from] zeromq::ZmqError),
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
    shell: ClientShellConnection,
    control: ClientControlConnection,
    output: ClientIoPubConnection,
    monitor: futures_channel::mpsc::Receiver<SocketEvent>,
    /// The kernel has closed its side, and all output was read.
    closed: bool,
}

impl Channels {
    /// Connects to a kernel that has bound its sockets, and waits until its output arrives.
    pub(crate) async fn connect(info: &ConnectionInfo, session: &str) -> Result<Self, ChannelError> {
        let connect = async {
            let identity = peer_identity_for_session(session)?;
            let shell = create_client_shell_connection_with_identity(info, session, identity).await?;
            let control = create_client_control_connection(info, session).await?;
            let mut output = create_client_iopub_connection(info, "", session).await?;
            let monitor = output.socket.monitor();
            Ok::<_, ChannelError>(Self { shell, control, output, monitor, closed: false })
        };
        let mut channels = timeout(TIME, connect).await.map_err(|_| ChannelError::Silent(TIME))??;
        channels.wait_until_heard().await?;
        Ok(channels)
    }

    /// A subscription takes effect some time after the connection, so requests are sent until the output of one arrives.
    async fn wait_until_heard(&mut self) -> Result<(), ChannelError> {
        let deadline = Instant::now() + TIME;
        while Instant::now() < deadline {
            let request = JupyterMessage::new(KernelInfoRequest {}, None);
            let id = request.header.msg_id.clone();
            self.shell.send(request).await?;
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
        let request = ExecuteRequest {
            code,
            silent,
            store_history: false,
            user_expressions: None,
            allow_stdin: false,
            stop_on_error: false,
        };
        let request = JupyterMessage::new(request, None);
        let id = request.header.msg_id.clone();
        timeout(TIME, self.shell.send(request)).await.map_err(|_| ChannelError::Silent(TIME))??;
        Ok(id)
    }

    /// Asks the kernel to interrupt what it does.
    pub(crate) async fn interrupt(&mut self) -> Result<(), ChannelError> {
        let request = JupyterMessage::new(InterruptRequest {}, None);
        timeout(TIME, self.control.send(request)).await.map_err(|_| ChannelError::Silent(TIME))??;
        Ok(())
    }

    /// Asks the kernel to end.
    pub(crate) async fn shut_down(&mut self) -> Result<(), ChannelError> {
        let request = JupyterMessage::new(ShutdownRequest { restart: false }, None);
        timeout(TIME, self.control.send(request)).await.map_err(|_| ChannelError::Silent(TIME))??;
        Ok(())
    }
}

/// One message, or `None` for one that says nothing: not signed, or not readable.
async fn receive<S: SocketRecv>(
    connection: &mut jupyter_zmq_client::Connection<S>,
) -> Result<Option<Message>, ChannelError> {
    let multipart = connection.socket.recv().await?;
    match RawMessage::from_multipart(multipart, &connection.mac) {
        Ok(raw) => Ok(message::read(&raw.jparts)),
        Err(error) => {
            tracing::debug!("a message of the kernel is ignored: {error}");
            Ok(None)
        }
    }
}
