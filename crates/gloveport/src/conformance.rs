//! `gloveport conformance`: checks a live server, or compares two.

use std::{
    io::{IsTerminal as _, Write as _},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use gloveport_conformance::{
    Check, RunOptions, Server, Verdict, Wire, checks,
    differ::{DifferOptions, Operation, compare, generate, read_operations, write_operations},
    report, run, select,
};

use crate::{output::print, session::values::duration, visible};

/// Exit codes, as `--help` shows them.
pub(crate) const EXIT_CODES: &str = "Exit codes: 0 all passed; 1 some failed, or the server does not answer; 2 wrong \
    command line.";

#[derive(Debug, Args)]
pub(crate) struct ConformanceArgs {
    /// The server, for example http://127.0.0.1:8000
    #[arg(long, value_name = "URL", env = "GLOVEPORT_URL", required_unless_present = "list")]
    url: Option<String>,
    /// The protocol that it has to speak.
    #[arg(long, value_enum, value_name = "NAME", default_value_t)]
    wire: WireName,
    /// Key of that server.
    #[arg(long, env = "GLOVEPORT_KEY", hide_env_values = true)]
    key: Option<String>,
    /// File with the key of that server. Prefer it to --key: everyone on this machine can see arguments.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Only checks whose id matches, for example 'editor/*'; may be repeated.
    #[arg(long, value_name = "GLOB")]
    only: Vec<String>,
    /// List the checks without running them.
    #[arg(long)]
    list: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Also write the results as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Time limit of one check, such as 90s or 2m.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    limit: Duration,
    /// How often to retry a check that failed.
    #[arg(long, value_name = "N", default_value_t = 0)]
    retries: u32,
    /// Pause for this time after each command, such as 300ms or 1s; a number alone is milliseconds. The reference confuses
    /// commands that follow each other immediately.
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = pause)]
    pause: Duration,
    #[command(flatten)]
    differ: DifferArgs,
}

/// A protocol, as the command line names it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum WireName {
    /// OpenHands 0.62.
    #[default]
    V0,
    /// Workspaces of OpenHands' SDK 1.x. The log of all commands of the server is cleared.
    Sdk,
    /// SWE-ReX. All sessions of the server are closed.
    Swerex,
}

impl From<WireName> for Wire {
    fn from(name: WireName) -> Self {
        match name {
            WireName::V0 => Self::V0,
            WireName::Sdk => Self::Sdk,
            WireName::Swerex => Self::Swerex,
        }
    }
}

/// The same operations on two servers.
#[derive(Debug, Args)]
#[group(id = "comparison", multiple = true)]
pub(crate) struct DifferArgs {
    /// Compare with this server instead: run the same operations on both, and show where they differ.
    #[arg(long, value_name = "URL", conflicts_with_all = ["only", "list", "junit", "retries"])]
    against: Option<String>,
    /// Key of that server.
    #[arg(long, value_name = "KEY", env = "GLOVEPORT_AGAINST_KEY", hide_env_values = true)]
    against_key: Option<String>,
    /// File with the key of that server. Prefer it to --key: everyone on this machine can see arguments.
    #[arg(long, value_name = "FILE", requires = "against")]
    against_key_file: Option<PathBuf>,
    /// Operations to run: one action per line, or list_files, upload_file or download_files; {dir} is a separate directory
    /// on each server.
    #[arg(long, value_name = "FILE", requires = "against", conflicts_with = "random")]
    actions: Option<PathBuf>,
    /// Run this many random operations.
    #[arg(long, value_name = "N", default_value_t = 200)]
    random: usize,
    /// The same seed gives the same operations.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the operations to a file, for --actions.
    #[arg(long, value_name = "FILE", requires = "against")]
    save: Option<PathBuf>,
}

/// Exit code of a wrong command line, as that of the parser.
const USAGE: u8 = 2;

/// What the command line asks for.
enum Task {
    List(Vec<Check>),
    Checks(Server, Vec<Check>),
    Comparison { mine: Server, theirs: Server, operations: Vec<Operation> },
}

