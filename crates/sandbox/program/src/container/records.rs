//! Tells the recorder of a container what happens in it ([`gloveport_contract::recorder`]).

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use gloveport_audit::Event;
use gloveport_contract::{
    container::UNRECORDED,
    recorder::{Answer, LONGEST, LONGEST_ANSWER, Recorder},
};

use crate::audit::Channel;

/// Time for the recorder of a container that has just been started.
const START: Duration = Duration::from_mins(1);
/// Time for a recorder that is started again.
const AGAIN: Duration = Duration::from_secs(10);
/// Time for a connection, and for an answer.
const ANSWER: Duration = Duration::from_secs(10);
/// Pause before the next connection.
const PAUSE: Duration = Duration::from_millis(100);

/// The way to the recorder. What could not be recorded does not happen: the server ends at once.
#[derive(Debug)]
pub(super) struct Records {
    recorder: Recorder,
    end: End,
    connection: Mutex<Option<BufReader<TcpStream>>>,
}

/// How a server ends of which nothing can be recorded any more.
#[derive(Clone, Debug)]
pub(super) struct End(Arc<AtomicU8>);

impl End {
    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicU8::new(u8::try_from(UNRECORDED).unwrap_or(1))))
    }

    /// The server ends for another reason, with this code: its recorder may be ended at the same time.
    pub(super) fn is_near(&self, code: i64) {
        self.0.store(u8::try_from(code).unwrap_or(1), Ordering::Relaxed);
    }

    fn code(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why a line was not recorded.
enum Failure {
    /// The recorder says so.
    Refused(String),
    /// It cannot be talked to, which another connection may change.
    Silent(io::Error),
}

impl Records {
    /// Connects; waits for a recorder that is just being started.
    pub(super) fn connect(recorder: Recorder, end: End) -> anyhow::Result<Self> {
        let until = Instant::now() + START;
        let connection = loop {
            match connected(&recorder) {
                Ok(connection) => break connection,
                Err(error) if Instant::now() >= until => {
                    return Err(error).with_context(|| {
                        format!("nobody at {} has recorded anything within {} s", recorder.address, START.as_secs())
                    });
                }
                Err(_) => sleep(PAUSE),
            }
        };
        Ok(Self { recorder, end, connection: Mutex::new(Some(connection)) })
    }

    fn told(&self, line: &[u8]) -> io::Result<()> {
        // One after the other, so that each answer is that to its line.
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let again = if i64::from(self.end.code()) == UNRECORDED { AGAIN } else { Duration::ZERO };
        let until = Instant::now() + again;
        let mut is_first = true;
        loop {
            let open = match connection.take() {
                Some(open) => Ok(open),
                None => connected(&self.recorder).map_err(Failure::Silent),
            };
            let told = open.and_then(|mut open| asked(&mut open, line).map(|()| open));
            match told {
                Ok(open) => {
                    *connection = Some(open);
                    return Ok(());
                }
                Err(Failure::Refused(reason)) => return Err(io::Error::other(reason)),
                Err(Failure::Silent(error)) if !is_first && Instant::now() >= until => return Err(error),
                // One who was frozen meanwhile has one more try, however late it is.
                Err(Failure::Silent(_)) => {}
            }
            is_first = false;
            sleep(PAUSE);
        }
    }
}

impl Channel for Records {
    fn tell(&self, event: Event) -> io::Result<()> {
        let mut line = serde_json::to_vec(&event)?;
        line.push(b'\n');
        let told = if u64::try_from(line.len()).unwrap_or(u64::MAX) > LONGEST {
            Err(io::Error::other(format!("it has more than {LONGEST} bytes")))
        } else {
            self.told(&line)
        };
        if let Err(error) = told {
            let at = self.recorder.address;
            tracing::error!(%error, recorder = %at, "what was to happen cannot be recorded, so the sandbox ends");
            // Not in order, which takes a while: nothing happens after this.
            process::exit(i32::from(self.end.code()));
        }
        Ok(())
    }
}

/// A connection that the recorder has accepted.
fn connected(recorder: &Recorder) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect_timeout(&recorder.address, ANSWER).and_then(|stream| {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER))?;
        stream.set_write_timeout(Some(ANSWER))?;
        Ok(stream)
    });
    let mut connection = BufReader::new(stream?);
    match asked(&mut connection, format!("{}\n", recorder.key).as_bytes()) {
        Ok(()) => Ok(connection),
        // The connection of a server before this one may end yet.
        Err(Failure::Refused(reason)) => Err(io::Error::other(reason)),
        Err(Failure::Silent(error)) => Err(error),
    }
}

/// Says a line, and waits for the answer.
fn asked(connection: &mut BufReader<TcpStream>, line: &[u8]) -> Result<(), Failure> {
    connection.get_mut().write_all(line).map_err(Failure::Silent)?;
    let mut answer = Vec::new();
    connection.take(LONGEST_ANSWER).read_until(b'\n', &mut answer).map_err(Failure::Silent)?;
    if answer.is_empty() {
        return Err(Failure::Silent(io::Error::new(io::ErrorKind::UnexpectedEof, "it has ended the connection")));
    }
    match serde_json::from_slice(&answer).map_err(|error| Failure::Silent(error.into()))? {
        Answer::Kept => Ok(()),
        Answer::Failed(reason) => Err(Failure::Refused(reason)),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::{SocketAddr, TcpListener},
        thread,
    };

    use gloveport_contract::recorder::Audited;

    use super::*;

    /// Serves connections in turn: what each is told, and the answers, after which it ends.
    fn recorder(connections: Vec<Vec<(&'static str, &'static str)>>) -> (SocketAddr, thread::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let served = thread::spawn(move || {
            for expected in connections {
                let mut connection = BufReader::new(listener.accept().unwrap().0);
                for (line, answer) in expected {
                    let mut said = String::new();
                    connection.read_line(&mut said).unwrap();
                    assert_eq!(said, format!("{line}\n"));
                    connection.get_mut().write_all(answer.as_bytes()).unwrap();
                }
            }
        });
        (address, served)
    }

    fn connect(address: SocketAddr) -> Records {
        let lists = || Vec::<String>::new();
        let first = Audited { isolation: "c".to_owned(), network: lists(), edge_secrets: lists(), secrets: lists() };
        Records::connect(Recorder { address, key: "key".to_owned(), first }, End::new()).unwrap()
    }

    #[test]
    fn a_recorder_that_was_started_again_is_told_what_it_did_not_answer() {
        let (kept, one, two) = ("\"kept\"\n", "{\"a\":1}", "{\"a\":2}");
        let (address, served) =
            recorder(vec![vec![("key", kept), (one, kept)], vec![], vec![("key", kept), (two, kept)]]);
        let records = connect(address);
        records.told(format!("{one}\n").as_bytes()).unwrap();
        records.told(format!("{two}\n").as_bytes()).unwrap();
        served.join().unwrap();
    }

    #[test]
    fn what_the_recorder_refuses_is_refused_at_once_and_in_its_words() {
        let (address, served) = recorder(vec![vec![("key", "\"kept\"\n"), ("{}", "{\"failed\":\"it is full\"}\n")]]);
        let records = connect(address);
        assert_eq!(records.told(b"{}\n").unwrap_err().to_string(), "it is full");
        served.join().unwrap();
    }
}
