//! What a provider cannot do it refuses, and then nothing has changed.

use std::time::Duration;

use gloveport_protocol::Secret;

use crate::{
    bench::Bench,
    check::{At as _, Check, Found, Problem, check, must, same, unsupported},
};
use gloveport_provider::{
    Capabilities, EdgeSecret, ExposedPort, Level, LogOptions, NetworkPolicy, Progress, ProviderError, ResourceLimits,
    RunAs, SandboxSpec, Workspace,
};

pub(super) const CHECKS: &[Check] = &[
    check!("specs/undeclared", "what is not declared is refused by name, and nothing is made", undeclared),
    check!(
        "specs/undeclared-calls",
        "calls for what is not declared are refused, and change nothing",
        undeclared_calls
    ),
    check!("specs/declared", "a sandbox with each declared limit, label and lifetime is made", declared),
    check!("specs/wrong", "values without a meaning are refused with their field, and nothing is made", wrong),
];

/// What asks for a capability.
type Ask = fn(&mut SandboxSpec);

/// Capabilities that a spec asks for, by field.
const ASKS: &[(&str, Ask)] = &[
    ("images", |spec| spec.image = Some("debian:12".to_owned())),
    ("commands", |spec| spec.command = Some(vec!["sleep".to_owned(), "60".to_owned()])),
    ("commands", |spec| spec.working_dir = Some("/".to_owned())),
    ("host_directories", |spec| spec.workspace = Workspace::Directory("/nonexistent/gloveport".into())),
    ("volumes", |spec| spec.workspace = Workspace::Volume("gp-conformance".to_owned())),
    ("limit_cpus", |spec| spec.limits.cpus = Some(0.5)),
    ("limit_memory", |spec| spec.limits.memory = Some(512 * 1024 * 1024)),
    ("limit_disk", |spec| spec.limits.disk = Some(1024 * 1024 * 1024)),
    ("limit_processes", |spec| spec.limits.processes = Some(200)),
    ("resource_factor", |spec| spec.limits.factor = Some(1)),
    ("gpus", |spec| spec.limits.gpus = true),
    ("network_policy", |spec| spec.network = NetworkPolicy::None),
    ("edge_secrets", |spec| {
        let secret = EdgeSecret { value: "gp-secret-value".into(), hosts: vec!["gp.invalid".to_owned()] };
        spec.network = NetworkPolicy::Only(Vec::new());
        spec.edge_secrets = [("GP_TOKEN".to_owned(), secret)].into();
    }),
    ("ports", |spec| spec.ports = vec![ExposedPort { name: "web".to_owned(), port: None }]),
    ("labels", |spec| spec.labels = [("gp-label".to_owned(), "value".to_owned())].into()),
    ("users", |spec| spec.user = Some(RunAs { user: 1000, group: None, files_group: None })),
    ("runtime_classes", |spec| spec.runtime_class = Some("gp-class".to_owned())),
    ("time_to_live", |spec| spec.time_to_live = Some(Duration::from_hours(1))),
    ("idle_stop", |spec| spec.idle_stop = Some(Duration::from_hours(1))),
    ("keep_alive", |spec| spec.keep_alive = true),
];

/// Those that need something of the engine that is not known here, such as a name, or leave something there.
const UNKNOWN: &[&str] = &["images", "commands", "host_directories", "volumes", "gpus", "users", "runtime_classes"];

fn has(can: &Capabilities, field: &str) -> bool {
    can.rows().iter().any(|(name, _, has)| *name == field && *has)
}

async fn undeclared(bench: &Bench) -> Found {
    let mut seen = 0;
    // Whether a level has this is up to the machine.
    let is_open = |field: &str| field == "limit_cpus" && bench.options.level.is_some_and(Level::has_root);
    for (field, ask) in ASKS.iter().filter(|(field, _)| !has(&bench.can, field) && !is_open(field)) {
        let mut spec = SandboxSpec { image: None, ..bench.spec("a")? };
        ask(&mut spec);
        let made = bench.provider.create(&spec, &Progress::silent()).await;
        unsupported(made, &format!("create that asks for `{field}`"), &bench.name)?;
        seen += 1;
    }
    must(bench.all(&*bench.provider).await?.is_empty(), "list", "nothing", &bench.name)?;
    if seen == 0 { Err(Problem::skip("everything is declared")) } else { Ok(()) }
}

