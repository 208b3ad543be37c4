//! Backends that die at each step of what they do: a step is a request that changes something.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use gloveport_provider::GcOptions;

use crate::{
    cluster::{BUSYBOX, LIMIT, Place},
    proxy::{Proxy, Verdict},
};

/// Steps that are tried at the same time, each at a place of its own: most of it is waiting for ends.
const AT_ONCE: usize = 5;

/// Tries one step after the other until all are after the end, and gives the first of those. How many steps there are differs
/// by what else happens meanwhile, such as a lease that is renewed.
pub(crate) async fn all<F>(try_step: impl Fn(usize) -> F) -> usize
where
    F: Future<Output = bool> + Send + 'static,
{
    let mut first = 1;
    loop {
        let tries = (first..first + AT_ONCE).map(|step| tokio::spawn(try_step(step)));
        let over: Vec<bool> = join_all(tries).await.into_iter().map(Result::unwrap).collect();
        let more = over.iter().rposition(|over| !over).map_or(0, |last| last + 1);
        if more < AT_ONCE {
            return first + more;
        }
        first += AT_ONCE;
    }
}

/// A program that runs one command in a sandbox dies at this step, and another backend collects the garbage. Whether it
/// came to its end with fewer steps.
pub(crate) async fn die_at(
    step: usize,
    place: &Place,
    proxy: &Proxy,
    is_step: impl Fn(&str, &str) -> bool + Send + 'static,
) -> bool {
    let done = Arc::new(AtomicUsize::new(0));
    let steps = Arc::clone(&done);
    proxy.judge(move |method, path| {
        if is_step(method, path) {
            steps.fetch_add(1, Ordering::Relaxed);
        }
        // It does nothing more: neither what it was about to do, nor clean up.
        if steps.load(Ordering::Relaxed) >= step { Verdict::Break } else { Verdict::Pass }
    });
    let mut command = place.gloveport();
    command.args(["run", "--runtime", "kubernetes", "--image", BUSYBOX, "true"]);
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    loop {
        if child.try_wait().unwrap().is_some() {
            break;
        }
        let is_late = began.elapsed() > LIMIT;
        if done.load(Ordering::Relaxed) >= step || is_late {
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(!is_late, "step {step}: neither an end nor this step within {LIMIT:?}");
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let is_over = done.load(Ordering::Relaxed) < step;
    proxy.judge(|_, _| Verdict::Pass);
    let collector = place.backend();
    let report = collector.collect_garbage(&GcOptions::default()).await.unwrap();
    assert!(report.failed.is_empty(), "step {step}: {report:?}");
    collector.close().await;
    is_over
}
