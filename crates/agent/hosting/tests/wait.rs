//! Waiting for the server of a sandbox: alive, not yet, never, gone, given up.

#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use gloveport_hosting::{WaitError, WaitOptions, wait_until_alive};
use gloveport_protocol::BoxFuture;
use gloveport_provider::{
    Capabilities, Check, GcOptions, GcReport, Lifetime, ListFilter, LogOptions, LogStream, Phase, Progress, Provider,
    ProviderError, Restarts, Sandbox, SandboxId, SandboxSpec, SandboxState, SessionId,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_util::sync::CancellationToken;

/// What the engine says about the sandbox, one answer after the other; the last one stays.
#[derive(Debug)]
struct Engine {
    answers: Mutex<VecDeque<Answer>>,
}

#[derive(Clone, Debug)]
enum Answer {
    Is(SandboxState, Option<String>),
    Absent,
    OutOfReach,
    Refuses,
}

impl Engine {
    fn saying(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self { answers: Mutex::new(answers.into_iter().collect()) }
    }

    fn refusal(&self) -> ProviderError {
        ProviderError::Unsupported { provider: self.name().to_owned(), what: "this".to_owned() }
    }
}

fn sandbox(state: SandboxState, url: Option<String>) -> Sandbox {
    Sandbox {
        id: SandboxId::new("box").unwrap(),
        session_id: SessionId::new("session").unwrap(),
        provider: "scripted".to_owned(),
        state,
        url,
        session_key: None,
        urls: BTreeMap::new(),
        ports: BTreeMap::new(),
        headers: BTreeMap::new(),
        labels: BTreeMap::new(),
        image: None,
        workspace: None,
        lifetime: Lifetime::Backend,
        created: None,
        expires: None,
        restarts: Restarts::default(),
    }
}

impl Provider for Engine {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }

    fn poll_interval(&self) -> Duration {
        Duration::from_millis(5)
    }

    fn find<'a>(&'a self, _id: &'a SandboxId) -> BoxFuture<'a, Result<Option<Sandbox>, ProviderError>> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        let result = match answer.unwrap() {
            Answer::Is(state, url) => Ok(Some(sandbox(state, url))),
            Answer::Absent => Ok(None),
            Answer::OutOfReach => Err(ProviderError::Unreachable {
                engine: "the engine".to_owned(),
                source: Box::new(io::Error::from(io::ErrorKind::ConnectionRefused)),
                hint: "start it".to_owned(),
            }),
            Answer::Refuses => Err(ProviderError::Access {
                engine: "the engine".to_owned(),
                reason: "wrong key".to_owned(),
                hint: "set the right one".to_owned(),
            }),
        };
        Box::pin(async { result })
    }

    fn create<'a>(
        &'a self,
        _spec: &'a SandboxSpec,
        _progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Sandbox, ProviderError>> {
        Box::pin(async { Err(self.refusal()) })
    }

    fn find_session<'a>(&'a self, _session: &'a SessionId) -> BoxFuture<'a, Result<Option<Sandbox>, ProviderError>> {
        Box::pin(async { Err(self.refusal()) })
    }

    fn list<'a>(&'a self, _filter: &'a ListFilter) -> BoxFuture<'a, Result<Vec<Sandbox>, ProviderError>> {
        Box::pin(async { Err(self.refusal()) })
    }

    fn pause<'a>(&'a self, _id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(async { Err(self.refusal()) })
    }

    fn resume<'a>(&'a self, _id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(async { Err(self.refusal()) })
    }

    fn delete<'a>(&'a self, _id: &'a SandboxId) -> BoxFuture<'a, Result<bool, ProviderError>> {
        Box::pin(async { Err(self.refusal()) })
    }

    fn logs<'a>(&'a self, _id: &'a SandboxId, _options: LogOptions) -> BoxFuture<'a, Result<LogStream, ProviderError>> {
        Box::pin(async { Err(self.refusal()) })
    }

    fn collect_garbage<'a>(&'a self, _options: &'a GcOptions) -> BoxFuture<'a, Result<GcReport, ProviderError>> {
        Box::pin(async { Err(self.refusal()) })
    }

    fn check(&self) -> BoxFuture<'_, Vec<Check>> {
        Box::pin(async { Vec::new() })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// A server that answers every request with this status, after it has refused this many.
