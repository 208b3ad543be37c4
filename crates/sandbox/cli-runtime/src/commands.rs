//! All commands that somebody may still ask for, input for them, and the observations of `run`.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gloveport_executor::run;
use gloveport_protocol::{CommandMetadata, ErrorObservation, Observation, RunAction, RunObservation};
use tokio::time::Instant;

use crate::command::{Command, End, Waited};

/// Most commands that wait for input without an action that waits for them.
pub const GIVEN_BACK: usize = 16;
/// Longest time limit; what is longer is the same as none.
const FOREVER: f64 = 1e9;

/// The commands that somebody may still ask for.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    table: Mutex<Vec<Entry>>,
}

#[derive(Debug)]
struct Entry {
    command: Arc<Command>,
    /// Nobody waits for it.
    is_given_back: bool,
}

/// The limits of one action.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandLimits {
    /// In seconds, as it was given.
    pub(crate) seconds: f64,
    /// How long a command may be silent while it waits for input.
    pub(crate) patience: Duration,
}

impl CommandLimits {
    /// When the time is over.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let within = self.seconds < FOREVER;
        within.then(|| Instant::now() + Duration::try_from_secs_f64(self.seconds).unwrap_or_default())
    }
}

/// What was done before a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    Input,
    Nothing,
}

/// A wait for a command. If it is given up, the command counts as given back.
struct Attention<'a> {
    commands: &'a Commands,
    command: Arc<Command>,
    is_over: bool,
}

impl Drop for Attention<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.commands.leave(&self.command);
        }
    }
}

impl Commands {
    /// Waits for a command that was just started, and tells what came of it.
    pub(crate) async fn first_wait(
        &self,
        command: Arc<Command>,
        action: &RunAction,
        limits: CommandLimits,
        directory: &str,
    ) -> Observation {
        self.table().push(Entry { command: Arc::clone(&command), is_given_back: false });
        let attention = Attention { commands: self, command, is_over: false };
        // Its own time limit ends it, so that limit need not end the wait.
        let waited = self.wait(attention, !action.blocking, limits.patience, None).await;
        let (command, waited) = waited;
        let metadata = match waited {
            Waited::Ended(end) => {
                let suffix = match end {
                    End::TimedOut => format!("[The command timed out after {:.1} seconds.]", limits.seconds),
                    End::Exited(_) | End::Closed => String::new(),
                };
                CommandMetadata { exit_code: exit_code(end), suffix, ..metadata(directory) }
            }
            Waited::ForInput | Waited::Limit => {
                CommandMetadata { suffix: run::no_change(limits.patience.as_secs_f64()), ..metadata(directory) }
            }
        };
        Observation::Run(RunObservation::new(&action.command, command.take_output(), action.hidden, metadata))
    }

    /// The command that was given back last.
    pub(crate) fn given_back(&self) -> Option<Arc<Command>> {
        self.table().iter().rev().find(|entry| entry.is_given_back).map(|entry| Arc::clone(&entry.command))
    }

    /// An action with `is_input`.
    pub(crate) async fn input(&self, action: &RunAction, limits: CommandLimits, directory: &str) -> Observation {
        let text = action.command.trim();
        if let Some(command) = self.given_back() {
            if command.is_over() || text.is_empty() {
                return self.more(command, action, limits, directory).await;
            }
            self.attend(&command);
            let attention = Attention { commands: self, command: Arc::clone(&command), is_over: false };
            if let Err(error) = command.type_in(text).await {
                return failed(format!("Error running command \"{}\": {error}", action.command));
            }
            return self.next_wait(attention, Sent::Input, action, limits, directory).await;
        }
        if text.is_empty() {
            return run::nothing_to_fetch();
        }
        let latest = self.table().last().map(|entry| Arc::clone(&entry.command));
        let Some(command) = latest.filter(|command| command.end().is_none()) else {
            return run::nothing_to_type();
        };
        match command.type_in(text).await {
            Ok(()) => {
                let suffix = "\n[The input was sent to the running command. Its output goes to the action that waits \
                    for it.]";
                let metadata = CommandMetadata { suffix: suffix.to_owned(), ..metadata(directory) };
                Observation::Run(RunObservation::new(text, "", action.hidden, metadata))
            }
            Err(error) => failed(format!("Error running command \"{}\": {error}", action.command)),
        }
    }

