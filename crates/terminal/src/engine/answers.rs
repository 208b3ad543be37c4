//! What the shell's reports do, and what is answered at each end (`bash-session` 3.2, 3.4).

use tokio::time::Instant;

use super::{Engine, Phase, Verdict};
use crate::{
    content::without_exit_word,
    error::TerminalError,
    scanner::Report,
    session::{RunEnd, RunReport},
};

impl Engine {
    pub(super) fn take_report(&mut self, report: Report) {
        let running = matches!(self.phase, Phase::Running);
        match report {
            Report::Prompt(prompt) => {
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
                if std::mem::take(&mut self.display_due) {
                    return;
                }
                let status = status.unwrap_or(-1);
                if self.command.may_rearm() {
                    self.outgoing.extend_from_slice(format!(" __gp_arm {status}\n").as_bytes());
                    self.write_terminal();
                    return;
                }
                self.facts.send_modify(|facts| facts.status = status);
                if running {
                    self.complete(status);
                }
            }
            Report::Continuation => {
                if running {
                    self.command.continued();
                }
            }
        }
    }

    pub(super) fn check_limits(&mut self, now: Instant) {
        let Some(waiter) = &self.waiter else { return };
        if waiter.no_change.is_some_and(|limit| waiter.last_change + limit <= now) {
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
        let shows_output = completed || matches!(end, RunEnd::NoChange | RunEnd::TimedOut | RunEnd::Refused);
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
            if report.loss.is_some_and(|loss| !loss.before_command && loss.exit.code.is_some()) {
                let told_to = self.command.text();
                if told_to.contains("exit") || told_to.contains("logout") || told_to.eq_ignore_ascii_case("C-d") {
                    report.output = without_exit_word(&report.output).to_owned();
                }
            }
            report.usage = self.command.finish();
            self.phase = Phase::Idle;
            self.content.reset();
            self.renderer.clear();
            self.open_line = false;
        }
        let _caller_gone = waiter.reply.send(Ok(report));
    }
}
