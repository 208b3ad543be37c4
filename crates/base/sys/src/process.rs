//! What `/proc` tells about processes.
//!
//! All functions answer `None` (or nothing) for a process that is gone or that we may not look at: both happen at any
//! moment and neither is an error.

use std::{fs, path::PathBuf};

/// The parts of `/proc/PID/stat` that the tools use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// Process id.
    pub pid: u32,
    /// Name of the program, at most 15 bytes.
    pub name: String,
    /// State letter: `R` running, `S` sleeping, `T` stopped, `Z` zombie and so on.
    pub state: char,
    /// Parent's process id.
    pub parent: u32,
    /// Process group.
    pub group: u32,
    /// Session id.
    pub session: u32,
    /// Process group in the foreground of its terminal; `None` for a process without one.
    pub foreground: Option<u32>,
    /// Own CPU time in clock ticks.
    pub cpu_ticks: u64,
    /// CPU time of children that ended and were waited for, in clock ticks.
    pub children_cpu_ticks: u64,
    /// When it started, in clock ticks after the machine did. With the id it tells a process from every other one of
    /// this start of the machine.
    pub start_ticks: u64,
}

/// Reads `/proc/PID/stat`.
pub fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The name stands in parentheses and may itself contain parentheses and blanks: the last one closes it.
    let (head, tail) = text.rsplit_once(')')?;
    let (pid, name) = head.split_once('(')?;
    let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok());
    let id = |index: usize| number(index).and_then(|value| u32::try_from(value).ok());
    Some(Stat {
        pid: pid.trim().parse().ok()?,
        name: name.to_owned(),
        state: fields.first()?.chars().next()?,
        parent: id(1)?,
        group: id(2)?,
        session: id(3)?,
        foreground: id(5),
        cpu_ticks: number(11)? + number(12)?,
        children_cpu_ticks: number(13)? + number(14)?,
        start_ticks: number(19)?,
    })
}

/// Ids of all processes that are visible.
pub fn all() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// All descendants of a process, parents before their children, itself left out. Zombies are left out: they are dead.
pub fn descendants(root: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut queue = vec![root];
    let mut table: Option<Vec<Stat>> = None;
    while let Some(parent) = queue.pop() {
        let children = children_of(parent).unwrap_or_else(|| {
            let table = table.get_or_insert_with(|| all().into_iter().filter_map(stat).collect());
            table.iter().filter(|entry| entry.parent == parent).map(|entry| entry.pid).collect()
        });
        for child in children {
            if stat(child).is_some_and(|stat| stat.state != 'Z') && !found.contains(&child) {
                found.push(child);
                queue.push(child);
            }
        }
    }
    found
}

/// Whether a process or one that descends from it would go on if the system had time for it: a processor or a disk is all
/// that is missing. One that waits for anything else would not, however long one waits for it.
pub fn wants_to_run(root: u32) -> bool {
    let wants = |pid| stat(pid).is_some_and(|stat| matches!(stat.state, 'R' | 'D'));
    wants(root) || descendants(root).into_iter().any(wants)
}

/// Children of a process, dead ones that nobody has waited for among them.
pub fn children(parent: u32) -> Vec<u32> {
    children_of(parent).unwrap_or_else(|| {
        all().into_iter().filter(|pid| stat(*pid).is_some_and(|stat| stat.parent == parent)).collect()
    })
}

/// Children of all threads of a process; `None` where the kernel was built without that list.
fn children_of(pid: u32) -> Option<Vec<u32>> {
    let mut children = Vec::new();
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Some(children) };
    for task in tasks.flatten() {
        match fs::read_to_string(task.path().join("children")) {
            Ok(text) => children.extend(text.split_ascii_whitespace().filter_map(|id| id.parse::<u32>().ok())),
            Err(_) if task.path().join("children").exists() || !task.path().exists() => {}
            Err(_) => return None,
        }
    }
    Some(children)
}

/// Processes of a session (in the sense of `setsid`).
pub fn in_session(session: u32) -> Vec<u32> {
    all()
        .into_iter()
        .filter(|pid| stat(*pid).is_some_and(|stat| stat.session == session && stat.state != 'Z'))
        .collect()
}

/// Processes of a process group.
pub fn in_group(group: u32) -> Vec<u32> {
    all().into_iter().filter(|pid| stat(*pid).is_some_and(|stat| stat.group == group && stat.state != 'Z')).collect()
}

