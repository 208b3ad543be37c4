//! Adds to the audit log of a sandbox in a container what its server tells ([`gloveport_contract::recorder`]). Programs of the
//! sandbox can connect, too, and without the key they add nothing.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use gloveport_audit::{Event, Hash, Log, LogError};
use gloveport_contract::recorder::{Answer, KEY_WITHIN, LONGEST, LONGEST_KEY};
use rustix::net::sockopt;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::{Mutex, Semaphore},
    task::JoinSet,
    time::{sleep, timeout},
};

/// Connections whose key is not known yet. Further ones are ended at once.
const STRANGERS: usize = 8;
/// Time for an answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// A connection whose other end is gone without a word is known as dead after the first, and three more of the second.
const ALIVE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(2));
const QUESTIONS: u32 = 3;
/// Time before the next one is waited for when the system has no room.
const NO_ROOM: Duration = Duration::from_millis(100);

/// The log of a sandbox, for all in the gate that add to it.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) session: String,
    pub(super) log: Log,
}

impl Kept {
    pub(super) fn add(&self, event: &Event) -> Result<(), LogError> {
        self.log.add(&self.session, event)
    }
}

/// Who may tell what happens.
#[derive(Debug)]
pub(super) struct Recorder {
    kept: Arc<Kept>,
    /// The hash of the key.
    key: Hash,
    /// Nobody else may connect.
    sandbox: Option<IpAddr>,
    /// Held by the server that records. A program that has learned the key does not get in its way.
    server: Mutex<()>,
    strangers: Arc<Semaphore>,
}

impl Recorder {
    pub(super) fn new(kept: Arc<Kept>, key: Hash, sandbox: Option<IpAddr>) -> Self {
        Self { kept, key, sandbox, server: Mutex::default(), strangers: Arc::new(Semaphore::new(STRANGERS)) }
    }

    /// Where the server connects.
    pub(super) async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
        TcpListener::bind(address).await.with_context(|| format!("cannot record: nobody can listen on {address}"))
    }

    /// Serves for as long as the gate is open.
    pub(super) async fn serve(self, listener: TcpListener) {
        let this = Arc::new(self);
        let mut open = JoinSet::new();
        loop {
            while open.try_join_next().is_some() {}
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::debug!(%error, "no connection to the recorder can be accepted");
                    sleep(NO_ROOM).await;
                    continue;
                }
            };
            if this.sandbox.is_some_and(|sandbox| sandbox != peer.ip()) {
                continue;
            }
            let Ok(stranger) = Arc::clone(&this.strangers).try_acquire_owned() else { continue };
            let this = Arc::clone(&this);
            open.spawn(async move {
                let mut connection = BufReader::new(stream);
                let known = timeout(KEY_WITHIN, this.is_known(&mut connection)).await;
                if !known.is_ok_and(Result::unwrap_or_default) {
                    return;
                }
                let served = if let Ok(_server) = this.server.try_lock() {
                    drop(stranger);
                    this.record(&mut connection).await
                } else {
                    let reason = "the server of this sandbox is connected already".to_owned();
                    say(&mut connection, &Answer::Failed(reason)).await
                };
                if let Err(error) = served {
                    tracing::debug!(%error, "a connection to the recorder ends");
                }
            });
        }
    }

    /// Whether the first line is the key.
    async fn is_known(&self, connection: &mut BufReader<TcpStream>) -> io::Result<bool> {
        let mut line = Vec::new();
        connection.take(LONGEST_KEY).read_until(b'\n', &mut line).await?;
        Ok(line.strip_suffix(b"\n").is_some_and(|key| Hash::of(key) == self.key))
    }

    /// Adds what a server tells until it ends, or cannot be understood.
    async fn record(&self, connection: &mut BufReader<TcpStream>) -> io::Result<()> {
        let socket = connection.get_ref();
        socket.set_nodelay(true)?;
        sockopt::set_socket_keepalive(socket, true)?;
        sockopt::set_tcp_keepidle(socket, ALIVE.0)?;
        sockopt::set_tcp_keepintvl(socket, ALIVE.1)?;
        sockopt::set_tcp_keepcnt(socket, QUESTIONS)?;
        say(connection, &Answer::Kept).await?;
        let mut line = Vec::new();
        loop {
            line.clear();
            (&mut *connection).take(LONGEST).read_until(b'\n', &mut line).await?;
            if line.is_empty() {
                return Ok(());
            }
            let added = self.add(&line);
            let is_last = added.is_err();
            say(connection, &added.map_or_else(Answer::Failed, |()| Answer::Kept)).await?;
            if is_last {
                return Ok(());
            }
        }
    }

    fn add(&self, line: &[u8]) -> Result<(), String> {
        let line = line.strip_suffix(b"\n").ok_or_else(|| format!("a line has an end, and at most {LONGEST} bytes"))?;
        let event: Event = serde_json::from_slice(line).map_err(|error| format!("it is no record: {error}"))?;
        if !event.is_of_server() {
            return Err("it is not for a server to say".to_owned());
        }
        self.kept.add(&event.without(&[])).map_err(|error| {
            tracing::error!(%error, "the audit log cannot be written");
            error.to_string()
        })
    }
}

