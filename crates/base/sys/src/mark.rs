//! What tells the processes of a sandbox from others when all who own them were killed at once: the server, its guard and
//! its owners.
//!
//! Each guard has a mark, a random name. All programs that it starts have it in their environment ([`VARIABLE`]), and so
//! has what they start. As long as one of server, guard and owners lives it holds the lock of a note with that name; a
//! note without a lock tells whoever looks next ([`sweep`]) whose processes have no owner any more. Beside what is marked
//! goes what is in the same sessions and below it: a program that was started without its environment.
//!
//! The lock holds for one file. Seen through another file system, as in a root that is laid over this one, or as a copy, a
//! note has no lock although its sandbox lives; so it says which file it is, and others of the same text are left alone.
//!
//! A sandbox in a sandbox has the mark of the outer one before its own: the end of the outer is its end, too.

use std::{
    collections::HashSet,
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::FlockOperation,
    io::Errno,
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal},
};

use crate::{
    amounts::Amounts,
    cgroup::{self, Cgroup},
    private,
    process::{self, Stat},
};

/// The variable that has the mark.
pub const VARIABLE: &str = "GLOVEPORT_SANDBOX";
/// Longest mark: a few sandboxes in each other.
const LONGEST: usize = 512;
/// Most bytes of an environment that are looked at.
const MOST_BYTES: u64 = 4 * 1024 * 1024;
/// Where the notes are, in the directory of this user's.
const NOTES: &str = "sandboxes";
/// Time for all processes of a mark to be gone. Those that wait in the kernel take longer, and go when they wake up.
const LIMIT: Duration = Duration::from_secs(2);
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(2);

/// The mark of a guard.
#[derive(Debug)]
pub(crate) struct Mark {
    name: String,
    cgroup: Option<Cgroup>,
    /// Open, and locked, in the server, its guard and its owners. `None` where no note can be kept.
    note: Option<(File, PathBuf)>,
}

impl Mark {
    /// Makes a mark, its group and its note.
    pub(crate) fn make() -> io::Result<Self> {
        Self::make_in(Cgroup::make)
    }

    /// The same without a group, for who could not remove it.
    pub(crate) fn make_without_group() -> io::Result<Self> {
        Self::make_in(|_| None)
    }

    /// The same with a group that keeps its processes to these amounts, where there can be one.
    pub(crate) fn make_bounded(amounts: &Amounts) -> io::Result<Option<Self>> {
        let mark = Self::make_in(|name| Cgroup::make_bounded(name, amounts))?;
        if mark.cgroup.is_none() {
            mark.forget();
            return Ok(None);
        }
        Ok(Some(mark))
    }

    /// A name alone: in a container everything ends with its first process.
    pub(crate) fn make_name() -> io::Result<Self> {
        let (_, name) = names()?;
        Ok(Self { name, cgroup: None, note: None })
    }

    fn make_in(group: impl FnOnce(&str) -> Option<Cgroup>) -> io::Result<Self> {
        let (own, name) = names()?;
        let cgroup = group(&own);
        // It is of use only if everything else fails.
        let note = note(&own, &name, cgroup.as_ref().map(Cgroup::path)).ok();
        Ok(Self { name, cgroup, note })
    }

    /// The entry of the environment.
    pub(crate) fn entry(&self) -> (OsString, OsString) {
        (VARIABLE.into(), self.name.clone().into())
    }

    pub(crate) fn cgroup(&self) -> Option<&Cgroup> {
        self.cgroup.as_ref()
    }

    /// Kills all that have the mark, and tells how many.
    pub(crate) fn end(&self) -> usize {
        end_all(&self.name, self.cgroup.as_ref().map(Cgroup::path))
    }

    /// Kills all that have the mark and forgets it: whoever owned them has ended them.
    pub(crate) fn forget(&self) {
        if let Some(cgroup) = &self.cgroup {
            let _left_to_others = cgroup::end(cgroup.path());
        }
        if let Some((_, path)) = &self.note {
            let _gone_already = fs::remove_file(path);
        }
    }
}

/// A new name, and the mark with it.
fn names() -> io::Result<(String, String)> {
    let own = format!("{:016x}{:016x}", private::random()?, private::random()?);
    let name = within(std::env::var(VARIABLE).ok().as_deref(), &own);
    Ok((own, name))
}

