//! One command: its processes, its terminal, its output, its end (local-and-cli-runtime B4.1).

use std::{
    ffi::OsString,
    fs,
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gloveport_sys::{
    Exit, SessionProcess, Spawner,
    process::{self, Waiting},
    pty::{self, Pty},
};
use gloveport_terminal::{ControlKey, in_parts};
use rustix::{io::Errno, pipe::PipeFlags, process::Signal};
use tokio::{
    io::{AsyncReadExt as _, unix::AsyncFd},
    net::unix::pipe,
    sync::{mpsc, watch},
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    launch::{asking, spawn_text, spec},
    runtime::{CommandInput, Listener},
    transcript::{Lines, Newlines, Transcript},
};

/// How long a command has to end by itself when it is told to.
pub const GRACE: Duration = Duration::from_secs(2);
/// How long the output of an ended command is waited for that something in the background holds open.
const DRAIN: Duration = Duration::from_millis(100);
/// How often a command that is silent is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// How long a command has to take what is typed.
const TYPING: Duration = Duration::from_secs(5);
/// How often the processes that a command left are looked at.
const BACKGROUND_LOOK: Duration = Duration::from_secs(1);
/// How often it is looked whether the processes of a command that was told to end are gone.
const ENDING_LOOK: Duration = Duration::from_millis(5);
/// Bytes that are read at once.
const PIECE: usize = 64 * 1024;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Exited(Exit),
    TimedOut,
    /// With the runtime.
    Closed,
}

/// Why a wait for a command is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    Ended(End),
    /// It waits for input.
    ForInput,
    /// The limit of the wait has passed.
    Limit,
}

/// How to start a command.
#[derive(Debug)]
pub(crate) struct Start<'a> {
    pub(crate) text: &'a str,
    pub(crate) directory: &'a Path,
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// When it is ended.
    pub(crate) deadline: Option<Instant>,
    pub(crate) input: CommandInput,
    pub(crate) spawner: &'a Spawner,
    pub(crate) listener: Listener,
    pub(crate) closing: CancellationToken,
}

/// A command that was started.
#[derive(Debug)]
pub(crate) struct Command {
    pid: u32,
    /// None if its standard input is that of this process.
    terminal: Option<Terminal>,
    output: Mutex<Output>,
    orders: mpsc::Sender<Order>,
    end: watch::Sender<Option<End>>,
}

/// Where a command is answered.
#[derive(Debug)]
struct Terminal {
    master: AsyncFd<OwnedFd>,
    slave: OwnedFd,
}

#[derive(Debug)]
enum Order {
    Deadline(Option<Instant>),
    Signal(Signal),
}

#[derive(Debug)]
struct Output {
    transcript: Transcript,
    lines: Lines,
    listener: Listener,
    /// When the latest of it came.
    latest: Instant,
}

/// What was started, for whoever follows it to its end.
pub(crate) struct Running {
    command: Arc<Command>,
    process: SessionProcess,
    pipe: pipe::Receiver,
    orders: mpsc::Receiver<Order>,
    deadline: Option<Instant>,
    closing: CancellationToken,
}