async fn server(status: &'static str, refused: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for count in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            if count < refused {
                continue;
            }
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                while stream.read(&mut buffer).await.is_ok_and(|length| length > 0) {
                    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
                    if stream.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    url
}

async fn wait(engine: &Engine, first: Sandbox, limit: Duration) -> Result<Sandbox, WaitError> {
    let options = WaitOptions { limit, ..WaitOptions::default() };
    wait_until_alive(engine, first, &options, &Progress::silent()).await
}

/// Longer than any of these tests takes.
const LONG: Duration = Duration::from_mins(1);

#[tokio::test]
async fn a_server_that_comes_later_and_elsewhere_is_found() {
    let url = server("200 OK", 2).await;
    let engine = Engine::saying([
        Answer::Is(SandboxState::Pending, None),
        Answer::OutOfReach,
        Answer::Is(SandboxState::Unknown("node is silent".to_owned()), None),
        Answer::Is(SandboxState::Running, Some(url.clone())),
    ]);
    let progress = Progress::silent();
    let first = sandbox(SandboxState::Pending, None);
    let found = wait_until_alive(&engine, first, &WaitOptions::default(), &progress).await.unwrap();
    assert_eq!((found.url, found.state), (Some(url), SandboxState::Running));
    let phases: Vec<_> = progress.timings().iter().map(|timing| timing.phase).collect();
    assert_eq!(phases, [Phase::Waiting, Phase::Alive]);
}

#[tokio::test]
async fn not_yet_says_what_was_seen_last() {
    let silent = server("503 Service Unavailable", 0).await;
    for (state, url, expected) in [
        (SandboxState::Pending, None, "it is pending"),
        (SandboxState::Running, None, "it has no URL yet"),
        (SandboxState::Running, Some(silent), "503"),
    ] {
        let engine = Engine::saying([Answer::Is(state.clone(), url.clone())]);
        let error = wait(&engine, sandbox(state, url), Duration::from_millis(100)).await.unwrap_err();
        let WaitError::NotYet { ref last, .. } = error else { panic!("{error}") };
        assert!(last.contains(expected), "{last}");
        assert!(error.to_string().contains("within 0.1 s"), "{error}");
    }
}

#[tokio::test]
async fn a_sandbox_that_never_comes_or_is_gone_is_told_at_once() {
    let began = Instant::now();
    let never = |state: SandboxState| Answer::Is(state, None);
    for (answer, expected) in [
        (never(SandboxState::Failed("no such image".to_owned())), "the sandbox `box` is failed (no such image)"),
        (never(SandboxState::Stopped("exit code 0".to_owned())), "the sandbox `box` is stopped (exit code 0)"),
        (never(SandboxState::CrashLooping("OOMKilled".to_owned())), "the sandbox `box` is crash-looping (OOMKilled)"),
        (never(SandboxState::Paused), "the sandbox `box` is paused"),
        (Answer::Absent, "the sandbox `box` is deleted"),
        (Answer::Refuses, "the engine refuses access: wrong key; set the right one"),
    ] {
        let engine = Engine::saying([Answer::Is(SandboxState::Pending, None), answer]);
        let error = wait(&engine, sandbox(SandboxState::Pending, None), LONG).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    assert!(began.elapsed() < LONG);
}

#[tokio::test]
async fn a_wait_can_be_given_up() {
    let engine = Engine::saying([Answer::Is(SandboxState::Pending, None)]);
    let cancel = CancellationToken::new();
    let options = WaitOptions { limit: LONG, cancel: cancel.clone() };
    let progress = Progress::silent();
    let waiting = wait_until_alive(&engine, sandbox(SandboxState::Pending, None), &options, &progress);
    let (waited, ()) = tokio::join!(waiting, async { cancel.cancel() });
    assert!(matches!(waited, Err(WaitError::Cancelled(id)) if id == "box"));
}
