//! Owners of sessions as the server sees them. Making one costs more than most commands do, so one whose session has ended
//! with nothing left of it stays for a while.

use std::{
    io,
    net::Shutdown,
    os::{
        fd::{AsFd as _, BorrowedFd},
        unix::net::UnixStream,
    },
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::{oneshot, watch};

use crate::{
    exit::Exit,
    spawn::SpawnSpec,
    wire::{self, Order, Report},
};

/// Owners without a session that are kept, and how long.
const MOST_IDLE: usize = 8;
const IDLE_FOR: Duration = Duration::from_secs(2);
/// Time for an owner to take an order.
const TAKEN_WITHIN: Duration = Duration::from_secs(10);
/// Stack of the thread that listens to an owner.
const STACK: usize = 64 * 1024;

/// Whom to tell what becomes of a session.
#[derive(Debug)]
pub(crate) struct Told {
    /// Gets the first report: it was started, or why it was not.
    pub(crate) started: Option<oneshot::Sender<Report>>,
    /// How its program ended.
    pub(crate) exit: watch::Sender<Option<Exit>>,
    /// Nothing of it is left.
    pub(crate) gone: watch::Sender<bool>,
}

impl Told {
    fn tell(&mut self, report: Report) {
        match report {
            Report::Exited(exit) => {
                self.exit.send_replace(Some(exit));
            }
            other => {
                // The receiver waits for exactly this; it is gone only if its caller is.
                let _caller_gone = self.started.take().map(|started| started.send(other));
            }
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.exit.send_if_modified(|exit| exit.is_none().then(|| *exit = Some(Exit::UNKNOWN)).is_some());
        self.gone.send_replace(true);
    }
}

/// A session of an owner. Dropping it ends all of its processes.
#[derive(Debug)]
pub(crate) struct Session {
    owner: Arc<Link>,
    number: u64,
}

impl Session {
    /// Tells the owner to end it; see [`Order::End`].
    pub(crate) fn end(&self, grace_ms: u64) {
        let seat = self.owner.seat();
        if self.is_in(seat.as_ref()) {
            // A failed write means that the owner is gone, which whoever waits for the end sees.
            let _already_gone = wire::send(&self.owner.socket, &Order::End { session: self.number, grace_ms }, &[]);
        }
    }

    fn is_in(&self, seat: Option<&Seat>) -> bool {
        seat.is_some_and(|seat| seat.number == self.number)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let seat = self.owner.seat();
        if self.is_in(seat.as_ref()) {
            self.owner.cut();
        }
    }
}

/// The session that an owner has.
#[derive(Debug)]
struct Seat {
    number: u64,
    told: Told,
}

/// The connection to an owner.
#[derive(Debug)]
struct Link {
    socket: UnixStream,
    /// Is held while an order is sent, so that none is meant for a session that has just ended.
    seat: Mutex<Option<Seat>>,
}

impl Link {
    fn seat(&self) -> MutexGuard<'_, Option<Seat>> {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives it a session. Where the owner is gone, whoever was to be told is given back.
    fn begin(
        self: Arc<Self>,
        (number, start): (u64, &Order),
        descriptors: &[BorrowedFd<'_>],
        told: Told,
    ) -> Result<Session, (Told, io::Error)> {
        let mut seat = self.seat();
        if let Err(error) = wire::send(&self.socket, start, descriptors) {
            self.cut();
            return Err((told, error));
        }
        *seat = Some(Seat { number, told });
        drop(seat);
        Ok(Session { owner: self, number })
    }

    /// Closes the connection, by which the owner ends. The thread that listens holds it, too, so dropping it is not enough.
    fn cut(&self) {
        let _already_gone = self.socket.shutdown(Shutdown::Both);
    }

    fn is_readable_within(&self, limit: Duration) -> bool {
        let limit = Timespec::try_from(limit).ok();
        !matches!(poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], limit.as_ref()), Ok(0))
    }
}

/// All owners that have no session.
#[derive(Debug, Default)]
pub(super) struct Owners {
    idle: Mutex<Idle>,
}

#[derive(Debug, Default)]
struct Idle {
    links: Vec<Arc<Link>>,
    sessions: u64,
    is_closed: bool,
}

impl Owners {
    /// Starts a session with an owner that is free, or else with a new one, for which `ask` sends the guard its end of the
    /// socket.
    pub(super) fn start(
        self: &Arc<Self>,
        spec: SpawnSpec,
        descriptors: &[BorrowedFd<'_>],
        mut told: Told,
        ask: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>,
    ) -> io::Result<Session> {
        let session = {
            let mut idle = self.idle();
            idle.sessions += 1;
            idle.sessions
        };
        let start = Order::Start { session, spec };
        loop {
            // Its lock must not be held longer: the listeners need it.
            let free = self.idle().links.pop();
            let Some(free) = free else { break };
            match free.begin((session, &start), descriptors, told) {
                Ok(session) => return Ok(session),
                Err((back, error)) => {
                    tracing::debug!(%error, "an idle owner of processes is gone");
                    told = back;
                }
            }
        }
        let owner = self.new_owner(ask)?;
        owner.begin((session, &start), descriptors, told).map_err(|(_, error)| error)
    }

    fn new_owner(self: &Arc<Self>, ask: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>) -> io::Result<Arc<Link>> {
        let (socket, end) = UnixStream::pair()?;
        socket.set_write_timeout(Some(TAKEN_WITHIN))?;
        let link = Arc::new(Link { socket, seat: Mutex::default() });
        let (owners, listened) = (Arc::clone(self), Arc::clone(&link));
        thread::Builder::new().name("session-reports".into()).stack_size(STACK).spawn(move || {
            owners.listen(&listened);
        })?;
        // The listener ends with the connection.
        ask(end.as_fd()).inspect_err(|_| link.cut())?;
        Ok(link)
    }

    /// Hands on what an owner reports until it is gone, or has been idle for too long.
    fn listen(&self, link: &Arc<Link>) {
        let mut is_idle = false;
        loop {
            if is_idle && !link.is_readable_within(IDLE_FOR) && self.forget(link) {
                break;
            }
            match wire::receive::<Report>(&link.socket) {
                Ok(Some((Report::Gone, _))) => {
                    let ended = link.seat().take();
                    // Whoever hears of the end may want to start the next one at once.
                    is_idle = self.keep(link);
                    drop(ended);
                    if !is_idle {
                        break;
                    }
                }
                Ok(Some((report, _))) => {
                    is_idle = false;
                    if let Some(seat) = link.seat().as_mut() {
                        seat.told.tell(report);
                    }
                }
                Ok(None) | Err(_) => break,
            }
        }
        self.forget(link);
        link.cut();
        drop(link.seat().take());
    }

    fn keep(&self, link: &Arc<Link>) -> bool {
        let mut idle = self.idle();
        let has_place = !idle.is_closed && idle.links.len() < MOST_IDLE;
        if has_place {
            idle.links.push(Arc::clone(link));
        }
        has_place
    }

    /// Takes an owner out of those that are free. Says whether it was one.
    fn forget(&self, link: &Arc<Link>) -> bool {
        let mut idle = self.idle();
        let before = idle.links.len();
        idle.links.retain(|other| !Arc::ptr_eq(other, link));
        idle.links.len() < before
    }

    /// Ends those that are free, and keeps no more.
    pub(super) fn close(&self) {
        let free = {
            let mut idle = self.idle();
            idle.is_closed = true;
            std::mem::take(&mut idle.links)
        };
        for link in free {
            link.cut();
        }
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
