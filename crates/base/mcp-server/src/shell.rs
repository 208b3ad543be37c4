//! `shell`, `shell_output`, `shell_input` and `shell_stop`.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gloveport_protocol::exec::{ExecRequest, ExecState, Session};
use rmcp::{RoleServer, model::JsonObject, service::RequestContext};
use serde::Deserialize;
use serde_json::json;

use crate::{
    answer::Answer,
    arguments::{parse, wait},
    computer::{Computer, Failure},
    following::{Following, Seen, WaitsFor},
    schema::{INPUT_WAIT, OUTPUT_WAIT, SHELL_WAIT},
    tool::Tool,
};

type Context = RequestContext<RoleServer>;

/// Commands whose place is remembered.
const REMEMBERED: usize = 512;
/// How long a command in the background is watched before its id is answered: one that fails does so now.
const BACKGROUND_WAIT: f64 = 1.0;
/// How long one that is stopped has to end: it is interrupted, quit 2 s later, and killed 2 s after that.
const STOP_WAIT: Duration = Duration::from_secs(6);
/// Most characters of a command that an answer names.
const NAMED: usize = 60;

/// What is remembered from call to call.
#[derive(Debug, Default)]
pub(crate) struct Shells(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    /// Up to where the output of each command was answered.
    next: HashMap<String, u64>,
    order: VecDeque<String>,
    /// Where the shell that stays was last.
    directory: Option<String>,
}

