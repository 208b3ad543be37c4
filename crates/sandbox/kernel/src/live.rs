//! A kernel that is up, and what it does.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    time::Duration,
};

use gloveport_sys::session::Exit;
use rustix::process::Signal;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use crate::{
    channels::{ChannelError, Received},
    launch::Launched,
    message::{Content, Message},
};

/// How long one end of a cell is waited for after the other one. Output that still comes begins it anew.
const GRACE: Duration = Duration::from_secs(5);
/// Pauses between interrupts of a cell that ignores them.
const PAUSE: Duration = Duration::from_secs(2);
/// Time for one of the cells that run after the start.
const STARTUP: Duration = Duration::from_mins(1);
/// Time for the rest of the output of a kernel that has ended.
const REST: Duration = Duration::from_secs(1);
/// Time for a kernel to end by itself.
const FAREWELL: Duration = Duration::from_millis(400);

/// A kernel that is up.
pub(crate) struct Live {
    pub(crate) launched: Launched,
    exit: watch::Receiver<Option<Exit>>,
    /// Cells that run before any other.
    startup: VecDeque<String>,
    /// The directory that it was told last.
    directory: Option<PathBuf>,
    pub(crate) busy: Option<Busy>,
    /// When the cell that runs is interrupted again, and how often it was.
    interrupts: Option<(Instant, u32)>,
    /// Until then the next cell waits: for the answer to an interrupt, which would hit it otherwise, or for the end of a
    /// kernel that is about to leave.
    held: Option<Instant>,
    pub(crate) started: Instant,
    /// Cells of users that it has run.
    pub(crate) cells: u64,
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A cell that runs after the start.
    Startup,
    /// The change to the shell's directory.
    Directory,
    /// The cell whose turn it is.
    Cell,
    /// One that was reported already.
    Abandoned,
}

/// What the kernel does.
pub(crate) struct Busy {
    id: String,
    pub(crate) purpose: Purpose,
    raised: Option<bool>,
    idle: bool,
    /// When it counts as done, although one of its ends has not come.
    grace: Option<Instant>,
    /// When it is interrupted; for cells of users their own limit counts.
    deadline: Option<Instant>,
}

/// What has come from a kernel.
pub(crate) enum Happened {
    /// Something was shown by the cell whose turn it is.
    Shown(Content),
    /// A request is done.
    Done { purpose: Purpose, raised: bool },
    /// It ended.
    Exited(Exit),
    /// Its channels do not work.
    Broken(ChannelError),
    /// Nothing that matters.
    Nothing,
}

impl Live {
    pub(crate) fn new(launched: Launched, startup: &[String]) -> Self {
        let exit = launched.process.watch_exit();
        Self {
            launched,
            exit,
            startup: startup.iter().cloned().collect(),
            directory: None,
            busy: None,
            interrupts: None,
            held: None,
            started: Instant::now(),
            cells: 0,
        }
    }

    /// All cells that run before any other have run.
    pub(crate) fn is_ready(&self) -> bool {
        self.startup.is_empty() && self.busy.as_ref().is_none_or(|busy| busy.purpose != Purpose::Startup)
    }

    /// Waits for what comes next.
    pub(crate) async fn next(&mut self) -> Happened {
        let received = tokio::select! {
            received = self.launched.channels.receive() => received,
            exit = exited(&mut self.exit) => return Happened::Exited(exit),
        };
        match received {
            Ok(Received::Output(message)) => self.output(message),
            Ok(Received::Reply(Message { parent, content: Content::Reply { raised, leaves } })) => {
                if let Some(busy) = self.busy.as_mut().filter(|busy| busy.id == parent) {
                    if leaves {
                        self.held = Some(Instant::now() + GRACE);
                    }
                    busy.raised = Some(raised);
                    busy.grace = Some(Instant::now() + GRACE);
                }
                self.done_if_ended()
            }
            Ok(Received::Reply(_)) => Happened::Nothing,
            Ok(Received::Control) => {
                self.held = None;
                Happened::Nothing
            }
            Err(error) => Happened::Broken(error),
        }
    }

    fn output(&mut self, Message { parent, content }: Message) -> Happened {
        let gap = match &content {
            Content::Text { text, end: Some(end), .. } => self.launched.journal.arrived(text.len(), *end),
            _ => 0,
        };
        let Some(busy) = self.busy.as_mut().filter(|busy| busy.id == parent) else { return Happened::Nothing };
        if busy.raised.is_some() {
            busy.grace = Some(Instant::now() + GRACE);
        }
        match content {
            Content::Idle => {
                busy.idle = true;
                busy.grace = Some(Instant::now() + GRACE);
                self.done_if_ended()
            }
            Content::Text { text, end, is_error } if gap > 0 => {
                let text = format!("\n[{gap} bytes of output were lost here]\n{text}");
                self.shown(Content::Text { text, end, is_error })
            }
            content => self.shown(content),
        }
    }

    fn shown(&self, content: Content) -> Happened {
        let of_the_cell = self.busy.as_ref().is_some_and(|busy| busy.purpose == Purpose::Cell);
        if of_the_cell { Happened::Shown(content) } else { Happened::Nothing }
    }

    fn done_if_ended(&mut self) -> Happened {
        match self.busy.take_if(|busy| busy.idle && busy.raised.is_some()) {
            Some(busy) => self.done(&busy),
            None => Happened::Nothing,
        }
    }

    fn done(&mut self, busy: &Busy) -> Happened {
        self.interrupts = None;
        Happened::Done { purpose: busy.purpose, raised: busy.raised == Some(true) }
    }

