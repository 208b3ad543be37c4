//! `gloveport replay`: a recorded trajectory, executed once more.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use anyhow::Context as _;
use clap::Args;
use gloveport_config::{Config, LoadOptions, Loaded};
use gloveport_event_stream::{
    EventStream, LocalStore, Search,
    trajectory::{self, Recording, Replay, Screenshots},
};
use gloveport_mcp_client::TokenStore;
use gloveport_protocol::{Action, Event, EventSource};
use gloveport_provider::{SessionId, program::Beside};
use gloveport_runtime::{BroughtTools, Runtime, RuntimeOptions, ServerAt, StatusCallback, had_terminal};

use crate::{
    describe, directory,
    here::{self, Owner},
    key_file,
    names::CLI,
    operate,
    output::{moving_line, print, tell},
    providers::own_program,
    session::{Fresh, hosted, random_id},
    signals, visible,
};

/// Exit codes, as `--help` shows them.
pub(crate) const EXIT_CODES: &str = "Actions are executed as they were recorded, without questions, whatever the section \
    [security] of the configuration says. Actions that were rejected or still wait for an answer are not executed. \
    Neither are those of which the history keeps too little: what was typed on a terminal, and files that were copied. \
    You are told about these.\n\nExit codes: 0 every other action was executed, whatever its result; 1 an action gave no \
    observation, or gloveport itself failed; 2 wrong command line.";

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The recorded trajectory: a JSON array of events, as OpenHands saves it, or the lines that `gloveport session events
    /// --json` prints.
    pub(crate) file: PathBuf,
    /// Execute it on this server instead of in this process, for example http://127.0.0.1:8000
    #[arg(long, value_name = "URL", env = "GLOVEPORT_URL")]
    pub(crate) url: Option<String>,
    /// Key of that server.
    #[arg(long, env = "GLOVEPORT_KEY", hide_env_values = true, requires = "url")]
    pub(crate) key: Option<String>,
    /// File with the key of that server. Prefer it to --key: everyone on this machine can see arguments.
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) key_file: Option<PathBuf>,
    /// Execute it in a fresh sandbox of this runtime, and delete the sandbox afterwards: `local`, `docker`, `exec:PROGRAM`,
    /// or NAME for a program gloveport-provider-NAME in PATH. With `cli`, use the tools of that runtime in this process.
    #[arg(long, value_name = "NAME", conflicts_with = "url")]
    pub(crate) runtime: Option<String>,
    /// The image that the sandbox is made from.
    #[arg(long, value_name = "IMAGE", requires = "runtime")]
    pub(crate) image: Option<String>,
    /// Directory of this machine to work in, without --url; by default a temporary one, which is removed.
    #[arg(long, short = 'w', value_name = "DIRECTORY", conflicts_with = "url")]
    pub(crate) cwd: Option<PathBuf>,
    /// Keep the new history in this directory, which OpenHands can read.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) history: Option<PathBuf>,
    /// Write the new trajectory to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// The file to read instead of config.toml.
    #[arg(long, value_name = "FILE")]
    pub(crate) config_file: Option<PathBuf>,
    /// Print each event of the new history as one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a fresh sandbox needs for the actions: a kernel only for cells.
fn plugins(recording: &Recording) -> Vec<String> {
    let is_cell =
        |event: &Event| matches!(event, Event::Action(event) if matches!(event.action, Action::RunIpython(_)));
    let needed: &[&str] = if recording.events.iter().any(is_cell) { &["agent_skills", "jupyter"] } else { &[] };
    needed.iter().map(|name| (*name).to_owned()).collect()
}

