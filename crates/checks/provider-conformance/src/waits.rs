//! Not yet, never, and gone are three different ends of a wait.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::{
    bench::Bench,
    check::{At as _, Check, Found, Problem, check, must},
};
use gloveport_hosting::{WaitError, WaitOptions, wait_until_alive};
use gloveport_provider::{Progress, Sandbox};

pub(super) const CHECKS: &[Check] = &[
    check!("waits/not-yet", "a wait that is too short says that it is not yet, and a longer one succeeds", not_yet),
    check!("waits/never", "a server that was killed is known before the limit", never),
    check!("waits/gone", "a sandbox that was deleted is known before the limit", gone),
    check!("waits/cancelled", "a wait that is given up ends at once", cancelled),
];

/// A limit that is never reached where the engine knows better.
const LONG: Duration = Duration::from_mins(2);

async fn not_yet(bench: &Bench) -> Found {
    let sandbox = bench.create(&bench.spec("a")?).await?;
    let short = WaitOptions { limit: Duration::ZERO, ..WaitOptions::default() };
    // A server may answer the first question; without a URL there is nobody to ask.
    let nowhere = Sandbox { url: None, ..sandbox.clone() };
    match wait_until_alive(&*bench.provider, nowhere, &short, &Progress::silent()).await {
        Err(WaitError::NotYet { id, .. }) => must(id == sandbox.id.as_str(), "the error", "the id", &id)?,
        other => return Err(Problem::new("a wait of no time", "not yet", format!("{other:?}"))),
    }
    bench.live(&*bench.provider, sandbox).await.map(drop)
}

async fn never(bench: &Bench) -> Found {
    let live = bench.start(&bench.spec("a")?).await?;
    live.kill().await?;
    let began = Instant::now();
    let options = WaitOptions { limit: LONG, ..WaitOptions::default() };
    match wait_until_alive(&*bench.provider, live.sandbox, &options, &Progress::silent()).await {
        // Some engines start it anew, and some remove it.
        Err(WaitError::Never(_) | WaitError::Gone { .. }) | Ok(_) => {}
        other => return Err(Problem::new("waiting for a killed server", "never", format!("{other:?}"))),
    }
    must(began.elapsed() < LONG / 4, "waiting for a killed server", "an end long before the limit", &began.elapsed())
}

async fn gone(bench: &Bench) -> Found {
    let sandbox = bench.start(&bench.spec("a")?).await?.sandbox;
    bench.provider.delete(&sandbox.id).await.at("delete")?;
    let began = Instant::now();
    let options = WaitOptions { limit: LONG, ..WaitOptions::default() };
    match wait_until_alive(&*bench.provider, sandbox, &options, &Progress::silent()).await {
        Err(WaitError::Gone { what: "deleted", .. }) => {}
        other => return Err(Problem::new("waiting for a deleted sandbox", "gone: deleted", format!("{other:?}"))),
    }
    must(began.elapsed() < LONG / 4, "waiting for a deleted sandbox", "an end long before the limit", &began.elapsed())
}

async fn cancelled(bench: &Bench) -> Found {
    let sandbox = bench.start(&bench.spec("a")?).await?.sandbox;
    bench.provider.delete(&sandbox.id).await.at("delete")?;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let options = WaitOptions { limit: LONG, cancel };
    match wait_until_alive(&*bench.provider, sandbox, &options, &Progress::silent()).await {
        Err(WaitError::Cancelled(_) | WaitError::Gone { .. }) => Ok(()),
        other => Err(Problem::new("a wait that is given up", "given up", format!("{other:?}"))),
    }
}
