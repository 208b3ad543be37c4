//! What this machine can do as the place of sandboxes.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use gloveport_executor::{Executor, ExecutorOptions};
use gloveport_kernel::{KernelOptions, Python};
use gloveport_protocol::{Action, ActionEvent, ActionExecutor as _, Observation, RunAction};
use gloveport_sandbox::{Owner, plugins, tools, trial};
use gloveport_sys::{Surroundings, amounts::Kept, confined, host, owners::Missing, users::UserDatabase};
use gloveport_vscode::VsCode;

use super::images;
use crate::doctor::Check;

/// Free space below which output of long commands may be lost.
const SPOOL_SPACE: u64 = 512 * 1024 * 1024;

/// The name of the system, its version, and the processor.
pub(crate) fn system() -> String {
    let uname = rustix::system::uname();
    format!(
        "{} {} on {}",
        uname.sysname().to_string_lossy(),
        uname.release().to_string_lossy(),
        uname.machine().to_string_lossy()
    )
}

/// Bytes of memory that there are, if that is known.
pub(crate) fn memory() -> Option<u64> {
    host::total_memory()
}

/// What sandboxes of this machine need.
pub(crate) async fn checks(owner: anyhow::Result<Owner>) -> Vec<Check> {
    let mut checks = Vec::new();
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
    checks.extend([
        isolation(),
        containers(),
        amounts(),
        kernels(),
        owners(),
        processes(),
        spool(),
        users(),
        program("git", "repositories"),
        program("python3", "Python"),
    ]);
    checks.extend([notebook().await, browser(), editor()]);
    checks
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

/// What `--isolation files` would keep sandboxes of this machine to.
fn isolation() -> Check {
    const NAME: &str = "isolation files";
    match confined::support() {
        Err(missing) => Check::warning(NAME, missing.reason, missing.remedy),
        Ok(support) if support.gaps.is_empty() => {
            Check::ok(NAME, format!("Landlock {} keeps files, signals and terminals", support.version))
        }
        Ok(support) => {
            let found = format!(
                "Landlock {} does not keep sandboxes from {}",
                support.version,
                support.gaps.join(", nor from ")
            );
            Check::warning(NAME, found, "use a later kernel, or a runtime with containers")
        }
    }
}

/// Whether `--isolation container` can be had: a container is made, and ended.
fn containers() -> Check {
    const NAME: &str = "isolation container";
    const INSTEAD: &str = "use --isolation files, or a runtime with containers";
    let began = Instant::now();
    let tried = std::env::current_exe().map_err(anyhow::Error::from).and_then(|program| trial::containers(&program));
    told(NAME, tried, INSTEAD, || format!("a container without an engine, made in {} ms", began.elapsed().as_millis()))
}

/// What containers are kept to by the kernel.
fn amounts() -> Check {
    const NAME: &str = "limits of containers";
    let kept = Kept::here();
    let parts = [("memory", kept.memory), ("processes", kept.processes), ("processors", kept.processors)];
    let named = |is_kept: bool| parts.iter().filter(|part| part.1 == is_kept).map(|part| part.0).collect::<Vec<_>>();
    let (by_kernel, others) = (named(true), named(false));
    let remedy = Kept::remedy();
    let found = match (by_kernel.is_empty(), kept.processors) {
        (false, true) if others.is_empty() => format!("control groups keep {}", by_kernel.join(", ")),
        (false, true) => format!("control groups keep {}; {} otherwise", by_kernel.join(", "), others.join(", ")),
        (false, false) => format!("control groups keep {}, and not processors ({remedy})", by_kernel.join(", ")),
        (true, _) => format!(
            "no control group is this user's: memory and processes are bounded in other ways, processors are not ({remedy})"
        ),
    };
    Check::ok(NAME, found)
}

/// Whether `--isolation gvisor` can be had: a program is run on a kernel of its own.
fn kernels() -> Check {
    const NAME: &str = "isolation gvisor";
    const INSTEAD: &str = "use --isolation container";
    let path = std::env::var("PATH").unwrap_or_default();
    let Some(runsc) = gloveport_provider_local::runsc(&path) else {
        return Check::ok(NAME, "not here: there is no `runsc` in PATH (https://gvisor.dev/docs/user_guide/install)");
    };
    let began = Instant::now();
    let program = std::env::current_exe().map_err(anyhow::Error::from);
    let tried = program.and_then(|program| trial::kernels(&program, &runsc));
    told(NAME, tried, INSTEAD, || {
        format!("a container on a kernel of its own, {}, made in {} ms", runsc.display(), began.elapsed().as_millis())
    })
}

/// Whether files in sandboxes of images have the owners that these name.
fn owners() -> Check {
    const NAME: &str = "owners in images";
    if rustix::process::geteuid().is_root() {
        return Check::ok(NAME, "all that images name, as you are root");
    }
    let options = images::options();
    match options.and_then(|options| Ok(gloveport_provider_local::owners(&options)?)) {
        Ok(()) => Check::ok(NAME, "all that images name, so that `apt install` works in them"),
        Err(error) => match error.downcast_ref::<Missing>() {
            Some(Missing { reason, remedy }) => Check::ok(NAME, format!("you alone: {reason} ({remedy})")),
            None => Check::ok(NAME, format!("you alone: {error:#}")),
        },
    }
}

/// What came of a trial.
fn told(
    name: &'static str,
    tried: anyhow::Result<Result<(), String>>,
    instead: &'static str,
    made: impl FnOnce() -> String,
) -> Check {
    match tried {
        Ok(Ok(())) => Check::ok(name, made()),
        Ok(Err(why)) => match why.split_once("; ") {
            Some((reason, remedy)) => Check::warning(name, reason, remedy.to_owned()),
            None => Check::warning(name, &*why, instead),
        },
        Err(error) => Check::warning(name, format!("{error:#}"), instead),
    }
}

/// What this kernel does not keep a sandbox of the level `files` from.
pub(crate) fn isolation_gaps() -> Vec<&'static str> {
    confined::support().map(|support| support.gaps).unwrap_or_default()
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

/// The Chromium that actions of the browser would start.
fn browser() -> Check {
    const NAME: &str = "browser";
    match gloveport_browser::find::find(&Surroundings::inherited("/".into())) {
        Ok(program) => Check::ok(NAME, program.display().to_string()),
        Err(error) => Check { remedy: Some(error.remedy.into()), ..Check::warning(NAME, error.reason, "") },
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