impl Command {
    /// Starts it. Somebody has to [`follow`](Running::follow) what this gives.
    ///
    /// # Errors
    ///
    /// The text of the reference's error.
    pub(crate) async fn start(start: Start<'_>) -> Result<(Arc<Self>, Running), String> {
        let system = |error: std::io::Error| gloveport_sys::os_error::numbered(&error);
        if start.text.contains('\0') {
            return Err("embedded null byte".to_owned());
        }
        // A program that can not enter its directory would start in ours.
        if !start.directory.is_dir() {
            let error = std::io::Error::from(Errno::NOENT);
            return Err(gloveport_sys::os_error::described(&error, start.directory));
        }
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|error| system(error.into()))?;
        let spec = spec(start.text, start.directory, start.environment)?;
        let (process, terminal) = match start.input {
            CommandInput::Terminal => {
                let Pty { master, slave } = pty::open(80, 24).map_err(system)?;
                let master = pty::watch(master).map_err(system)?;
                let (spec, startup) = asking(spec).map_err(system)?;
                let descriptors = [startup.as_fd(), writer.as_fd(), writer.as_fd(), slave.as_fd()];
                (start.spawner.spawn(&spec, &descriptors).await, Some(Terminal { master, slave }))
            }
            CommandInput::Inherited => {
                let input = std::io::stdin();
                let descriptors = [input.as_fd(), writer.as_fd(), writer.as_fd()];
                (start.spawner.spawn(&spec, &descriptors).await, None)
            }
        };
        let process = process.map_err(|error| spawn_text(&error))?;
        drop(writer);
        let (orders, received) = mpsc::channel(16);
        let command = Arc::new(Self {
            pid: process.pid(),
            terminal,
            output: Mutex::new(Output {
                transcript: Transcript::default(),
                lines: Lines::default(),
                listener: start.listener,
                latest: Instant::now(),
            }),
            orders,
            end: watch::Sender::new(None),
        });
        let running = Running {
            command: Arc::clone(&command),
            process,
            pipe: pipe::Receiver::from_owned_fd(reader).map_err(system)?,
            orders: received,
            deadline: start.deadline,
            closing: start.closing,
        };
        Ok((command, running))
    }

    /// Waits until it ended, until it waits for input and was silent for `patience`, or until `limit`.
    pub(crate) async fn wait(&self, patience: Option<Duration>, limit: Option<Instant>) -> Waited {
        let mut end = self.end.subscribe();
        let began = Instant::now();
        let mut look = patience.map(|patience| began + patience);
        loop {
            tokio::select! {
                biased;
                ended = end.wait_for(Option::is_some) => {
                    return Waited::Ended(ended.map_or(End::Closed, |end| end.unwrap_or(End::Closed)));
                }
                () = until(look) => {
                    let now = Instant::now();
                    let patience = patience.unwrap_or_default();
                    let silent_since = self.output().latest.max(began);
                    if now < silent_since + patience {
                        look = Some(silent_since + patience);
                    } else if self.waits_for_input() {
                        return Waited::ForInput;
                    } else {
                        look = Some(now + LOOK);
                    }
                }
                () = until(limit) => return Waited::Limit,
            }
        }
    }

    /// Lets it go on without a time limit.
    pub(crate) async fn without_deadline(&self) {
        // If nobody receives it, it ended.
        let _ended = self.orders.send(Order::Deadline(None)).await;
    }

    /// Whether it ended, even if that is not told yet.
    pub(crate) fn is_over(&self) -> bool {
        self.end().is_some() || process::stat(self.pid).is_none_or(|stat| stat.state == 'Z')
    }

    /// How it ended, if it did.
    pub(crate) fn end(&self) -> Option<End> {
        *self.end.borrow()
    }

    /// What it wrote since this was asked the last time.
    pub(crate) fn take_output(&self) -> String {
        let mut output = self.output();
        output.flush();
        output.transcript.take()
    }

    /// Types a text with Enter, or a key alone.
    ///
    /// # Errors
    ///
    /// It does not read what is typed, or its terminal is gone; the text says which.
    pub(crate) async fn type_in(&self, text: &str) -> Result<(), String> {
        let Some(Terminal { master, slave }) = &self.terminal else {
            return Err("its standard input is not a terminal of its own".to_owned());
        };
        let modes = pty::modes(master.get_ref()).map_err(|error| gloveport_sys::os_error::numbered(&error))?;
        let typed = if let Some(byte) = ControlKey::parse(text).and_then(ControlKey::byte) {
            let signal = match byte {
                0x03 => Some(Signal::INT),
                0x1c => Some(Signal::QUIT),
                _ => None,
            };
            // The terminal is nobody's controlling one, so it sends no signals itself.
            if let Some(signal) = signal.filter(|_| modes.signals) {
                let _nothing_typed = pty::discard_input(slave);
                let _ended = self.orders.send(Order::Signal(signal)).await;
                return Ok(());
            }
            vec![byte]
        } else {
            let mut typed = if modes.canonical { in_parts(text) } else { text.as_bytes().to_vec() };
            typed.push(b'\n');
            typed
        };
        self.output().latest = Instant::now();
        match timeout(TYPING, write(master, &typed)).await {
            Ok(written) => written.map_err(|error| gloveport_sys::os_error::numbered(&error)),
            Err(_) => Err(format!(
                "the command does not read its input; a part of it was taken within {} s",
                TYPING.as_secs()
            )),
        }
    }

    /// Whether one of its processes waits for somebody to type.
    fn waits_for_input(&self) -> bool {
        let Some(Terminal { master, slave }) = &self.terminal else { return false };
        if pty::unread_input(slave) > 0 {
            return false;
        }
        let Ok(modes) = pty::modes(master.get_ref()) else { return false };
        let Ok(terminal) = fs::read_link(format!("/proc/self/fd/{}", slave.as_raw_fd())) else { return false };
        let on_terminal = |pid: u32, descriptor: u64| {
            fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).is_ok_and(|found| found == terminal)
        };
        std::iter::once(self.pid).chain(process::descendants(self.pid)).any(|pid| match process::waiting(pid) {
            Some(Waiting::Read { descriptor, .. }) => on_terminal(pid, descriptor),
            // Who takes each key as it comes mostly waits in a `select`.
            Some(Waiting::Select) => !modes.canonical && on_terminal(pid, 0),
            _ => false,
        })
    }

    fn output(&self) -> MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads all output until its end, and keeps it while `is_kept`.
    async fn pump(&self, pipe: &mut pipe::Receiver, is_kept: &watch::Receiver<bool>) {
        let (mut piece, mut typed) = (vec![0; PIECE], [0; 4096]);
        let (mut newlines, mut terminal_newlines) = (Newlines::default(), Newlines::default());
        loop {
            tokio::select! {
                read = pipe.read(&mut piece) => {
                    let length = match read {
                        Ok(0) | Err(_) => return,
                        Ok(length) => length,
                    };
                    self.output().add(piece[..length].to_vec(), &mut newlines, *is_kept.borrow());
                }
                length = read_terminal(self.terminal.as_ref(), &mut typed) => {
                    self.output().add(typed[..length].to_vec(), &mut terminal_newlines, *is_kept.borrow());
                }
            }
        }
    }

    /// Keeps what was written to the terminal itself and not read yet.
    fn drain_terminal(&self) {
        let Some(Terminal { master, .. }) = &self.terminal else { return };
        let mut bytes = [0; 4096];
        while let Ok(length @ 1..) = rustix::io::read(master.get_ref(), &mut bytes) {
            self.output().add(bytes[..length].to_vec(), &mut Newlines::default(), true);
        }
    }
}

