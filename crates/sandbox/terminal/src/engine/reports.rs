//! What the reports of shells do (`bash-session` 3.2).

use super::{
    course::{Event, UNKNOWN, Verdict},
    nested::First,
    state::Engine,
};
use crate::scanner::{PromptReport, Report};

impl Engine {
    /// Takes a report of the session's shell (0), or of one inside of it.
    pub(super) fn take_report(&mut self, source: usize, report: Report) {
        if !matches!(report, Report::Prompt(_)) && source != self.shells.current {
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
                self.shells.display_due = true;
                self.note_facts(&prompt);
                let Some(command) = self.phase.running() else { return };
                if command.was_replaced() {
                    // What the new shell showed before it could report is no output of the command.
                    self.shown.renderer.clear();
                }
                if command.on(Event::Prompted) == Verdict::Complete {
                    self.complete(prompt.status);
                }
            }
            Report::Displayed { status } => {
                if !std::mem::take(&mut self.shells.display_due) {
                    self.happened(Event::PromptUnreported { status: status.unwrap_or(UNKNOWN) });
                }
            }
            Report::Lesson { status } => self.happened(Event::LessonBegun { status }),
            Report::Continuation => self.happened(Event::AskedForMore),
        }
    }

    /// Something happened to the running command that does not end it.
    fn happened(&mut self, event: Event) {
        if let Some(command) = self.phase.running() {
            command.on(event);
        }
    }

    /// Takes over what a prompt told.
    pub(super) fn note_facts(&mut self, report: &PromptReport) {
        let directory = if report.directory.is_empty() && self.shells.instance.is_some() {
            self.shells.reader_directory().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
        } else {
            report.directory.clone()
        };
        let nested = self.shells.nested_reader();
        let user_name = nested.map_or_else(|| self.options.user_name.clone(), |nested| nested.owner.name.clone());
        self.known.note(report, directory, user_name);
    }

    /// Output of programs.
    pub(super) fn take_output(&mut self, bytes: &[u8]) {
        if !self.hold_back(bytes) {
            self.shown.output(bytes);
        }
    }
}
