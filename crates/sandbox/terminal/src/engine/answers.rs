//! What the shell's reports do, and what is answered at each end (`bash-session` 3.2, 3.4).

use tokio::time::Instant;

use super::{Engine, Phase, Verdict, nested::First};
use crate::{
    content::{EXIT_WORD, without_exit_word},
    error::TerminalError,
    scanner::Report,
    session::{RunEnd, RunReport},
};

impl Engine {
    /// Takes a report of the session's shell (0), or of one inside of it.
    pub(super) fn take_report(&mut self, source: usize, report: Report) {
        let running = self.is_running();
        if !matches!(report, Report::Prompt(_)) && source != self.current {
            return;
        }
        match report {
            Report::Prompt(mut prompt) => {
                match self.believe(source) {
                    // What came before the first prompt of a nested shell is no result of the command.
                    Some(First::Yes) => prompt.status = 0,
                    Some(First::No) => {}
                    None => return,
                }
                self.display_due = true;
                self.note_facts(&prompt);
                if !running {
                    return;
                }
                if self.command.was_taught() {
                    // What the new shell showed before it could report is no output of the command.
                    self.renderer.clear();
                }
                if self.command.prompted() == Verdict::Complete {
                    self.complete(prompt.status);
                }
            }
            Report::Displayed { status } => {
                if !std::mem::take(&mut self.display_due) && running {
                    self.command.prompt_without_report(status.unwrap_or(-1));
                }
            }
            Report::Lesson { status } => self.command.lesson_begun(status),
            Report::Continuation => {
                if running {
                    self.command.continued();
                }
            }
        }
    }

    pub(super) fn check_limits(&mut self, now: Instant) {
        let Some(waiter) = &self.waiter else { return };
        if waiter.quiet_until().is_some_and(|until| until <= now) {
            self.answer(RunEnd::NoChange);
        } else if waiter.deadline.is_some_and(|deadline| deadline <= now) {
            self.answer(RunEnd::TimedOut);
        }
    }

    /// The running command ended.
    pub(super) fn complete(&mut self, status: i32) {
        if self.waiter.is_some() {
            self.answer(RunEnd::Completed { status });
        } else {
            self.phase = Phase::Finished(status);
        }
    }

    pub(super) fn fail(&mut self, error: TerminalError) {
        if let Some(waiter) = self.waiter.take() {
            let _caller_gone = waiter.reply.send(Err(error));
        }
    }

    /// Answers the waiting request. If its caller left in this very moment everything stays as unreported as it was.
    pub(super) fn answer(&mut self, end: RunEnd) {
        let Some(waiter) = self.waiter.take() else { return };
        if waiter.reply.is_closed() {
            if let RunEnd::Completed { status } = end {
                self.phase = Phase::Finished(status);
            }
            return;
        }
        let completed = matches!(end, RunEnd::Completed { .. });
        let shows_output =
            completed || matches!(end, RunEnd::NoChange | RunEnd::TimedOut | RunEnd::Waiting | RunEnd::Refused);
        let continued = self.content.continued();
        let log_end = self.log.end();
        let mut report = RunReport {
            end,
            output: String::new(),
            continued,
            lines_kept: None,
            facts: self.facts.borrow().clone(),
            loss: None,
            range: self.reported_to..log_end,
            usage: None,
        };
        if shows_output {
            let lines_lost = self.renderer.lines_lost();
            report.lines_kept = (completed && lines_lost).then(|| self.renderer.line_count());
            report.output = self.content.take(self.renderer.text(), waiter.echo.as_deref());
            report.loss = self.loss.take();
            self.reported_to = log_end;
        }
        if completed {
            if report.loss.is_some_and(|loss| !loss.before_command) {
                self.remove_exit_word(&mut report);
            }
            report.usage = self.command.finish();
            self.phase = Phase::Idle;
            self.content.reset();
            self.renderer.clear();
            self.open_line = false;
        }
        // Told before the answer, so that a reader of the log never takes the next command's output for this one's.
        if let Some(progress) = &waiter.progress {
            progress.send_modify(|progress| progress.end = Some(report.range.end));
        }
        let _caller_gone = waiter.reply.send(Ok(report));
    }

    /// An interactive bash that is told to exit prints that word: it is no output of the command.
    fn remove_exit_word(&self, report: &mut RunReport) {
        let text = self.command.text();
        let told = ["exit", "logout", "C-d", "C-D"].iter().any(|word| text.contains(word));
        if !told || !self.says_exit || report.loss.is_none_or(|loss| loss.exit.code.is_none()) {
            return;
        }
        without_exit_word(&report.output).to_owned().clone_into(&mut report.output);
        let length = EXIT_WORD.len() as u64;
        let tail = report.range.end.checked_sub(length).filter(|at| *at >= report.range.start);
        if let Some(at) =
            tail.filter(|at| self.log.read(*at, EXIT_WORD.len()).is_ok_and(|piece| piece.bytes == EXIT_WORD))
        {
            report.range.end = at;
        }
    }
    /// The word of a shell that ended at its prompt is no output of the next command either.
    pub(super) fn pass_over_exit_word(&mut self) {
        let fresh = self.log.read(self.reported_to, EXIT_WORD.len() + 1);
        if matches!(self.phase, Phase::Idle) && fresh.is_ok_and(|piece| piece.bytes == EXIT_WORD) {
            self.reported_to = self.log.end();
            self.renderer.clear();
        }
    }
}
