//! Measurements of sandboxes of this machine, through the provider as a backend uses it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use gloveport_client::ActionExecutionClient;
use gloveport_hosting::{WaitOptions, client, wait_until_alive};
use gloveport_protocol::{Action, ActionEvent, ActionExecutor as _, Observation, RunAction};
use gloveport_provider::{Confinement, Level, Progress, Provider as _, ProviderError, Sandbox, SandboxSpec, SessionId};
use gloveport_provider_local::{Local, LocalOptions, Observer};
use gloveport_sys::{confined, process};
use serde::Serialize;
use tokio::task::JoinSet;

use crate::sample::Sample;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SandboxAmount {
    /// Cold starts, and claims of warm servers.
    pub(crate) starts: usize,
    /// Sandboxes that are made at the same time.
    pub(crate) at_once: usize,
    /// Sandboxes that live at the same time.
    pub(crate) crowd: usize,
}

/// Numbers of sandboxes.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SandboxNumbers {
    /// From nothing to the result of the first action.
    pub(crate) cold: Sample,
    /// The same where the kernel keeps it to its own files; none where it cannot. The two are measured in turn.
    pub(crate) cold_apart: Option<Sample>,
    /// The same in a container of the machine's own, where that can be made.
    pub(crate) cold_inside: Option<Sample>,
    /// The same on a kernel of its own, where there is one.
    pub(crate) cold_kernel: Option<Sample>,
    /// From a server that waits to the result of the first action.
    pub(crate) warm: Sample,
    /// From the wish to the end of everything.
    pub(crate) delete: Sample,
    /// From the wish for many at once to the result of the first action in the last one.
    pub(crate) at_once: Sample,
    /// What all processes of one have for themselves, in bytes.
    pub(crate) private_memory: u64,
    /// Memory of many, all processes, what is shared divided, in bytes.
    pub(crate) crowd_memory: u64,
    /// The same of as many containers of the machine's own, where they can be made.
    pub(crate) crowd_inside_memory: Option<u64>,
    /// `echo` in turn in each of many.
    pub(crate) crowd_echo: Sample,
    /// How many are many.
    pub(crate) crowd: usize,
    /// Processes and files that were left at the end.
    pub(crate) left: usize,
}

/// Measures with this program in the sandboxes.
pub(crate) fn measure(binary: &Path, amount: SandboxAmount) -> anyhow::Result<SandboxNumbers> {
    let place = tempfile::tempdir()?;
    let runtime = tokio::runtime::Runtime::new()?;
    let numbers = runtime.block_on(measure_in(place.path(), binary, amount))?;
    let line = format!("--state {}", place.path().join("state").display());
    let servers = process::all().into_iter().filter_map(process::command_line).filter(|text| text.contains(&line));
    let files = ["sandboxes", "new", "old"].map(|name| place.path().join("state").join(name));
    let files = files.iter().filter_map(|path| std::fs::read_dir(path).ok()).flatten();
    Ok(SandboxNumbers { left: servers.count() + files.count(), ..numbers })
}

async fn measure_in(place: &Path, binary: &Path, amount: SandboxAmount) -> anyhow::Result<SandboxNumbers> {
    let local = Local::new(options(place, binary)?)?;
    // The first start reads the binary from the disk, and makes the client's connections.
    let first = start(&local, "first", false).await?;
    let own = std::process::id();
    let private_memory = process::descendants(own).into_iter().filter_map(process::proportional_private).sum();
    local.delete(&first.id).await?;

    let (mut cold, mut delete) = (Vec::new(), Vec::new());
    let (mut cold_apart, mut cold_inside, mut cold_kernel) = (Vec::new(), Vec::new(), Vec::new());
    let mut levels = vec![Level::None];
    levels.extend(confined::support().is_ok().then_some(Level::Files));
    for level in [Level::Container, Level::Gvisor] {
        match start_on(&local, "inside", false, level).await {
            Ok(sandbox) => {
                local.delete(&sandbox.id).await?;
                levels.push(level);
            }
            // This machine cannot make them.
            Err(error) if matches!(error.downcast_ref(), Some(ProviderError::Spec { .. })) => {}
            Err(error) => return Err(error),
        }
    }
    for number in 0..amount.starts {
        for level in &levels {
            let began = Instant::now();
            let sandbox = start_on(&local, &format!("cold-{number}-{}", level.name()), false, *level).await?;
            let times = match level {
                Level::None => &mut cold,
                Level::Files => &mut cold_apart,
                Level::Container => &mut cold_inside,
                Level::Gvisor => &mut cold_kernel,
            };
            times.push(began.elapsed());
            let began = Instant::now();
            local.delete(&sandbox.id).await?;
            delete.push(began.elapsed());
        }
    }
    let mut warm = Vec::new();
    for number in 0..amount.starts {
        local.warm(1).await?;
        let began = Instant::now();
        let sandbox = start(&local, &format!("warm-{number}"), true).await?;
        warm.push(began.elapsed());
        local.delete(&sandbox.id).await?;
    }
    let local = Arc::new(local);
    let (at_once, sandboxes) = many(&local, "once", amount.at_once, Level::None).await?;
    anyhow::ensure!(sandboxes.len() == amount.at_once, "{} sandboxes came up", sandboxes.len());
    local.close().await;

    let crowd_inside_memory = if levels.contains(&Level::Container) {
        let local = Arc::new(Local::new(options(place, binary)?)?);
        gather(&local, "inside", amount.crowd, Level::Container).await?;
        let memory = memory_of_all();
        local.close().await;
        Some(memory)
    } else {
        None
    };
    let local = Arc::new(Local::new(options(place, binary)?)?);
    let crowd = gather(&local, "crowd", amount.crowd, Level::None).await?;
    let clients = crowd.iter().map(client).collect::<Result<Vec<_>, _>>()?;
    let mut echo = Vec::new();
    for _round in 0..5 {
        for client in &clients {
            let began = Instant::now();
            hello(client).await?;
            echo.push(began.elapsed());
        }
    }
    let crowd_memory = memory_of_all();
    let crowd = crowd.len();
    local.close().await;
    Ok(SandboxNumbers {
        cold: Sample::new(cold),
        cold_apart: (!cold_apart.is_empty()).then(|| Sample::new(cold_apart)),
        cold_inside: (!cold_inside.is_empty()).then(|| Sample::new(cold_inside)),
        cold_kernel: (!cold_kernel.is_empty()).then(|| Sample::new(cold_kernel)),
        warm: Sample::new(warm),
        delete: Sample::new(delete),
        at_once: Sample::new(vec![at_once]),
        private_memory,
        crowd_memory,
        crowd_inside_memory,
        crowd_echo: Sample::new(echo),
        crowd,
        left: 0,
    })
}

