//! `gloveport session attach` and `exec -t`: a terminal of a sandbox on ours.

use std::{collections::BTreeMap, process::ExitCode};

use gloveport_client::ActionExecutionClient;
use gloveport_protocol::{Action, EventSource, RunAction};
use gloveport_runtime::{Begun, RunEnd, attaching};

use super::{
    arguments::{AttachArgs, ExecArgs},
    exec::handling,
    handling::Handling,
    operations::{self, or_lost},
    runtimes::{Found, Runtimes},
};
use crate::{
    approve,
    attach::{self, AttachRequest, Attached, DetachKeys},
    cli::RunArgs,
};

/// What the history calls a terminal that no command was given for.
const SHELL: &str = "bash";

/// The session's own terminals go on until their programs end, whoever is attached.
pub(super) async fn attach(runtimes: &Runtimes, arguments: AttachArgs) -> anyhow::Result<ExitCode> {
    let mut found = runtimes.find(&arguments.id).await?;
    let client = found.client().await?;
    let terminal = arguments.terminal;
    let operations = operations::of_session(runtimes, &client, &found, arguments.record.handling(false)).await?;
    let action = attaching(&terminal);
    let text = action.command.clone();
    let operation = match operations.begin(Action::Run(action), EventSource::User).await? {
        Begun::Allowed(operation) => operation,
        Begun::Refused(refused) => return approve::refused(&refused, false),
    };
    let request = AttachRequest {
        id: Some(terminal.clone()),
        argv: None,
        cwd: None,
        env: BTreeMap::new(),
        detach_keys: arguments.detach_keys,
        tty: true,
        again: again(&found),
    };
    let (operation, attached) = or_lost(operation, &text, attach::attach(&client, request).await).await?;
    let end = RunEnd::Attached { terminal: &terminal, exit_code: ended(attached) };
    let observation = operation.output().observation(&text, end);
    operation.finish(observation).await?;
    Ok(attached.exit_code())
}

/// The exit code of the program on a terminal that was left, if it has ended.
const fn ended(attached: Attached) -> Option<i32> {
    match attached {
        Attached::Ended(code) => Some(code),
        Attached::Detached | Attached::Terminated(_) => None,
    }
}

/// A program on a terminal of its own. What goes through it is not kept, as what is typed may be a password.
pub(super) async fn run(runtimes: &Runtimes, arguments: ExecArgs) -> anyhow::Result<ExitCode> {
    let mut found = runtimes.find(&arguments.id).await?;
    let client = found.client().await?;
    let handling = Handling { input_is_taken: false, ..handling(&arguments, false) };
    let operations = operations::of_session(runtimes, &client, &found, handling).await?;
    let argv = program(&arguments.command);
    // Without a command it is the shell of the sandbox's user.
    let text = if argv.is_some() { arguments.command.join(" ") } else { SHELL.to_owned() };
    let cwd = arguments.cwd.as_ref().map(|cwd| cwd.to_string_lossy().into_owned());
    let action = Action::Run(RunAction { cwd, ..RunAction::new(&text) });
    let operation = match operations.begin(action, EventSource::User).await? {
        Begun::Allowed(operation) => operation,
        Begun::Refused(refused) => return approve::refused(&refused, false),
    };
    let request = AttachRequest {
        id: None,
        argv,
        cwd: arguments.cwd,
        env: arguments.env.into_iter().collect(),
        detach_keys: arguments.detach_keys,
        tty: true,
        again: again(&found),
    };
    let (operation, attached) = or_lost(operation, &text, attach::attach(&client, request).await).await?;
    let observation = operation.output().observation(&text, RunEnd::OnTerminal { exit_code: ended(attached) });
    operation.finish(observation).await?;
    Ok(attached.exit_code())
}

/// A program on a terminal of a sandbox that ends with it, so that whoever leaves it ends it.
pub(super) async fn in_fresh(client: &ActionExecutionClient, arguments: &RunArgs) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        arguments.terminal.is_none(),
        "a fresh sandbox has no terminals yet; --terminal is for servers that stay (--url)"
    );
    let request = AttachRequest {
        id: None,
        argv: program(&arguments.command),
        cwd: arguments.cwd.clone(),
        env: BTreeMap::new(),
        detach_keys: DetachKeys::none(),
        tty: true,
        again: Box::new(|_| "gloveport session start, for a sandbox that stays".to_owned()),
    };
    Ok(attach::attach(client, request).await?.exit_code())
}

/// The words are one text for the shell, as everywhere; without any it is a shell.
fn program(words: &[String]) -> Option<Vec<String>> {
    let text = words.join(" ");
    (!text.is_empty()).then(|| ["bash", "-c", text.as_str()].map(str::to_owned).to_vec())
}

/// The command that attaches again.
fn again(found: &Found) -> Box<dyn Fn(&str) -> String + Send + Sync> {
    let (runtime, name) = (found.runtime.clone(), found.name().to_owned());
    Box::new(move |terminal| format!("gloveport session attach --runtime {runtime} {name} --terminal {terminal}"))
}
