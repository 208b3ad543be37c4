//! One command: what was sent for it, and when it is complete.
//!
//! The shell shows one prompt (its own, or the one that asks for more of an unfinished command) for each line that it
//! reads. So the number of prompts that must come is known when a text was typed to the shell, and the last of them is
//! the end of the command. It is not known when a program may have read a part of what was typed: then the shell must
//! also be seen waiting for somebody to type.

use std::time::Duration;

use tempfile::TempPath;
use tokio::time::Instant;

use super::{NESTED_PAUSE, PROBE_PAUSE, REPLACED_PAUSE, SAMPLE_PAUSE};
use crate::{keys::ControlKey, probe::Meter, session::Usage};

/// Pause between looks at something doubtful.
const VERIFY_PAUSE: Duration = Duration::from_micros(500);
/// What holds for this long, with nothing new from the shell, is certain: its last output is on its way for a moment,
/// and the longer the busier the machine is.
const CERTAIN_AFTER: Duration = Duration::from_millis(10);
/// The same for a shell that gave no sign of a lost hook but its silence.
const LOST_AFTER: Duration = Duration::from_millis(100);
/// A shell that does not let us see what it waits for is believed after this long at its prompt.
const VERIFY_LIMIT: Duration = Duration::from_millis(300);
/// A shell that has read its lesson shows its prompt within this time, or never.
const LESSON_LIMIT: Duration = Duration::from_secs(2);
/// Time for a program that reads single keys to take what was typed before Enter.
const ENTER_PAUSE: Duration = Duration::from_millis(2);
/// Longest time that a key which sends a signal is held back while the shell starts a program.
const KEY_LIMIT: Duration = Duration::from_millis(50);
/// After this long Enter is pressed, also if the program is not seen to read on.
const ENTER_LIMIT: Duration = Duration::from_millis(300);

#[derive(Debug, Default)]
pub(crate) struct Command {
    text: String,
    /// Prompts that must come until all that was typed is read.
    expected: i64,
    /// A program may have read some of it.
    uncertain: bool,
    /// The shell waits for more of an unfinished command.
    continuation: bool,
    /// A prompt came that may be the last one.
    verifying: Option<Doubt>,
    /// A prompt with this status came without the report of the hook, or something that imitates one.
    unreported: Option<(i32, Doubt)>,
    /// Enter is still to be pressed.
    enter: Option<Doubt>,
    /// A key that sends a signal, held back while the shell starts a program.
    held_key: Option<(ControlKey, Doubt)>,
    probe_at: Option<Instant>,
    replaced_at: Option<Instant>,
    nested_at: Option<Instant>,
    sample_at: Option<Instant>,
    meter: Option<Meter>,
    /// A file that the shell is told to read: the text, when it is handed over, or the lesson.
    file: Option<TempPath>,
    lesson: Lesson,
    /// Attempts to install the lost hook again.
    rearmed: u32,
    extent: Extent,
}

/// What is known about a text that was typed to the shell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The shell may wait for more of it.
    #[default]
    Open,
    /// It is complete.
    Whole,
    /// The shell replaced itself and was taught to report: what it showed until then is of no interest.
    Replaced,
}

/// What became of the lesson that is put behind a command for a shell that reads from a pipe.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Lesson {
    #[default]
    NotGiven,
    /// It is in the pipe.
    Waits,
    /// The shell has read it.
    Read { until: Instant },
    /// The shell has reported that it follows it, and the status of the command.
    Followed { status: i32, until: Instant },
}

/// Something that has to be looked at again and again until it is certain.
#[derive(Debug, Clone, Copy)]
struct Doubt {
    since: Instant,
    next: Instant,
    /// Since when it holds, at every look.
    holds_since: Option<Instant>,
    certain_after: Duration,
}

impl Doubt {
    fn looked_at_after(pause: Duration) -> Self {
        let since = Instant::now();
        Self { since, next: since + pause, holds_since: None, certain_after: CERTAIN_AFTER }
    }

