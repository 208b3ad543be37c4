//! One command: what was sent for it, how far it is, and what the session's shell does.

use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempPath;
use tokio::time::Instant;

use super::{
    course::{Course, Event, Found, ShellSeen, Verdict},
    held::Held,
    watch::Watch,
};
use crate::request::Usage;

/// The number of the next command of this process, whatever its shell.
static COMMANDS: AtomicU64 = AtomicU64::new(1);

/// What the shell is doing.
#[derive(Debug, Default)]
pub(super) enum Phase {
    /// At its prompt, and everything is reported but what background jobs write.
    #[default]
    Idle,
    /// A command runs.
    Running(Box<Command>),
    /// A command ended, and nobody was told so far.
    Finished { status: i32, command: Box<Command> },
}

impl Phase {
    pub(super) fn is_running(&self) -> bool {
        matches!(self, Self::Running(_))
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }

    /// The command that runs.
    pub(super) fn running(&mut self) -> Option<&mut Command> {
        match self {
            Self::Running(command) => Some(command),
            Self::Idle | Self::Finished { .. } => None,
        }
    }

    /// The running command ended.
    pub(super) fn finish(&mut self, status: i32) {
        *self = match std::mem::take(self) {
            Self::Idle => Self::Idle,
            Self::Running(command) | Self::Finished { command, .. } => Self::Finished { status, command },
        };
    }

    /// Back to the prompt; gives the command, whose end is told now.
    pub(super) fn take(&mut self) -> Option<Box<Command>> {
        match std::mem::take(self) {
            Self::Idle => None,
            Self::Running(command) | Self::Finished { command, .. } => Some(command),
        }
    }
}

/// A command that was sent to the shell.
#[derive(Debug)]
pub(super) struct Command {
    /// Its number in the audit log.
    pub(super) number: u64,
    text: String,
    extent: Extent,
    course: Course,
    /// Keys that are still to be pressed for it.
    pub(super) held: Held,
    /// When its processes are looked at.
    pub(super) watch: Watch,
    /// A file that the shell is told to read: the text, when it is handed over, or the lesson.
    file: Option<TempPath>,
    /// Attempts to install the lost hook again.
    rearmed: u32,
}

/// What is known about a text that was typed to the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// The shell may wait for more of it.
    Open,
    /// It is complete.
    Whole,
    /// The shell replaced itself and was taught to report: what it showed until then is of no interest.
    Replaced,
}

impl Command {
    /// A text that was typed to the shell at its prompt.
    pub(super) fn typed(text: &str, lines: usize, extent: Extent, file: Option<TempPath>) -> Box<Self> {
        Box::new(Self {
            number: COMMANDS.fetch_add(1, Ordering::Relaxed),
            text: text.to_owned(),
            extent,
            course: Course::of_lines(lines),
            held: Held::default(),
            watch: Watch::begin(),
            file,
            rearmed: 0,
        })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Something happened to it.
    pub(super) fn on(&mut self, event: Event) -> Verdict {
        let now = Instant::now();
        let verdict = self.course.on(event, now);
        if event == Event::AskedForMore && self.is_asking() {
            self.watch.probe_at(now);
        }
        verdict
    }

    /// Looks how far it is, for what no event tells.
    pub(super) fn look(&mut self, now: Instant, shell: &impl ShellSeen) -> Found {
        self.course.look(now, shell)
    }

    /// Output was seen.
    pub(super) fn output_seen(&mut self) {
        self.course.output_seen();
        self.watch.output_seen();
    }

    /// When to look at it, or at its processes.
    pub(super) fn next_look(&self) -> Instant {
        let looks = self.course.next_look().into_iter().chain(self.held.next_look());
        looks.fold(self.watch.next_look(), Instant::min)
    }

    /// The shell waits for more of it.
    pub(super) fn is_asking(&self) -> bool {
        self.course.is_asking()
    }

    /// Whether a shell that reads its next command and did not report can only have lost its hook.
    pub(super) fn must_be_over(&self) -> bool {
        self.extent == Extent::Whole && self.course.is_unshared()
    }

    /// Whether a shell that reads from a pipe can not take the lesson for a part of the command, and has not got it yet.
    pub(super) fn wants_lesson(&self) -> bool {
        self.must_be_over() && self.course.is_plain()
    }

    /// Whether the hook may be installed once more.
    pub(super) fn may_rearm(&mut self) -> bool {
        self.rearmed += 1;
        self.rearmed <= 2
    }

    /// The shell is told to read a file.
    pub(super) fn reads(&mut self, file: TempPath) {
        self.file = Some(file);
    }

    /// The shell that took the place of ours was taught to report.
    pub(super) fn replaced(&mut self) {
        self.extent = Extent::Replaced;
        self.on(Event::Settled);
    }

    pub(super) fn was_replaced(&self) -> bool {
        self.extent == Extent::Replaced
    }

    /// A shell inside of the one that runs the command reports: it has read all that was typed.
    pub(super) fn settled_inside(&mut self) {
        self.on(Event::Settled);
        self.held.take_enter();
    }

    /// Ends it and tells what it used.
    pub(super) fn finish(self) -> Option<Usage> {
        self.watch.finish()
    }
}