/// The mark of a sandbox in a sandbox, whose mark is in the environment.
pub fn within(outer: Option<&str>, own: &str) -> String {
    match outer.filter(|outer| is_mark(outer) && outer.len() + own.len() < LONGEST) {
        Some(outer) => format!("{outer}.{own}"),
        None => own.to_owned(),
    }
}

/// Whether a text can be a mark.
fn is_mark(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
}

/// Writes a note, and locks it for the life of those who inherit it.
fn note(own: &str, name: &str, cgroup: Option<&Path>) -> io::Result<(File, PathBuf)> {
    let directory = private::directory()?.join(NOTES);
    match fs::DirBuilder::new().mode(0o700).create(&directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let (path, being_made) = (directory.join(own), directory.join(format!("{own}.new")));
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&being_made)?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    let cgroup = cgroup.map_or(String::new(), |path| path.display().to_string());
    let identity = identity(&file)?;
    file.write_all(format!("{name}\n{cgroup}\n{identity}\n").as_bytes())?;
    // Whoever sweeps sees it locked and complete, or not at all.
    fs::rename(&being_made, &path)?;
    Ok((file, path))
}

/// Which file it is.
fn identity(file: &File) -> io::Result<String> {
    let found = file.metadata()?;
    Ok(format!("{}:{}", found.dev(), found.ino()))
}

/// Ends what sandboxes of this user left whose servers, guards and owners were all killed, and forgets them. Tells how
/// many processes were ended.
///
/// # Errors
///
/// The notes cannot be read.
pub fn sweep() -> io::Result<usize> {
    let mut ended = 0;
    for directory in private::all() {
        let notes = match fs::read_dir(directory.join(NOTES)) {
            Ok(notes) => notes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for note in notes.flatten() {
            ended += sweep_note(&note.path()).unwrap_or_default();
        }
    }
    Ok(ended)
}

/// Ends what one note tells of, if nobody holds it.
fn sweep_note(path: &Path) -> io::Result<usize> {
    let mut file = OpenOptions::new().read(true).open(path)?;
    if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() || file.metadata()?.nlink() == 0 {
        return Ok(0);
    }
    let mut text = String::new();
    (&mut file).take(64 * 1024).read_to_string(&mut text)?;
    let mut lines = text.lines();
    let (name, cgroup) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    if lines.next().is_some_and(|meant| identity(&file).is_ok_and(|own| own != meant)) {
        return Ok(0);
    }
    let ended =
        if is_mark(name) { end_all(name, Some(Path::new(cgroup)).filter(|path| path.is_absolute())) } else { 0 };
    fs::remove_file(path)?;
    Ok(ended)
}

/// Kills all processes that have this mark, alone or among others, but for this process, and tells how many. It is for marks of
/// a server's own environment: guards and owners have them, too.
pub fn end(mark: &str) -> usize {
    if is_mark(mark) { end_all(mark, None) } else { 0 }
}

/// How many processes have this mark, alone or among others.
pub fn count(mark: &str) -> usize {
    if is_mark(mark) { marked(mark).len() } else { 0 }
}

fn end_all(name: &str, cgroup: Option<&Path>) -> usize {
    let mut ended = HashSet::new();
    let deadline = Instant::now() + LIMIT;
    let group = cgroup.map(cgroup::end);
    if let Some(Err(error)) = group {
        tracing::warn!(%error, "the control group of a sandbox cannot be ended");
    }
    loop {
        let found = marked(name);
        if found.is_empty() {
            return ended.len();
        }
        for one in &found {
            if kill(one) {
                ended.insert((one.pid, one.start_ticks));
            }
        }
        if Instant::now() >= deadline {
            tracing::warn!(left = found.len(), "processes of a sandbox do not end");
            return ended.len();
        }
        thread::sleep(PAUSE);
    }
}

/// All processes with a mark, what is in their sessions, and what is below them.
fn marked(name: &str) -> Vec<Stat> {
    let own = std::process::id();
    let own_session = process::stat(own).map(|stat| stat.session);
    let living: Vec<Stat> = process::all()
        .into_iter()
        .filter(|pid| *pid != own && *pid != 1)
        .filter_map(process::stat)
        .filter(|stat| !matches!(stat.state, 'Z' | 'X'))
        .collect();
    let mut members: HashSet<u32> = living.iter().map(|stat| stat.pid).filter(|pid| has_mark(*pid, name)).collect();
    if members.is_empty() {
        return Vec::new();
    }
    let sessions: HashSet<u32> = living
        .iter()
        .filter(|stat| members.contains(&stat.pid))
        .map(|stat| stat.session)
        // The session of whoever looks, and that of the kernel, are nobody else's.
        .filter(|session| *session > 1 && Some(*session) != own_session)
        // A server that has just been started is still in the session of whoever started it.
        .filter(|session| members.contains(session) || !is_led_by_another(*session))
        .collect();
    loop {
        let before = members.len();
        let joins = |stat: &&Stat| members.contains(&stat.parent) || sessions.contains(&stat.session);
        let more: Vec<u32> = living.iter().filter(joins).map(|stat| stat.pid).collect();
        members.extend(more);
        if members.len() == before {
            break;
        }
    }
    living.into_iter().filter(|stat| members.contains(&stat.pid)).collect()
}

/// Whether a process has a mark, alone or among others.
fn has_mark(pid: u32, name: &str) -> bool {
    let mut environment = Vec::new();
    let read =
        File::open(format!("/proc/{pid}/environ")).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut environment));
    read.is_ok() && environment.split(|byte| *byte == 0).any(|entry| is_marked(entry, name))
}

