//! A control group for the processes of one sandbox, where one can be had: none of them leaves it, and all are killed by
//! one write.
//!
//! Only the second version of control groups is used: a process is born into such a group, which costs nothing, while
//! moving one into a group of the first version takes milliseconds. Without one (no rights, a read-only mount, an old
//! kernel) everything works as before.

use std::{
    fs, io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{Mode, OFlags},
    process::Signal,
};

use crate::signal::signal;

/// What the names of our groups begin with.
const PREFIX: &str = "gloveport-";
/// Time for killed processes to be gone, so that the group can be removed.
const LIMIT: Duration = Duration::from_secs(2);
/// Pause between two looks at a group whose processes were killed.
const PAUSE: Duration = Duration::from_millis(1);

/// A group of this process's sandbox.
#[derive(Debug)]
pub(crate) struct Cgroup {
    path: PathBuf,
    directory: OwnedFd,
}

impl Cgroup {
    /// Makes one below the group of this process; `None` where that is not possible.
    pub(crate) fn make(name: &str) -> Option<Self> {
        let path = own_group()?.join(format!("{PREFIX}{name}"));
        fs::create_dir(&path).ok()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::open(&path, flags, Mode::empty()) {
            // Below another kind of directory there are no such files.
            Ok(directory) if path.join("cgroup.procs").exists() => Some(Self { path, directory }),
            _ => {
                let _left = fs::remove_dir(&path);
                None
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What a process is born into.
    pub(crate) fn directory(&self) -> &OwnedFd {
        &self.directory
    }
}

/// Kills all processes of a group and removes it. Of one that is gone it is no error.
pub(crate) fn end(path: &Path) -> io::Result<()> {
    let is_ours = path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX));
    if !is_ours || !path.join("cgroup.procs").exists() {
        return Ok(());
    }
    let deadline = Instant::now() + LIMIT;
    loop {
        kill(path);
        // Groups that were made in it come first.
        for below in fs::read_dir(path).into_iter().flatten().flatten() {
            if below.file_type().is_ok_and(|kind| kind.is_dir()) {
                let _busy = fs::remove_dir(below.path());
            }
        }
        match fs::remove_dir(path) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if Instant::now() >= deadline => return Err(error),
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

/// Kills all processes of a group; before Linux 5.14 one by one.
fn kill(path: &Path) {
    if fs::write(path.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    let listed = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    for pid in listed.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()) {
        signal(pid, Signal::KILL);
    }
}

/// Where the group of this process is mounted.
fn own_group() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|line| mounted(line, own))
}

/// Where a group is below the mount that a line of `mountinfo` tells of.
fn mounted(line: &str, group: &str) -> Option<PathBuf> {
    let (mount, file_system) = line.split_once(" - ")?;
    if file_system.split(' ').next() != Some("cgroup2") {
        return None;
    }
    let mut fields = mount.split(' ').skip(3);
    let (root, point) = (fields.next()?, fields.next()?);
    // Blanks in names are written in octal; a group manager makes none.
    let below = Path::new(group).strip_prefix(root).ok()?;
    Some(Path::new(point).join(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_of_a_group_is_found() {
        let line = "42 32 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw";
        assert_eq!(mounted(line, "/"), Some("/sys/fs/cgroup/".into()));
        assert_eq!(mounted(line, "/user.slice/a.scope"), Some("/sys/fs/cgroup/user.slice/a.scope".into()));
        let part = "42 32 0:28 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup rw";
        assert_eq!(mounted(part, "/docker/x/y"), Some("/sys/fs/cgroup/y".into()));
        assert_eq!(mounted(part, "/other"), None);
        assert_eq!(mounted("30 24 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu", "/"), None);
    }
}
