//! Servers that wait although whoever wanted them has ended.
//!
//! A server that waits ends with its backend, and a command is a backend for a moment only. So a process of its own, the
//! keeper, is their backend: it starts them, and gives the socket of one to whoever makes a sandbox. It has an end: nobody
//! has asked it for anything for a time, somebody tells it to end, or the program is another one by now.
//!
//! ```text
//! STATE/keeper/socket   where it listens; only this user gets there
//! STATE/keeper/lock     locked by it for its life
//! ```

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io,
    net::IpAddr,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{
            fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
            net::UnixStream,
        },
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use gloveport_provider::ProviderError;
use gloveport_sys::{frames, mark};
use serde::{Deserialize, Serialize};
use tokio::{net::UnixListener, time::Instant};

use crate::{
    LocalOptions,
    fault::{self, blocking, engine},
    launch::{INHERITED, Server},
    lock,
    pool::Pool,
    provider::Inner,
    server::ServerProcess,
};

/// How long one who asks may take, and an answer.
const ANSWER: Duration = Duration::from_secs(5);

/// Wait between two looks whether the keeper before has ended.
const BETWEEN: Duration = Duration::from_millis(20);

/// What a keeper is asked.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Ask {
    /// Give me a server.
    Claim(Likeness),
    /// Let so many wait.
    Fill(Likeness, usize),
    /// How many wait?
    Count,
    /// End, with all that wait.
    End,
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    /// This one; its socket and its lock travel beside the answer.
    Server { process: ServerProcess, mark: String, directory: PathBuf, port: u16, reserved: Vec<u16> },
    /// There is none, or they are others than you would start.
    Nothing,
    /// So many wait, did so before the end, or will.
    Count(usize),
}

/// What makes a server the same as one that would be started now. All else it is told with its start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Likeness {
    /// Device, number and time of the program.
    program: (u64, u64, i64, i64),
    listen: IpAddr,
    environment: BTreeMap<String, String>,
}

impl Likeness {
    fn of(inner: &Inner) -> io::Result<Self> {
        let options = &inner.options;
        let program = fs::metadata(&options.program)?;
        let names = INHERITED.into_iter().chain([mark::VARIABLE]);
        let environment =
            names.filter_map(|name| Some((name.to_owned(), options.environment.get(name)?.clone()))).collect();
        Ok(Self {
            program: (program.dev(), program.ino(), program.mtime(), program.mtime_nsec()),
            listen: inner.urls.listen(),
            environment,
        })
    }
}

/// Takes a server from the keeper, if there is one that has one.
pub(crate) async fn claim(inner: &Arc<Inner>) -> Option<Server> {
    let inner = Arc::clone(inner);
    blocking(move || Ok(try_claim(&inner))).await.ok().flatten()
}

fn try_claim(inner: &Inner) -> Option<Server> {
    let socket = UnixStream::connect(socket_path(inner.state.root())).ok()?;
    let claimed = Likeness::of(inner).and_then(|likeness| ask(&socket, &Ask::Claim(likeness)));
    let (answer, descriptors) = claimed.inspect_err(|error| tracing::debug!(%error, "no waiting server")).ok()?;
    let Answer::Server { process, mark, directory, port, reserved } = answer else { return None };
    let mut descriptors = descriptors.into_iter();
    let (socket, lock) = (UnixStream::from(descriptors.next()?), File::from(descriptors.next()?));
    Some(Server { process, mark, directory, port, reserved, image: None, socket, lock })
}

/// Asks a keeper to let this many wait; `false` if there is none that can, and one must be started.
pub async fn fill(options: LocalOptions, count: usize) -> Result<bool, ProviderError> {
    let local = crate::Local::new(options)?;
    blocking(move || {
        let inner = local.inner();
        let asked = Likeness::of(inner).map(|likeness| Ask::Fill(likeness, count));
        let asked = asked.map_err(fault::file("look at", &inner.options.program))?;
        Ok(matches!(request(inner.state.root(), &asked)?, Some(Answer::Count(_))))
    })
    .await
}

