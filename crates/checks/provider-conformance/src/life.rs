//! A sandbox is made, is alive, and has what it was made from.

use std::{
    fs,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use gloveport_protocol::Secret;

use crate::{
    bench::{Bench, client, labels_of},
    check::{At as _, Check, Found, Problem, check, must, same},
};
use gloveport_hosting::{WaitOptions, wait_until_alive};
use gloveport_provider::{Lifetime, LogOptions, Phase, Progress, SandboxSpec, SandboxState, Workspace};

pub(super) const CHECKS: &[Check] = &[
    check!("life/first-action", "a sandbox is made, is alive, and executes an action", first_action),
    check!("life/key", "the server answers to nobody without the key of the sandbox", key),
    check!("life/own-key", "a key of the caller is used, and one is made if there is none", own_key),
    check!("life/environment", "variables and secrets are there for the tools", environment),
    check!("life/secrets-hidden", "secrets and the key are in no list, log or command line", secrets_hidden),
    check!("life/phases", "the phases come in order, with their times", phases),
    check!("life/description", "a sandbox tells its session, provider, state, lifetime and time", description),
    check!("life/workspace-temporary", "a temporary workspace ends with the sandbox", workspace_temporary),
    check!("life/workspace-directory", "a directory of this machine is the workspace, and stays", workspace_directory),
    check!("life/state-kept", "a shell keeps its state between two actions", shell_state),
    check!("life/at-once", "sandboxes that are made at the same time are all alive and apart", at_once),
];

async fn first_action(bench: &Bench) -> Found {
    let live = bench.start(&bench.spec("a")?).await?;
    same(&live.run("echo $((6 * 7))").await?, &"42".to_owned(), "the first action")
}

async fn key(bench: &Bench) -> Found {
    let live = bench.start(&bench.spec("a")?).await?;
    if live.sandbox.session_key.is_none() {
        return Err(Problem::new("create", "a sandbox with a key", "one without"));
    }
    for (what, key) in [("no key", None), ("a wrong key", Some(Secret::new("wrong")))] {
        let stranger = client(&live.sandbox, key.as_ref())?;
        let event = gloveport_protocol::ActionEvent::from(gloveport_protocol::Action::Run(
            gloveport_protocol::RunAction::new("echo inside"),
        ));
        let answer = stranger.send_action(&event).await;
        let status =
            answer.as_ref().err().and_then(gloveport_client::ClientError::status).map(|status| status.as_u16());
        must(matches!(status, Some(401 | 403)), &format!("an action with {what}"), "status 401 or 403", &answer)?;
    }
    Ok(())
}

async fn own_key(bench: &Bench) -> Found {
    let wanted = Secret::new("key-of-the-caller-0123456789");
    let own = bench.start(&SandboxSpec { session_key: Some(wanted.clone()), ..bench.spec("own")? }).await?;
    let given = own.sandbox.session_key.as_ref().map(Secret::expose);
    must(given == Some(wanted.expose()), "create with a key", "that key", &given.is_some())?;
    let made = bench.create(&bench.spec("made")?).await?;
    let long = made.session_key.as_ref().is_some_and(|key| key.expose().len() >= 16);
    must(long, "create without a key", "a key of at least 16 characters", &made)
}

async fn environment(bench: &Bench) -> Found {
    let nasty = "two words, 'quotes' \"both\" $HOME `x` \\ and ü\nnew line";
    let spec = SandboxSpec {
        environment: [("GP_PLAIN".to_owned(), nasty.to_owned()), ("GP_EMPTY".to_owned(), String::new())].into(),
        secrets: [("GP_SECRET".to_owned(), Secret::new("s3cret of the sandbox"))].into(),
        ..bench.spec("a")?
    };
    let live = bench.start(&spec).await?;
    same(&live.run("printf '%s' \"$GP_PLAIN\"").await?, &nasty.to_owned(), "a variable with quotes and lines")?;
    same(&live.run("echo \"${GP_EMPTY-unset}\"").await?, &String::new(), "an empty variable")?;
    let secret = live.run("printf '%s' \"$GP_SECRET\"").await?;
    must(secret == "s3cret of the sandbox", "a secret variable", "its value", &"another value")
}

async fn secrets_hidden(bench: &Bench) -> Found {
    let secrets = ["hidden-value-71fd", "hidden-key-93ac-0123456789"];
    let spec = SandboxSpec {
        secrets: [("GP_SECRET".to_owned(), Secret::new(secrets[0]))].into(),
        session_key: Some(Secret::new(secrets[1])),
        ..bench.spec("a")?
    };
    let live = bench.start(&spec).await?;
    live.run("true").await?;
    let all = bench.all(&*bench.provider).await?;
    let mut places = vec![("what `list` shows", format!("{all:?}"))];
    let json = serde_json::to_string(&all).at("the list as JSON")?;
    places.push(("the list as JSON", json));
    if bench.can.logs {
        let log = super::optional::whole_log(bench, &live.sandbox.id, LogOptions::default()).await?;
        places.push(("the log", String::from_utf8_lossy(&log).into_owned()));
    }
    if bench.is_this_machine() {
        places.push(("the command lines of this machine", command_lines()));
    }
    for (place, text) in places {
        let found: Vec<usize> = (0..secrets.len()).filter(|at| text.contains(secrets[*at])).collect();
        must(found.is_empty(), place, "no secret and no key", &found)?;
    }
    Ok(())
}

/// The arguments of all processes; nothing where the system does not tell.
fn command_lines() -> String {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).into_owned()).collect::<Vec<_>>().join("\n")
}

