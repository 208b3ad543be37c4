//! `gloveport doctor`: what this machine can do, what is missing, and what to do about it.

use std::{borrow::Cow, io::IsTerminal as _, process::ExitCode};

use clap::Args;
use gloveport_provider::program::{Beside, SMALL, is_for_containers};
use serde::Serialize;

use crate::{
    here::{self, Owner},
    output::{print_json, print_painted},
    visible,
};

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// It works.
    Ok,
    /// Something is worse without it.
    Warning,
    /// Commands do not work without it.
    Failed,
}

/// What was looked at, and what was found.
#[derive(Debug, Serialize)]
pub(crate) struct Check {
    pub(crate) name: Cow<'static, str>,
    pub(crate) verdict: Verdict,
    pub(crate) found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remedy: Option<Cow<'static, str>>,
}

impl Check {
    pub(crate) fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name: name.into(), verdict: Verdict::Ok, found: found.into(), remedy: None }
    }

    pub(crate) fn warning(name: &'static str, found: impl Into<String>, remedy: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), verdict: Verdict::Warning, found: found.into(), remedy: Some(remedy.into()) }
    }

    pub(crate) fn failed(name: &'static str, found: impl Into<String>, remedy: &'static str) -> Self {
        Self { name: name.into(), verdict: Verdict::Failed, found: found.into(), remedy: Some(remedy.into()) }
    }
}

pub(crate) async fn doctor(arguments: &DoctorArgs, owner: anyhow::Result<Owner>) -> anyhow::Result<ExitCode> {
    let mut checks = vec![system()];
    checks.extend(here::checks(owner).await);
    checks.push(inside());
    checks.push(other_names());
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
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = here::memory().map(|bytes| format!(", {} MiB of memory", bytes / 1024 / 1024)).unwrap_or_default();
    Check::ok("system", format!("{}, {cores} cores{memory}", here::system()))
}

/// The program that goes into sandboxes.
fn inside() -> Check {
    const NAME: &str = "program in sandboxes";
    const REMEDY: &str = "install both from one build, or remove it";
    let own = match crate::providers::own_program() {
        Ok(own) => own,
        Err(error) => return Check::warning(NAME, format!("{error:#}"), "mount /proc"),
    };
    // Elsewhere than on Linux it is not for sandboxes.
    let used = is_for_containers(&own).is_ok_and(|is| is).then(|| own.display().to_string());
    let or_own = used.as_deref().unwrap_or("none");
    match Beside::of(&own, gloveport_build_id::BUILD) {
        Beside::Same(small) => Check::ok(NAME, small.display().to_string()),
        Beside::Nothing if used.is_some() => Check::ok(NAME, format!("{or_own}; no {SMALL} is in its folder")),
        Beside::Nothing => {
            let found = format!("{or_own}; no {SMALL} is in the folder of {}", own.display());
            Check::warning(NAME, found, "put the one of this build there that is for Linux")
        }
        Beside::Other(small) => {
            let found = format!("{or_own}, because {} is of another build", small.display());
            Check::warning(NAME, found, REMEDY)
        }
        Beside::Unusable(small, error) => {
            let found = format!("{or_own}, because {} cannot be used: {error}", small.display());
            Check::warning(NAME, found, REMEDY)
        }
    }
}

/// Which of the servers that this program can stand in for are in `PATH`, and whether they are this program.
fn other_names() -> Check {
    const NAME: &str = "servers by name";
    const NAMES: [&str; 3] = ["agent-server", "openhands-agent-server", "swerex-remote"];
    let own = std::env::current_exe().and_then(std::fs::canonicalize).ok();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found: Vec<String> = NAMES
        .iter()
        .filter_map(|name| {
            let file = std::env::split_paths(&path).map(|place| place.join(name)).find(|file| file.is_file())?;
            let is_own = std::fs::canonicalize(&file).ok().is_some_and(|target| Some(target) == own);
            let whose = if is_own { "this program" } else { "another server" };
            Some(format!("{name}: {} ({whose})", file.display()))
        })
        .collect();
    if found.is_empty() {
        let found = "none in PATH; a link to this program serves clients of OpenHands' SDK 1.x and SWE-ReX";
        return Check::ok(NAME, format!("{found} by these names: {}", NAMES.join(", ")));
    }
    Check::ok(NAME, found.join(", "))
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

/// The checks as lines for people.
pub(crate) fn table(checks: &[Check]) -> String {
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
