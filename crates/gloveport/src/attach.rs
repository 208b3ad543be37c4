//! A terminal of a sandbox on the terminal of a person.
//!
//! Ours is in raw mode, so every key goes to the program there. What its programs switched on in ours is switched off
//! when it is left, and its modes are brought back in every case.

mod keys;
mod local;
mod sequences;

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode};

use gloveport_client::{
    ActionExecutionClient, AttachOptions, AttachedTerminal, ClientError, TerminalEvent, TerminalInput,
};
use gloveport_protocol::terminals::{TerminalRequest, TerminalStatus};
use tokio::sync::mpsc;

use crate::{
    signals::{Kind, Signal},
    terminal::{self, RawMode},
    visible,
};
use keys::Watch;
use local::Output;
use sequences::Sequences;

pub(crate) use keys::DetachKeys;

/// Output that is shown again when somebody comes back: enough for the screen of a full-screen program.
const REPLAY: u64 = 64 * 1024;
/// How often a lost connection is made again: for about two minutes, so that a machine may change its network.
const ATTEMPTS: u32 = 60;
/// The end of the input, as a terminal knows it.
const END: u8 = 0x04;

/// What to attach to, and how.
pub(crate) struct AttachRequest {
    /// Id of the terminal. One that is known is attached to, and one that is not is started; a random one if there is
    /// none.
    pub(crate) id: Option<String>,
    /// Program and arguments; the shell of the sandbox's user, or whatever runs under the id, if there are none.
    pub(crate) argv: Option<Vec<String>>,
    /// Directory to start in; where the sandbox's shell is if there is none.
    pub(crate) cwd: Option<PathBuf>,
    /// Variables to add to the environment. `TERM` and `COLORTERM` of ours are added by themselves.
    pub(crate) env: BTreeMap<String, String>,
    /// Keys that leave the terminal.
    pub(crate) detach_keys: DetachKeys,
    /// A person sits at our end. Without one, or if standard input is no terminal, input is passed on as it comes, with
    /// its end.
    pub(crate) tty: bool,
    /// The command that attaches again to the terminal of an id, for people.
    pub(crate) again: Box<dyn Fn(&str) -> String + Send + Sync>,
}

/// How an attached terminal was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attached {
    /// The program ended with this status, as a shell reports it.
    Ended(i32),
    /// By the keys. The terminal lives on.
    Detached,
    /// By a signal to us, of this number. The terminal lives on.
    Terminated(u8),
}

impl Attached {
    /// The exit code that tells it: that of the program, 0 for a detached one, and 128 plus the number of a signal.
    pub(crate) fn exit_code(self) -> ExitCode {
        match self {
            Self::Ended(code) => ExitCode::from(u8::try_from(code & 0xff).unwrap_or(crate::exit::OWN_FAILURE)),
            Self::Detached => ExitCode::SUCCESS,
            Self::Terminated(signal) => ExitCode::from(128 | signal),
        }
    }
}