/// How many servers wait with the keeper; none if there is no keeper.
pub async fn count(options: &LocalOptions) -> Result<Option<usize>, ProviderError> {
    count_after(options, Ask::Count).await
}

/// Ends the keeper with all that wait, and tells how many those were; none if there was no keeper. Returns when it has
/// ended.
pub async fn end(options: &LocalOptions) -> Result<Option<usize>, ProviderError> {
    let ended = count_after(options, Ask::End).await?;
    if ended.is_some() {
        let path = lock_path(&options.state);
        blocking(move || lock::wait_lock(&path).map(drop).or_else(gone).map_err(fault::file("wait for", &path)))
            .await?;
    }
    Ok(ended)
}

fn gone(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

async fn count_after(options: &LocalOptions, ask: Ask) -> Result<Option<usize>, ProviderError> {
    let state = options.state.clone();
    blocking(move || {
        Ok(match request(&state, &ask)? {
            Some(Answer::Count(count)) => Some(count),
            _ => None,
        })
    })
    .await
}

/// Asks the keeper, if there is one.
fn request(state: &Path, wanted: &Ask) -> Result<Option<Answer>, ProviderError> {
    let Ok(socket) = UnixStream::connect(socket_path(state)) else { return Ok(None) };
    match ask(&socket, wanted) {
        Ok((answer, _)) => Ok(Some(answer)),
        // It ends at this very moment.
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(engine("ask the keeper of waiting servers", error)),
    }
}

fn ask(socket: &UnixStream, wanted: &Ask) -> io::Result<(Answer, Vec<OwnedFd>)> {
    socket.set_read_timeout(Some(ANSWER))?;
    socket.set_write_timeout(Some(ANSWER))?;
    frames::send(socket, wanted, &[])?;
    frames::receive(socket)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

fn socket_path(state: &Path) -> PathBuf {
    state.join("keeper/socket")
}

fn lock_path(state: &Path) -> PathBuf {
    state.join("keeper/lock")
}

/// Is the keeper until its end. Returns at once where there is one.
///
/// `count` servers wait at first and after each that is taken. It ends when nobody has asked for anything for `idle`, or
/// when `stop` does.
pub async fn keep(
    options: LocalOptions,
    count: usize,
    idle: Duration,
    stop: impl Future<Output = ()>,
) -> Result<(), ProviderError> {
    let local = crate::Local::new(LocalOptions { warm: 0, ..options })?;
    let inner = Arc::clone(local.inner());
    let likeness = Likeness::of(&inner).map_err(fault::file("look at", &inner.options.program))?;
    let Some((listener, lock)) = listen(&inner).await? else { return Ok(()) };
    inner.backend.appear(&inner.state)?;
    let mut keeper = Keeper { inner: Arc::clone(&inner), likeness, count };
    keeper.refill();
    let kept = keeper.serve(&listener, idle, stop).await;
    // Nobody else may ask while it ends, and no other keeper listens before it has.
    let removed = fs::remove_file(socket_path(inner.state.root()));
    drop(listener);
    inner.close().await;
    drop(lock);
    if let Err(error) = removed {
        tracing::debug!(%error, "the socket is gone already");
    }
    kept
}

/// The socket, and the lock of the only one who listens; `None` if another one does.
async fn listen(inner: &Inner) -> Result<Option<(UnixListener, File)>, ProviderError> {
    let state = inner.state.root();
    inner.state.prepare()?;
    let (socket, lock) = (socket_path(state), lock_path(state));
    let directory = state.join("keeper");
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory);
    made.and_then(|()| fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)))
        .map_err(fault::file("make the directory", &directory))?;
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&lock);
    let file = file.map_err(fault::file("make", &lock))?;
    let began = Instant::now();
    while !lock::try_lock_file(&file).map_err(fault::file("lock", &lock))? {
        // One that ends has closed its socket before, and is not waited for longer than its servers need.
        if UnixStream::connect(&socket).is_ok() || began.elapsed() > inner.options.start_limit {
            return Ok(None);
        }
        tokio::time::sleep(BETWEEN).await;
    }
    // One that was killed has left it.
    fs::remove_file(&socket).or_else(gone).map_err(fault::file("remove", &socket))?;
    let listener = UnixListener::bind(&socket).map_err(fault::file("listen at", &socket))?;
    Ok(Some((listener, file)))
}

