//! Programs without a session, as Python's `subprocess.run` runs them, and the look at a command before a
//! session runs it.

use std::{collections::BTreeMap, ffi::OsString, io, os::fd::OwnedFd, path::Path};

use gloveport_executor::{Executor, ProcessesError};
use gloveport_protocol::processes::{ProcessEnd, ProcessEvent, ProcessFrom, ProcessRequest, ProcessStream};
use gloveport_sys::{Surroundings, surroundings::TalkingProgram};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::{
    exception::{Exception, repr},
    output,
    reader::MOST,
    session::{number, seconds},
    types::{Command, CommandResponse, Words},
};

/// What reads a text.
const SHELL: &str = "/bin/sh";
/// What gives a program one place for both of its outputs.
const MERGING: &str = "exec \"$@\" 2>&1";
/// Most bytes that a look at a command prints.
const COMPLAINT: u64 = 64 * 1024;

/// Runs a program to its end.
pub(crate) async fn execute(executor: &Executor, command: &Command) -> Result<CommandResponse, Exception> {
    let ran = run(executor, command).await;
    let answer = ran.map_err(|exception| exception.told(&command.error_msg))?;
    if !command.check || answer.exit_code == 0 {
        return Ok(answer);
    }
    let what = match &command.command {
        Words::Text(text) => repr(text),
        Words::List(words) => gloveport_protocol::python::repr(&words.clone().into()),
    };
    let text = format!(
        "Command {what} failed with exit code {}. Stdout:\n{}\nStderr:\n{}",
        answer.exit_code,
        repr(&answer.stdout),
        repr(&answer.stderr)
    );
    Err(Exception::exit_code(text).told(&command.error_msg))
}

async fn run(executor: &Executor, command: &Command) -> Result<CommandResponse, Exception> {
    check_texts(command)?;
    let directory = match &command.cwd {
        Some(cwd) => executor.working_directory().join(cwd),
        None => executor.working_directory().clone(),
    };
    if let Err(error) = std::fs::read_dir(&directory) {
        return Err(Exception::os(&error, command.cwd.as_deref().map_or(&directory, Path::new)));
    }
    let limit = command.timeout.and_then(|limit| seconds(Some(limit)).map(|time| (limit, time)));
    let late = |limit: f64| Exception::timeout(format!("Timeout ({}s) exceeded while running command", number(limit)));
    if let Some((limit, _)) = limit.filter(|(_, time)| time.is_zero()) {
        return Err(late(limit));
    }
    let environment = command.env.as_ref().map(whole);
    let mut argv = words(command);
    let program = argv.first().cloned().unwrap_or_default();
    let mut surroundings = executor.surroundings();
    surroundings.directory.clone_from(&directory);
    if let Some(environment) = &environment {
        surroundings.environment.clone_from(environment);
    }
    if program.is_empty() || surroundings.find(&program).is_none() {
        return Err(not_there(&surroundings, &program));
    }
    if command.merge_output_streams {
        argv.splice(0..0, [SHELL, "-c", MERGING, SHELL].map(str::to_owned));
    }
    let request = ProcessRequest {
        argv,
        cwd: Some(directory),
        timeout: limit.map(|(_, time)| time.as_secs_f64()),
        ..ProcessRequest::default()
    };
    let started = executor.processes().start_with(request, environment).await;
    let process = started.map_err(|error| match error {
        ProcessesError::NoProgram(_) => not_there(&surroundings, &program),
        error => Exception::failed(error.to_string()),
    })?;
    let mut follower = process.follow(ProcessFrom::Start).map_err(|error| Exception::failed(error.to_string()))?;
    let (mut stdout, mut stderr) = (Kept::default(), Kept::default());
    while let Some(event) = follower.next().await {
        match event {
            ProcessEvent::Output { stream: ProcessStream::Stdout, bytes } => stdout.add(&bytes),
            ProcessEvent::Output { stream: ProcessStream::Stderr, bytes } => stderr.add(&bytes),
            ProcessEvent::Lost(count) => stdout.lost += count,
            ProcessEvent::Ended(end) => {
                if end.timed_out {
                    return Err(late(command.timeout.unwrap_or_default()));
                }
                return Ok(CommandResponse { stdout: stdout.text(), stderr: stderr.text(), exit_code: code(end) });
            }
        }
    }
    Err(Exception::failed("the program was ended with the sandbox"))
}