    /// More of a command that was given back.
    pub(crate) async fn more(
        &self,
        command: Arc<Command>,
        action: &RunAction,
        limits: CommandLimits,
        directory: &str,
    ) -> Observation {
        self.attend(&command);
        let attention = Attention { commands: self, command, is_over: false };
        self.next_wait(attention, Sent::Nothing, action, limits, directory).await
    }

    async fn next_wait(
        &self,
        attention: Attention<'_>,
        sent: Sent,
        action: &RunAction,
        limits: CommandLimits,
        directory: &str,
    ) -> Observation {
        let text = action.command.trim();
        let deadline = limits.deadline();
        let (command, waited) = self.wait(attention, !action.blocking, limits.patience, deadline).await;
        let continued = run::CONTINUED.to_owned();
        let metadata = match waited {
            Waited::Ended(end) => {
                let code = exit_code(end);
                let note = if sent == Sent::Nothing && !text.is_empty() {
                    format!(" It had ended before, so \"{text}\" was NOT sent.")
                } else {
                    run::key_sent(text)
                };
                CommandMetadata { exit_code: code, suffix: run::ended(code, &note), ..metadata(directory) }
            }
            Waited::ForInput => CommandMetadata {
                prefix: continued,
                suffix: run::no_change(limits.patience.as_secs_f64()),
                ..metadata(directory)
            },
            Waited::Limit => {
                CommandMetadata { prefix: continued, suffix: run::timed_out(limits.seconds), ..metadata(directory) }
            }
        };
        Observation::Run(RunObservation::new(text, command.take_output(), action.hidden, metadata))
    }

    async fn wait(
        &self,
        mut attention: Attention<'_>,
        may_be_given_back: bool,
        patience: Duration,
        limit: Option<Instant>,
    ) -> (Arc<Command>, Waited) {
        let command = Arc::clone(&attention.command);
        let mut patience = may_be_given_back.then_some(patience);
        loop {
            let waited = command.wait(patience, limit).await;
            match waited {
                Waited::Ended(_) => self.table().retain(|entry| !Arc::ptr_eq(&entry.command, &command)),
                Waited::ForInput if !self.has_room() => {
                    patience = None;
                    continue;
                }
                Waited::ForInput | Waited::Limit => {
                    command.without_deadline().await;
                    self.leave(&command);
                }
            }
            attention.is_over = true;
            return (command, waited);
        }
    }

    fn has_room(&self) -> bool {
        self.table().iter().filter(|entry| entry.is_given_back).count() < GIVEN_BACK
    }

    /// Nobody waits for it any more. It is the latest of those.
    fn leave(&self, command: &Arc<Command>) {
        let mut table = self.table();
        if let Some(at) = table.iter().position(|entry| Arc::ptr_eq(&entry.command, command)) {
            let mut entry = table.remove(at);
            entry.is_given_back = true;
            table.push(entry);
        }
        // Those that nobody has asked for since they ended go first.
        while table.iter().filter(|entry| entry.is_given_back && entry.command.end().is_some()).count() > GIVEN_BACK {
            let Some(at) = table.iter().position(|entry| entry.is_given_back && entry.command.end().is_some()) else {
                return;
            };
            table.remove(at);
        }
    }

    /// Somebody waits for it.
    fn attend(&self, command: &Arc<Command>) {
        let mut table = self.table();
        if let Some(entry) = table.iter_mut().find(|entry| Arc::ptr_eq(&entry.command, command)) {
            entry.is_given_back = false;
        }
    }

    fn table(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn metadata(directory: &str) -> CommandMetadata {
    CommandMetadata { working_dir: Some(directory.to_owned()), ..CommandMetadata::default() }
}

/// The exit code of the wire: negative for a signal, -1 at the time limit.
fn exit_code(end: End) -> i64 {
    match end {
        End::Exited(exit) => match (exit.code, exit.signal) {
            (Some(code), _) => code.into(),
            (None, Some(signal)) => -i64::from(signal),
            (None, None) => -1,
        },
        End::TimedOut | End::Closed => -1,
    }
}

fn failed(content: String) -> Observation {
    Observation::Error(ErrorObservation::new(content))
}