/// Attaches, until the program ends or the terminal is left.
pub(crate) async fn attach(client: &ActionExecutionClient, request: AttachRequest) -> anyhow::Result<Attached> {
    let terminals = client.terminals();
    let (status, is_new) = find_or_start(client, &request).await?;
    let offset = if is_new { status.start } else { status.end.saturating_sub(REPLAY).max(status.start) };
    let options = AttachOptions { offset: Some(offset), size: terminal::size(), attempts: ATTEMPTS };
    let mut terminal = terminals.attach(&status.id, options).await?;
    let mut signals = Signals::listen()?;
    let raw_mode = if request.tty { RawMode::set()? } else { None };
    let is_person = raw_mode.is_some();
    let output = Output::start()?;
    let id = terminal.id().to_owned();

    let input = terminal.input();
    let keys = if is_person { request.detach_keys.clone() } else { DetachKeys::none() };
    let mut typist = Typist { input: input.clone(), watch: Watch::new(keys), is_person, at_line_start: true };
    // The questions of a program that has only begun are for us.
    let history_end = if is_new || !is_person { 0 } else { terminal.history_end() };
    let mut screen = Screen {
        sequences: Sequences::default(),
        history_end,
        cut: offset > status.start,
        input: input.clone(),
        is_person,
    };
    if !is_new {
        screen.draw_anew().await;
    }
    let left = tokio::select! {
        end = screen.show(&mut terminal, &output) => end,
        () = typist.type_in(local::input(is_person)?) => Ok(Attached::Detached),
        number = signals.follow(&input, raw_mode.as_ref()) => Ok(Attached::Terminated(number)),
    };
    if matches!(left, Ok(Attached::Detached)) {
        terminal.detach().await;
    }
    let mut last = screen.sequences.undo();
    if is_person && !matches!(left, Ok(Attached::Ended(_))) {
        last.extend_from_slice(b"\r\n");
    }
    let finished = output.finish(last).await;
    drop(raw_mode);
    let again = || format!("attach again with: {}", (request.again)(&id));
    // In words, so that nobody takes it for a server that was never reached.
    let left = left.map_err(|error| anyhow::anyhow!("terminal {id} is left, and may go on: {error}; {}", again()))?;
    finished?;
    match left {
        Attached::Detached | Attached::Terminated(_) => {
            tell(false, &format!("left terminal {id}, which goes on; {}", again()));
        }
        Attached::Ended(_) => {}
    }
    Ok(left)
}

/// The terminal that is asked for, and whether it was started now.
async fn find_or_start(
    client: &ActionExecutionClient,
    request: &AttachRequest,
) -> anyhow::Result<(TerminalStatus, bool)> {
    let terminals = client.terminals();
    let mut is_new = true;
    if let Some(id) = &request.id {
        match terminals.status(id).await {
            Err(ClientError::Status(error)) if error.status.as_u16() == 404 && error.native.is_some() => {}
            Ok(_) if request.argv.is_some() => is_new = false,
            known => return Ok((known?, false)),
        }
    }
    let mut env = request.env.clone();
    for name in ["TERM", "COLORTERM"] {
        if let Ok(value) = std::env::var(name)
            && !value.is_empty()
        {
            env.entry(name.to_owned()).or_insert(value);
        }
    }
    let mut start = TerminalRequest {
        id: request.id.clone(),
        argv: request.argv.clone(),
        cwd: request.cwd.clone(),
        env,
        ..TerminalRequest::default()
    };
    if let Some(size) = terminal::size() {
        (start.columns, start.rows) = (size.columns, size.rows);
    }
    Ok((terminals.start(start).await?, is_new))
}

/// What is shown.
struct Screen {
    sequences: Sequences,
    /// End of what was written before we came, which is shown once more.
    history_end: u64,
    input: TerminalInput,
    /// The beginning is missing, so it is shown from the next line on.
    cut: bool,
    is_person: bool,
}

impl Screen {
    /// Shows what comes, to the end.
    async fn show(&mut self, terminal: &mut AttachedTerminal, output: &Output) -> anyhow::Result<Attached> {
        loop {
            let Some(place) = output.place().await else {
                anyhow::bail!("standard output is closed");
            };
            match terminal.next().await? {
                Some(TerminalEvent::Output { offset, bytes }) => {
                    let mut shown = Vec::with_capacity(bytes.len());
                    self.take(offset, &bytes, &mut shown);
                    place.send(shown);
                }
                Some(TerminalEvent::Ended(exit)) => return Ok(Attached::Ended(exit.exit_code)),
                Some(TerminalEvent::Gap { from, to }) => {
                    tell(self.is_person, &format!("{} bytes of output are lost: they came too fast", to - from));
                }
                Some(TerminalEvent::Refused(reason)) => tracing::debug!(reason, "refused"),
                Some(TerminalEvent::Reconnecting { attempt: 1, reason }) => {
                    tell(self.is_person, &format!("the connection is lost and made again ({reason})"));
                }
                Some(TerminalEvent::Reconnecting { .. }) => {}
                Some(TerminalEvent::Reconnected { input_in_doubt }) => {
                    let doubt = if input_in_doubt { "; what was typed last may be lost" } else { "" };
                    tell(self.is_person, &format!("connected again{doubt}"));
                    self.draw_anew().await;
                }
                None => anyhow::bail!("the terminal ended without a status"),
            }
        }
    }