/// Refuses texts of which the system would read a part, or another thing.
fn check_texts(command: &Command) -> Result<(), Exception> {
    let environment = || command.env.iter().flatten();
    if environment().any(|(name, _)| name.contains('=')) {
        return Err(Exception::value("illegal environment variable name"));
    }
    let words = match &command.command {
        Words::Text(text) => std::slice::from_ref(text),
        Words::List(words) => words,
    };
    let variables = environment().flat_map(|(name, value)| [name, value]);
    if words.iter().chain(&command.cwd).chain(variables).any(|text| text.contains('\0')) {
        return Err(Exception::zero_byte());
    }
    Ok(())
}

/// The end of what a program writes.
#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    lost: u64,
}

impl Kept {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > 2 * MOST {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let surplus = self.bytes.len().saturating_sub(MOST);
        self.bytes.drain(..surplus);
        self.lost += surplus as u64;
    }

    fn text(mut self) -> String {
        self.cut();
        let text = output::text(&self.bytes);
        match self.lost {
            0 => text,
            lost => format!("[{lost} bytes of output before this are not shown]\n{text}"),
        }
    }
}

fn words(command: &Command) -> Vec<String> {
    let own = match &command.command {
        Words::Text(text) => vec![text.clone()],
        Words::List(words) => words.clone(),
    };
    if !command.shell {
        return own;
    }
    [SHELL, "-c"].map(str::to_owned).into_iter().chain(own).collect()
}

fn whole(environment: &BTreeMap<String, String>) -> Vec<(OsString, OsString)> {
    environment.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

/// A program that cannot be started, as Python says it.
fn not_there(surroundings: &Surroundings, program: &str) -> Exception {
    // One with a path may be there, and be no program.
    let place = program.contains('/').then(|| surroundings.directory.join(program));
    let number = if place.is_some_and(|path| path.exists()) { 13 } else { 2 };
    Exception::os(&io::Error::from_raw_os_error(number), Path::new(program))
}

fn code(end: ProcessEnd) -> i32 {
    match (end.exit_code, end.signal) {
        (Some(code), _) => code,
        (None, Some(signal)) => -signal,
        (None, None) => -1,
    }
}

/// Has bash look at a command that is not to run.
pub(crate) async fn check_syntax(surroundings: &Surroundings, text: &str) -> Result<(), Exception> {
    let failed = |error: &dyn std::fmt::Display| Exception::failed(format!("the command cannot be looked at: {error}"));
    let argv = ["bash", "-n"].map(OsString::from);
    let started = surroundings.start_to_talk(&argv).await.map_err(|error| failed(&error))?;
    let TalkingProgram { mut process, input, output, errors } = started;
    let text_of_it = text.to_owned();
    let written = tokio::spawn(async move {
        let mut input = Sender::from_owned_fd(input)?;
        // It reads no further than to what is wrong.
        let _unread = input.write_all(text_of_it.as_bytes()).await;
        let _unread = input.write_all(b"\n").await;
        io::Result::Ok(())
    });
    let (stdout, stderr) = tokio::join!(complaint(output), complaint(errors));
    let exit = process.exited().await;
    written.abort();
    let status = exit.shell_status();
    if status == 0 {
        return Ok(());
    }
    let (stdout, stderr) = (stdout.map_err(|error| failed(&error))?, stderr.map_err(|error| failed(&error))?);
    let message = format!(
        "Error (exit code {status}) while checking bash command \n{}\n---- Stderr ----\n{stderr}\n---- Stdout ----\n{stdout}",
        repr(text)
    );
    Err(Exception::syntax(message).with("bash_stdout", stdout).with("bash_stderr", stderr))
}

async fn complaint(pipe: OwnedFd) -> io::Result<String> {
    let mut bytes = Vec::new();
    Receiver::from_owned_fd(pipe)?.take(COMPLAINT).read_to_end(&mut bytes).await?;
    Ok(output::text(&bytes))
}