    /// When something is to be done although nothing comes.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        let Some(busy) = &self.busy else { return self.held };
        let interrupt = self.interrupts.map(|(again, _)| again);
        [busy.grace, busy.deadline, interrupt].into_iter().flatten().min()
    }

    /// Does what is due.
    pub(crate) async fn on_time(&mut self) -> Happened {
        let now = Instant::now();
        self.held.take_if(|until| *until <= now);
        let due = |time: Option<Instant>| time.is_some_and(|time| time <= now);
        if let Some(busy) = self.busy.take_if(|busy| due(busy.grace)) {
            tracing::warn!("the kernel has not said that a cell is done; it counts as done");
            return self.done(&busy);
        }
        if let Some(busy) = self.busy.as_mut().filter(|busy| due(busy.deadline)) {
            busy.deadline = None;
            return self.interrupt_until_done().await;
        }
        if due(self.interrupts.map(|(again, _)| again)) {
            return self.interrupt_until_done().await;
        }
        Happened::Nothing
    }

    /// Interrupts what it does, once.
    pub(crate) async fn interrupt(&mut self) -> Happened {
        if self.busy.is_none() {
            return Happened::Nothing;
        }
        self.held = Some(Instant::now() + GRACE);
        self.launched.channels.interrupt().await.map_or_else(Happened::Broken, |()| Happened::Nothing)
    }

    /// Interrupts what it does, and again after a pause if that is ignored.
    pub(crate) async fn interrupt_until_done(&mut self) -> Happened {
        let count = self.interrupts.map_or(0, |(_, count)| count);
        self.interrupts = Some((Instant::now() + PAUSE, count + 1));
        if count.is_multiple_of(2) {
            return self.interrupt().await;
        }
        // The control channel needs the interpreter's lock, which the cell may hold; the signal does not.
        self.launched.process.signal_group(Signal::INT);
        Happened::Nothing
    }

    /// Begins what comes next; answers what that is for.
    pub(crate) async fn advance(
        &mut self,
        cell: Option<(&str, Option<&Path>)>,
    ) -> Result<Option<Purpose>, ChannelError> {
        if self.busy.is_some() || self.held.is_some() {
            return Ok(None);
        }
        let (code, purpose) = if let Some(code) = self.startup.pop_front() {
            (code, Purpose::Startup)
        } else {
            let Some((code, directory)) = cell else { return Ok(None) };
            match directory {
                Some(directory) if self.directory.as_deref() != Some(directory) => {
                    self.directory = Some(directory.to_owned());
                    (change_to(directory), Purpose::Directory)
                }
                _ => {
                    self.cells += 1;
                    (code.to_owned(), Purpose::Cell)
                }
            }
        };
        let deadline = (purpose == Purpose::Startup).then(|| Instant::now() + STARTUP);
        let id = self.launched.channels.execute(code, purpose == Purpose::Directory).await?;
        self.interrupts = None;
        self.busy = Some(Busy { id, purpose, raised: None, idle: false, grace: None, deadline });
        Ok(Some(purpose))
    }

    /// Ends what is left of a kernel that has ended, ends within `patience`, or is to end; answers what its cell had still
    /// shown.
    pub(crate) async fn bury(mut self, patience: Duration) -> (Exit, Vec<Content>) {
        if timeout(patience, exited(&mut self.exit)).await.is_err() {
            self.launched.process.signal(Signal::KILL);
        }
        let exit = exited(&mut self.exit).await;
        self.launched.process.end(Duration::ZERO).await;
        let mut contents = Vec::new();
        let mut journal = self.launched.journal;
        let id = self.busy.as_ref().filter(|busy| busy.purpose == Purpose::Cell).map(|busy| busy.id.clone());
        let rest = async {
            while let Some(Message { parent, content }) = self.launched.channels.rest().await {
                if let Content::Text { text, end: Some(end), .. } = &content {
                    journal.arrived(text.len(), *end);
                }
                if Some(&parent) == id.as_ref() {
                    contents.push(content);
                }
            }
        };
        // What had not been sent after that time never will be.
        let _rest_is_missing = timeout(REST, rest).await;
        match journal.missing() {
            Ok(missing) if id.is_some() => {
                if missing.lost > 0 {
                    let text = format!("\n[{} bytes of output were lost here]\n", missing.lost);
                    contents.push(Content::Text { text, end: None, is_error: false });
                }
                contents.push(Content::Text { text: missing.text, end: None, is_error: false });
            }
            Ok(_) => {}
            Err(error) => tracing::warn!("the journal of a kernel cannot be read: {error}"),
        }
        (exit, contents)
    }

    /// Asks the kernel to end, and ends it and all that it started.
    pub(crate) async fn close(mut self) {
        if self.launched.channels.shut_down().await.is_ok() {
            let _ended_or_not = timeout(FAREWELL, exited(&mut self.exit)).await;
        }
        self.launched.process.end(Duration::from_millis(100)).await;
    }
}

async fn exited(exit: &mut watch::Receiver<Option<Exit>>) -> Exit {
    let unknown = Exit { code: None, signal: None, cpu_micros: 0, peak_memory: 0 };
    exit.wait_for(Option::is_some).await.ok().and_then(|exit| *exit).unwrap_or(unknown)
}

/// The cell that changes the directory; `os` stays known to later cells, as with the reference.
fn change_to(directory: &Path) -> String {
    let mut literal = String::new();
    for character in directory.to_string_lossy().chars() {
        match character {
            '"' | '\\' => literal.extend(['\\', character]),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            '\0' => literal.push_str("\\0"),
            other => literal.push(other),
        }
    }
    format!("import os; os.chdir(\"{literal}\")")
}
