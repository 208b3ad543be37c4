//! How a backend and the server of a sandbox talk: lines of JSON over a socket pair, whose other end is the server's
//! standard input.
//!
//! ```text
//! backend                        server
//! Listen ───────────────────────►
//!        ◄─────────────────────── Listening          a warm server waits here
//! Reserve ──────────────────────►                    (only if more ports are needed)
//!        ◄─────────────────────── Reserved
//! Start ────────────────────────►
//!        ◄─────────────────────── Ready or Failed
//! Commit ───────────────────────►
//! ```
//!
//! The end of the socket is the end of the backend, and with it of the server and all that it started, unless the sandbox
//! is to be kept and was committed. Nothing of it is in the arguments or the environment of a process.

use std::{
    collections::BTreeMap,
    fmt, io,
    net::IpAddr,
    os::unix::net::UnixStream as StdStream,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
};

use crate::recorder::Audited;

/// Longest message in bytes.
const LONGEST: u64 = 64 * 1024 * 1024;

/// What a backend tells.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Listen on a port of this address that the system chooses, and reserve this many more for programs of the user.
    Listen {
        /// The address.
        host: IpAddr,
        /// How many ports are reserved.
        reserve: usize,
    },
    /// Reserve more ports.
    Reserve {
        /// How many.
        count: usize,
    },
    /// Become the server of a sandbox.
    Start(Box<Start>),
    /// The sandbox is made.
    Commit,
    /// End, as if told to by a signal, which cannot be sent to a server on a kernel of its own.
    Stop,
}

/// What a server answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Reply {
    /// It listens, and accepts connections as soon as it is ready.
    Listening {
        /// The port.
        port: u16,
        /// The ports that are reserved.
        reserved: Vec<u16>,
    },
    /// More ports are reserved.
    Reserved {
        /// They.
        ports: Vec<u16>,
    },
    /// Its tools are ready.
    Ready,
    /// It cannot become what it was told to.
    Failed {
        /// Why.
        reason: String,
    },
    /// This machine cannot keep it apart as it was told to. It is told before anything is asked.
    Refused {
        /// Why, and what helps.
        reason: String,
    },
}

impl Reply {
    /// Tells it where nothing else is told any more, over a socket that waits.
    pub fn tell(&self, mut socket: impl io::Write) -> io::Result<()> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        socket.write_all(&line)
    }
}

/// What a server is for.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Directory that tools start in. It is made if it is missing.
    pub workspace: PathBuf,
    /// The whole environment of the tools, secrets included.
    pub environment: BTreeMap<String, String>,
    /// The key that requests must carry.
    pub session_key: String,
    /// Bound for the memory of all processes together, in bytes.
    pub memory_limit: Option<u64>,
    /// Plugins that are wanted.
    pub plugins: Vec<String>,
    /// When the sandbox is deleted, whatever it does.
    pub expires: Option<SystemTime>,
    /// The server ends when nobody has asked it anything for this long.
    pub idle_stop: Option<Duration>,
    /// The sandbox outlives the backend.
    pub keep_alive: bool,
    /// What its audit log is told first; `None` without one.
    pub audit: Option<Audited>,
}

impl fmt::Debug for Start {
    /// Leaves out what is secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Start").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

/// One end of the conversation. Each side has one message on its way at most.
#[derive(Debug)]
pub struct Lifeline {
    stream: BufReader<UnixStream>,
}

impl Lifeline {
    /// Takes a connected socket. Must be called within a tokio runtime.
    pub fn new(stream: StdStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream: BufReader::new(UnixStream::from_std(stream)?) })
    }

    /// Sends a message.
    pub async fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.stream.write_all(&line).await
    }

    /// The next message; `None` at the end of the other side.
    pub async fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let mut line = Vec::new();
        match (&mut self.stream).take(LONGEST).read_until(b'\n', &mut line).await {
            Ok(0) => Ok(None),
            Ok(_) if line.ends_with(b"\n") => Ok(Some(serde_json::from_slice(&line)?)),
            Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives the socket back, which no runtime is needed to hold.
    pub fn into_socket(self) -> io::Result<StdStream> {
        self.stream.into_inner().into_std()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_arrive_whole_and_the_end_is_told() {
        let (one, other) = StdStream::pair().unwrap();
        let (mut one, mut other) = (Lifeline::new(one).unwrap(), Lifeline::new(other).unwrap());
        one.send(&Request::Reserve { count: 3 }).await.unwrap();
        drop(one);
        assert!(matches!(other.receive().await.unwrap(), Some(Request::Reserve { count: 3 })));
        assert!(other.receive::<Request>().await.unwrap().is_none());
    }

    #[test]
    fn a_start_shows_nothing_secret() {
        let start = Start {
            workspace: "/w".into(),
            environment: [("TOKEN".to_owned(), "hunter2".to_owned())].into(),
            session_key: "hunter3".to_owned(),
            memory_limit: None,
            plugins: Vec::new(),
            expires: None,
            idle_stop: None,
            keep_alive: false,
            audit: None,
        };
        assert!(!format!("{:?}", Request::Start(Box::new(start))).contains("hunter"));
    }
}
