//! When a step has had its effects: documents are there, requests have ended, nothing changes any more.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use serde_json::json;

use crate::{cdp::CdpError, live::Live, script::Argument, world::TargetId};

/// Time in which nothing may change.
const QUIET: Duration = Duration::from_millis(60);
/// Time for what goes on in a page that does not become quiet (the reference waits so long in any case).
const BUSY: Duration = Duration::from_millis(500);
/// Time for documents to be there (spec/browser.md 2, step 4).
const PARSED: Duration = Duration::from_secs(3);

/// What a step did last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// It went to a document, which has loaded.
    Arrival,
    /// It did something to a document, which may have effects in a moment.
    Input,
}

/// Waits for the effects of what began at `since`.
pub(crate) async fn settle(live: &Live, since: Instant, after: After) -> Result<(), CdpError> {
    let busy_until = Instant::now() + BUSY;
    let parsed_until = Instant::now() + PARSED;
    loop {
        parsed(live, parsed_until).await;
        let target = live.active().await?;
        let left = busy_until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        if !timers(live, &target, busy_until).await {
            // What they did is looked at from the beginning.
            continue;
        }
        let quiet = quiet(live, &target, after, left).await;
        let Some(fresh) = live.shared.with(|world| {
            let page = world.page(&target)?;
            let parsed = page.frames.values().all(|frame| !frame.navigating) && page.prepared;
            let requests = world.pages.iter().flat_map(|page| page.requests.values()).any(|began| *began >= since);
            Some(quiet && parsed && !requests)
        }) else {
            continue;
        };
        if fresh && live.shared.with(|world| world.active().is_some_and(|page| page.target == target)) {
            return Ok(());
        }
        // Whatever goes on tells when it has ended.
        let mut changes = live.shared.watch();
        changes.borrow_and_update();
        let _time_is_over = tokio::time::timeout_at(busy_until, changes.changed()).await;
        if live.shared.with(|world| world.closed) {
            return Err(CdpError::Closed);
        }
    }
}

/// Waits until all pages and frames have documents.
async fn parsed(live: &Live, until: Instant) {
    let limit = until.saturating_duration_since(Instant::now());
    let all = live.shared.until(limit, |world| {
        let ready = world
            .pages
            .iter()
            .all(|page| page.crashed || (page.prepared && page.frames.values().all(crate::world::Frame::is_parsed)));
        ready.then_some(())
    });
    // A page that never has one is shown as it is.
    let _in_time = all.await;
}

/// Waits for the timers of a page that are due until then; answers whether there were none.
async fn timers(live: &Live, target: &TargetId, until: Instant) -> bool {
    /// Asks the script that notes them.
    const FUNCTION: &str = "function(time) { const wait = globalThis[Symbol.for('gloveport.timers')]; \
        return wait ? Number(wait(time)) || 0 : 0; }";
    let mut none = true;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let all = live.frames(target).into_iter().map(async |place| {
            let realm = live.main_realm(&place.target, &place.frame.id).ok()?;
            let time = Argument::Value(json!(left.as_millis()));
            realm.source::<f64>(FUNCTION, vec![time]).await.ok()
        });
        let longest = join_all(all).await.into_iter().flatten().fold(0.0, f64::max);
        let wait = Duration::try_from_secs_f64(longest / 1000.0).unwrap_or_default().min(left);
        if wait.is_zero() {
            return none;
        }
        none = false;
        // It is the time itself that these wait for.
        tokio::time::sleep(wait).await;
    }
}

/// Whether no document of a page changed for a while.
async fn quiet(live: &Live, target: &TargetId, after: After, limit: Duration) -> bool {
    let places = live.frames(target);
    let all = join_all(places.iter().map(|place| live.quiet(place, after, QUIET, limit))).await;
    all.iter().all(Result::is_ok)
}