/// Memory of all that this process has started, in bytes.
fn memory_of_all() -> u64 {
    process::descendants(std::process::id()).into_iter().filter_map(process::proportional).sum()
}

/// Starts this many that live at the same time, ten at once.
async fn gather(local: &Arc<Local>, name: &str, count: usize, level: Level) -> anyhow::Result<Vec<Sandbox>> {
    let mut all = Vec::new();
    while all.len() < count {
        let next = (count - all.len()).min(10);
        all.extend(many(local, &format!("{name}-{}", all.len()), next, level).await?.1);
    }
    Ok(all)
}

/// Starts many at the same time and runs a command in each.
async fn many(local: &Arc<Local>, name: &str, count: usize, level: Level) -> anyhow::Result<(Duration, Vec<Sandbox>)> {
    let began = Instant::now();
    let mut starts = JoinSet::new();
    for number in 0..count {
        let (local, name) = (Arc::clone(local), format!("{name}-{number}"));
        starts.spawn(async move { start_on(&local, &name, false, level).await });
    }
    let sandboxes = starts.join_all().await.into_iter().collect::<anyhow::Result<_>>()?;
    Ok((began.elapsed(), sandboxes))
}

/// Makes a sandbox, waits for it, and runs a command in it.
async fn start(local: &Local, name: &str, warm: bool) -> anyhow::Result<Sandbox> {
    start_on(local, name, warm, Level::None).await
}

/// The same on a level of isolation.
async fn start_on(local: &Local, name: &str, warm: bool, level: Level) -> anyhow::Result<Sandbox> {
    let confinement = (level != Level::None).then(|| Confinement { level, ..Confinement::default() });
    let spec = SandboxSpec { warm, confinement, ..SandboxSpec::new(SessionId::new(name)?) };
    let progress = Progress::silent();
    let made = local.create(&spec, &progress).await?;
    let sandbox = wait_until_alive(local, made, &WaitOptions::default(), &progress).await?;
    hello(&client(&sandbox)?).await?;
    Ok(sandbox)
}

pub(crate) async fn hello(client: &ActionExecutionClient) -> anyhow::Result<()> {
    let action = ActionEvent::from(Action::Run(RunAction::new("echo hi")));
    match client.execute(&action).await? {
        Observation::Run(observation) if observation.content == "hi" => Ok(()),
        other => anyhow::bail!("echo hi: {other:?}"),
    }
}

/// A home of their own: nothing of the user is read or written, and a slow `~/.bashrc` does not count.
pub(crate) fn options(place: &Path, binary: &Path) -> anyhow::Result<LocalOptions> {
    let directory = |name: &str| -> anyhow::Result<PathBuf> {
        let path = place.join(name);
        std::fs::create_dir_all(&path)?;
        Ok(path)
    };
    let text = |path: PathBuf| path.display().to_string();
    let environment = [
        ("PATH".to_owned(), std::env::var("PATH")?),
        ("HOME".to_owned(), text(directory("home")?)),
        ("TMPDIR".to_owned(), text(directory("tmp")?)),
    ];
    Ok(LocalOptions {
        program: binary.canonicalize()?,
        state: place.join("state"),
        temporary: directory("tmp")?,
        environment: environment.into(),
        url: "http://localhost".to_owned(),
        warm: 0,
        start_limit: Duration::from_mins(2),
        grace: Duration::from_secs(5),
        observer: Observer::default(),
    })
}