/// Resident memory in bytes: all of it, and the part that is not shared with files or other processes.
pub fn resident(pid: u32) -> Option<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let mut fields = text.split_ascii_whitespace().skip(1).map_while(|field| field.parse::<u64>().ok());
    let (resident, shared) = (fields.next()?, fields.next()?);
    let page = rustix::param::page_size() as u64;
    Some((resident * page, resident.saturating_sub(shared) * page))
}

/// Resident memory in bytes, with what is shared divided among those that share it.
pub fn proportional(pid: u32) -> Option<u64> {
    rollup(pid, "Pss:")
}

/// The part of it that is in no file: what a process, and those that came of it by a fork, have for themselves.
pub fn proportional_private(pid: u32) -> Option<u64> {
    rollup(pid, "Pss_Anon:")
}

/// A field of the sum of a process's mappings, in bytes.
fn rollup(pid: u32, field: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Bytes that a process and its waited-for children wrote to and read from storage: `(written, read)`.
pub fn storage_io(pid: u32) -> Option<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    Some((field("write_bytes:")?, field("read_bytes:")?))
}

/// Current directory of a process.
pub fn working_directory(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// Arguments of a process, joined by single blanks.
pub fn command_line(pid: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<_> = bytes.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    Some(words.join(" ").trim_end().to_owned())
}

/// What a sleeping process waits in, as far as it matters to a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// In `read`.
    Read {
        /// The descriptor.
        descriptor: u64,
        /// How many bytes are asked for at most.
        most: u64,
    },
    /// In `select`, `poll` or `epoll_wait`.
    Select,
    /// In something else.
    Other,
    /// It is running.
    Running,
}

/// What the main thread of a process waits for. Needs the right to trace the process.
pub fn waiting(pid: u32) -> Option<Waiting> {
    let text = fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    let mut fields = text.split_ascii_whitespace();
    let first = fields.next()?;
    if first == "running" {
        return Some(Waiting::Running);
    }
    let number: i64 = first.parse().ok()?;
    let mut argument = || u64::from_str_radix(fields.next()?.trim_start_matches("0x"), 16).ok();
    let arguments = (argument(), argument(), argument());
    Some(match (call(number), arguments) {
        (Call::Read, (Some(descriptor), _, Some(most))) => Waiting::Read { descriptor, most },
        (Call::Select, _) => Waiting::Select,
        _ => Waiting::Other,
    })
}

enum Call {
    Read,
    Select,
    Other,
}

fn call(number: i64) -> Call {
    let selects = [
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait,
        libc::SYS_pselect6,
        libc::SYS_ppoll,
        libc::SYS_epoll_pwait,
        libc::SYS_epoll_pwait2,
    ];
    match number {
        libc::SYS_read => Call::Read,
        number if selects.contains(&number) => Call::Select,
        _ => Call::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_parentheses_and_blanks_is_parsed() {
        let text = "42 (a) b (c)) S 7 42 40 34816 42 4194304 1 2 3 4 10 20 30 40 20 0 1 0 100 1 1";
        let expected = Stat {
            pid: 42,
            name: "a) b (c)".into(),
            state: 'S',
            parent: 7,
            group: 42,
            session: 40,
            foreground: Some(42),
            cpu_ticks: 30,
            children_cpu_ticks: 70,
            start_ticks: 100,
        };
        assert_eq!(parse_stat(text), Some(expected));
        assert_eq!(parse_stat("42 (x"), None);
    }

    #[test]
    fn a_child_is_a_descendant_until_it_is_dead() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(descendants(std::process::id()).contains(&child.id()));
        assert!(resident(child.id()).is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!descendants(std::process::id()).contains(&child.id()));
        assert_eq!(stat(child.id()), None);
    }

    #[test]
    fn a_program_that_works_wants_to_run_and_one_that_waits_does_not() {
        for (script, expected) in [("while :; do :; done", true), ("read x", false)] {
            let mut shell = std::process::Command::new("sh")
                .args(["-c", &format!("sh -c '{script}'; :")])
                .stdin(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let began = std::time::Instant::now();
            // Until the inner shell is there and does what it is to do.
            while descendants(shell.id()).is_empty() || wants_to_run(shell.id()) != expected {
                assert!(began.elapsed() < std::time::Duration::from_mins(1), "{script}");
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            for pid in descendants(shell.id()) {
                let _gone = rustix::process::kill_process(
                    rustix::process::Pid::from_raw(pid.cast_signed()).unwrap(),
                    rustix::process::Signal::KILL,
                );
            }
            shell.kill().unwrap();
            shell.wait().unwrap();
        }
    }
}