    /// Whether it is time to look; it is looked at again after a pause.
    fn due(&mut self, now: Instant) -> bool {
        let due = self.next <= now;
        if due {
            self.next = now + VERIFY_PAUSE;
        }
        due
    }

    /// Whether it is certain by now.
    fn is_certain(&mut self, now: Instant, holds: bool) -> bool {
        let since = holds.then(|| *self.holds_since.get_or_insert(now));
        self.holds_since = since;
        since.is_some_and(|since| now.duration_since(since) >= self.certain_after)
    }

    /// It does not become certain any more.
    fn is_over(&self, now: Instant, limit: Duration) -> bool {
        now.duration_since(self.since) >= limit
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Complete,
    Running,
}

impl Command {
    /// A text that was typed to the shell at its prompt.
    pub(crate) fn typed(text: &str, lines: usize, extent: Extent, file: Option<TempPath>) -> Self {
        Self {
            text: text.to_owned(),
            expected: i64::try_from(lines).unwrap_or(i64::MAX),
            file,
            extent,
            replaced_at: Some(Instant::now() + REPLACED_PAUSE),
            nested_at: Some(Instant::now() + NESTED_PAUSE),
            ..Self::default()
        }
    }

    /// Watches the command: its memory, and whether it waits for input.
    pub(crate) fn watch(&mut self, meter: Option<Meter>) {
        let now = Instant::now();
        self.probe_at = Some(now + PROBE_PAUSE);
        if meter.is_some() {
            self.sample_at = Some(now + SAMPLE_PAUSE);
            self.meter = meter;
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The shell waits for more of an unfinished command.
    pub(crate) fn at_continuation(&self) -> bool {
        self.continuation && self.expected <= 0
    }

    /// Lines were typed while the command runs.
    pub(crate) fn input_typed(&mut self, lines: usize) {
        if self.at_continuation() {
            self.expected += i64::try_from(lines).unwrap_or(0);
        } else {
            self.uncertain = true;
        }
    }

    /// A key was typed that interrupts or stops the program; the kernel has thrown away what was not read yet.
    pub(crate) fn interrupted(&mut self) {
        self.expected = 1;
        self.uncertain = false;
        self.lesson = Lesson::NotGiven;
    }

    /// A key is to be typed as soon as a program, or the shell, is there to get its signal.
    pub(crate) fn key_later(&mut self, key: ControlKey) {
        self.held_key = Some((key, Doubt::looked_at_after(VERIFY_PAUSE)));
    }

    /// The key that was held back: something is to be typed behind it.
    pub(crate) fn take_held_key(&mut self) -> Option<ControlKey> {
        self.held_key.take().map(|(key, _)| key)
    }

    /// The key that can be typed now. One that was held back for long enough is typed, come what may.
    pub(crate) fn held_key(&mut self, now: Instant, between_programs: impl Fn() -> bool) -> Option<ControlKey> {
        let (key, doubt) = self.held_key.as_mut()?;
        let key = *key;
        let ready = doubt.due(now) && (doubt.is_over(now, KEY_LIMIT) || !between_programs());
        if ready {
            self.held_key = None;
        }
        ready.then_some(key)
    }

    /// The shell will read its lesson behind the command, whether it has lost its prompt or not. So the command is over
    /// with the prompt that comes behind the lesson.
    pub(crate) fn lesson_queued(&mut self) {
        self.lesson = Lesson::Waits;
    }

    /// Whether the shell can not take the lesson for a part of the command, and has not got it yet.
    pub(crate) fn wants_lesson(&self) -> bool {
        self.must_be_over() && !self.continuation && self.lesson == Lesson::NotGiven
    }

    /// The pipe is empty: if the lesson was in it, the shell has read it, and so the command is over.
    pub(crate) fn pipe_is_empty(&mut self) {
        if self.lesson == Lesson::Waits {
            self.lesson = Lesson::Read { until: Instant::now() + LESSON_LIMIT };
        }
    }

    /// The shell follows its lesson.
    pub(crate) fn lesson_begun(&mut self, status: i32) {
        self.lesson = Lesson::Followed { status, until: Instant::now() + LESSON_LIMIT };
    }

    /// The status of a command that is over, if the lesson was of no use: the shell has read it and shows no prompt.
    pub(crate) fn lesson_failed(&self, now: Instant) -> Option<i32> {
        match self.lesson {
            Lesson::Read { until } if until <= now => Some(-1),
            Lesson::Followed { status, until } if until <= now => Some(status),
            _ => None,
        }
    }

    /// The shell asks for more.
    pub(crate) fn continued(&mut self) {
        self.expected -= 1;
        self.continuation = true;
        if self.expected <= 0 && self.probe_at.is_some() {
            self.probe_at = Some(Instant::now());
        }
    }

    /// The shell is at a prompt of its own.
    pub(crate) fn prompted(&mut self) -> Verdict {
        if matches!(self.lesson, Lesson::Waits | Lesson::Read { .. }) {
            return Verdict::Running;
        }
        self.expected -= 1;
        self.continuation = false;
        self.unreported = None;
        if self.expected <= 0 && !self.uncertain {
            return Verdict::Complete;
        }
        self.verifying = Some(Doubt::looked_at_after(Duration::ZERO));
        Verdict::Running
    }

    /// A prompt came without a report before it: the hook is lost, or a program shows what the prompt is made of.
    pub(crate) fn prompt_without_report(&mut self, status: i32) {
        self.unreported = Some((status, Doubt::looked_at_after(Duration::ZERO)));
    }

    /// The shell seems to wait for its next command and did not report the end of this one: the hook and the prompt are
    /// lost, or the report is on its way.
    pub(crate) fn silent_shell(&mut self) {
        let doubt = Doubt { certain_after: LOST_AFTER, ..Doubt::looked_at_after(Duration::ZERO) };
        self.unreported.get_or_insert((-1, doubt));
        // It has read all that was typed, though it may have shown no prompt for it.
        self.expected = 1;
    }

    /// The status of the last command, if the shell is at a prompt that it did not report. `reads_commands` says
    /// whether the shell waits for a command, if that can be known.
    pub(crate) fn lost_hook(&mut self, now: Instant, reads_commands: impl Fn() -> Option<bool>) -> Option<i32> {
        let (status, doubt) = self.unreported.as_mut()?;
        if !doubt.due(now) {
            return None;
        }
        let (status, lost) = (*status, doubt.is_certain(now, reads_commands() != Some(false)));
        if lost || doubt.is_over(now, VERIFY_LIMIT) {
            self.unreported = None;
        }
        lost.then_some(status)
    }

    /// Output after a prompt: something runs again.
    pub(crate) fn output_seen(&mut self) {
        if let Some(doubt) = &mut self.verifying {
            doubt.holds_since = None;
        }
        if self.probe_at.is_some() {
            self.probe_at = Some(Instant::now() + PROBE_PAUSE);
        }
        if self.nested_at.is_some() {
            self.nested_at = Some(Instant::now() + NESTED_PAUSE);
        }
    }

    /// Whether the last prompt was the end, for a command of which that is uncertain.
    pub(crate) fn verdict(&mut self, now: Instant, shell_waits: impl Fn() -> bool) -> Verdict {
        let Some(doubt) = &mut self.verifying else { return Verdict::Running };
        let over = doubt.due(now) && (doubt.is_certain(now, shell_waits()) || doubt.is_over(now, VERIFY_LIMIT));
        if over { Verdict::Complete } else { Verdict::Running }
    }

    pub(crate) fn next_look(&self) -> Option<Instant> {
        let verifying = self.verifying.map(|doubt| doubt.next);
        let unreported = self.unreported.map(|(_, doubt)| doubt.next);
        let enter = self.enter.map(|doubt| doubt.next);
        let lesson = match self.lesson {
            Lesson::NotGiven | Lesson::Waits => None,
            Lesson::Read { until } | Lesson::Followed { until, .. } => Some(until),
        };
        let held_key = self.held_key.map(|(_, doubt)| doubt.next);
        [
            verifying,
            unreported,
            enter,
            held_key,
            lesson,
            self.probe_at,
            self.replaced_at,
            self.nested_at,
            self.sample_at,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Enter is to be pressed behind a text, for a program that reads single keys.
    pub(crate) fn enter_later(&mut self) {
        self.enter = Some(Doubt::looked_at_after(ENTER_PAUSE));
    }

    /// Whether it is time to see if Enter can be pressed.
    pub(crate) fn enter_due(&mut self, now: Instant) -> bool {
        self.enter.as_mut().is_some_and(|enter| enter.due(now))
    }

    /// Whether the program had its time to take the text before Enter.
    pub(crate) fn enter_overdue(&self, now: Instant) -> bool {
        self.enter.is_some_and(|enter| enter.is_over(now, ENTER_LIMIT))
    }

    /// Enter is pressed now or never; answers whether it was to be pressed.
    pub(crate) fn take_enter(&mut self) -> bool {
        self.enter.take().is_some()
    }

    /// When to look next for a program that waits for input.
    pub(crate) fn probe_at(&mut self, at: Instant) {
        self.probe_at = Some(at);
    }

    /// Something is still to be typed behind what was.
    pub(crate) fn holds_back_keys(&self) -> bool {
        self.enter.is_some() || self.held_key.is_some()
    }

    /// Whether it is time to look for a program that waits for input.
    pub(crate) fn probe_due(&mut self, now: Instant) -> bool {
        due(&mut self.probe_at, now, PROBE_PAUSE * 2)
    }

    /// Whether it is time to look for a shell that replaced itself.
    pub(crate) fn replacement_due(&mut self, now: Instant) -> bool {
        due(&mut self.replaced_at, now, REPLACED_PAUSE * 5)
    }

    /// Whether it is time to look for a shell inside of the one that runs the command.
    pub(crate) fn nested_due(&mut self, now: Instant) -> bool {
        due(&mut self.nested_at, now, NESTED_PAUSE * 5)
    }

    pub(crate) fn sample(&mut self, now: Instant) {
        if due(&mut self.sample_at, now, SAMPLE_PAUSE)
            && let Some(meter) = &mut self.meter
        {
            meter.sample();
        }
    }

    /// Whether the hook may be installed once more.
    pub(crate) fn may_rearm(&mut self) -> bool {
        self.rearmed += 1;
        self.rearmed <= 2
    }

    /// The shell is told to read a file.
    pub(crate) fn reads(&mut self, file: TempPath) {
        self.file = Some(file);
    }

    /// The shell that took the place of ours was taught to report.
    pub(crate) fn taught(&mut self) {
        self.extent = Extent::Replaced;
        self.expected = 1;
        self.uncertain = false;
    }

    /// A shell inside of the one that runs the command reports: it has read all that was typed.
    pub(crate) fn taught_inside(&mut self) {
        self.expected = 1;
        self.uncertain = false;
        self.enter = None;
    }

    /// Whether a shell that reads its next command and did not report can only have lost its hook.
    pub(crate) fn must_be_over(&self) -> bool {
        self.extent == Extent::Whole && !self.uncertain
    }

    pub(crate) fn was_taught(&self) -> bool {
        self.extent == Extent::Replaced
    }

    /// Ends the command and tells what it used.
    pub(crate) fn finish(&mut self) -> Option<Usage> {
        std::mem::take(self).meter.map(Meter::finish)
    }
}

/// Whether a time is reached; it is then set anew.
fn due(at: &mut Option<Instant>, now: Instant, pause: Duration) -> bool {
    if at.is_some_and(|at| at <= now) {
        *at = Some(now + pause);
        return true;
    }
    false
}
