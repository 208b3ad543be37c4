//! `gloveport doctor`: what this machine can do, what is missing, and what to do about it.

use std::{
    borrow::Cow,
    io::IsTerminal as _,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::Args;
use gloveport_executor::{Executor, ExecutorOptions};
use gloveport_kernel::{KernelOptions, Python};
use gloveport_protocol::{Action, ActionEvent, ActionExecutor as _, Observation, RunAction};
use gloveport_provider::program::{Beside, SMALL};
use gloveport_sys::{Surroundings, host, users::UserDatabase};
use gloveport_vscode::VsCode;
use serde::Serialize;

use crate::{
    Owner,
    output::{print_json, print_painted},
    plugins, tools, visible,
};

/// Free space below which output of long commands may be lost.
const SPOOL_SPACE: u64 = 512 * 1024 * 1024;

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    /// It works.
    Ok,
    /// Something is worse without it.
    Warning,
    /// Commands do not work without it.
    Failed,
}

#[derive(Debug, Serialize)]
struct Check {
    name: Cow<'static, str>,
    verdict: Verdict,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<Cow<'static, str>>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name: name.into(), verdict: Verdict::Ok, found: found.into(), remedy: None }
    }

    fn warning(name: &'static str, found: impl Into<String>, remedy: &'static str) -> Self {
        Self { name: name.into(), verdict: Verdict::Warning, found: found.into(), remedy: Some(remedy.into()) }
    }

    fn failed(name: &'static str, found: impl Into<String>, remedy: &'static str) -> Self {
        Self { name: name.into(), verdict: Verdict::Failed, found: found.into(), remedy: Some(remedy.into()) }
    }
}