impl Shells {
    fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, id: &str) -> u64 {
        self.lock().next.get(id).copied().unwrap_or(0)
    }

    fn remember(&self, id: &str, next: u64) {
        let mut remembered = self.lock();
        if remembered.next.insert(id.to_owned(), next).is_none() {
            remembered.order.push_back(id.to_owned());
        }
        if remembered.order.len() > REMEMBERED
            && let Some(oldest) = remembered.order.pop_front()
        {
            remembered.next.remove(&oldest);
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShellArguments {
    command: String,
    wait: Option<f64>,
    #[serde(default)]
    background: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutputArguments {
    id: String,
    offset: Option<u64>,
    wait: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InputArguments {
    id: String,
    input: String,
    wait: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StopArguments {
    id: String,
}

impl Shells {
    pub(crate) async fn shell(
        &self,
        computer: &dyn Computer,
        arguments: JsonObject,
        context: &Context,
    ) -> Result<Answer, Failure> {
        let ShellArguments { command, wait: seconds, background } = parse(Tool::Shell, arguments)?;
        let wait = wait(seconds, if background { BACKGROUND_WAIT } else { SHELL_WAIT })?;
        if command.trim().is_empty() {
            return Err(Failure::new("the command is empty"));
        }
        // Long enough to be the only one, and short enough to be repeated without a mistake.
        let id = gloveport_ids::random::<4>()
            .map_err(|error| Failure::new(format!("the system gives no random numbers: {error}")))?;
        let (session, cwd) = if background {
            (Session::New, self.lock().directory.clone().map(Into::into))
        } else {
            (Session::Main, None)
        };
        let request = ExecRequest { id: Some(id.clone()), command, session, cwd, env: BTreeMap::new(), timeout: None };
        let stream = computer.run(request).await?;
        let seen = Following::new(stream, 0, false, context).until_end(wait).await?;
        if seen.is_cancelled && seen.end.is_none() {
            computer.cancel(&id).await?;
            return Err(Failure::new(format!("the call was cancelled, and so was its command {id}")));
        }
        if !seen.has_begun && session == Session::Main {
            refuse_queued(computer, &id).await?;
        }
        if let (Some(end), Session::Main) = (&seen.end, session)
            && !end.cwd.is_empty()
        {
            self.lock().directory = Some(end.cwd.clone());
        }
        Ok(self.answer(&id, &seen))
    }

    pub(crate) async fn output(
        &self,
        computer: &dyn Computer,
        arguments: JsonObject,
        context: &Context,
    ) -> Result<Answer, Failure> {
        let OutputArguments { id, offset, wait: seconds } = parse(Tool::ShellOutput, arguments)?;
        let wait = wait(seconds, OUTPUT_WAIT)?;
        let from = offset.unwrap_or_else(|| self.next(&id));
        let stream = computer.follow(&id, from).await?;
        let seen = Following::new(stream, from, offset.is_some(), context).until_end(wait).await?;
        Ok(self.answer(&id, &seen))
    }

    pub(crate) async fn input(
        &self,
        computer: &dyn Computer,
        arguments: JsonObject,
        context: &Context,
    ) -> Result<Answer, Failure> {
        let InputArguments { id, input, wait: seconds } = parse(Tool::ShellInput, arguments)?;
        let wait = wait(seconds, INPUT_WAIT)?;
        let from = self.next(&id);
        let mut following = Following::new(computer.follow(&id, from).await?, from, false, context);
        following.catch_up().await?;
        computer.type_in(&id, &input).await?;
        let seen = following.answered(wait).await?;
        Ok(self.answer(&id, &seen))
    }

    pub(crate) async fn stop(
        &self,
        computer: &dyn Computer,
        arguments: JsonObject,
        context: &Context,
    ) -> Result<Answer, Failure> {
        let StopArguments { id } = parse(Tool::ShellStop, arguments)?;
        let from = self.next(&id);
        let mut following = Following::new(computer.follow(&id, from).await?, from, false, context);
        following.catch_up().await?;
        computer.cancel(&id).await?;
        let seen = following.ended(STOP_WAIT).await?;
        Ok(self.answer(&id, &seen))
    }

    /// What a call answers about a command.
    fn answer(&self, id: &str, seen: &Seen) -> Answer {
        self.remember(id, seen.next);
        let output = seen.text();
        let (state, told) = match (&seen.end, seen.waits) {
            (Some(end), _) => match (end.exit_code, &end.message) {
                (Some(code), None) => ("ended", format!("exit code {code}")),
                (Some(code), Some(message)) => ("ended", format!("exit code {code}: {message}")),
                (None, message) => ("ended", message.clone().unwrap_or_else(|| end.reason.clone().into_owned())),
            },
            (None, Some(what)) => {
                let what = match what {
                    WaitsFor::Line => "input",
                    WaitsFor::Secret => "a password, which is not shown",
                };
                let told = format!("command {id} waits for {what}; answer with shell_input, or end it with shell_stop");
                ("waiting_for_input", told)
            }
            (None, None) => {
                let told = format!("command {id} still runs; shell_output shows more, shell_stop ends it");
                ("running", told)
            }
        };
        let mut data = json!({
            "id": id,
            "state": state,
            "exit_code": seen.end.as_ref().and_then(|end| end.exit_code),
            "output": output,
            "next_offset": seen.next,
        });
        let mut set = |name: &str, value: serde_json::Value| {
            if let Some(data) = data.as_object_mut() {
                data.insert(name.to_owned(), value);
            }
        };
        if seen.left_out() > 0 {
            set("omitted_bytes", seen.left_out().into());
        }
        if let Some(end) = seen.end.as_ref().filter(|end| !end.cwd.is_empty()) {
            set("directory", end.cwd.clone().into());
        }
        let mut notes = Vec::new();
        if seen.lost > 0 {
            notes.push(format!("{} bytes of output are no longer kept", seen.lost));
        }
        if state != "ended" || seen.end.as_ref().is_some_and(|end| end.message.is_some()) {
            notes.push(told.clone());
        }
        if !notes.is_empty() {
            set("note", notes.join("; ").into());
        }
        let lost =
            if seen.lost > 0 { format!("[{} bytes of output are no longer kept]\n", seen.lost) } else { String::new() };
        let line_break = if output.is_empty() || output.ends_with('\n') { "" } else { "\n" };
        Answer::new(format!("{lost}{output}{line_break}[{told}]"), data)
    }
}

/// A command that has not begun when its call has waited long enough is given up: nobody expects it later.
async fn refuse_queued(computer: &dyn Computer, id: &str) -> Result<(), Failure> {
    let commands = computer.commands().await?;
    let is_queued = commands.iter().any(|command| command.id == id && matches!(command.state, ExecState::Queued));
    if !is_queued {
        return Ok(());
    }
    computer.cancel(id).await?;
    let running = commands.iter().find(|command| {
        command.session == Session::Main && matches!(command.state, ExecState::Running { .. }) && command.id != id
    });
    let busy = match running {
        Some(command) => {
            let text: String = command.command.chars().take(NAMED).collect();
            format!(
                "command {} (`{text}`) still runs in it. Wait for its end with shell_output, end it with shell_stop",
                command.id
            )
        }
        None => "something else runs in it. Wait for its end".to_owned(),
    };
    Err(Failure::new(format!("the shell is busy, so the command was not run: {busy}, or use `background`")))
}
