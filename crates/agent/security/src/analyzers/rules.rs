//! `rules`: our own analyzer, which knows what accidents look like.
//!
//! It reads shell commands as a shell would ([`shell`]), walks through them ([`walk`]), and applies named rules
//! ([`checks`], [`table`]). It sees through quoting, variables that the command sets itself, `bash -c`, `eval`, `sudo`,
//! `env`, `xargs`, `timeout`, `find -exec`, command substitution and pipes. Of Python it sees only literals that are
//! given to the usual functions ([`python`]).
//!
//! It is a help against accidents and not a sandbox: a program that somebody wrote to get past it does so.

mod call;
mod checks;
mod dispatch;
mod expand;
mod machine;
mod place;
mod print;
mod python;
mod shell;
mod table;
#[cfg(test)]
mod tests;
mod value;
mod walk;

use std::path::Path;

use gloveport_protocol::{Action, ActionEvent, BoxFuture, Event, Observation, ReadAction, RunAction, SecurityRisk};

use self::{
    machine::{Faults, Machine},
    place::Map,
    table::Rule,
};
use crate::{
    analyzer::{Assessment, History, RuleMatch, SecurityAnalyzer, Unattended},
    error::AnalyzerError,
};

/// Longest text of an action that is looked into, in bytes.
const MAX_TEXT: usize = 2 * 1024 * 1024;
/// Texts from this length on are judged on a thread for such work.
const LONG_TEXT: usize = 16 * 1024;
/// How far back the directory of the shell is looked for, in events.
const LOOK_BACK: usize = 10;

/// Rates actions by named rules.
#[derive(Debug, Clone)]
pub struct Rules {
    map: Map,
}

impl Rules {
    /// Rules for an agent that works in this directory. A path that is not absolute counts as `/workspace`.
    pub fn new(workspace: &Path) -> Self {
        Self { map: Map::new(workspace) }
    }

    /// Rates an action. The directory is the one in which its commands begin; none is the workspace.
    ///
    /// Kinds into which rules do not look have an unknown risk.
    pub fn rate(&self, action: &Action, directory: Option<&str>) -> Assessment {
        let rules = match action {
            Action::Run(run) => self.command(run, directory),
            Action::RunIpython(cell) => {
                let mut machine = self.machine(None);
                python::walk(&mut machine, &clean(&cell.code));
                machine.into_findings()
            }
            Action::Write(write) => self.written(&write.path),
            Action::Edit(edit) if edit.command == "view" => self.read(&edit.path),
            Action::Edit(edit) => self.written(&edit.path),
            Action::Read(ReadAction { path, .. }) => self.read(path),
            _ => return Assessment::of(SecurityRisk::Unknown),
        };
        let risk = rules.iter().map(|found| found.risk).max().unwrap_or(SecurityRisk::Low);
        Assessment { risk, rules }
    }

    fn machine(&self, directory: Option<&str>) -> Machine<'_> {
        let directory = directory.unwrap_or_else(|| self.map.workspace());
        // The form that all paths have here.
        let directory = Map::locate(directory, Some(self.map.workspace())).path;
        Machine::new(&self.map, Some(directory))
    }

    fn command(&self, run: &RunAction, directory: Option<&str>) -> Vec<RuleMatch> {
        let mut machine = self.machine(run.cwd.as_deref().or(directory));
        // Input goes to a program that may be no shell.
        let faults = if run.is_input { Faults::Tolerated } else { Faults::Reported };
        let text = clean(&run.command);
        if text.len() > MAX_TEXT {
            machine.report(Rule::TooComplex, &text);
        }
        let mut end = text.len().min(MAX_TEXT);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        machine.text(&text[..end], &value::Value::unknown(value::Flow::default()), faults);
        machine.into_findings()
    }

    fn written(&self, path: &str) -> Vec<RuleMatch> {
        let mut machine = self.machine(None);
        let path = clean(path);
        checks::write::target(&mut machine, &value::Value::known(path.as_str()), &path);
        machine.into_findings()
    }

    fn read(&self, path: &str) -> Vec<RuleMatch> {
        let mut machine = self.machine(None);
        let path = clean(path);
        if checks::secret::is_secret(&machine, &path) && !checks::secret::is_settings(&path) {
            machine.report(Rule::ReadSecret, &path);
        }
        machine.into_findings()
    }
}

impl SecurityAnalyzer for Rules {
    fn name(&self) -> &'static str {
        "rules"
    }

    fn assess<'a>(
        &'a self,
        event: &'a ActionEvent,
        history: &'a dyn History,
    ) -> BoxFuture<'a, Result<Assessment, AnalyzerError>> {
        Box::pin(async move {
            let directory = match &event.action {
                Action::Run(run) if run.cwd.is_none() => shell_directory(&history.latest(LOOK_BACK).await),
                _ => None,
            };
            let length = match &event.action {
                Action::Run(run) => run.command.len(),
                Action::RunIpython(cell) => cell.code.len(),
                _ => 0,
            };
            if length < LONG_TEXT {
                return Ok(self.rate(&event.action, directory.as_deref()));
            }
            let rules = self.clone();
            let action = event.action.clone();
            let rate = move || rules.rate(&action, directory.as_deref());
            tokio::task::spawn_blocking(rate).await.map_err(|_| AnalyzerError::Interrupted { analyzer: "rules" })
        })
    }

    fn unattended(&self) -> Unattended {
        Unattended::Refuse
    }
}

/// Where the shell was after its last command, if that is known.
fn shell_directory(events: &[Event]) -> Option<String> {
    events.iter().rev().find_map(|event| match event {
        Event::Observation(event) => match &event.observation {
            Observation::Run(run) => run.metadata.working_dir.clone().filter(|directory| directory.starts_with('/')),
            _ => None,
        },
        Event::Action(_) => None,
    })
}

/// The text without the one character that no command can have and that has a meaning here.
fn clean(text: &str) -> String {
    text.replace(place::UNKNOWN, "")
}
