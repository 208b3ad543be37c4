//! Errands: what a process that is kept to a part of the machine has done by a copy of itself from before that.
//!
//! The copy does a few named things and nothing that it is told more of: a process that was taken over gets no further with
//! it. It ends when nobody is left who can ask.

#![expect(unsafe_code, reason = "forks, which no safe library offers")]

use std::{
    io,
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::{Mutex, PoisonError},
    time::Duration,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{guard::detach, wire};

/// Longest time for one errand.
const LIMIT: Duration = Duration::from_mins(2);

/// Who does errands.
#[derive(Debug)]
pub struct Errands(Mutex<UnixStream>);

#[derive(Debug, Serialize, Deserialize)]
struct Done(Result<(), String>);

impl Errands {
    /// Starts the copy, which does `work` for each errand. Call it while this is the only thread.
    ///
    /// # Errors
    ///
    /// There are more threads, or the system refuses.
    pub fn start<E: DeserializeOwned>(name: &str, work: impl Fn(E) -> io::Result<Vec<OwnedFd>>) -> io::Result<Self> {
        let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
        if threads > 1 {
            return Err(io::Error::other(format!("{threads} threads run, and a copy would have their locks")));
        }
        let (ours, theirs) = UnixStream::pair()?;
        // SAFETY: this process has one thread, so the copy is a whole process that may do anything.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(ours);
                detach(name);
                serve(&theirs, work);
                // SAFETY: ends the copy without running the exit handlers of the original.
                unsafe { libc::_exit(0) }
            }
            _copy => Self::over(ours),
        }
    }

    /// Errands for whoever [serves](serve) the other end.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn over(socket: UnixStream) -> io::Result<Self> {
        socket.set_read_timeout(Some(LIMIT))?;
        Ok(Self(Mutex::new(socket)))
    }

    /// Has one done, and takes what was opened for it.
    ///
    /// # Errors
    ///
    /// It failed, or nobody is there who does it.
    pub fn run(&self, errand: &impl Serialize) -> io::Result<Vec<OwnedFd>> {
        let socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        wire::send(&socket, errand, &[])?;
        match wire::receive::<Done>(&socket)? {
            Some((Done(done), opened)) => done.map(|()| opened).map_err(io::Error::other),
            None => Err(io::Error::new(io::ErrorKind::BrokenPipe, "who does errands has ended")),
        }
    }
}

/// Does errands until nobody is left who asks.
pub fn serve<E: DeserializeOwned>(socket: &UnixStream, work: impl Fn(E) -> io::Result<Vec<OwnedFd>>) {
    while let Ok(Some((errand, _))) = wire::receive::<E>(socket) {
        let done = work(errand);
        let opened: Vec<BorrowedFd<'_>> = done.iter().flatten().map(OwnedFd::as_fd).collect();
        let told = Done(done.as_ref().map(|_| ()).map_err(ToString::to_string));
        if wire::send(socket, &told, &opened).is_err() {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_copied_who_has_other_threads() {
        // A test has one beside that of the program.
        let error = Errands::start("test", |_: String| Ok(Vec::new())).unwrap_err();
        assert!(error.to_string().contains("threads run"), "{error}");
    }
}
