//! The interpreter that runs a kernel.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use gloveport_sys::{Surroundings, surroundings::RunError};
use serde::Deserialize;

use crate::{launch::Failure, options::KernelOptions, state::KernelError};

/// The program that an interpreter runs to tell what it is.
const PROBE: &str = include_str!("probe.py");
/// What its answer begins with; a start-up file of the user may print something before.
const MARK: &str = "gloveport-probe ";
/// Time for it. One that needs more would make every cell slow.
const TIME: Duration = Duration::from_secs(10);
/// Most of its output that is kept.
const MOST: usize = 16 * 1024;
/// Environments of an image that are looked at.
const MOST_ENVIRONMENTS: usize = 64;
/// Oldest version of Python that the launcher runs with.
const OLDEST: [u32; 3] = [3, 8, 0];
/// Oldest `ipykernel`: with it the control channel got a thread of its own.
const OLDEST_KERNEL: u32 = 6;

/// An interpreter that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Python {
    /// What is started.
    pub program: PathBuf,
    /// The file behind all links.
    pub(crate) real: PathBuf,
    /// Version of Python, as `3.12.1`.
    pub version: String,
    /// It has an `ipykernel` that can be used; otherwise that is installed into an environment of our own.
    pub has_kernel: bool,
}

#[derive(Deserialize)]
struct Answer {
    version: [u32; 3],
    program: PathBuf,
    kernel: Option<String>,
}

impl Python {
    /// The interpreter that a kernel with these options would get. Nothing is installed.
    pub async fn of(options: &KernelOptions) -> Result<Self, KernelError> {
        find(options).await.map_err(|Failure { reason, remedy, .. }| KernelError::Failed { reason, remedy })
    }
}

/// Looks for an interpreter: the configured one, the user's active environment, that of an image which OpenHands has
/// built, the workspace's environment, `python3`, `python`. The first one that
/// runs is taken, whether it has `ipykernel` or not: it has the packages that the user wants.
pub(crate) async fn find(options: &KernelOptions) -> Result<Python, Failure> {
    let surroundings = &options.surroundings;
    if let Some(configured) = &options.interpreter {
        let remedy = "name an interpreter of Python 3.8 or later in the configuration";
        let Some(program) = surroundings.find(&configured.to_string_lossy()) else {
            return Err(Failure::lasting(format!("there is no {}", configured.display()), remedy));
        };
        return probe(surroundings, &program).await.map_err(|reason| Failure::lasting(reason, remedy));
    }
    let mut refused = Vec::new();
    for program in candidates(options) {
        match probe(surroundings, &program).await {
            Ok(python) => return Ok(python),
            Err(reason) => refused.push(reason),
        }
    }
    let reason = if refused.is_empty() { "there is no Python".to_owned() } else { refused.join("; ") };
    Err(Failure::lasting(reason, "install Python 3.8 or later with `ipykernel`, or name an interpreter"))
}

fn candidates(options: &KernelOptions) -> Vec<PathBuf> {
    let surroundings = &options.surroundings;
    let active = surroundings.variable("VIRTUAL_ENV").map(PathBuf::from);
    let usual = [".venv", "venv"].map(|name| surroundings.directory.join(name));
    let mut candidates: Vec<PathBuf> = active
        .into_iter()
        .chain(image_environments(&options.image_environments))
        .chain(usual)
        .map(|environment| environment.join("bin/python"))
        .filter(|program| program.is_file())
        .collect();
    let found = surroundings.find("python3").map(|program| short_name(&program).unwrap_or(program));
    candidates.extend(found.into_iter().chain(surroundings.find("python")));
    candidates
}

/// The environments in an image of OpenHands; there is one, with a name that has a hash.
fn image_environments(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().take(MOST_ENVIRONMENTS);
    let mut environments: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    environments.sort();
    environments
}

/// `python` beside a `python3`, if both are the same: environments, and what they print, name it so.
fn short_name(python3: &Path) -> Option<PathBuf> {
    let short = python3.with_file_name("python");
    let is_same = short.canonicalize().ok()? == python3.canonicalize().ok()?;
    is_same.then_some(short)
}

/// Runs an interpreter to see whether it can be used; the error says why it can not.
pub(crate) async fn probe(surroundings: &Surroundings, program: &Path) -> Result<Python, String> {
    let argv = [program.as_os_str().to_owned(), "-c".into(), PROBE.into()];
    let name = program.display();
    let ended = match surroundings.run(&argv, TIME, MOST).await {
        Ok(ended) => ended,
        Err(RunError::TimedOut { .. }) => return Err(format!("{name} did not answer within {} s", TIME.as_secs())),
        Err(error) => return Err(format!("{name} does not run: {error}")),
    };
    let text = ended.text();
    let answer = text.lines().find_map(|line| serde_json::from_str::<Answer>(line.strip_prefix(MARK)?).ok());
    let Some(answer) = answer else {
        let words = text.lines().last().unwrap_or_default();
        return Err(format!("{name} is no Python 3.8 or later: status {}, {words}", ended.exit.shell_status()));
    };
    let version = answer.version.map(|number| number.to_string()).join(".");
    if answer.version < OLDEST {
        return Err(format!("{name} is Python {version}, and 3.8 is the oldest that can be used"));
    }
    let major = answer.kernel.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    let has_kernel = major.is_some_and(|major| major >= OLDEST_KERNEL);
    Ok(Python { program: program.to_owned(), real: answer.program, version, has_kernel })
}