/// Whether the leader of a session lives and is somebody else's. One that is just dying has no environment any more, and
/// one of the sandbox may have thrown its own away.
fn is_led_by_another(leader: u32) -> bool {
    if process::stat(leader).is_none_or(|stat| matches!(stat.state, 'Z' | 'X')) {
        return false;
    }
    let mut byte = [0];
    match File::open(format!("/proc/{leader}/environ")).and_then(|mut file| file.read(&mut byte)) {
        Ok(length) => length > 0,
        // Another user's is not read.
        Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
    }
}

fn is_marked(entry: &[u8], name: &str) -> bool {
    let value = entry.strip_prefix(VARIABLE.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
    let Some(Ok(value)) = value.map(std::str::from_utf8) else { return false };
    value.match_indices(name).any(|(at, _)| {
        let (before, behind) = (&value[..at], &value[at + name.len()..]);
        (before.is_empty() || before.ends_with('.')) && (behind.is_empty() || behind.starts_with('.'))
    })
}

/// Kills this very process, and no later one of the same id.
fn kill(meant: &Stat) -> bool {
    let Some(pid) = i32::try_from(meant.pid).ok().and_then(Pid::from_raw) else { return false };
    let is_it = || process::stat(meant.pid).is_some_and(|now| now.start_ticks == meant.start_ticks);
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => is_it() && pidfd_send_signal(&handle, Signal::KILL).is_ok(),
        // As near to it as such a kernel comes.
        Err(Errno::NOSYS) => is_it() && kill_process(pid, Signal::KILL).is_ok(),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn shell(mark: &str, script: &str) -> Child {
        let mut command = Command::new("setsid");
        command.args(["sh", "-c", script]).env(VARIABLE, mark).stdout(Stdio::null());
        command.spawn().unwrap()
    }

    fn sleepers(seconds: &str) -> usize {
        let line = format!("sleep {seconds}");
        process::all().into_iter().filter(|pid| process::command_line(*pid).as_deref() == Some(&line)).count()
    }

    fn until(what: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !what() {
            assert!(Instant::now() < deadline, "it takes too long");
            thread::sleep(PAUSE);
        }
    }

    #[test]
    fn all_processes_of_a_mark_end_wherever_they_hide_and_no_others() {
        let mark = format!("test{}", std::process::id());
        let script = "sleep 86411 & setsid sleep 86411 & (setsid nohup sleep 86411 >/dev/null 2>&1 &) ; \
                      env -i sleep 86411 & trap '' TERM HUP; wait";
        let mut mine = shell(&mark, script);
        let mut inner = shell(&format!("{mark}.inner"), "sleep 86411; :");
        let mut other = shell(&format!("{mark}other"), "sleep 86412; :");
        until(|| sleepers("86411") == 5 && sleepers("86412") == 1);
        assert_eq!(count(&mark), 7);
        assert_eq!(end(&mark), 7);
        until(|| sleepers("86411") == 0);
        assert_eq!((sleepers("86412"), count(&mark)), (1, 0));
        assert_eq!(end(&format!("{mark}other")), 2);
        for child in [&mut mine, &mut inner, &mut other] {
            child.wait().unwrap();
        }
    }

    #[test]
    fn the_session_of_whoever_started_a_sandbox_is_not_the_sandboxs() {
        let mark = format!("starter{}", std::process::id());
        // The leader is somebody's shell; one program of its session has the mark, and begins no session of its own.
        let script = format!("sleep 86414 & {VARIABLE}={mark} sleep 86415; wait");
        let mut starter = Command::new("setsid").args(["sh", "-c", &script]).stdout(Stdio::null()).spawn().unwrap();
        until(|| sleepers("86414") == 1 && sleepers("86415") == 1);
        assert_eq!(end(&mark), 1);
        until(|| sleepers("86415") == 0);
        assert_eq!(sleepers("86414"), 1);
        for pid in process::in_session(starter.id()) {
            let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
            rustix::process::kill_process(pid, Signal::KILL).unwrap();
        }
        starter.wait().unwrap();
    }

    #[test]
    fn a_leader_that_threw_its_environment_away_does_not_hide_its_session() {
        let mark = format!("bare{}", std::process::id());
        let script = format!("sleep 86416 & {VARIABLE}={mark} sleep 86417; :");
        let mut leader = Command::new("setsid");
        let mut leader = leader.args(["env", "-i", "/bin/sh", "-c", &script]).stdout(Stdio::null()).spawn().unwrap();
        until(|| sleepers("86416") == 1 && sleepers("86417") == 1);
        assert_eq!(end(&mark), 3);
        until(|| sleepers("86416") == 0 && sleepers("86417") == 0);
        leader.wait().unwrap();
    }

    #[test]
    fn a_note_is_swept_only_if_nobody_holds_it() {
        let mark = Mark::make().unwrap();
        let (_, path) = mark.note.as_ref().unwrap();
        let path = path.clone();
        let mut mine = shell(&mark.name, "sleep 86413; :");
        until(|| sleepers("86413") == 1);
        sweep().unwrap();
        assert!(path.exists() && sleepers("86413") == 1, "it is held");
        let group = mark.cgroup().map(|cgroup| cgroup.path().to_owned());
        drop(mark);
        assert!(sweep().unwrap() >= 2);
        assert!(!path.exists() && sleepers("86413") == 0);
        assert!(group.is_none_or(|group| !group.exists()));
        mine.wait().unwrap();
    }

    #[test]
    fn a_note_that_is_another_file_than_it_says_ends_nothing() {
        let mark = Mark::make().unwrap();
        let (_, path) = mark.note.as_ref().unwrap();
        // Nobody holds the lock of a copy, as nobody seems to hold that of a note that is seen through an overlay.
        let copy = path.with_extension("copy");
        fs::copy(path, &copy).unwrap();
        let mut mine = shell(&mark.name, "sleep 86418; :");
        until(|| sleepers("86418") == 1);
        sweep().unwrap();
        assert_eq!(sleepers("86418"), 1);
        assert!(copy.exists() && mark.cgroup().is_none_or(|cgroup| cgroup.path().exists()));
        fs::remove_file(copy).unwrap();
        mark.end();
        mark.forget();
        mine.wait().unwrap();
    }

    #[test]
    fn what_is_no_mark_ends_nothing() {
        for text in ["", "a b", "a\n", "*", "a/b"] {
            assert_eq!((is_mark(text), end(text), count(text)), (false, 0, 0), "{text:?}");
        }
        assert!(is_marked(b"GLOVEPORT_SANDBOX=ab.1", "ab.1") && is_marked(b"GLOVEPORT_SANDBOX=ab.1.x", "ab.1"));
        assert!(is_marked(b"GLOVEPORT_SANDBOX=outer.ab.1.x", "ab.1"));
        for other in
            [&b"GLOVEPORT_SANDBOX=ab.12"[..], b"X=ab.1", b"GLOVEPORT_SANDBOX=xab.1", b"GLOVEPORT_SANDBOX=\xff.ab.1"]
        {
            assert!(!is_marked(other, "ab.1"));
        }
    }
}
