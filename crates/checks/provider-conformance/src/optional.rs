//! What is declared works.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use tokio::time::timeout;

use crate::{
    bench::Bench,
    check::{At as _, Check, Found, Problem, check, must, same},
};
use gloveport_provider::{
    ExposedPort, LogOptions, ProviderError, ResourceLimits, SandboxId, SandboxSpec, SandboxState, WarmKind,
};

pub(super) const CHECKS: &[Check] = &[
    check!("optional/pause", "a paused sandbox does nothing, and goes on under the same id and URL", pause),
    check!("optional/logs", "the log of a server can be read, whole and its last lines", logs),
    check!("optional/follow-logs", "a log that is followed ends with its sandbox", follow_logs),
    check!("optional/memory", "a program that wants more memory than the limit does not get it", memory),
    check!("optional/processes", "a sandbox has no more processes than its limit", processes),
    check!("optional/ports", "a program in the sandbox is reached under the URL of its port", ports),
    check!("optional/fork", "a fork has the files of its origin, and a key, secrets and a life of its own", fork),
    check!("optional/warm", "a sandbox that was started ahead becomes one of a session, with all of its spec", warm),
];

/// What whoever asks a sandbox that rests may hear; the second is a gateway's, and the first that of a service's proxy.
const REFUSED: &str = "no answer, or status 502 or 503";
/// How long an answer of a sandbox that rests is waited for.
const RESTS: Duration = Duration::from_secs(3);

async fn pause(bench: &Bench) -> Found {
    if !bench.can.pause {
        return Err(Problem::skip("no pause"));
    }
    let live = bench.start(&bench.spec("a")?).await?;
    let id = &live.sandbox.id;
    // One that is kept apart has a place of its own.
    let place = if live.is_apart { "$TMPDIR" } else { "/tmp" };
    live.run(&format!("FILE={place}/gp-$$; echo kept > $FILE; sleep 1000 & JOB=$!")).await?;
    bench.provider.pause(id).await.at("pause")?;
    bench.provider.pause(id).await.at("pause of one that rests")?;
    let found = bench.find(id).await?;
    same(&found.map(|sandbox| sandbox.state), &Some(SandboxState::Paused), "the state after pause")?;
    // Where its server rests as well, nobody answers.
    let awake = gloveport_protocol::RunAction::new("touch /tmp/gp-awake");
    let event = gloveport_protocol::ActionEvent::from(gloveport_protocol::Action::Run(awake));
    match timeout(RESTS, live.client.post_action(&event, None)).await {
        Err(_) => {}
        Ok(Err(error)) => {
            let status = error.status().map(|status| status.as_u16());
            must(matches!(status, None | Some(502 | 503)), "an action while it rests", REFUSED, &status)?;
        }
        Ok(Ok(observation)) => {
            return Err(Problem::new("an action while it rests", REFUSED, format!("{observation:?}")));
        }
    }
    bench.provider.resume(id).await.at("resume")?;
    bench.provider.resume(id).await.at("resume of one that runs")?;
    let Some(found) = bench.find(id).await? else {
        return Err(Problem::new("find after resume", "the sandbox", "nothing"));
    };
    same(&(&found.id, &found.url), &(id, &live.sandbox.url), "id and URL after resume")?;
    let again = bench.live(&*bench.provider, found).await?;
    if bench.can.pause_keeps_processes {
        let alive = again.run("kill -0 $JOB && cat $FILE; rm -f $FILE").await?;
        same(&alive, &"kept".to_owned(), "the process and the file of before")?;
    } else {
        same(&again.run("echo awake").await?, &"awake".to_owned(), "an action after resume")?;
    }
    Ok(())
}

/// A log to its end.
pub(super) async fn whole_log(bench: &Bench, id: &SandboxId, options: LogOptions) -> Result<Vec<u8>, Problem> {
    let mut stream = bench.provider.logs(id, options).await.at("logs")?;
    let mut log = Vec::new();
    while let Some(piece) = stream.next().await {
        let piece = piece.at("a piece of the log")?;
        must(piece.len() <= 64 * 1024, "a piece of the log", "at most 64 KiB", &piece.len())?;
        log.extend_from_slice(&piece);
    }
    Ok(log)
}

