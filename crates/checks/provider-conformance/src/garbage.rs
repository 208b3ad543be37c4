//! What nobody wants is removed, and nothing else.

use std::time::{Duration, Instant};

use crate::{
    bench::{Bench, Fate},
    check::{At as _, Check, Found, Problem, check, must, same},
};
use gloveport_provider::{GcOptions, GcReport, Lifetime, Progress, Sandbox, SandboxSpec};

/// Time that an engine may take beyond a limit of time.
const LATE: Duration = Duration::from_secs(30);

pub(super) const CHECKS: &[Check] = &[
    check!("garbage/live-ones-stay", "neither a sandbox of a living backend nor a kept one is garbage", live_ones_stay),
    check!("garbage/ended", "what has ended is told by a dry run, and removed by a real one", ended),
    check!("garbage/orphan", "a kept sandbox whose backend died without giving it up is an orphan", orphan),
    check!("garbage/backend-died", "sandboxes of a backend that died are ended, or are garbage", backend_died),
    check!("garbage/all", "a kept sandbox that nobody holds is removed only if all are to be", all),
    check!("garbage/time-to-live", "a sandbox ends when its time is over", time_to_live),
    check!("garbage/idle-stop", "a sandbox that nobody uses ends, and one that is used does not", idle_stop),
];

fn tells(report: &GcReport, sandbox: &Sandbox) -> bool {
    report.removed.iter().any(|removed| removed.id.as_ref() == Some(&sandbox.id) && !removed.reason.is_empty())
}

async fn plan(bench: &Bench, all: bool) -> Result<GcReport, Problem> {
    bench.provider.collect_garbage(&GcOptions { all, dry_run: true }).await.at("collect garbage, dry")
}

/// Collects, if nothing of others is among it, and says whether this sandbox was.
async fn collect(bench: &Bench, all: bool, sandbox: &Sandbox) -> Found {
    bench.only_ours(&*bench.provider, all).await?;
    let report = bench.provider.collect_garbage(&GcOptions { all, dry_run: false }).await.at("collect garbage")?;
    must(tells(&report, sandbox) && report.failed.is_empty(), "collect garbage", "it, with a reason", &report)?;
    must(bench.find(&sandbox.id).await?.is_none(), "find afterwards", "nothing", &sandbox.id)
}

async fn live_ones_stay(bench: &Bench) -> Found {
    let own = bench.start(&bench.spec("own")?).await?;
    let kept = bench.start(&SandboxSpec { keep_alive: bench.can.keep_alive, ..bench.spec("kept")? }).await?;
    bench.provider.hold(&kept.sandbox.id).await.at("hold")?;
    let other = bench.another()?;
    for all in [false, true] {
        let report = other.collect_garbage(&GcOptions { all, dry_run: true }).await.at("collect garbage, dry")?;
        // Without knowing who holds what, `all` takes every kept one.
        let may_go = all && !bench.can.orphans;
        must(!tells(&report, &own.sandbox), "collect garbage, dry", "not the one of a living backend", &report)?;
        must(may_go || !tells(&report, &kept.sandbox), "collect garbage, dry", "not the held one", &report)?;
    }
    bench.provider.release(&kept.sandbox.id).await.at("release")?;
    let report = other.collect_garbage(&GcOptions { all: false, dry_run: true }).await.at("collect garbage, dry")?;
    must(!tells(&report, &kept.sandbox), "collect garbage after release, dry", "not the kept one", &report)?;
    same(&own.run("echo here").await?, &"here".to_owned(), "an action afterwards")
}

async fn ended(bench: &Bench) -> Found {
    let live = bench.start(&bench.spec("a")?).await?;
    let sandbox = match bench.killed(&live, LATE).await? {
        Fate::Ended(sandbox) => sandbox,
        Fate::Gone => return Err(Problem::skip("the engine removes what has ended by itself")),
        Fate::Rests(_) => return Err(Problem::skip("one whose server was killed rests, and is no garbage")),
    };
    let report = plan(bench, false).await?;
    must(tells(&report, &sandbox), "collect garbage, dry", "the sandbox, with a reason", &report)?;
    must(bench.find(&sandbox.id).await?.is_some(), "find after a dry run", "the sandbox", &sandbox.id)?;
    collect(bench, false, &sandbox).await
}

