//! The course of a command: what the shell has read of what was typed, and whether the command is over.
//!
//! The shell shows one prompt (its own, or the one that asks for more of an unfinished command) for each line that it
//! reads. So the number of prompts that must come is known when a text was typed to the shell, and the last of them is
//! the end of the command. It is not known when a program may have read a part of what was typed: then the shell must
//! also be seen waiting for somebody to type.
//!
//! `docs/architecture.md` draws the stages ("A command in the shell").

use std::time::Duration;

use tokio::time::Instant;

use super::doubt::Doubt;

/// The time that makes certain that the hook is lost, of a shell that gave no sign of it but its silence.
const LOST_AFTER: Duration = Duration::from_millis(100);
/// A shell that does not let us see what it waits for is believed after this long at its prompt.
const VERIFY_LIMIT: Duration = Duration::from_millis(300);
/// A shell that has read its lesson shows its prompt within this time, or never.
const LESSON_LIMIT: Duration = Duration::from_secs(2);
/// The status of a command whose shell does not tell it.
pub(super) const UNKNOWN: i32 = -1;

/// How far a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The shell reads what was typed, or what it started runs.
    Reading {
        /// It has asked for more since its last own prompt: what is read is the rest of an unfinished command.
        unfinished: bool,
    },
    /// It asks for more of an unfinished command, and nothing more was typed.
    Asking,
    /// It showed a prompt that may be the last one.
    InDoubt(Doubt),
    /// It seems to be at a prompt that it did not report: the hook is lost, the report is on its way, or a program shows
    /// what the prompt is made of.
    Unreported {
        status: i32,
        doubt: Doubt,
        /// The prompt before it was reported, and may be the last one.
        last: Option<Doubt>,
    },
    /// The lesson is in the pipe from which the shell reads its commands. The command is over with the prompt behind it.
    LessonQueued,
    /// The shell has read the lesson.
    LessonRead { until: Instant },
    /// The shell has reported that it follows the lesson, and the status of the command.
    LessonFollowed { status: i32, until: Instant },
}

impl Stage {
    /// The doubt whether the last prompt was the end.
    fn last_prompt(&mut self) -> Option<&mut Doubt> {
        match self {
            Self::InDoubt(doubt) | Self::Unreported { last: Some(doubt), .. } => Some(doubt),
            _ => None,
        }
    }
}

/// What happens to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// The shell reported a prompt of its own.
    Prompted,
    /// A prompt was shown without a report before it.
    PromptUnreported { status: i32 },
    /// The shell waits for its next command, as far as can be seen, and did not report the end of this one.
    Silent,
    /// The shell reported the prompt that asks for more.
    AskedForMore,
    /// Lines were typed while the command runs.
    Typed { lines: usize },
    /// Of all that was typed nothing is left to read: it was thrown away with a key (`C-c`), or the shell was seen to wait
    /// before it was taught to report. So the next prompt is the last one.
    Settled,
    /// The lesson was put behind the command.
    LessonQueued,
    /// The pipe of commands is empty.
    PipeEmptied,
    /// The shell reported that it follows its lesson.
    LessonBegun { status: i32 },
}

/// Whether a command is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Complete,
    Running,
}

/// What can be seen of the shell that reads commands.
pub(super) trait ShellSeen {
    /// Whether it, and no program that it runs, is in the foreground of its terminal.
    fn has_terminal(&self) -> bool;

    /// Whether it waits for somebody to type.
    fn waits(&self) -> bool;

    /// Whether it waits for a command, if that can be known.
    fn reads_commands(&self) -> Option<bool>;
}

/// What a look at a command finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    /// The last prompt was the end.
    Over,
    /// It is over, though the shell shows no prompt.
    OverWithStatus(i32),
    /// The shell is at a prompt that it did not report.
    HookLost(i32),
}

/// How far a command is, and what has still to come.
#[derive(Debug)]
pub(super) struct Course {
    stage: Stage,
    /// Prompts that must come until all that was typed is read.
    prompts: i64,
    /// A program may have read some of what was typed.
    shared: bool,
}

impl Course {
    /// A text of so many lines was typed to the shell at its prompt.
    pub(super) fn of_lines(lines: usize) -> Self {
        let prompts = i64::try_from(lines).unwrap_or(i64::MAX);
        Self { stage: Stage::Reading { unfinished: false }, prompts, shared: false }
    }