async fn logs(bench: &Bench) -> Found {
    if !bench.can.logs {
        return Err(Problem::skip("no logs"));
    }
    let live = bench.start(&bench.spec("a")?).await?;
    if !live.complain("one\\ntwo\\nthree\\n").await? {
        return own_words(bench, &live.sandbox.id).await.map(drop);
    }
    let tail = |lines| LogOptions { follow: false, tail: lines };
    for (lines, expected) in [(Some(0), ""), (Some(1), "three\n"), (Some(2), "two\nthree\n")] {
        let log = whole_log(bench, &live.sandbox.id, tail(lines)).await?;
        same(&String::from_utf8_lossy(&log).as_ref(), &expected, &format!("the last {lines:?} lines"))?;
    }
    for lines in [Some(usize::MAX), None] {
        let log = whole_log(bench, &live.sandbox.id, tail(lines)).await?;
        let log = String::from_utf8_lossy(&log);
        must(log.ends_with("one\ntwo\nthree\n"), "the whole log", "all three lines at its end", &log)?;
    }
    Ok(())
}

/// Reads what a server has said itself, whole and its last lines, and gives the last line.
async fn own_words(bench: &Bench, id: &SandboxId) -> Result<String, Problem> {
    let read = async |tail| {
        let log = whole_log(bench, id, LogOptions { follow: false, tail }).await?;
        Ok::<_, Problem>(String::from_utf8_lossy(&log).into_owned())
    };
    let whole = read(None).await?;
    must(whole.ends_with('\n'), "the whole log", "whole lines of the server", &whole)?;
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    for count in [0, 1, 2, usize::MAX] {
        let expected = lines[lines.len().saturating_sub(count)..].concat();
        same(&read(Some(count)).await?, &expected, &format!("the last {count} lines"))?;
    }
    Ok(lines.last().copied().unwrap_or_default().to_owned())
}

async fn follow_logs(bench: &Bench) -> Found {
    if !bench.can.follow_logs {
        return Err(Problem::skip("logs cannot be followed"));
    }
    let live = bench.start(&bench.spec("a")?).await?;
    let writes = live.complain("before\\n").await?;
    let before = if writes { "before\n".to_owned() } else { own_words(bench, &live.sandbox.id).await? };
    let follow = LogOptions { follow: true, tail: Some(1) };
    let mut stream = bench.provider.logs(&live.sandbox.id, follow).await.at("logs")?;
    let all = if writes { format!("{before}after\n") } else { before.clone() };
    let reading = async {
        let mut log = Vec::new();
        while let Some(piece) = stream.next().await {
            log.extend_from_slice(&piece.at("a piece of the log")?);
            if log == all.as_bytes() {
                bench.provider.delete(&live.sandbox.id).await.at("delete")?;
            } else if log == before.as_bytes() {
                must(live.complain("after\\n").await?, "writing to the log", "as before", &false)?;
            }
        }
        Ok::<_, Problem>(log)
    };
    let log = timeout(Duration::from_mins(1), reading)
        .await
        .map_err(|_| Problem::new("following the log", "its end with the sandbox", "no end within a minute"))??;
    let log = String::from_utf8_lossy(&log);
    // What the server says at its end is its own.
    must(log.starts_with(&all), "the log that was followed", "what came before and after", &log)
}

async fn memory(bench: &Bench) -> Found {
    if !bench.can.limit_memory {
        return Err(Problem::skip("no memory limit"));
    }
    let limits = ResourceLimits { memory: Some(256 * 1024 * 1024), ..ResourceLimits::default() };
    let live = bench.start(&SandboxSpec { limits, ..bench.spec("a")? }).await?;
    // One line of 600 MB, of which `tail` holds all.
    let got = live.run("head -c 600000000 /dev/zero | tail -n 1 | wc -c").await?;
    must(!got.contains("600000000"), "600 MB with a limit of 256 MiB", "an end of the program", &got)?;
    same(&live.run("echo after").await?, &"after".to_owned(), "an action afterwards")
}

async fn processes(bench: &Bench) -> Found {
    if !bench.can.limit_processes {
        return Err(Problem::skip("no process limit"));
    }
    let limits = ResourceLimits { processes: Some(100), ..ResourceLimits::default() };
    let live = bench.start(&SandboxSpec { limits, ..bench.spec("a")? }).await?;
    let got = live.run("bash -c 'for i in $(seq 300); do sleep 5 & done; jobs -r | wc -l' 2>/dev/null").await?;
    let started: u32 = got.lines().last().and_then(|line| line.trim().parse().ok()).unwrap_or(0);
    must(started < 300, "300 processes with a limit of 100", "fewer", &started)
}