async fn phases(bench: &Bench) -> Found {
    let told = Arc::new(Mutex::new(Vec::new()));
    let progress = {
        let told = Arc::clone(&told);
        Progress::to(Arc::new(move |report| told.lock().unwrap_or_else(PoisonError::into_inner).push(report.phase)))
    };
    let sandbox = bench.provider.create(&bench.spec("a")?, &progress).await.at("create")?;
    let options = WaitOptions { limit: bench.options.alive_within, ..WaitOptions::default() };
    wait_until_alive(&*bench.provider, sandbox, &options, &progress).await.at("wait until alive")?;
    let told = told.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let order = [Phase::Finding, Phase::PreparingImage, Phase::Creating, Phase::Started, Phase::Waiting, Phase::Alive];
    let place = |phase: &Phase| order.iter().position(|known| known == phase);
    let places: Option<Vec<usize>> = told.iter().map(place).collect();
    let in_order = places.is_some_and(|places| places.windows(2).all(|pair| pair[0] <= pair[1]));
    let whole = told.contains(&Phase::Creating) && told.ends_with(&[Phase::Waiting, Phase::Alive]);
    must(in_order && whole, "the phases", "creating … waiting, alive, in this order", &told)?;
    let timings = progress.timings();
    let joined = timings.windows(2).all(|pair| pair[0].began + pair[0].took == pair[1].began);
    must(joined && timings.len() == told.len(), "the times", "each ends where the next begins", &timings)
}

async fn description(bench: &Bench) -> Found {
    let before = SystemTime::now();
    let spec = bench.spec("a")?;
    let sandbox = bench.start(&spec).await?.sandbox;
    same(&sandbox.session_id, &spec.session_id, "session")?;
    same(&sandbox.provider, &bench.name, "provider")?;
    same(&sandbox.state, &SandboxState::Running, "state")?;
    same(&sandbox.lifetime, &Lifetime::Backend, "lifetime")?;
    same(&labels_of(&sandbox), &spec.labels, "labels")?;
    if sandbox.workspace.is_none() {
        return Err(Problem::new("workspace", "where the work is", "nothing"));
    }
    // The engine's clock may be another one.
    let slack = Duration::from_mins(5);
    let about_now = |time: SystemTime| time + slack > before && time < SystemTime::now() + slack;
    must(sandbox.created.is_some_and(about_now), "created", "the present time", &sandbox.created)
}

async fn workspace_temporary(bench: &Bench) -> Found {
    let live = bench.start(&bench.spec("a")?).await?;
    let workspace = live.sandbox.workspace.clone();
    same(&Some(live.run("pwd -P").await?), &workspace, "the directory in which a shell starts")?;
    same(&live.run("ls -A | wc -l").await?, &"0".to_owned(), "files in a new workspace")?;
    live.run("echo kept > file").await?;
    bench.provider.delete(&live.sandbox.id).await.at("delete")?;
    // In an image it has a name of its own.
    if let Some(path) = workspace.filter(|_| bench.is_this_machine() && !bench.has_image()) {
        must(!fs::exists(&path).at("looking for the workspace")?, "the workspace after delete", "nothing", &path)?;
    }
    Ok(())
}

async fn workspace_directory(bench: &Bench) -> Found {
    if !bench.can.host_directories {
        return Err(Problem::skip("no host directories"));
    }
    let directory = tempfile::tempdir().at("making a directory")?;
    let path = directory.path().canonicalize().at("making a directory")?;
    fs::write(path.join("before"), "written before").at("writing a file")?;
    let spec = SandboxSpec { workspace: Workspace::Directory(path.clone()), ..bench.spec("a")? };
    let live = bench.start(&spec).await?;
    same(&live.run("cat before && echo 'written inside' > inside").await?, &"written before".to_owned(), "a file")?;
    bench.provider.delete(&live.sandbox.id).await.at("delete")?;
    let inside = fs::read_to_string(path.join("inside")).at("reading what the sandbox wrote")?;
    same(&inside, &"written inside\n".to_owned(), "what the sandbox wrote")?;
    must(path.join("before").exists(), "the directory after delete", "as it was", &path)
}

async fn shell_state(bench: &Bench) -> Found {
    let live = bench.start(&bench.spec("a")?).await?;
    live.run("cd / && STATE=kept").await?;
    same(&live.run("echo \"$PWD $STATE\"").await?, &"/ kept".to_owned(), "the second action")
}

async fn at_once(bench: &Bench) -> Found {
    let one = |number: usize| async move {
        let environment = [("GP_NUMBER".to_owned(), number.to_string())].into();
        let live = bench.start(&SandboxSpec { environment, ..bench.spec(&number.to_string())? }).await?;
        same(&live.run("echo $GP_NUMBER").await?, &number.to_string(), "its own variable")?;
        Ok::<_, Problem>((live.sandbox.id, live.sandbox.url))
    };
    let all = futures_util::future::try_join_all((0..bench.options.at_once).map(one)).await?;
    let mut apart = all.clone();
    apart.sort();
    apart.dedup();
    same(&apart.len(), &all.len(), "ids and URLs that differ")?;
    same(&bench.all(&*bench.provider).await?.len(), &all.len(), "sandboxes in the list")
}