    /// The one place in which a stage follows another by an event.
    pub(super) fn on(&mut self, event: Event, now: Instant) -> Verdict {
        self.stage = match (event, self.stage) {
            // It is the prompt of the command, and the lesson is still to be read.
            (Event::Prompted, stage @ (Stage::LessonQueued | Stage::LessonRead { .. })) => stage,
            (Event::Prompted, _) => {
                self.prompts -= 1;
                if self.prompts <= 0 && !self.shared {
                    return Verdict::Complete;
                }
                Stage::InDoubt(Doubt::looked_at_after(Duration::ZERO, now))
            }
            (Event::AskedForMore, _) => {
                self.prompts -= 1;
                if self.prompts <= 0 { Stage::Asking } else { Stage::Reading { unfinished: true } }
            }
            (Event::PromptUnreported { status }, mut stage) => Stage::Unreported {
                status,
                doubt: Doubt::looked_at_after(Duration::ZERO, now),
                last: stage.last_prompt().copied(),
            },
            (Event::Silent, mut stage) => {
                // It has read all that was typed, though it may have shown no prompt for it.
                self.prompts = 1;
                let doubt = Doubt::looked_at_after(Duration::ZERO, now).certain_after(LOST_AFTER);
                match stage {
                    Stage::Unreported { .. } => stage,
                    _ => Stage::Unreported { status: UNKNOWN, doubt, last: stage.last_prompt().copied() },
                }
            }
            (Event::Typed { lines }, Stage::Asking) => {
                self.prompts += i64::try_from(lines).unwrap_or(0);
                if self.prompts <= 0 { Stage::Asking } else { Stage::Reading { unfinished: true } }
            }
            (Event::Typed { .. }, stage) => {
                self.shared = true;
                stage
            }
            (Event::Settled, stage) => {
                self.prompts = 1;
                self.shared = false;
                match stage {
                    Stage::Asking => Stage::Reading { unfinished: true },
                    Stage::LessonQueued | Stage::LessonRead { .. } | Stage::LessonFollowed { .. } => {
                        Stage::Reading { unfinished: false }
                    }
                    Stage::Reading { .. } | Stage::InDoubt(_) | Stage::Unreported { .. } => stage,
                }
            }
            (Event::LessonQueued, _) => Stage::LessonQueued,
            (Event::PipeEmptied, Stage::LessonQueued) => Stage::LessonRead { until: now + LESSON_LIMIT },
            (Event::PipeEmptied, stage) => stage,
            (Event::LessonBegun { status }, _) => Stage::LessonFollowed { status, until: now + LESSON_LIMIT },
        };
        Verdict::Running
    }

    /// The one place in which a stage follows another by time.
    pub(super) fn look(&mut self, now: Instant, shell: &impl ShellSeen) -> Found {
        if let Some(doubt) = self.stage.last_prompt()
            && doubt.due(now)
        {
            if !shell.has_terminal() {
                // What was typed ahead runs: a program has the terminal, and the shell shows another prompt behind it.
                doubt.postpone(now);
            } else if doubt.is_certain(now, shell.waits()) || doubt.is_over(now, VERIFY_LIMIT) {
                return Found::Over;
            }
        }
        match &mut self.stage {
            Stage::LessonRead { until } if *until <= now => Found::OverWithStatus(UNKNOWN),
            Stage::LessonFollowed { status, until } if *until <= now => Found::OverWithStatus(*status),
            Stage::Unreported { status, doubt, last } => {
                if !doubt.due(now) {
                    return Found::Nothing;
                }
                let (status, lost) = (*status, doubt.is_certain(now, shell.reads_commands() != Some(false)));
                if lost || doubt.is_over(now, VERIFY_LIMIT) {
                    self.stage = last.map_or(Stage::Reading { unfinished: false }, Stage::InDoubt);
                }
                if lost { Found::HookLost(status) } else { Found::Nothing }
            }
            Stage::Reading { .. }
            | Stage::Asking
            | Stage::InDoubt(_)
            | Stage::LessonQueued
            | Stage::LessonRead { .. }
            | Stage::LessonFollowed { .. } => Found::Nothing,
        }
    }

    /// When to look.
    pub(super) fn next_look(&self) -> Option<Instant> {
        match &self.stage {
            Stage::Reading { .. } | Stage::Asking | Stage::LessonQueued => None,
            Stage::InDoubt(doubt) => Some(doubt.next()),
            Stage::Unreported { doubt, last, .. } => {
                let next = doubt.next();
                Some(last.map_or(next, |last| last.next().min(next)))
            }
            Stage::LessonRead { until } | Stage::LessonFollowed { until, .. } => Some(*until),
        }
    }

    /// Output after a prompt: something runs again.
    pub(super) fn output_seen(&mut self) {
        if let Some(doubt) = self.stage.last_prompt() {
            doubt.begin_again();
        }
    }

    /// The shell waits for more of an unfinished command.
    pub(super) fn is_asking(&self) -> bool {
        self.stage == Stage::Asking
    }

    /// Whether the shell alone has read what was typed.
    pub(super) fn is_unshared(&self) -> bool {
        !self.shared
    }

    /// Whether the shell has neither shown a sign of the end nor got its lesson.
    pub(super) fn is_plain(&self) -> bool {
        self.stage == Stage::Reading { unfinished: false }
    }
}

#[cfg(test)]
mod tests;
