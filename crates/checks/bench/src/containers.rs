//! Measurements of containers as sandboxes, on a real engine with the image there.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use gloveport_config::Config;
use gloveport_hosting::{WaitOptions, client, wait_until_alive};
use gloveport_provider::{Phase, Progress, Provider as _, ProviderContext, Sandbox, SandboxSpec, SessionId};
use gloveport_provider_docker::{Docker, DockerOptions};
use serde::Serialize;
use tokio::task::JoinSet;

use crate::{sample::Sample, sandboxes::hello};

/// The image of all containers.
pub(crate) const IMAGE: &str = "gloveport-test/debian:12";

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContainerAmount {
    /// Starts one after the other.
    pub(crate) starts: usize,
    /// Containers that are made at the same time.
    pub(crate) at_once: usize,
}

/// Numbers of containers.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ContainerNumbers {
    /// From nothing to the result of the first action.
    pub(crate) start: Sample,
    /// The same without the time in which the engine makes and starts the container.
    pub(crate) share: Sample,
    /// From the wish to the end of everything.
    pub(crate) delete: Sample,
    /// From the wish for many at once to the result of the first action in the last one.
    pub(crate) at_once: Sample,
    /// How many that is.
    pub(crate) count: usize,
    /// Containers that were left at the end.
    pub(crate) left: usize,
}

/// Measures with this binary on this engine (`unix://…`).
pub(crate) fn measure(engine: &str, binary: &Path, amount: ContainerAmount) -> anyhow::Result<ContainerNumbers> {
    let place = tempfile::tempdir()?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(measure_on(options(place.path(), engine, binary)?, amount))
}

async fn measure_on(options: DockerOptions, amount: ContainerAmount) -> anyhow::Result<ContainerNumbers> {
    let docker = Arc::new(Docker::new(options));
    // The first start makes connections, and reads the binary from the disk.
    let (first, _) = start(&docker, "first").await?;
    docker.delete(&first.id).await?;
    let (mut starts, mut shares, mut deletes) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..amount.starts {
        let began = Instant::now();
        let (sandbox, engine) = start(&docker, &format!("one-{number}")).await?;
        let took = began.elapsed();
        starts.push(took);
        shares.push(took.saturating_sub(engine));
        let began = Instant::now();
        docker.delete(&sandbox.id).await?;
        deletes.push(began.elapsed());
    }
    let began = Instant::now();
    let mut all = JoinSet::new();
    for number in 0..amount.at_once {
        let docker = Arc::clone(&docker);
        all.spawn(async move { start(&docker, &format!("once-{number}")).await });
    }
    let made = all.join_all().await.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let at_once = began.elapsed();
    docker.close().await;
    let left = docker.list(&gloveport_provider::ListFilter { ended: true, ..Default::default() }).await?;
    let ours = |sandbox: &&Sandbox| sandbox.session_id.as_str().starts_with("bench-");
    Ok(ContainerNumbers {
        start: Sample::new(starts),
        share: Sample::new(shares),
        delete: Sample::new(deletes),
        at_once: Sample::new(vec![at_once]),
        count: made.len(),
        left: left.iter().filter(ours).count(),
    })
}

/// Makes a sandbox, waits for it, and runs a command in it. Gives the time of the engine as well.
async fn start(docker: &Docker, name: &str) -> anyhow::Result<(Sandbox, Duration)> {
    let spec = SandboxSpec {
        image: Some(IMAGE.to_owned()),
        ..SandboxSpec::new(SessionId::new(format!("bench-{}-{name}", std::process::id()))?)
    };
    let progress = Progress::silent();
    let made = docker.create(&spec, &progress).await?;
    let sandbox = wait_until_alive(docker, made, &WaitOptions::default(), &progress).await?;
    hello(&client(&sandbox)?).await?;
    let engine =
        progress.timings().iter().filter(|timing| timing.phase == Phase::Creating).map(|timing| timing.took).sum();
    Ok((sandbox, engine))
}

fn options(place: &Path, engine: &str, binary: &Path) -> anyhow::Result<DockerOptions> {
    let environment = [("DOCKER_HOST", engine.to_owned()), ("HOME", place.display().to_string())];
    let context = ProviderContext {
        config: Config::default(),
        program: PathBuf::from(binary).canonicalize()?,
        inside: PathBuf::from(binary).canonicalize()?,
        environment: environment.map(|(name, value)| (name.to_owned(), value)).into_iter().collect::<BTreeMap<_, _>>(),
        argument: None,
    };
    Ok(DockerOptions::new(&context)?)
}