    fn take(&mut self, offset: u64, bytes: &[u8], shown: &mut Vec<u8>) {
        let history = usize::try_from(self.history_end.saturating_sub(offset)).unwrap_or(usize::MAX);
        let (mut old, new) = bytes.split_at(history.min(bytes.len()));
        if self.cut && !old.is_empty() {
            // A sequence may be cut off, too, and none goes over the end of a line.
            let line = old.iter().position(|byte| *byte == b'\n').map(|end| end + 1);
            old = line.and_then(|line| old.get(line..)).unwrap_or_default();
            self.cut = line.is_none();
        }
        self.sequences.replayed(old, shown);
        if self.history_end > 0 && offset <= self.history_end && !new.is_empty() {
            self.sequences.end_of_replay(shown);
        }
        self.sequences.live(new, shown);
    }

    /// Lets a full-screen program draw its screen anew.
    async fn draw_anew(&self) {
        if self.is_person {
            // Whether somebody is attached is told elsewhere.
            let _attached = self.input.signal("WINCH").await;
        }
    }
}

/// What is typed.
struct Typist {
    input: TerminalInput,
    watch: Watch,
    is_person: bool,
    /// The last byte ended a line, so the end of the input is taken for one.
    at_line_start: bool,
}

impl Typist {
    /// Passes on what is typed, until the keys are typed that leave.
    async fn type_in(&mut self, mut typed: mpsc::Receiver<Vec<u8>>) {
        while let Some(piece) = typed.recv().await {
            let mut passed = Vec::with_capacity(piece.len());
            let leaves = self.watch.feed(&piece, &mut passed);
            self.at_line_start = passed.last().map_or(self.at_line_start, |last| matches!(last, b'\n' | b'\r'));
            // Nobody is attached any more when this fails, which is told elsewhere.
            let _attached = self.input.send(passed).await;
            if leaves {
                return;
            }
        }
        if self.is_person {
            // Our terminal is gone.
            return;
        }
        // Behind a part of a line, the first one only hands over that part.
        let ends = vec![END; if self.at_line_start { 1 } else { 2 }];
        let _attached = self.input.send(ends).await;
        std::future::pending::<()>().await;
    }
}

/// Signals to us.
struct Signals {
    size: Signal,
    go_on: Signal,
    interrupt: Signal,
    hang_up: Signal,
    quit: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            size: Signal::listen(Kind::Resized)?,
            go_on: Signal::listen(Kind::GoOn)?,
            interrupt: Signal::listen(Kind::Interrupt)?,
            hang_up: Signal::listen(Kind::HangUp)?,
            quit: Signal::listen(Kind::Quit)?,
            terminate: Signal::listen(Kind::Terminate)?,
        })
    }

    /// Follows them until one says that we must end; answers with its number.
    async fn follow(&mut self, input: &TerminalInput, raw_mode: Option<&RawMode>) -> u8 {
        loop {
            tokio::select! {
                () = self.size.recv() => {}
                () = self.go_on.recv() => if let Some(raw_mode) = raw_mode {
                    raw_mode.again();
                },
                () = self.interrupt.recv() => {
                    let _attached = input.signal("INT").await;
                }
                () = self.hang_up.recv() => return 1,
                () = self.quit.recv() => return 3,
                () = self.terminate.recv() => return 15,
            }
            if let Some(size) = terminal::size() {
                input.resize(size);
            }
        }
    }
}

/// Tells a person something, on a line of its own; a terminal in raw mode does not begin one by itself.
#[expect(clippy::print_stderr, reason = "this is output for people")]
fn tell(is_person: bool, text: &str) {
    let text = visible::lines(text);
    if is_person {
        eprint!("\r\n[{text}]\r\n");
    } else {
        eprintln!("[{text}]");
    }
}
