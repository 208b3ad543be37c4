//! Work on what others wrote, in a process apart.
//!
//! A parser that can recurse, loop or grow without a bound on foreign bytes must not do so in a server. It runs in a
//! child of its own: a program of ours, started with one open file and nothing else, that gives up all rights before it
//! reads the first byte ([`confine`]). Whatever the bytes do to it, [`Apart`] gets at most what it reads, within a time,
//! and ends and reaps the child when it is dropped.
//!
//! ```text
//! server ── file ──────────► child     no new descriptor, no other process, no network; bounded memory and time
//!    ▲                         │
//!    └──── output, complaints ─┘       pipes; nothing of what comes over them is trusted
//! ```
//!
//! The child ends with the thread that started it, however that ends: the kernel kills it then.

mod confine;
mod filter;

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read},
    os::{
        fd::AsFd as _,
        unix::process::{CommandExt as _, ExitStatusExt as _},
    },
    path::Path,
    process::{Child, ChildStderr, ChildStdout, Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::child;

pub use confine::{ChildLimits, ConfineError, confine};

/// Bytes of complaints that are kept.
const COMPLAINT: usize = 4 * 1024;
/// How long a child that has closed its output may take to end.
const END: Duration = Duration::from_secs(1);

/// Ends a child from elsewhere, as for a client that has left. It is for one child after the other.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    is_set: bool,
    child: Option<Child>,
}

impl Interrupt {
    /// Kills the child that runs, and keeps others from being started.
    pub fn interrupt(&self) {
        let mut state = self.lock();
        state.is_set = true;
        if let Some(child) = &mut state.child {
            // It may have ended already.
            let _ended = child.kill();
        }
    }