impl Output {
    fn add(&mut self, mut bytes: Vec<u8>, newlines: &mut Newlines, is_kept: bool) {
        if !is_kept {
            return;
        }
        newlines.convert(&mut bytes);
        self.latest = Instant::now();
        self.transcript.push(&bytes);
        if let Some(tell) = self.listener.current() {
            self.lines.push(&bytes, |line| tell(line));
        }
    }

    fn flush(&mut self) {
        if let Some(tell) = self.listener.current() {
            self.lines.flush(|line| tell(line));
        }
    }
}

impl Running {
    /// Follows the command to its end, and what it left running to the end of the runtime.
    pub(crate) async fn follow(self) {
        let Self { command, mut process, mut pipe, mut orders, mut deadline, closing } = self;
        let (keeps, is_kept) = watch::channel(true);
        let pump = command.pump(&mut pipe, &is_kept);
        tokio::pin!(pump);
        let mut at_end = false;
        let end = loop {
            tokio::select! {
                exit = process.exited() => break End::Exited(exit),
                () = &mut pump, if !at_end => at_end = true,
                Some(order) = orders.recv() => match order {
                    Order::Deadline(other) => deadline = other,
                    Order::Signal(signal) => process.signal_group(signal),
                },
                () = until(deadline) => break End::TimedOut,
                () = closing.cancelled() => break End::Closed,
            }
        };
        if end == End::TimedOut {
            for signal in [Signal::TERM, Signal::CONT] {
                process.signal_group(signal);
            }
            let killed_at = Instant::now() + GRACE;
            // What a shell has started may need longer than the shell; nothing tells when it is gone.
            while !(process.exit().is_some() && (at_end || process.group_is_gone())) && Instant::now() < killed_at {
                tokio::select! {
                    () = tokio::time::sleep(ENDING_LOOK) => {}
                    () = &mut pump, if !at_end => at_end = true,
                }
            }
        }
        let mut left = None;
        if let End::Exited(_) = end {
            if !at_end {
                at_end = timeout(DRAIN, &mut pump).await.is_ok();
            }
            left = Some(process);
        } else {
            let grace = if end == End::Closed { GRACE } else { Duration::ZERO };
            let mut ended = std::pin::pin!(process.end(grace));
            loop {
                tokio::select! {
                    () = &mut ended => break,
                    () = &mut pump, if !at_end => at_end = true,
                }
            }
            if !at_end {
                // Only something that detached itself can hold it open now.
                at_end = timeout(DRAIN, &mut pump).await.is_ok();
            }
        }
        command.drain_terminal();
        command.output().flush();
        command.end.send_replace(Some(end));
        drop(orders);
        keeps.send_replace(false);
        let Some(process) = left else { return };
        // What still runs must be able to write, and ends with the runtime.
        while !process.group_is_gone() {
            tokio::select! {
                () = &mut pump, if !at_end => at_end = true,
                () = tokio::time::sleep(BACKGROUND_LOOK) => {}
                () = closing.cancelled() => {
                    process.end(GRACE).await;
                    return;
                }
            }
        }
    }
}

/// What is written to the terminal itself; never ends without one.
async fn read_terminal(terminal: Option<&Terminal>, bytes: &mut [u8]) -> usize {
    let Some(Terminal { master, .. }) = terminal else { return std::future::pending().await };
    loop {
        let Ok(mut ready) = master.readable().await else { return std::future::pending().await };
        if let Ok(Ok(length @ 1..)) = ready.try_io(|master| Ok(rustix::io::read(master.get_ref(), &mut *bytes)?)) {
            return length;
        }
    }
}

async fn write(master: &AsyncFd<OwnedFd>, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let mut ready = master.writable().await?;
        if let Ok(written) = ready.try_io(|master| Ok(rustix::io::write(master.get_ref(), bytes)?)) {
            bytes = &bytes[written?..];
        }
    }
    Ok(())
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
