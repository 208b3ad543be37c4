//! A gateway whose engine fails.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use gloveport_protocol::BoxFuture;
use gloveport_provider::{
    Capabilities, Check, GcOptions, GcReport, ListFilter, LogOptions, LogStream, Progress, Provider, ProviderError,
    Sandbox, SandboxId, SandboxSpec, SessionId,
};
use tokio::time::timeout;

use crate::{
    gateway::{KEY, Running},
    gateway_wire::request,
    sandboxes::{LIMIT, spec},
};

/// An engine that can be made to fail.
#[derive(Debug)]
struct Failing {
    inner: Arc<dyn Provider>,
    lists: Arc<AtomicBool>,
    resumes: Arc<AtomicBool>,
}

fn failed(action: &str) -> ProviderError {
    let action = action.to_owned();
    ProviderError::Engine { engine: "the engine".to_owned(), action, reason: "it is broken".to_owned() }
}

type Answer<'a, T> = BoxFuture<'a, Result<T, ProviderError>>;

impl Provider for Failing {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn create<'a>(&'a self, spec: &'a SandboxSpec, progress: &'a Progress) -> Answer<'a, Sandbox> {
        self.inner.create(spec, progress)
    }

    fn find<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, Option<Sandbox>> {
        self.inner.find(id)
    }

    fn find_session<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Option<Sandbox>> {
        self.inner.find_session(session)
    }

    fn list<'a>(&'a self, filter: &'a ListFilter) -> Answer<'a, Vec<Sandbox>> {
        if self.lists.load(Relaxed) {
            return self.inner.list(filter);
        }
        Box::pin(async { Err(failed("list sandboxes")) })
    }

    fn pause<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, ()> {
        self.inner.pause(id)
    }

    fn resume<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, ()> {
        if self.resumes.load(Relaxed) {
            return self.inner.resume(id);
        }
        Box::pin(async { Err(failed("resume a sandbox")) })
    }

    fn delete<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, bool> {
        self.inner.delete(id)
    }

    fn logs<'a>(&'a self, id: &'a SandboxId, options: LogOptions) -> Answer<'a, LogStream> {
        self.inner.logs(id, options)
    }

    fn collect_garbage<'a>(&'a self, options: &'a GcOptions) -> Answer<'a, GcReport> {
        self.inner.collect_garbage(options)
    }

    fn check(&self) -> BoxFuture<'_, Vec<Check>> {
        self.inner.check()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}

/// The metrics without labels.
async fn metrics(running: &Running) -> BTreeMap<String, f64> {
    let text = request(running.address, "GET /metrics", &[("Host", "a"), ("X-API-Key", KEY)]).await.body;
    let values = text.lines().filter_map(|line| line.split_once(' '));
    values.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_whose_engine_fails_is_not_ready_and_counts_it_and_is_ready_again_afterwards() {
    let lists = Arc::new(AtomicBool::new(true));
    let wrap = |inner| -> Arc<dyn Provider> {
        Arc::new(Failing { inner, lists: Arc::clone(&lists), resumes: Arc::new(AtomicBool::new(true)) })
    };
    let running = Running::over(wrap, |_| {}).await;
    let ready = async |status: u16| {
        let known = async { while running.ask("GET", "/readyz", None, None).await.0 != status {} };
        timeout(LIMIT, known).await.is_ok()
    };
    assert!(ready(200).await);
    assert!(metrics(&running).await.contains_key("gloveport_gateway_engine_errors_total"));
    lists.store(false, Relaxed);
    assert!(ready(503).await);
    assert_eq!(running.ask("GET", "/list", Some(KEY), None).await.0, 500);
    let told = metrics(&running).await;
    assert_eq!(told.get("gloveport_gateway_engine_up"), Some(&0.0));
    assert_eq!(told.get("gloveport_gateway_engine_errors_total"), Some(&1.0));
    // It runs all the same.
    assert_eq!(running.ask("GET", "/healthz", None, None).await.0, 200);
    lists.store(true, Relaxed);
    assert!(ready(200).await);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_cannot_be_woken_is_503_and_says_when_to_come_back() {
    let resumes = Arc::new(AtomicBool::new(false));
    let wrap = |inner| -> Arc<dyn Provider> {
        Arc::new(Failing { inner, lists: Arc::new(AtomicBool::new(true)), resumes: Arc::clone(&resumes) })
    };
    let running = Running::over(wrap, |options| options.wake = true).await;
    let sandbox = running.alive(&running.backend(), &spec("a")).await;
    running.engine.pause(&sandbox.id).await.expect("it rests");
    let paused = async {
        loop {
            let answer = request(running.address, "GET /a/alive", &[("Host", "gateway")]).await;
            if answer.status != 200 {
                break answer;
            }
        }
    };
    let answer = timeout(LIMIT, paused).await.expect("it is known that it rests");
    assert_eq!((answer.status, answer.all("retry-after")), (503, vec!["4".to_owned()]), "{answer:?}");
    resumes.store(true, Relaxed);
    assert_eq!(running.ask("GET", "/a/alive", None, None).await, (200, serde_json::json!({"status": "ok"})));
    running.end().await;
}
