//! Our end of a pseudo-terminal.

use std::{io, os::fd::OwnedFd, time::Duration};

use tokio::{
    io::{Interest, unix::AsyncFd},
    time::sleep,
};

/// Pause between tries to write what nobody will read; the caller learns of the end from elsewhere.
const CLOSED_PAUSE: Duration = Duration::from_millis(5);

/// Our end of a pseudo-terminal, which one task reads and others write.
#[derive(Debug)]
pub(super) struct Line {
    master: AsyncFd<OwnedFd>,
}

impl Line {
    pub(super) fn new(master: AsyncFd<OwnedFd>) -> Self {
        Self { master }
    }

    pub(super) fn master(&self) -> &OwnedFd {
        self.master.get_ref()
    }

    /// Types what the terminal takes at once, as soon as it takes something. Answers with the number of bytes; nothing
    /// is typed if the future is dropped.
    pub(super) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let mut guard = self.master.ready(Interest::WRITABLE).await?;
            let is_closed = guard.ready().is_write_closed();
            if let Ok(written) = guard.try_io(|master| Ok(rustix::io::write(master, bytes)?)) {
                return written;
            }
            if is_closed {
                // Nobody holds the other end, which stays told, and what was typed before stands in the way. To wait for
                // room would be to try for ever without a pause.
                sleep(CLOSED_PAUSE).await;
            }
        }
    }

    /// Waits until there is something to read, or until the other end was closed.
    pub(super) async fn readable(&self) -> io::Result<()> {
        self.master.readable().await.map(drop)
    }

    /// Reads what there is, as far as it fits, without waiting. Nothing more will come if the second value says so.
    pub(super) fn read(&self, buffer: &mut [u8]) -> (usize, bool) {
        let mut filled = 0;
        // The kernel hands out a terminal's output in pieces of 4 KiB at most.
        while let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) {
            match self.master.try_io(Interest::READABLE, |master| Ok(rustix::io::read(master, &mut *room)?)) {
                Ok(0) => return (filled, true),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return (filled, false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // `EIO` when nobody holds the other end.
                Err(_) => return (filled, true),
            }
        }
        (filled, false)
    }
}