async fn ports(bench: &Bench) -> Found {
    if !bench.can.ports {
        return Err(Problem::skip("no ports"));
    }
    let spec = SandboxSpec { ports: vec![ExposedPort { name: "web".to_owned(), port: None }], ..bench.spec("a")? };
    let live = bench.start(&spec).await?;
    let Some(url) = live.sandbox.urls.get("web") else {
        return Err(Problem::new("the URLs of the sandbox", "one called `web`", format!("{:?}", live.sandbox.urls)));
    };
    let Some(port) = live.sandbox.ports.get("web") else {
        return Err(Problem::new("the ports of the sandbox", "one called `web`", format!("{:?}", live.sandbox.ports)));
    };
    if live.run("python3 -c 1 >/dev/null 2>&1 || echo none").await? == "none" {
        return Err(Problem::skip("no python3 in the sandbox, to serve something"));
    }
    live.run(&format!(
        "mkdir site && echo here > site/alive && (cd site; python3 -m http.server {port} >/dev/null 2>&1 &)"
    ))
    .await?;
    let client = gloveport_client::ActionExecutionClient::new(&gloveport_client::ClientOptions::new(url));
    let reached = client.at("making a client")?.wait_until_alive(Duration::from_secs(15)).await;
    reached.at(&format!("asking {url}"))
}

async fn fork(bench: &Bench) -> Found {
    if !bench.can.snapshots {
        return Err(Problem::skip("no forks"));
    }
    let secrets = [("GP_SECRET".to_owned(), gloveport_protocol::Secret::new("hunter2"))].into();
    let origin = bench.start(&SandboxSpec { secrets, ..bench.spec("a")? }).await?;
    origin.run("echo here > gp-file; sleep 1000 & disown").await?;
    let session = bench.session("fork")?;
    let made =
        bench.provider.fork(&origin.sandbox.id, &session, &gloveport_provider::Progress::silent()).await.at("fork")?;
    let forked = bench.live(&*bench.provider, made).await?;
    same(&forked.sandbox.session_id, &session, "the session of the fork")?;
    same(&forked.run("cat gp-file").await?, &"here".to_owned(), "a file of the origin in the fork")?;
    same(&forked.run("echo secret=$GP_SECRET").await?, &"secret=".to_owned(), "a secret of the origin in the fork")?;
    let keys = (&origin.sandbox.session_key, &forked.sandbox.session_key);
    must(keys.0.is_some() && keys.0 != keys.1, "the keys of both", "two different ones", &"the same")?;
    forked.run("echo other > gp-file").await?;
    same(&origin.run("cat gp-file").await?, &"here".to_owned(), "the file of the origin afterwards")?;
    bench.provider.delete(&origin.sandbox.id).await.at("delete")?;
    same(&forked.run("cat gp-file").await?, &"other".to_owned(), "the file of the fork without its origin")
}

async fn warm(bench: &Bench) -> Found {
    if !bench.can.warm {
        return Err(Problem::skip("no warm sandboxes"));
    }
    let mortal = bench.mortal()?;
    let spec = SandboxSpec {
        warm: true,
        keep_alive: bench.can.keep_alive,
        environment: [("GP_WARM".to_owned(), "its own".to_owned())].into(),
        ..bench.spec("a")?
    };
    let kind = WarmKind { image: spec.image.clone(), ..WarmKind::any(1) };
    match mortal.keep_warm(&[kind]).await {
        // One that is configured is the only image.
        Err(ProviderError::Unsupported { .. }) if spec.image.is_some() => mortal.warm(1).await.at("warm")?,
        kept => same(&kept.at("warm")?.first().copied(), &Some(1), "how many wait")?,
    }
    let listed = mortal.list(&gloveport_provider::ListFilter::default()).await.at("list")?;
    let began = Instant::now();
    let sandbox = mortal.create(&spec, &gloveport_provider::Progress::silent()).await.at("create")?;
    let live = bench.live(&*mortal, sandbox).await?;
    same(&live.run("echo $GP_WARM").await?, &"its own".to_owned(), "a variable of the spec")?;
    same(&Some(live.run("pwd -P").await?), &live.sandbox.workspace, "the directory in which a shell starts")?;
    same(&live.sandbox.session_id, &spec.session_id, "the session")?;
    tracing::debug!(took = ?began.elapsed(), warm = listed.len(), "a warm sandbox was used");
    mortal.delete(&live.sandbox.id).await.at("delete")?;
    mortal.close().await;
    live.silent().await
}
