//! A control group for the processes of one sandbox, where one can be had: none of them leaves it, and all are killed by
//! one write.
//!
//! Only the second version of control groups is used: a process is born into such a group, which costs nothing, while
//! moving one into a group of the first version takes milliseconds. Without one (no rights, a read-only mount, an old
//! kernel) everything works as before.
//!
//! A group that bounds what its processes use ([`amounts`](crate::amounts)) is made in the nearest group above this process
//! whose groups have what is needed for it and which belongs to this user: a group with processes of its own has no such ones.

use std::{
    fs, io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{Access, Mode, OFlags, access},
    process::Signal,
};

use crate::{
    amounts::{Amounts, Kept},
    signal::signal,
};

/// What the names of our groups begin with.
const PREFIX: &str = "gloveport-";
/// Time for killed processes to be gone, so that the group can be removed.
const LIMIT: Duration = Duration::from_secs(2);
/// Pause between two looks at a group whose processes were killed.
const PAUSE: Duration = Duration::from_millis(1);
/// The time in which a group may use the processors for so long, in microseconds.
const PERIOD: u64 = 100_000;
/// The least of it that the kernel takes.
const LEAST: u64 = 1_000;

/// A group of this process's sandbox.
#[derive(Debug)]
pub(crate) struct Cgroup {
    path: PathBuf,
    directory: OwnedFd,
}

impl Cgroup {
    /// Makes one below the group of this process; `None` where that is not possible.
    pub(crate) fn make(name: &str) -> Option<Self> {
        Self::make_in(&own_group()?.path, name)
    }

    /// Makes one whose processes together are kept to these amounts, or to those of them that can be kept; `None` where that is
    /// none of them.
    pub(crate) fn make_bounded(name: &str, amounts: &Amounts) -> Option<Self> {
        let own = own_group()?;
        for wanted in amounts.kept().parts() {
            for above in own.and_above() {
                if !has(above, wanted) || !is_given(above) {
                    continue;
                }
                let Some(group) = Self::make_in(above, name) else { continue };
                if group.bound(amounts, wanted).is_ok() {
                    return Some(group);
                }
                let _left = fs::remove_dir(&group.path);
            }
        }
        None
    }

    fn bound(&self, amounts: &Amounts, wanted: Kept) -> io::Result<()> {
        let write = |file: &str, text: String| fs::write(self.path.join(file), text);
        if let Some(memory) = amounts.memory.filter(|_| wanted.memory) {
            write("memory.max", memory.to_string())?;
            // Where nothing is swapped there is no such file.
            let _no_swap = write("memory.swap.max", "0".to_owned());
        }
        if let Some(processes) = amounts.processes.filter(|_| wanted.processes) {
            write("pids.max", processes.to_string())?;
        }
        if let Some(thousandths) = amounts.cpu_thousandths.filter(|_| wanted.processors) {
            let quota = thousandths.saturating_mul(PERIOD / 1000).max(LEAST);
            write("cpu.max", format!("{quota} {PERIOD}"))?;
        }
        Ok(())
    }

    fn make_in(above: &Path, name: &str) -> Option<Self> {
        let path = above.join(format!("{PREFIX}{name}"));
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

    /// Whether its processes are kept to a time of processors.
    pub(crate) fn bounds_processors(&self) -> bool {
        fs::read_to_string(self.path.join("cpu.max")).is_ok_and(|bound| !bound.starts_with("max"))
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

/// What could be kept of the processes of a group that this process makes.
pub(crate) fn kept() -> Kept {
    let Some(own) = own_group() else { return Kept::default() };
    let can = |wanted: Kept| own.and_above().any(|above| has(above, wanted) && is_given(above));
    let none = Kept::default();
    Kept {
        memory: can(Kept { memory: true, ..none }),
        processes: can(Kept { processes: true, ..none }),
        processors: can(Kept { processors: true, ..none }),
    }
}

/// Whether this user may make groups in it, and processes in those.
fn is_given(above: &Path) -> bool {
    [above, &above.join("cgroup.procs")].into_iter().all(|path| access(path, Access::WRITE_OK).is_ok())
}

/// Whether groups that are made in this one have what keeps these amounts.
fn has(above: &Path, wanted: Kept) -> bool {
    let controllers = fs::read_to_string(above.join("cgroup.subtree_control")).unwrap_or_default();
    let is_on = |name: &str| controllers.split_ascii_whitespace().any(|one| one == name);
    (!wanted.memory || is_on("memory")) && (!wanted.processes || is_on("pids")) && (!wanted.processors || is_on("cpu"))
}

/// A group, and where the file system of groups is mounted above it.
struct Found {
    path: PathBuf,
    mount: PathBuf,
}

impl Found {
    /// The group, and those above it.
    fn and_above(&self) -> impl Iterator<Item = &Path> {
        self.path.ancestors().take_while(|group| group.starts_with(&self.mount))
    }
}

/// The group of this process.
fn own_group() -> Option<Found> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|line| mounted(line, own))
}

/// Where a group is below the mount that a line of `mountinfo` tells of.
fn mounted(line: &str, group: &str) -> Option<Found> {
    let (mount, file_system) = line.split_once(" - ")?;
    if file_system.split(' ').next() != Some("cgroup2") {
        return None;
    }
    let mut fields = mount.split(' ').skip(3);
    let (root, point) = (fields.next()?, fields.next()?);
    // Blanks in names are written in octal; a group manager makes none.
    let below = Path::new(group).strip_prefix(root).ok()?;
    Some(Found { path: Path::new(point).join(below), mount: point.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_of_a_group_is_found() {
        let at = |line, group| mounted(line, group).map(|found| found.path);
        let line = "42 32 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw";
        assert_eq!(at(line, "/"), Some("/sys/fs/cgroup/".into()));
        assert_eq!(at(line, "/user.slice/a.scope"), Some("/sys/fs/cgroup/user.slice/a.scope".into()));
        let part = "42 32 0:28 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup rw";
        assert_eq!(at(part, "/docker/x/y"), Some("/sys/fs/cgroup/y".into()));
        assert_eq!(at(part, "/other"), None);
        assert_eq!(at("30 24 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu", "/"), None);
    }

    #[test]
    fn groups_above_are_those_below_the_mount() {
        let line = "42 32 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw";
        let found = mounted(line, "/user.slice/a.scope").unwrap();
        let groups: Vec<&Path> = found.and_above().collect();
        let expected = ["/sys/fs/cgroup/user.slice/a.scope", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"];
        assert_eq!(groups, expected.map(Path::new));
    }

    #[test]
    fn a_group_has_what_its_own_groups_are_given() {
        let directory = tempfile::tempdir().unwrap();
        let all = Kept { memory: true, processes: true, processors: true };
        assert!(!has(directory.path(), all), "it is no group");
        fs::write(directory.path().join("cgroup.subtree_control"), "cpuset io memory pids\n").unwrap();
        assert!(!has(directory.path(), all), "`cpuset` is not `cpu`");
        assert!(has(directory.path(), Kept { processors: false, ..all }));
        assert_eq!(
            all.parts().find(|part| has(directory.path(), *part)),
            Some(Kept { memory: true, processes: true, processors: false })
        );
    }
}