async fn say(connection: &mut BufReader<TcpStream>, answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    timeout(ANSWERED_WITHIN, connection.get_mut().write_all(&line)).await?
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use gloveport_audit::{Reader, Text};
    use tempfile::TempDir;

    use super::*;

    const KEY: &str = "the key";

    /// A recorder for who comes from this address.
    async fn recorder(sandbox: Ipv4Addr) -> (TempDir, SocketAddr) {
        let directory = tempfile::tempdir().unwrap();
        let kept = Kept { session: "s".to_owned(), log: Log::open(&directory.path().join("log")).unwrap() };
        let recorder = Recorder::new(Arc::new(kept), Hash::of(KEY.as_bytes()), Some(sandbox.into()));
        let listener = Recorder::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(recorder.serve(listener));
        (directory, address)
    }

    async fn connected(address: SocketAddr) -> BufReader<TcpStream> {
        BufReader::new(TcpStream::connect(address).await.unwrap())
    }

    /// What is answered to a line, if anything.
    async fn told(connection: &mut BufReader<TcpStream>, line: &str) -> Option<Answer> {
        let mut answer = String::new();
        // Who is not served may be gone already.
        let _gone = connection.get_mut().write_all(format!("{line}\n").as_bytes()).await;
        let read = timeout(KEY_WITHIN, connection.read_line(&mut answer)).await.expect("an answer, or the end");
        read.ok().filter(|count| *count > 0).map(|_| serde_json::from_str(&answer).unwrap())
    }

    fn recorded(directory: &TempDir) -> Vec<Event> {
        Reader::open(&directory.path().join("log")).unwrap().map(|record| record.unwrap().event).collect()
    }

    #[tokio::test]
    async fn a_recorder_takes_records_of_a_server_with_the_key_alone_one_at_a_time_and_within_bounds() {
        let (directory, address) = recorder(Ipv4Addr::LOCALHOST).await;
        let event = |number| Event::Command { command: number, text: Text::new("ls") };
        let line = |number| serde_json::to_string(&event(number)).unwrap();
        for rubbish in ["", "the kez", &line(1), &"x".repeat(100_000)] {
            assert_eq!(told(&mut connected(address).await, rubbish).await, None);
        }
        let mut server = connected(address).await;
        assert_eq!(told(&mut server, KEY).await, Some(Answer::Kept));
        assert_eq!(told(&mut server, &line(1)).await, Some(Answer::Kept));
        // Nobody else, though they know the key, and however many wait.
        let Some(Answer::Failed(reason)) = told(&mut connected(address).await, KEY).await else { panic!() };
        assert!(reason.contains("connected already"), "{reason}");
        let mut strangers = Vec::new();
        for _ in 0..5 * STRANGERS {
            strangers.push(connected(address).await);
        }
        assert_eq!(told(&mut server, &line(2)).await, Some(Answer::Kept));
        drop(strangers);
        // What only a gate knows, and what is none, ends the connection.
        let secret = Event::Secret { name: "N".into(), target: "t".into(), method: "GET".into() };
        for (wrong, part) in [
            (serde_json::to_string(&secret).unwrap(), "not for a server"),
            ("{\"event\":\"newer\"}".to_owned(), "not for a server"),
            ("words".to_owned(), "no record"),
            ("x".repeat(usize::try_from(LONGEST).unwrap()), "at most"),
        ] {
            let Some(Answer::Failed(reason)) = told(&mut server, &wrong).await else { panic!("{part}") };
            assert!(reason.contains(part), "{reason}");
            // The end of the one before is seen before the next one is served.
            loop {
                server = connected(address).await;
                match told(&mut server, KEY).await {
                    Some(Answer::Kept) => break,
                    _ => tokio::task::yield_now().await,
                }
            }
        }
        assert_eq!(told(&mut server, &line(3)).await, Some(Answer::Kept));
        assert_eq!(recorded(&directory), [event(1), event(2), event(3)]);
    }

    #[tokio::test]
    async fn a_recorder_serves_nobody_but_its_sandbox() {
        let (directory, address) = recorder(Ipv4Addr::new(10, 0, 0, 1)).await;
        assert_eq!(told(&mut connected(address).await, KEY).await, None);
        assert_eq!(recorded(&directory), []);
    }
}