struct Keeper {
    inner: Arc<Inner>,
    likeness: Likeness,
    /// So many wait.
    count: usize,
}

/// Whether it goes on after a request.
#[derive(PartialEq, Eq)]
enum Then {
    Stay,
    End,
}

impl Keeper {
    async fn serve(
        &mut self,
        listener: &UnixListener,
        idle: Duration,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ProviderError> {
        let mut stop = std::pin::pin!(stop);
        let mut deadline = Instant::now() + idle;
        loop {
            let asked = tokio::select! {
                accepted = listener.accept() => accepted,
                () = tokio::time::sleep_until(deadline) => return Ok(()),
                () = &mut stop => return Ok(()),
            };
            let (asked, _) = asked.map_err(|error| engine("listen for who wants a server", error))?;
            let asked = asked.into_std().and_then(|socket| socket.set_nonblocking(false).map(|()| socket));
            let answered = match asked {
                Ok(socket) => self.answer(socket).await,
                Err(error) => Err(engine("talk to who wants a server", error)),
            };
            match answered {
                Ok(Then::Stay) => deadline = Instant::now() + idle,
                Ok(Then::End) => return Ok(()),
                Err(error) => tracing::warn!(%error, "somebody who wanted a server did not get an answer"),
            }
        }
    }

    async fn answer(&mut self, socket: UnixStream) -> Result<Then, ProviderError> {
        let failed = |error: io::Error| engine("talk to who wants a server", error);
        let (socket, wanted) = blocking(move || {
            socket.set_read_timeout(Some(ANSWER)).map_err(failed)?;
            socket.set_write_timeout(Some(ANSWER)).map_err(failed)?;
            let wanted: Option<(Ask, Vec<OwnedFd>)> = frames::receive(&socket).map_err(failed)?;
            Ok((socket, wanted.map(|(wanted, _)| wanted)))
        })
        .await?;
        let waiting = self.inner.pool.waiting();
        let (answer, given, then) = match wanted {
            None => return Ok(Then::Stay),
            Some(Ask::Count) => (Answer::Count(waiting), None, Then::Stay),
            Some(Ask::End) => (Answer::Count(waiting), None, Then::End),
            // What waits is of no use to those who come now.
            Some(Ask::Fill(likeness, _)) if likeness != self.likeness => (Answer::Nothing, None, Then::End),
            Some(Ask::Fill(_, count)) => {
                self.count = count;
                self.refill();
                (Answer::Count(count), None, Then::Stay)
            }
            Some(Ask::Claim(likeness)) if likeness != self.likeness => (Answer::Nothing, None, Then::Stay),
            Some(Ask::Claim(_)) => match self.take() {
                Some(server) => (Self::describe(&server), Some(server), Then::Stay),
                None => (Answer::Nothing, None, Then::Stay),
            },
        };
        let taken = given.is_some();
        blocking(move || {
            let descriptors: Vec<_> =
                given.iter().flat_map(|server| [server.socket.as_fd(), server.lock.as_fd()]).collect();
            frames::send(&socket, &answer, &descriptors).map_err(failed)
        })
        .await?;
        if taken {
            self.refill();
        }
        Ok(then)
    }

    /// One that lives.
    fn take(&self) -> Option<Server> {
        std::iter::from_fn(|| self.inner.pool.take()).find(|server| server.process.is_alive())
    }

    fn describe(server: &Server) -> Answer {
        Answer::Server {
            process: server.process,
            mark: server.mark.clone(),
            directory: server.directory.clone(),
            port: server.port,
            reserved: server.reserved.clone(),
        }
    }

    /// The end of the keeper waits for what is on its way.
    fn refill(&self) {
        let (inner, count) = (Arc::clone(&self.inner), self.count);
        tokio::spawn(async move {
            if let Err(error) = Pool::fill(&inner, count).await {
                tracing::warn!(%error, "no server waits for the next session");
            }
        });
    }
}
