//! `gloveport conformance`: checks a live server, or compares two.

use std::{
    io::{IsTerminal as _, Write as _},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use anyhow::Context as _;
use clap::Args;
use gloveport_conformance::{CheckResult, RunOptions, Server, Verdict, checks, report, run, select};

/// Exit codes, as `--help` shows them.
pub(crate) const EXIT_CODES: &str = "Exit codes: 0 all passed; 1 some failed, or the server does not answer; 2 wrong \
    command line.";

#[derive(Debug, Args)]
pub(crate) struct ConformanceArgs {
    /// The server, for example http://127.0.0.1:8000
    #[arg(long, value_name = "URL", env = "GLOVEPORT_URL", required_unless_present = "list")]
    url: Option<String>,
    /// Key of that server.
    #[arg(long, env = "GLOVEPORT_KEY", hide_env_values = true)]
    key: Option<String>,
    /// Only checks whose id matches, for example 'editor/*'; may be repeated.
    #[arg(long, value_name = "GLOB")]
    only: Vec<String>,
    /// Print the checks and run nothing.
    #[arg(long)]
    list: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Write the results as JUnit XML, too.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Time limit of one check in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    limit: u64,
    /// How often a check that failed is tried again.
    #[arg(long, value_name = "N", default_value_t = 0)]
    retries: u32,
    /// Milliseconds to wait after each command; the reference confuses commands that follow each other at once.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pause: u64,
}

pub(crate) async fn conformance(arguments: &ConformanceArgs) -> anyhow::Result<ExitCode> {
    let checks = select(checks(), &arguments.only)?;
    anyhow::ensure!(!checks.is_empty(), "no check matches --only; `gloveport conformance --list` shows them");
    if arguments.list {
        print(&report::list(&checks))?;
        return Ok(ExitCode::SUCCESS);
    }
    let server = Server::new(arguments.url.as_deref().unwrap_or_default(), arguments.key.as_deref())?;
    let options = RunOptions {
        limit: Duration::from_secs(arguments.limit),
        retries: arguments.retries,
        pause: Duration::from_millis(arguments.pause),
    };
    let mut progress = Progress::new(checks.len());
    let results = run(&server, &checks, &options, |result| progress.tell(result)).await;
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

    fn tell(&mut self, result: &CheckResult) {
        self.done += 1;
        self.write(&format!("\r\x1b[K{}/{} {}", self.done, self.all, result.id));
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

fn print(text: &str) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(text.as_bytes()).and_then(|()| output.flush()).context("cannot write to standard output")
}
