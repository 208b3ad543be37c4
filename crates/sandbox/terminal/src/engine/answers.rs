//! What is answered at each end (`bash-session` 3.4).

use gloveport_audit::{Event, record};
use tokio::time::Instant;

use super::{command::Phase, state::Engine};
use crate::{
    content::{EXIT_WORD, without_exit_word},
    error::TerminalError,
    request::{RunEnd, RunReport},
};

impl Engine {
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
        self.phase.finish(status);
        if let Phase::Finished { command, .. } = &self.phase {
            record(|| Event::CommandEnded { command: command.number, status });
        }
        self.answer(RunEnd::Completed { status });
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
            return;
        }
        let completed = matches!(end, RunEnd::Completed { .. });
        let shows_output =
            completed || matches!(end, RunEnd::NoChange | RunEnd::TimedOut | RunEnd::Waiting | RunEnd::Refused);
        let continued = self.shown.content.continued();
        let log_end = self.shown.log.end();
        let mut report = RunReport {
            end,
            output: String::new(),
            continued,
            lines_kept: None,
            facts: self.known.facts.borrow().clone(),
            loss: None,
            range: self.shown.reported_to..log_end,
            usage: None,
        };
        if shows_output {
            let lines_lost = self.shown.renderer.lines_lost();
            report.lines_kept = (completed && lines_lost).then(|| self.shown.renderer.line_count());
            report.output = self.shown.content.take(self.shown.renderer.text(), waiter.echo.as_deref());
            report.loss = self.shells.loss.take();
            self.shown.reported_to = log_end;
        }
        if completed {
            if let Some(command) = self.phase.take() {
                if report.loss.is_some_and(|loss| !loss.before_command) {
                    self.remove_exit_word(command.text(), &mut report);
                }
                report.usage = command.finish();
            }
            self.shown.end_command();
        }
        // Told before the answer, so that a reader of the log never takes the next command's output for this one's.
        if let Some(progress) = &waiter.progress {
            progress.send_modify(|progress| progress.end = Some(report.range.end));
        }
        let _caller_gone = waiter.reply.send(Ok(report));
    }

    /// An interactive bash that is told to exit prints that word: it is no output of the command.
    fn remove_exit_word(&self, text: &str, report: &mut RunReport) {
        let told = ["exit", "logout", "C-d", "C-D"].iter().any(|word| text.contains(word));
        if !told || !self.shells.says_exit || report.loss.is_none_or(|loss| loss.exit.code.is_none()) {
            return;
        }
        without_exit_word(&report.output).to_owned().clone_into(&mut report.output);
        let length = EXIT_WORD.len() as u64;
        let tail = report.range.end.checked_sub(length).filter(|at| *at >= report.range.start);
        if let Some(at) =
            tail.filter(|at| self.shown.log.read(*at, EXIT_WORD.len()).is_ok_and(|piece| piece.bytes == EXIT_WORD))
        {
            report.range.end = at;
        }
    }
}