async fn undeclared_calls(bench: &Bench) -> Found {
    let live = bench.start(&bench.spec("a")?).await?;
    let (id, provider) = (&live.sandbox.id, &bench.provider);
    let before = bench.all(&**provider).await?.len();
    let mut seen = 0;
    if !bench.can.pause {
        unsupported(provider.pause(id).await, "pause", &bench.name)?;
        unsupported(provider.resume(id).await, "resume", &bench.name)?;
        seen += 1;
    }
    let follow = LogOptions { follow: true, tail: None };
    if !bench.can.logs {
        unsupported(provider.logs(id, LogOptions::default()).await.map(|_| "a log"), "logs", &bench.name)?;
        seen += 1;
    }
    if !bench.can.follow_logs {
        unsupported(provider.logs(id, follow).await.map(|_| "a log"), "following logs", &bench.name)?;
        seen += 1;
    }
    if !bench.can.snapshots {
        unsupported(provider.snapshot(id, "gp-conformance").await, "snapshot", &bench.name)?;
        let other = bench.session("fork")?;
        unsupported(provider.fork(id, &other, &Progress::silent()).await, "fork", &bench.name)?;
        seen += 1;
    }
    if !bench.can.warm {
        unsupported(provider.warm(1).await, "warm", &bench.name)?;
        seen += 1;
    }
    same(&live.run("echo same").await?, &"same".to_owned(), "an action afterwards")?;
    same(&bench.all(&**provider).await?.len(), &before, "sandboxes in the list")?;
    if seen == 0 { Err(Problem::skip("everything is declared")) } else { Ok(()) }
}

async fn declared(bench: &Bench) -> Found {
    let wanted = ASKS.iter().filter(|(field, _)| has(&bench.can, field) && !UNKNOWN.contains(field));
    let mut seen = 0;
    for (number, (field, ask)) in wanted.enumerate() {
        let mut spec = bench.spec(&number.to_string())?;
        ask(&mut spec);
        let live = bench.start(&spec).await.map_err(|problem| match problem {
            Problem::Different { step, expected, got } => {
                Problem::new(format!("{step} of a sandbox with `{field}`"), expected, got)
            }
            skip @ Problem::Skip(_) => skip,
        })?;
        same(&live.run("echo inside").await?, &"inside".to_owned(), &format!("an action with `{field}`"))?;
        bench.provider.delete(&live.sandbox.id).await.at("delete")?;
        seen += 1;
    }
    if seen == 0 { Err(Problem::skip("nothing of it is declared")) } else { Ok(()) }
}

async fn wrong(bench: &Bench) -> Found {
    let variable = |name: &str| [(name.to_owned(), String::new())].into();
    let mut wrongs = vec![
        ("environment", SandboxSpec { environment: variable("A=B"), ..bench.spec("a")? }),
        ("environment", SandboxSpec { environment: variable(""), ..bench.spec("a")? }),
        ("environment", SandboxSpec { secrets: [("A".to_owned(), Secret::new("\0"))].into(), ..bench.spec("a")? }),
        ("session_key", SandboxSpec { session_key: Some(Secret::new("")), ..bench.spec("a")? }),
    ];
    if bench.can.host_directories {
        let workspace = Workspace::Directory("relative".into());
        wrongs.push(("workspace", SandboxSpec { workspace, ..bench.spec("a")? }));
    }
    if bench.can.limit_memory {
        let limits = ResourceLimits { memory: Some(0), ..ResourceLimits::default() };
        wrongs.push(("limits", SandboxSpec { limits, ..bench.spec("a")? }));
    }
    for (field, spec) in wrongs {
        match bench.provider.create(&spec, &Progress::silent()).await {
            Err(ProviderError::Spec { field: found, .. }) => same(&found.as_str(), &field, "the field of the error")?,
            other => return Err(Problem::new(format!("a wrong `{field}`"), "a refusal", format!("{other:?}"))),
        }
    }
    must(bench.all(&*bench.provider).await?.is_empty(), "list", "nothing", &bench.name)
}