    /// Whether nobody waits any more.
    pub fn is_set(&self) -> bool {
        self.lock().is_set
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A child at work, whose output is read. Dropping it kills the child and takes its status.
#[derive(Debug)]
pub struct Apart {
    interrupt: Interrupt,
    output: ChildStdout,
    complaints: Option<ChildStderr>,
    complaint: Vec<u8>,
    patience: Duration,
}

/// How a child ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Its exit code, if it ended by itself.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What it wrote to its standard error, cut.
    pub complaint: String,
}

impl Apart {
    /// Starts a program with the file as its standard input, an empty environment and a process group of its own.
    /// `patience` is how long the reader of its output waits for it, all waits together.
    ///
    /// # Errors
    ///
    /// It can not be started, or the interrupt is set (`Interrupted`) or belongs to a child that runs (`ResourceBusy`).
    pub fn start(
        program: &Path,
        arguments: &[OsString],
        file: File,
        patience: Duration,
        interrupt: &Interrupt,
    ) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.args(arguments).env_clear().process_group(0);
        command.stdin(file).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut state = interrupt.lock();
        if state.is_set {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if state.child.is_some() {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let mut child = command.spawn()?;
        let pipes = (child.stdout.take(), child.stderr.take());
        state.child = Some(child);
        drop(state);
        let (Some(output), complaints) = pipes else { return Err(io::ErrorKind::BrokenPipe.into()) };
        Ok(Self { interrupt: interrupt.clone(), output, complaints, complaint: Vec::new(), patience })
    }

    /// Process id of the child.
    pub fn pid(&self) -> u32 {
        self.interrupt.lock().child.as_ref().map_or(0, Child::id)
    }

    /// Waits until there is output, or its end.
    fn wait(&mut self) -> io::Result<()> {
        loop {
            let timeout = Timespec::try_from(self.patience).map_err(io::Error::other)?;
            let began = Instant::now();
            let (is_ready, complains) = {
                let mut polled = Vec::with_capacity(2);
                polled.push(PollFd::new(&self.output, PollFlags::IN));
                polled.extend(self.complaints.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
                match poll(&mut polled, Some(&timeout)) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
                let is_up = |at: usize| polled.get(at).is_some_and(|one| !one.revents().is_empty());
                (is_up(0), is_up(1))
            };
            self.patience = self.patience.saturating_sub(began.elapsed());
            if complains {
                self.listen();
            }
            if is_ready {
                return Ok(());
            }
            if self.patience.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    /// Takes what the child complains about.
    fn listen(&mut self) {
        let mut buffer = [0; 1024];
        let Some(pipe) = &mut self.complaints else { return };
        match pipe.read(&mut buffer) {
            Ok(0) => self.complaints = None,
            Ok(length) => {
                let room = COMPLAINT - self.complaint.len();
                self.complaint.extend_from_slice(&buffer[..length.min(room)]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.complaints = None,
        }
    }

    /// How the child ended whose output has come to its end. One that does not end then is killed.
    ///
    /// # Errors
    ///
    /// Its status can not be had.
    pub fn end(mut self) -> io::Result<End> {
        let Some(mut child) = self.interrupt.lock().child.take() else { return Err(io::ErrorKind::NotFound.into()) };
        let _ends_by_itself = child::ends_within(child.id(), END);
        // Nothing happens to one that has ended.
        child.kill()?;
        let status = child.wait()?;
        while let Some(pipe) = &self.complaints {
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            let waits = poll(&mut [PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)], Some(&now));
            if !matches!(waits, Ok(1..)) {
                break;
            }
            self.listen();
        }
        let complaint = String::from_utf8_lossy(&self.complaint).into_owned();
        Ok(End { code: status.code(), signal: status.signal(), complaint })
    }
}

impl Read for Apart {
    /// Reads output of the child; none at its end. When its time is over the error is `TimedOut`.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait()?;
        self.output.read(buffer)
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        let child = self.interrupt.lock().child.take();
        if let Some(mut child) = child {
            let _ended = child.kill();
            let _status = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Seek as _;

    use super::*;
    use crate::process;

    fn shell(script: &str, patience: Duration, interrupt: &Interrupt) -> Apart {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, b"content").unwrap();
        file.rewind().unwrap();
        Apart::start(Path::new("/bin/sh"), &["-c".into(), script.into()], file, patience, interrupt).unwrap()
    }

    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn the_child_has_the_file_and_no_environment_and_its_end_is_told() {
        let interrupt = Interrupt::default();
        let mut apart = shell("cat; /usr/bin/env | grep -v ^PWD= >&2; echo complaint >&2; exit 3", LONG, &interrupt);
        let pid = apart.pid();
        let mut output = String::new();
        apart.read_to_string(&mut output).unwrap();
        assert_eq!(output, "content");
        let end = apart.end().unwrap();
        let complaint = end.complaint.replace("_=/usr/bin/env\n", "").replace("SHLVL=0\n", "");
        assert_eq!((end.code, end.signal, complaint.as_str()), (Some(3), None, "complaint\n"));
        assert_eq!(process::stat(pid), None);
        assert!(!interrupt.is_set());
    }

    #[test]
    fn a_child_that_says_nothing_is_given_up_and_leaves_nothing() {
        let mut apart = shell("exec sleep 60", Duration::from_millis(50), &Interrupt::default());
        let pid = apart.pid();
        assert_eq!(apart.read(&mut [0; 8]).unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(process::stat(pid).is_some());
        drop(apart);
        assert_eq!(process::stat(pid), None);
    }

    #[test]
    fn endless_complaints_are_cut_and_do_not_hold_up_the_output() {
        let script = "head -c 1000000 /dev/zero | tr '\\0' x >&2; echo done; kill -SEGV $$";
        let mut apart = shell(script, LONG, &Interrupt::default());
        let mut output = String::new();
        apart.read_to_string(&mut output).unwrap();
        assert_eq!(output, "done\n");
        let end = apart.end().unwrap();
        assert_eq!((end.code, end.signal, end.complaint.len()), (None, Some(11), COMPLAINT));
    }

    #[test]
    fn an_interrupt_ends_the_child_and_lets_none_begin() {
        let interrupt = Interrupt::default();
        let mut apart = shell("exec sleep 60", LONG, &interrupt);
        let other = interrupt.clone();
        let busy = Apart::start(Path::new("/bin/true"), &[], tempfile::tempfile().unwrap(), LONG, &interrupt);
        assert_eq!(busy.unwrap_err().kind(), io::ErrorKind::ResourceBusy);
        let waiting = std::thread::spawn(move || {
            let read = apart.read(&mut [0; 8]).unwrap();
            (read, apart.end().unwrap().signal)
        });
        other.interrupt();
        assert_eq!(waiting.join().unwrap(), (0, Some(9)));
        let late = Apart::start(Path::new("/bin/true"), &[], tempfile::tempfile().unwrap(), LONG, &interrupt);
        assert_eq!(late.unwrap_err().kind(), io::ErrorKind::Interrupted);
    }

    #[test]
    fn a_child_that_closes_its_output_and_stays_is_ended() {
        let mut apart = shell("exec sleep 60 >&- 2>&-", LONG, &Interrupt::default());
        assert_eq!(apart.read(&mut [0; 8]).unwrap(), 0);
        assert_eq!(apart.end().unwrap().signal, Some(9));
    }
}