pub(crate) async fn doctor(arguments: &DoctorArgs, owner: anyhow::Result<Owner>) -> anyhow::Result<ExitCode> {
    let mut checks = vec![system()];
    match owner {
        Ok(owner) => {
            checks.push(Check::ok("process guard", "every program that is started ends with the server"));
            checks.push(shell(&owner).await);
        }
        Err(error) => {
            checks.push(Check::failed(
                "process guard",
                format!("{error:#}"),
                "check the limit on processes (ulimit -u)",
            ));
        }
    }
    checks.extend([processes(), spool(), users(), program("git", "repositories"), program("python3", "Python")]);
    checks.extend([notebook().await, editor(), inside()]);
    checks.extend(providers().await);
    if arguments.json {
        print_json(&checks)?;
    } else {
        print_painted(&table(&checks))?;
    }
    let failed = checks.iter().any(|check| check.verdict == Verdict::Failed);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn system() -> Check {
    let uname = rustix::system::uname();
    let memory =
        host::total_memory().map(|bytes| format!(", {} MiB of memory", bytes / 1024 / 1024)).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let text = format!(
        "{} {} on {}, {cores} cores{memory}",
        uname.sysname().to_string_lossy(),
        uname.release().to_string_lossy(),
        uname.machine().to_string_lossy()
    );
    Check::ok("system", text)
}

/// Starts a real shell and runs a real command.
async fn shell(owner: &Owner) -> Check {
    const NAME: &str = "shell";
    let began = Instant::now();
    let options = tools::executor_options(owner, std::env::temp_dir())
        .unwrap_or_else(|_| ExecutorOptions::inherited(std::env::temp_dir()));
    let executor = match Executor::start(options).await {
        Ok(executor) => executor,
        Err(error) => {
            return Check::failed(
                NAME,
                error.to_string(),
                "install bash or another shell, and mount /proc and /dev/pts",
            );
        }
    };
    let started = began.elapsed();
    let action = RunAction { hidden: true, ..RunAction::new("echo ${BASH_VERSION-}") };
    let event = ActionEvent { timeout: Some(10.0), ..ActionEvent::from(Action::Run(action)) };
    let result = executor.execute(&event).await;
    executor.close().await;
    let Ok(Observation::Run(run)) = result else {
        return Check::failed(NAME, "it starts but does not run commands", "set GLOVEPORT_LOG=debug and read the log");
    };
    let ready = format!("ready after {} ms", started.as_millis());
    if run.content.is_empty() {
        let text = format!("a POSIX shell, {ready}");
        return Check::warning(NAME, text, "install bash: agents expect it, and gloveport uses it if it is there");
    }
    let text = format!("bash {}, {ready}", run.content);
    let version: Vec<u32> = run.content.split('.').take(2).filter_map(|part| part.parse().ok()).collect();
    if version < vec![5, 1] {
        return Check::warning(NAME, text, "install bash 5.1 or newer: with it, commands may replace PROMPT_COMMAND");
    }
    if started > Duration::from_millis(500) {
        return Check::warning(NAME, text, "make ~/.bashrc faster: every shell reads it when it starts");
    }
    Check::ok(NAME, text)
}

fn processes() -> Check {
    const NAME: &str = "process information";
    let own = std::process::id();
    if gloveport_sys::process::stat(own).is_none() {
        return Check::failed(NAME, "/proc cannot be read", "mount /proc");
    }
    if gloveport_sys::process::waiting(own).is_none() {
        let remedy = "allow tracing of your own processes; without it, programs that wait for input are noticed late";
        return Check::warning(NAME, "/proc is mounted, but does not show what processes wait for", remedy);
    }
    Check::ok(NAME, "/proc shows what programs wait for")
}

fn spool() -> Check {
    const NAME: &str = "output spool";
    let directory = std::env::temp_dir();
    let place = directory.display().to_string();
    match (std::fs::metadata(&directory), host::file_system(&directory)) {
        (Ok(metadata), Some((_, _, free))) if metadata.is_dir() => {
            let text = format!("{place}, {} MiB free", free / 1024 / 1024);
            if free < SPOOL_SPACE {
                Check::warning(NAME, text, "free some space, or set TMPDIR to a larger file system")
            } else {
                Check::ok(NAME, text)
            }
        }
        _ => Check::warning(NAME, format!("{place} cannot be used"), "create it, or set TMPDIR to a directory"),
    }
}

fn users() -> Check {
    const NAME: &str = "user";
    let uid = rustix::process::geteuid();
    let name = UserDatabase::load().ok().and_then(|users| users.by_uid(uid.as_raw()).map(|user| user.name.clone()));
    let text = format!("{} ({})", name.unwrap_or_else(|| "no name".into()), uid.as_raw());
    if uid.is_root() {
        Check::ok(NAME, format!("{text}; tools can work as any user"))
    } else {
        Check::ok(NAME, format!("{text}; tools work as this user"))
    }
}

/// The interpreter that cells would run in.
async fn notebook() -> Check {
    const NAME: &str = "IPython";
    let surroundings = Surroundings::inherited(std::env::current_dir().unwrap_or_else(|_| "/".into()));
    let interpreter = plugins::interpreter();
    match Python::of(&KernelOptions { interpreter, ..KernelOptions::new(surroundings) }).await {
        Ok(python) if python.has_kernel => {
            Check::ok(NAME, format!("{} (Python {}) with ipykernel", python.program.display(), python.version))
        }
        Ok(python) => Check::ok(
            NAME,
            format!(
                "{} (Python {}); the first cell installs ipykernel into a separate environment",
                python.program.display(),
                python.version
            ),
        ),
        Err(error) => Check::warning(
            NAME,
            error.to_string(),
            "install Python 3 if you need IPython cells; everything else works without it",
        ),
    }
}

/// The server that the plugin `vscode` would start.
fn editor() -> Check {
    const NAME: &str = "VS Code";
    match VsCode::program(&Surroundings::inherited("/".into())) {
        Ok(program) => Check::ok(NAME, program.display().to_string()),
        Err(error) => Check { remedy: Some(error.remedy.into()), ..Check::warning(NAME, error.reason, "") },
    }
}

/// The program that goes into sandboxes.
fn inside() -> Check {
    const NAME: &str = "program in sandboxes";
    const REMEDY: &str = "install both from one build, or remove it";
    let own = match crate::providers::own_program() {
        Ok(own) => own,
        Err(error) => return Check::warning(NAME, format!("{error:#}"), "mount /proc"),
    };
    match Beside::of(&own, gloveport_build_id::BUILD) {
        Beside::Same(small) => Check::ok(NAME, small.display().to_string()),
        Beside::Nothing => Check::ok(NAME, format!("{}; no {SMALL} is in its folder", own.display())),
        Beside::Other(small) => {
            let found = format!("{}, because {} is of another build", own.display(), small.display());
            Check::warning(NAME, found, REMEDY)
        }
        Beside::Unusable(small, error) => {
            let found = format!("{}, because {} cannot be used: {error}", own.display(), small.display());
            Check::warning(NAME, found, REMEDY)
        }
    }
}

/// What the providers need. One that cannot be used is no failure of the others.
async fn providers() -> Vec<Check> {
    let context = match crate::providers::context() {
        Ok(context) => context,
        Err(error) => {
            let remedy = "run `gloveport config check` to see what is wrong";
            return vec![Check::warning("providers", format!("{error:#}"), remedy)];
        }
    };
    let mut checks = Vec::new();
    for (provider, found) in crate::provider::check_all(&[], &context).await {
        checks.extend(found.into_iter().map(|check| Check {
            name: format!("{provider}: {}", check.name).into(),
            verdict: if check.works { Verdict::Ok } else { Verdict::Warning },
            found: check.found,
            remedy: check.remedy.map(Cow::from),
        }));
    }
    checks
}

fn program(name: &'static str, purpose: &str) -> Check {
    let path = std::env::var("PATH").unwrap_or_default();
    match host::find_program(name, &path, Path::new("/")) {
        Some(found) => Check::ok(name, found.display().to_string()),
        None => Check::warning(
            name,
            format!("not in PATH; agents often need it for {purpose}"),
            "install it in the sandbox",
        ),
    }
}

/// The checks as lines for people.
fn table(checks: &[Check]) -> String {
    let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let line = |check: &Check| {
        let (word, colour) = match check.verdict {
            Verdict::Ok => ("ok", 32),
            Verdict::Warning => ("warning", 33),
            Verdict::Failed => ("failed", 31),
        };
        let word = if colours { format!("\x1b[{colour}m{word:<8}\x1b[0m") } else { format!("{word:<8}") };
        let remedy = check.remedy.as_deref().map(|remedy| format!("{:29} -> {}\n", "", visible::one_line(remedy)));
        format!("{word} {:<20} {}\n{}", check.name, visible::one_line(&check.found), remedy.unwrap_or_default())
    };
    checks.iter().map(line).collect::<Vec<_>>().concat()
}