/// A kept sandbox and its backend.
async fn kept(bench: &Bench) -> Result<(Sandbox, std::sync::Arc<dyn gloveport_provider::Provider>), Problem> {
    let mortal = bench.mortal()?;
    let spec = SandboxSpec { keep_alive: true, ..bench.spec("a")? };
    let sandbox = mortal.create(&spec, &Progress::silent()).await.at("create")?;
    let live = bench.live(&*mortal, sandbox).await?;
    Ok((live.sandbox, mortal))
}

async fn orphan(bench: &Bench) -> Found {
    if !bench.can.keep_alive || !bench.can.orphans {
        return Err(Problem::skip("it cannot know"));
    }
    let (sandbox, mortal) = kept(bench).await?;
    mortal.hold(&sandbox.id).await.at("hold")?;
    // As if its process died: nobody is told.
    drop(mortal);
    let began = Instant::now();
    loop {
        let found = bench.find(&sandbox.id).await?;
        if found.as_ref().is_some_and(|found| found.lifetime == Lifetime::Orphaned) {
            break;
        }
        must(began.elapsed() < LATE, "find after its backend died", "an orphan", &found)?;
        tokio::time::sleep(bench.provider.poll_interval()).await;
    }
    collect(bench, false, &sandbox).await
}

async fn backend_died(bench: &Bench) -> Found {
    if !bench.can.orphans {
        return Err(Problem::skip("it cannot know"));
    }
    let mortal = bench.mortal()?;
    let sandbox = mortal.create(&bench.spec("a")?, &Progress::silent()).await.at("create")?;
    let live = bench.live(&*mortal, sandbox).await?;
    drop(mortal);
    let began = Instant::now();
    loop {
        let report = plan(bench, false).await?;
        let found = bench.find(&live.sandbox.id).await?;
        if tells(&report, &live.sandbox) {
            bench.only_ours(&*bench.provider, false).await?;
            // It may be gone by now, which is as good.
            bench.provider.collect_garbage(&GcOptions::default()).await.at("collect garbage")?;
        } else if found.is_none() {
            return live.silent().await;
        }
        must(began.elapsed() < LATE, "after its backend died", "its end, or garbage", &found)?;
        tokio::time::sleep(bench.provider.poll_interval()).await;
    }
}

async fn all(bench: &Bench) -> Found {
    if !bench.can.keep_alive {
        return Err(Problem::skip("no keep-alive"));
    }
    let (sandbox, mortal) = kept(bench).await?;
    mortal.hold(&sandbox.id).await.at("hold")?;
    mortal.release(&sandbox.id).await.at("release")?;
    mortal.close().await;
    drop(mortal);
    let report = plan(bench, false).await?;
    must(!tells(&report, &sandbox), "collect garbage, dry", "not the kept one", &report)?;
    let report = plan(bench, true).await?;
    must(tells(&report, &sandbox), "collect all garbage, dry", "the kept one", &report)?;
    collect(bench, true, &sandbox).await
}

async fn time_to_live(bench: &Bench) -> Found {
    if !bench.can.time_to_live {
        return Err(Problem::skip("no time to live"));
    }
    let limit = Duration::from_secs(2);
    let spec = SandboxSpec { time_to_live: Some(limit), ..bench.spec("a")? };
    let began = Instant::now();
    let live = bench.start(&spec).await?;
    must(live.sandbox.expires.is_some(), "a sandbox with a time to live", "when it ends", &live.sandbox)?;
    bench.ended(&live.sandbox.id, limit + LATE).await?;
    must(began.elapsed() >= limit, "its end", "not before its time", &began.elapsed())?;
    live.silent().await
}

async fn idle_stop(bench: &Bench) -> Found {
    if !bench.can.idle_stop {
        return Err(Problem::skip("no stop when idle"));
    }
    let limit = Duration::from_secs(2);
    let spec = SandboxSpec { idle_stop: Some(limit), ..bench.spec("a")? };
    let live = bench.start(&spec).await?;
    let began = Instant::now();
    // In use for longer than the limit.
    while began.elapsed() < limit * 3 / 2 {
        live.run("sleep 0.5").await?;
    }
    bench.ended(&live.sandbox.id, limit + LATE).await?;
    live.silent().await
}
