//! `gloveport session start`.

use std::{collections::BTreeMap, process::ExitCode};

use anyhow::Context as _;
use gloveport_protocol::Secret;
use gloveport_provider::{
    Capabilities, NetworkPolicy, PhaseTiming, Provider, ProviderContext, ResourceLimits, Sandbox, SandboxSpec,
    SessionId, Workspace,
};
use gloveport_provider_local::Local;
use serde_json::json;

use super::{
    arguments::{MakeArgs, StartArgs},
    launch::{Launch, launch, session_key},
    report::Report,
    runtimes::Runtimes,
    secrets,
    values::SecretFrom,
};
use crate::{
    local,
    output::{print, print_json},
};

/// What a person must know of the runtime that is chosen when none is.
const NO_ISOLATION: &str = "note: the runtime `local` has no isolation: commands run on this machine as you, with all your \
    files; --runtime docker runs them in a container";

pub(super) async fn start(runtimes: &Runtimes, arguments: Box<StartArgs>) -> anyhow::Result<ExitCode> {
    let (runtime, provider) = runtimes.one()?;
    let how = Launch { until_alive: !arguments.no_wait, limit: arguments.timeout, stop: local::stop_signal()? };
    let (as_json, report) = (arguments.json, Report::new(arguments.quiet));
    let session_id = match arguments.id {
        Some(id) => SessionId::new(id)?,
        None => random_id()?,
    };
    let made = spec(session_id, arguments.make, arguments.env, &provider.capabilities(), &runtimes.context)?;
    let spec = SandboxSpec { keep_alive: true, ..made };
    if runtime == Local::NAME && !arguments.quiet {
        crate::output::tell(NO_ISOLATION);
    }
    let progress = report.progress();
    let launched = launch(&*provider, &spec, &progress, &how).await;
    tell(&*provider, &report, &progress.timings(), launched, as_json).await
}

/// What was made stays without us, and is told; or what went wrong is.
pub(super) async fn tell(
    provider: &dyn Provider,
    report: &Report,
    timings: &[PhaseTiming],
    made: anyhow::Result<Sandbox>,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let sandbox = match made {
        Ok(sandbox) => sandbox,
        Err(error) => {
            report.clear();
            provider.close().await;
            return Err(error);
        }
    };
    let released = provider.release(&sandbox.id).await;
    provider.close().await;
    report.finish(timings);
    released.with_context(|| format!("the session `{}` runs, but may be taken for an orphan", sandbox.session_id))?;
    if as_json {
        let mut shown = serde_json::to_value(&sandbox)?;
        shown["phases"] = timings.iter().map(phase).collect();
        print_json(&shown)?;
    } else {
        print(&format!("{}\n", sandbox.session_id))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn phase(timing: &PhaseTiming) -> serde_json::Value {
    json!({
        "phase": timing.phase,
        "began_seconds": timing.began.as_secs_f64(),
        "took_seconds": timing.took.as_secs_f64(),
    })
}

/// An id for a session that got none.
pub(super) fn random_id() -> anyhow::Result<SessionId> {
    SessionId::random().map_err(|error| anyhow::anyhow!("no random id can be made: {error}"))
}

/// The sandbox that the flags tell of.
pub(super) fn spec(
    session_id: SessionId,
    arguments: MakeArgs,
    variables: Vec<(String, String)>,
    can: &Capabilities,
    context: &ProviderContext,
) -> anyhow::Result<SandboxSpec> {
    let workspace = match &arguments.workspace {
        Some(directory) => Workspace::Directory(local::existing_directory(directory)?),
        None => Workspace::Temporary,
    };
    let secrets = arguments.secret.iter().map(|from| read_secret(from, context)).collect::<anyhow::Result<_>>()?;
    let mut labels: BTreeMap<String, String> = arguments.label.into_iter().collect();
    secrets::mark(&mut labels, &secrets, can);
    Ok(SandboxSpec {
        image: arguments.image,
        environment: variables.into_iter().collect(),
        secrets,
        session_key: Some(session_key()?),
        workspace,
        mounts: arguments.mount,
        user: arguments.user,
        limits: ResourceLimits {
            memory: arguments.memory,
            cpus: arguments.cpus,
            processes: arguments.processes,
            gpus: arguments.gpus,
            ..ResourceLimits::default()
        },
        network: arguments.network.unwrap_or(NetworkPolicy::Full),
        ports: arguments.port,
        labels,
        plugins: arguments.plugin,
        time_to_live: arguments.ttl,
        idle_stop: arguments.idle_stop,
        ..SandboxSpec::new(session_id)
    })
}

fn read_secret(from: &SecretFrom, context: &ProviderContext) -> anyhow::Result<(String, Secret)> {
    match from {
        SecretFrom::Environment(name) => {
            let value = context.environment.get(name);
            let value = value.with_context(|| format!("the environment has no variable {name} for --secret {name}"))?;
            Ok((name.clone(), Secret::new(value.clone())))
        }
        SecretFrom::File(name, file) => {
            let value = std::fs::read_to_string(file)
                .with_context(|| format!("cannot read {} for --secret {name}", file.display()))?;
            let value = value.strip_suffix('\n').map_or(&*value, |value| value.strip_suffix('\r').unwrap_or(value));
            Ok((name.clone(), Secret::new(value)))
        }
    }
}
