//! Ports out of the ranges of OpenHands, each with a lock that other backends of this machine respect (docker-runtime 5.4).
//! Only used where ranges are configured, or a container has no network of its own; else the engine chooses.

use std::{
    fs::{self, File, OpenOptions},
    io::Write as _,
    net::{Ipv4Addr, TcpListener},
    ops::RangeInclusive,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// For the server.
const SERVER: RangeInclusive<u16> = 30_000..=39_999;
/// For the web editor.
const EDITOR: RangeInclusive<u16> = 40_000..=49_999;
/// For the user's programs.
const WORK: [RangeInclusive<u16>; 2] = [50_000..=54_999, 55_000..=59_999];
/// How often a port is tried.
const ATTEMPTS: u16 = 20;
/// How long a lock is waited for.
const WAIT: Duration = Duration::from_millis(20);

/// A port that other backends do not take, until this is dropped.
#[derive(Debug)]
pub(crate) struct LockedPort {
    pub(crate) port: u16,
    path: PathBuf,
    _file: File,
}

impl Drop for LockedPort {
    fn drop(&mut self) {
        let _gone_already = fs::remove_file(&self.path);
    }
}

/// Four ports: for the server, the editor, and two programs.
pub(crate) fn four(locks: &Path) -> Option<[LockedPort; 4]> {
    let [first, second] = WORK;
    Some([find(locks, &SERVER)?, find(locks, &EDITOR)?, find(locks, &first)?, find(locks, &second)?])
}

/// Where the locks of OpenHands are.
pub(crate) fn locks() -> PathBuf {
    std::env::temp_dir().join("openhands_port_locks")
}

fn find(locks: &Path, range: &RangeInclusive<u16>) -> Option<LockedPort> {
    let length = range.end() - range.start() + 1;
    let random = || {
        let mut bytes = [0; 2];
        getrandom::fill(&mut bytes).ok().map(|()| range.start() + u16::from_ne_bytes(bytes) % length)
    };
    for _ in 0..ATTEMPTS / 2 {
        if let Some(locked) = take(locks, random()?) {
            return Some(locked);
        }
    }
    let start = random()?.min(range.end() - ATTEMPTS / 2);
    (start..=start + ATTEMPTS / 2).find_map(|port| take(locks, port))
}

/// Locks a port that nothing listens on.
fn take(locks: &Path, port: u16) -> Option<LockedPort> {
    fs::create_dir_all(locks).ok()?;
    let path = locks.join(format!("port_{port}.lock"));
    let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(&path).ok()?;
    let began = Instant::now();
    while file.try_lock().is_err() {
        if began.elapsed() >= WAIT {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // The number is for people who look at the file.
    let _written = file.set_len(0).and_then(|()| writeln!(file, "{port}"));
    let locked = LockedPort { port, path, _file: file };
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).ok().map(|_| locked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_locked_or_used_is_not_taken() {
        let locks = tempfile::tempdir().unwrap();
        let ports = four(locks.path()).unwrap();
        assert!(SERVER.contains(&ports[0].port) && WORK[1].contains(&ports[3].port));
        assert!(take(locks.path(), ports[0].port).is_none());
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        assert!(take(locks.path(), listener.local_addr().unwrap().port()).is_none());
        let port = ports[1].port;
        drop(ports);
        assert!(take(locks.path(), port).is_some());
        assert_eq!(fs::read_dir(locks.path()).unwrap().count(), 0);
    }
}
