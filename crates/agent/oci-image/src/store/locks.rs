//! Locks between processes (`flock`).

use std::{
    fs::File,
    io,
    path::Path,
    time::{Duration, Instant},
};

use gloveport_platform as platform;
use rustix::{fs::FlockOperation, io::Errno};

use crate::error::ImageError;

/// The system tells nobody when a lock is free, except who waits for it without a limit.
const POLL: Duration = Duration::from_millis(10);

/// Tries to lock a file; false if somebody else has it.
pub(crate) fn try_lock(file: &File, how: FlockOperation) -> io::Result<bool> {
    loop {
        match rustix::fs::flock(file, how) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Locks a file for this process alone, which is made if it is not there; `waits` is called once if somebody else has it.
pub(crate) async fn alone(path: &Path, limit: Duration, waits: impl Fn()) -> Result<File, ImageError> {
    let file = platform::private_file()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(ImageError::store("open the lock", path))?;
    let begin = Instant::now();
    let mut waited = false;
    while !try_lock(&file, FlockOperation::NonBlockingLockExclusive).map_err(ImageError::store("lock", path))? {
        if begin.elapsed() > limit {
            let what = "waiting for another process, which pulls the same image,".to_owned();
            return Err(ImageError::TimedOut { what, limit });
        }
        if !waited {
            waits();
            waited = true;
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(file)
}