pub(crate) async fn conformance(arguments: &ConformanceArgs) -> anyhow::Result<ExitCode> {
    match arguments.task() {
        Ok(Task::List(checks)) => {
            print(&report::list(&checks))?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(Task::Checks(server, checks)) => check(arguments, &server, &checks).await,
        Ok(Task::Comparison { mine, theirs, operations }) => differ(arguments, &mine, &theirs, &operations).await,
        Err(error) => {
            crate::exit::report(&error);
            Ok(ExitCode::from(USAGE))
        }
    }
}

/// Runs the checks.
async fn check(arguments: &ConformanceArgs, server: &Server, checks: &[Check]) -> anyhow::Result<ExitCode> {
    let options = RunOptions { limit: arguments.limit, retries: arguments.retries, pause: arguments.pause };
    let mut progress = Progress::new(checks.len());
    let results = run(server, checks, &options, |result| progress.tell(&result.id)).await;
    progress.end();
    let results = results?;
    if let Some(file) = &arguments.junit {
        std::fs::write(file, report::junit(server.url(), &results))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    if arguments.json {
        print(&format!("{:#}\n", report::json(server.url(), &results)))?;
    } else {
        print(&report::text(&results))?;
    }
    let failed = results.iter().any(|result| matches!(result.verdict, Verdict::Fail { .. }));
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl ConformanceArgs {
    fn task(&self) -> anyhow::Result<Task> {
        let wire = Wire::from(self.wire);
        let checks = select(checks(wire), &self.only)?;
        anyhow::ensure!(
            !checks.is_empty(),
            "no check matches --only; `gloveport conformance --wire {} --list` shows them",
            wire.name()
        );
        if self.list {
            return Ok(Task::List(checks));
        }
        let url = self.url.as_deref().unwrap_or_default();
        let key = crate::key_file::chosen(url, self.key.as_deref(), self.key_file.as_deref())?;
        let mine = Server::of(wire, url, key.as_deref())?;
        let DifferArgs { against, against_key, against_key_file, actions, random, seed, .. } = &self.differ;
        let Some(against) = against else { return Ok(Task::Checks(mine, checks)) };
        anyhow::ensure!(wire == Wire::V0, "only servers of --wire v0 can be compared (--against)");
        let theirs = match against_key_file {
            Some(file) => Some(crate::key_file::given(file)?),
            None => against_key.clone().or_else(|| crate::here::known_key(against)),
        };
        let theirs = Server::new(against, theirs.as_deref())?;
        let operations = match actions {
            Some(file) => {
                let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
                read_operations(&text).with_context(|| file.display().to_string())?
            }
            None => generate(*random, *seed),
        };
        anyhow::ensure!(!operations.is_empty(), "there are no operations to compare");
        Ok(Task::Comparison { mine, theirs, operations })
    }
}

/// Compares two servers.
async fn differ(
    arguments: &ConformanceArgs,
    mine: &Server,
    theirs: &Server,
    operations: &[Operation],
) -> anyhow::Result<ExitCode> {
    if let Some(file) = &arguments.differ.save {
        std::fs::write(file, write_operations(operations))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    let options = DifferOptions { limit: arguments.limit, pause: arguments.pause, ..DifferOptions::default() };
    let mut progress = Progress::new(operations.len());
    let comparison = compare(mine, theirs, operations, &options, |_| progress.tell("operations")).await;
    progress.end();
    let comparison = comparison?;
    if arguments.json {
        print(&format!("{:#}\n", serde_json::to_value(&comparison)?))?;
    } else {
        print(&comparison.text())?;
    }
    Ok(if comparison.different > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// One line that is written over, for a person who waits.
struct Progress {
    on: bool,
    done: usize,
    all: usize,
}

impl Progress {
    fn new(all: usize) -> Self {
        Self { on: std::io::stderr().is_terminal(), done: 0, all }
    }

    fn tell(&mut self, what: &str) {
        self.done += 1;
        self.write(&format!("\r\x1b[K{}/{} {}", self.done, self.all, visible::one_line(what)));
    }

    fn end(&self) {
        self.write("\r\x1b[K");
    }

    fn write(&self, text: &str) {
        if self.on {
            // Progress that cannot be shown is no failure.
            let _written = std::io::stderr().write_all(text.as_bytes());
        }
    }
}

/// A time, or a number of milliseconds.
fn pause(text: &str) -> Result<Duration, String> {
    text.parse().map_or_else(|_| duration(text), |number| Ok(Duration::from_millis(number)))
}