/// Executes the actions of the file one after the other and prints what comes of them.
pub(crate) async fn replay(arguments: ReplayArgs, owner: &Owner) -> anyhow::Result<ExitCode> {
    let file = &arguments.file;
    // What is missing is told by the loader.
    if let Ok(kind) = std::fs::metadata(file) {
        anyhow::ensure!(!kind.is_dir(), "{} is a directory; a trajectory is a file", file.display());
        anyhow::ensure!(kind.is_file(), "{} is not a regular file; save the trajectory to one", file.display());
    }
    let recording = trajectory::load_recording(file).await?;
    let has_actions = recording.events.iter().any(|event| matches!(event, Event::Action(_)));
    anyhow::ensure!(has_actions, "{} has no actions to execute", file.display());
    let loaded = configuration(arguments.config_file.clone())?;
    let environment = loaded.environment.clone();
    let scratch = tempfile::tempdir().context("cannot make a temporary directory")?;
    let history = arguments.history.clone().unwrap_or_else(|| scratch.path().join("history"));
    let sid = format!("replay-{}", random_id()?);
    let stream = EventStream::open(Arc::new(LocalStore::new(&history, None)?), &sid, None).await?;
    let options = match (&arguments.url, &arguments.runtime) {
        (Some(url), _) => {
            let server = key_file::options(url, arguments.key.as_deref(), arguments.key_file.as_deref())?;
            let own = own_program()?;
            let program = Beside::of(&own, gloveport_build_id::BUILD).or(own.clone());
            let tools = BroughtTools::of_program(program)
                .in_workspace(&loaded.config.workspace_mount_path_in_sandbox)
                .with_plugins(plugins(&recording));
            let connector = ServerAt::new(server).bringing(tools);
            RuntimeOptions { attach_to_existing: true, ..RuntimeOptions::new(loaded.config, connector) }
        }
        (None, Some(name)) if name != CLI => {
            let plugins = plugins(&recording);
            let fresh = Fresh {
                runtime: name.clone(),
                session: SessionId::new(&sid)?,
                image: arguments.image.clone(),
                workspace: arguments.cwd.clone(),
                plugins: plugins.clone(),
            };
            RuntimeOptions { plugins, ..RuntimeOptions::new(loaded.config.clone(), hosted(loaded, fresh)?) }
        }
        (None, Some(name)) => {
            anyhow::ensure!(
                arguments.image.is_none(),
                "the runtime `{name}` works on this machine and has no images; leave --image out"
            );
            here::cli_session(loaded.config, directory(&arguments, scratch.path())?, owner)?
        }
        (None, None) => here::own_session(loaded.config, directory(&arguments, scratch.path())?, owner)?,
    };
    let backend_environment: BTreeMap<String, String> =
        environment.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mcp_tokens = TokenStore::of_user(&backend_environment);
    let options = RuntimeOptions { sid: sid.clone(), mcp_tokens, backend_environment, ..options.with_stream(&stream) };
    let bar = arguments.runtime.as_ref().and_then(|_| moving_line());
    let shown = bar.clone();
    let status_callback: StatusCallback = Arc::new(move |_, _, text| {
        if let Some(bar) = &shown {
            bar.set_message(visible::one_line(text));
        }
    });
    let options = RuntimeOptions { status_callback: Some(status_callback), ..options };
    let runtime = Runtime::new(options)?;
    let stop = signals::stop()?;
    let performed = async {
        let connected = runtime.connect().await;
        if let Some(bar) = &bar {
            bar.finish_and_clear();
        }
        connected?;
        play(&runtime, &stream, recording, arguments.json).await
    };
    let replayed = tokio::select! {
        replayed = performed => replayed,
        () = stop.cancelled() => Err(anyhow::anyhow!("interrupted")),
    };
    if let Some(file) = &arguments.save {
        let mut events = stream.store().search(Search::default());
        trajectory::save(file, &sid, &mut events, Screenshots::Drop).await?;
    }
    runtime.close().await;
    stream.close().await;
    Ok(if replayed? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The configuration of the file and the environment. What is wrong with it is told.
fn configuration(file: Option<PathBuf>) -> anyhow::Result<Loaded> {
    let loaded = Config::load(&LoadOptions { file, ..LoadOptions::from_process()? })?;
    for note in &loaded.notes {
        tracing::warn!("{note}");
    }
    Ok(loaded)
}

/// The directory of this machine that a replay works in.
fn directory(arguments: &ReplayArgs, scratch: &Path) -> anyhow::Result<PathBuf> {
    let directory = match &arguments.cwd {
        Some(directory) => directory::existing(directory)?,
        None => scratch.join("workspace"),
    };
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make the directory {}", directory.display()))?;
    Ok(directory)
}

/// Whether every action was executed.
async fn play(runtime: &Runtime, stream: &EventStream, recording: Recording, json: bool) -> anyhow::Result<bool> {
    let unrepeatable = unrepeatable(&recording);
    let mut replay = Replay::new(recording.events);
    let (mut complete, mut printed) = (true, 0);
    for (place, action) in iter::from_fn(|| replay.step()).enumerate() {
        let described = describe::action(&action);
        if let Some(reason) = unrepeatable.get(&place) {
            let told = format!("{described}[not executed: {reason}]\n");
            if json {
                tell(told.trim_end());
            } else {
                print(&told)?;
            }
            continue;
        }
        if !json {
            print(&described)?;
        }
        let source = action.source.unwrap_or(EventSource::Agent);
        match runtime.perform(action, source).await {
            Ok(observation) if !json => print(&describe::observation(&observation))?,
            Ok(_) => {}
            Err(error) => {
                complete = false;
                tracing::error!(%error, "an action gave no observation");
            }
        }
        if json {
            printed = print_from(stream, printed).await?;
        }
    }
    Ok(complete)
}

/// The actions that are not done again, because they were refused or a history keeps too little of them: their places
/// among the actions, and why.
fn unrepeatable(recording: &Recording) -> BTreeMap<usize, &'static str> {
    let on_terminals: BTreeSet<i64> = recording
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Observation(event) if had_terminal(&event.observation) => event.cause,
            _ => None,
        })
        .collect();
    let is_action = |(event, _): &(&Event, &Option<i64>)| matches!(event, Event::Action(_));
    let actions = recording.events.iter().zip(&recording.numbers).filter(is_action);
    let reason = |(event, number): (&Event, &Option<i64>)| match event {
        // Rules refuse an action of a session that has nobody to ask without marking it.
        _ if number.is_some_and(|number| recording.refused.contains(&number)) => Some("it was refused"),
        _ if number.is_some_and(|number| on_terminals.contains(&number)) => {
            Some("what was typed on the terminal is not kept")
        }
        Event::Action(event) if operate::writes_unknown(&event.action) => Some(operate::NOT_KEPT),
        _ => None,
    };
    actions.enumerate().filter_map(|(place, found)| Some((place, reason(found)?))).collect()
}

/// Prints the events from this number on, and gives the number behind the last.
async fn print_from(stream: &EventStream, start: i64) -> anyhow::Result<i64> {
    let mut found = stream.store().search(Search { start, ..Search::default() });
    let mut next = start;
    while let Some(event) = found.next().await? {
        next = event.id().map_or(next, |id| id + 1);
        print(&format!("{}\n", event.to_value()))?;
    }
    Ok(next)
}
