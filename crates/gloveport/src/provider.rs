//! `gloveport provider`: what can host sandboxes, what each can do, and whether it keeps what it promises.

mod json;

use std::{io::IsTerminal as _, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use gloveport_provider::{Check, Level, Provider, ProviderContext, matrix};
use gloveport_provider_conformance::{self as conformance, CheckResult, Make, Options, Verdict};
use tokio::time::timeout;

use crate::{
    explained,
    output::{print, tell},
    providers,
    session::values::{duration, level},
};

/// Exit codes, as `--help` shows them.
const EXIT_CODES: &str = "Exit codes: 0 done, and all passed; 1 something failed; 2 wrong command line.";

/// What a name can be.
const NAMES: &str = "A name is one that `gloveport provider ls` shows, exec:/path/to/program for any program that speaks \
    the provider protocol, or NAME for a program gloveport-provider-NAME in PATH.";

/// How long the checks of one provider may take.
const CHECKS: Duration = Duration::from_mins(1);

#[derive(Debug, Args)]
#[command(after_help = NAMES)]
pub(crate) struct ProviderArgs {
    #[command(subcommand)]
    command: ProviderCommand,
}

#[derive(Debug, Subcommand)]
enum ProviderCommand {
    /// List what can host sandboxes, and whether it works.
    #[command(visible_alias = "list", after_help = EXIT_CODES)]
    Ls(LsArgs),
    /// Show what each provider can do, as a Markdown table.
    #[command(after_help = EXIT_CODES)]
    Matrix(MatrixArgs),
    /// Create, use and end sandboxes to see whether a provider keeps its promises.
    #[command(after_help = EXIT_CODES)]
    Conformance(ConformanceArgs),
    /// Take a value out of JSON on standard input, for provider programs written in shell.
    Json(json::JsonArgs),
}

#[derive(Debug, Args)]
struct LsArgs {
    /// Only these.
    names: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct MatrixArgs {
    /// Only these.
    names: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ConformanceArgs {
    /// The provider.
    #[arg(required_unless_present = "list")]
    name: Option<String>,
    /// Image of the sandboxes, if the provider has images.
    #[arg(long)]
    image: Option<String>,
    /// How far the sandboxes are kept apart from this machine, if the provider knows levels: `none`, `files`,
    /// `container` or `gvisor`.
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    isolation: Option<Level>,
    /// Only checks whose id begins with this text, for example `garbage/`; may be repeated.
    #[arg(long, value_name = "BEGINNING")]
    only: Vec<String>,
    /// Print the checks and run nothing.
    #[arg(long)]
    list: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Also write the results as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Time limit of one check, such as 90s or 2m.
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = duration)]
    limit: Duration,
}

pub(crate) async fn provider(arguments: ProviderArgs) -> anyhow::Result<ExitCode> {
    match arguments.command {
        ProviderCommand::Ls(arguments) => ls(&arguments).await,
        ProviderCommand::Matrix(arguments) => capabilities(&arguments).await,
        ProviderCommand::Conformance(arguments) => conformance(&arguments).await,
        ProviderCommand::Json(arguments) => json::json(&arguments),
    }
}

/// One provider, or why it cannot be made.
struct Known {
    name: String,
    made: anyhow::Result<Arc<dyn Provider>>,
}

/// Those of these names, or all.
fn known(names: &[String], context: &ProviderContext) -> Vec<Known> {
    let registry = providers::registry();
    let names = if names.is_empty() { providers::names(&registry, context) } else { names.to_vec() };
    let make = |name: String| Known { made: registry.make(&name, context).map_err(Into::into), name };
    names.into_iter().map(make).collect()
}

/// What the providers need, for people who ask whether they have it.
pub(crate) async fn check_all(names: &[String], context: &ProviderContext) -> Vec<(String, Vec<Check>)> {
    let failed = |found: String| Check { name: "provider".to_owned(), works: false, found, remedy: None };
    let mut all = Vec::new();
    for Known { name, made } in known(names, context) {
        let checks = match made {
            Ok(provider) => {
                let checks = timeout(CHECKS, provider.check()).await;
                provider.close().await;
                checks.unwrap_or_else(|_| vec![failed(format!("no answer within {} s", CHECKS.as_secs()))])
            }
            Err(error) => vec![failed(explained(&error))],
        };
        all.push((name, checks));
    }
    all
}

async fn ls(arguments: &LsArgs) -> anyhow::Result<ExitCode> {
    let context = providers::context()?;
    let all = check_all(&arguments.names, &context).await;
    let works = |checks: &[Check]| checks.iter().all(|check| check.works);
    let mut lines = Vec::new();
    if arguments.json {
        let view = |(name, checks): &(String, Vec<Check>)| serde_json::json!({"name": name, "works": works(checks), "checks": checks});
        lines.push(format!("{:#}", serde_json::Value::Array(all.iter().map(view).collect())));
    } else {
        let width = all.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, checks) in &all {
            let word = if works(checks) { "works" } else { "fails" };
            let found: Vec<&str> = checks.iter().map(|check| check.found.as_str()).collect();
            lines.push(format!("{name:<width$}  {word}  {}", found.join("; ")));
            for remedy in checks.iter().filter(|check| !check.works).filter_map(|check| check.remedy.as_ref()) {
                lines.push(format!("{:width$}         -> {remedy}", ""));
            }
        }
    }
    lines.push(String::new());
    print(&lines.join("\n"))?;
    let named_fails = !arguments.names.is_empty() && all.iter().any(|(_, checks)| !works(checks));
    Ok(if named_fails { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn capabilities(arguments: &MatrixArgs) -> anyhow::Result<ExitCode> {
    let context = providers::context()?;
    let mut rows = Vec::new();
    for Known { name, made } in known(&arguments.names, &context) {
        let provider = made.with_context(|| format!("the runtime `{name}`"))?;
        if let Err(error) = provider.learn().await {
            tracing::warn!("the runtime `{name}` is shown as it is without being asked: {error}");
        }
        rows.push((name, provider.capabilities()));
    }
    if arguments.json {
        let map: serde_json::Map<_, _> = rows
            .into_iter()
            .map(|(name, can)| Ok((name, serde_json::to_value(can)?)))
            .collect::<anyhow::Result<_>>()?;
        print(&format!("{:#}\n", serde_json::Value::Object(map)))?;
    } else {
        print(&matrix(&rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn conformance(arguments: &ConformanceArgs) -> anyhow::Result<ExitCode> {
    let Some(name) = arguments.name.clone().filter(|_| !arguments.list) else {
        let checks = conformance::checks();
        let width = checks.iter().map(|(id, _)| id.len()).max().unwrap_or(0);
        let lines: Vec<String> = checks.iter().map(|(id, title)| format!("{id:<width$}  {title}\n")).collect();
        print(&lines.concat())?;
        return Ok(ExitCode::SUCCESS);
    };
    let context = providers::context()?;
    let make: Make = Arc::new(move || providers::registry().make(&name, &context));
    let options = Options {
        image: arguments.image.clone(),
        level: arguments.isolation,
        only: arguments.only.clone(),
        limit: arguments.limit,
        ..Options::default()
    };
    let waits = std::io::stderr().is_terminal();
    let told = |result: &CheckResult| {
        if waits {
            let word = match result.verdict {
                Verdict::Pass { .. } => "ok",
                Verdict::Fail { .. } => "FAILED",
                Verdict::Skip { .. } => "skipped",
            };
            tell(&format!("{word:<7} {} ({:.1} s)", result.id, result.seconds));
        }
    };
    let report = tokio::select! {
        report = conformance::run(&make, &options, told) => report?,
        _ = tokio::signal::ctrl_c() => anyhow::bail!("interrupted; `gloveport session gc` removes what is left"),
    };
    if let Some(file) = &arguments.junit {
        std::fs::write(file, report.junit()).with_context(|| format!("cannot write {}", file.display()))?;
    }
    print(&if arguments.json { format!("{:#}\n", report.json()) } else { report.text() })?;
    let counts = report.counts();
    anyhow::ensure!(
        counts.passed + counts.failed + counts.skipped > 0,
        "no check has an id that begins so; see --list"
    );
    Ok(if counts.failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
