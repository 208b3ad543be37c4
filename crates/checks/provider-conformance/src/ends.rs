//! Sandboxes end, and nothing is left.

use std::time::Duration;

use tokio::time::timeout;

use crate::{
    bench::{Bench, Fate},
    check::{At as _, Check, Found, Problem, check, must, same},
};
use gloveport_provider::{GcOptions, ListFilter, Progress, ProviderError, SandboxSpec};

/// How long the end of a server may go unnoticed.
const NOTICED: Duration = Duration::from_secs(20);

pub(super) const CHECKS: &[Check] = &[
    check!("ends/delete", "a deleted sandbox is gone, and a second delete finds nothing", delete),
    check!("ends/delete-at-once", "one that is deleted by several at the same time is gone once", delete_at_once),
    check!(
        "ends/killed-server",
        "a sandbox whose server was killed has ended, and says why, or rests and can go on",
        killed_server
    ),
    check!("ends/replaced", "a session whose sandbox has ended gets a new one", replaced),
    check!("ends/close", "the end of the backend ends the sandboxes that live with it", close),
    check!("ends/keep-alive", "a kept sandbox outlives its backend, with its processes", keep_alive),
    check!("ends/given-up", "a create that is given up leaves nothing", given_up),
];

async fn delete(bench: &Bench) -> Found {
    let live = bench.start(&bench.spec("a")?).await?;
    live.run("sleep 1000 & disown").await?;
    same(&bench.provider.delete(&live.sandbox.id).await.at("delete")?, &true, "delete")?;
    live.silent().await?;
    must(bench.find(&live.sandbox.id).await?.is_none(), "find", "nothing", &live.sandbox.id)?;
    let session = bench.provider.find_session(&live.sandbox.session_id).await.at("find_session")?;
    must(session.is_none(), "find_session", "nothing", &session)?;
    must(bench.all(&*bench.provider).await?.is_empty(), "list", "nothing", &live.sandbox.id)?;
    same(&bench.provider.delete(&live.sandbox.id).await.at("a second delete")?, &false, "a second delete")
}

async fn delete_at_once(bench: &Bench) -> Found {
    let live = bench.start(&bench.spec("a")?).await?;
    let other = bench.another()?;
    let id = &live.sandbox.id;
    let (one, two, three) = tokio::join!(bench.provider.delete(id), other.delete(id), other.delete(id));
    let deleted = [one.at("delete")?, two.at("delete")?, three.at("delete")?];
    must(deleted.contains(&true), "three deletes at once", "at least one that deleted it", &deleted)?;
    must(bench.find(id).await?.is_none(), "find", "nothing", id)?;
    live.silent().await
}

async fn killed_server(bench: &Bench) -> Found {
    let live = bench.start(&bench.spec("a")?).await?;
    live.run("echo mine > mark").await?;
    match bench.killed(&live, NOTICED).await? {
        Fate::Gone => {}
        Fate::Ended(ended) => {
            must(!ended.state.reason().is_empty(), "the state", "a reason", &ended.state)?;
            let live = bench.provider.list(&ListFilter::default()).await.at("list")?;
            must(live.iter().all(|one| one.id != ended.id), "the list of live ones", "without it", &ended.id)?;
            same(&bench.provider.delete(&ended.id).await.at("delete")?, &true, "delete of one that has ended")?;
        }
        Fate::Rests(resting) => {
            bench.provider.resume(&resting.id).await.at("resume")?;
            let again = bench.live(&*bench.provider, resting).await?;
            same(&again.run("cat mark").await?, &"mine".to_owned(), "an action of one that goes on")?;
            same(&bench.provider.delete(&again.sandbox.id).await.at("delete")?, &true, "delete of one that goes on")?;
        }
    }
    must(bench.find(&live.sandbox.id).await?.is_none(), "find after delete", "nothing", &live.sandbox.id)
}

async fn replaced(bench: &Bench) -> Found {
    let spec = bench.spec("a")?;
    let first = bench.start(&spec).await?;
    if let Fate::Rests(resting) = bench.killed(&first, NOTICED).await? {
        // It ends by this alone.
        bench.provider.delete(&resting.id).await.at("delete")?;
    }
    let second = bench.start(&spec).await?;
    same(&second.run("echo new").await?, &"new".to_owned(), "an action of the new one")?;
    let found = bench.provider.find_session(&spec.session_id).await.at("find_session")?;
    same(&found.map(|sandbox| sandbox.id), &Some(second.sandbox.id), "find_session")
}

async fn close(bench: &Bench) -> Found {
    let mortal = bench.mortal()?;
    let sandbox = mortal.create(&bench.spec("a")?, &Progress::silent()).await.at("create")?;
    let live = bench.live(&*mortal, sandbox).await?;
    mortal.close().await;
    live.silent().await?;
    let found = bench.find(&live.sandbox.id).await?;
    must(found.is_none(), "find after the backend has ended", "nothing", &found)?;
    // A second close has nothing to do.
    mortal.close().await;
    Ok(())
}

async fn keep_alive(bench: &Bench) -> Found {
    if !bench.can.keep_alive {
        return Err(Problem::skip("no keep-alive"));
    }
    let mortal = bench.mortal()?;
    let spec = SandboxSpec { keep_alive: true, ..bench.spec("a")? };
    let sandbox = mortal.create(&spec, &Progress::silent()).await.at("create")?;
    mortal.hold(&sandbox.id).await.at("hold")?;
    let live = bench.live(&*mortal, sandbox).await?;
    live.run("STATE=kept").await?;
    mortal.release(&live.sandbox.id).await.at("release")?;
    mortal.close().await;
    drop(mortal);
    let found = bench.find(&live.sandbox.id).await?;
    let view = found.as_ref().map(|sandbox| (sandbox.lifetime, sandbox.state.is_live()));
    same(&view, &Some((gloveport_provider::Lifetime::Kept, true)), "what another backend finds")?;
    // The URL may have been a way of the backend itself; each has its own.
    let Some(found) = found else { return Ok(()) };
    let again = bench.live(&*bench.provider, found).await?;
    same(&again.run("echo $STATE").await?, &"kept".to_owned(), "an action after the backend has ended")
}

async fn given_up(bench: &Bench) -> Found {
    let spec = bench.spec("a")?;
    for wait in [0, 1, 3, 10, 20, 30, 50, 80, 130, 200].map(Duration::from_millis) {
        let mortal = bench.mortal()?;
        let progress = Progress::silent();
        let made = timeout(wait, mortal.create(&spec, &progress)).await;
        match made {
            Ok(Ok(sandbox)) => {
                mortal.delete(&sandbox.id).await.at("delete")?;
            }
            // The one before is still being taken back.
            Ok(Err(ProviderError::SessionExists { .. })) => {}
            Ok(Err(error)) => return Err(Problem::new("create", "success", format!("{error:?}"))),
            Err(_) => mortal.close().await,
        }
        drop(mortal);
    }
    // What is being taken back may take a while, and what a killed program left is garbage.
    let began = std::time::Instant::now();
    loop {
        bench.only_ours(&*bench.provider, false).await?;
        let options = GcOptions::default();
        let report = bench.provider.collect_garbage(&options).await.at("collect garbage")?;
        let left = bench.all(&*bench.provider).await?;
        if left.is_empty() && report.failed.is_empty() {
            break;
        }
        let what = (left, report.failed);
        must(began.elapsed() < NOTICED, "what is left of creates that were given up", "nothing", &what)?;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let live = bench.start(&spec).await?;
    same(&live.run("echo after").await?, &"after".to_owned(), "a create of the same session afterwards")
}
