//! What becomes of an action whose request fails (remote-runtime-api 3.2).

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step ends the test")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crate::support::{
    LIMIT,
    engine::Engine,
    hosted::{Case, options, until},
    output, within,
};
use gloveport_client::ClientOptions;
use gloveport_protocol::{Action, ExecuteError, Observation, RunAction};
use gloveport_provider::{Lifetime, SandboxState};
use gloveport_runtime::{HostedOptions, Runtime, RuntimeError};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

async fn run(runtime: &Runtime, command: &str) -> Result<Observation, ExecuteError> {
    let run = RunAction::new(command);
    match within(runtime.run_action(&Action::Run(run).into())).await {
        Ok(observation) => Ok(observation),
        Err(RuntimeError::Execute(error)) => Err(error),
        Err(other) => panic!("{other}"),
    }
}

/// The text of a lost connection.
async fn lost(runtime: &Runtime, command: &str) -> String {
    match run(runtime, command).await.unwrap_err() {
        ExecuteError::Disconnected(text) => text,
        other => panic!("{other:?}"),
    }
}

async fn connected(name: &'static str, options: HostedOptions) -> (Engine, Case) {
    let engine = Engine::new(name, &[]);
    let case = Case::new(&engine, options, false);
    within(case.runtime.connect()).await.unwrap();
    engine.calls();
    case.told();
    (engine, case)
}

#[tokio::test]
async fn refusals_of_a_proxy_have_the_texts_of_the_interface() {
    let temporary =
        "Runtime is temporarily unavailable. This may be due to a restart or network issue, please try again.";
    let silent = "Runtime is not responding. This may be temporary, please try again.";
    let (engine, case) = connected("remote", options()).await;
    for (status, text) in [(404, silent), (502, temporary), (503, temporary), (504, temporary)] {
        engine.answer_with(status);
        let told = lost(&case.runtime, "true").await;
        assert!(told.starts_with(&format!("{text} Original error: ")), "{told}");
        assert!(told.contains(&format!("'{status} ")), "{told}");
        assert!(told.ends_with(&format!("Details: the gate says {status}")), "{told}");
    }
    for status in [400, 401, 500] {
        engine.answer_with(status);
        assert!(
            matches!(run(&case.runtime, "true").await, Err(ExecuteError::Status { status: told, .. }) if told == status)
        );
    }
    assert!(engine.calls().is_empty());
    engine.answer_with(0);
    assert_eq!(output(&case.runtime, "echo back").await, "back");
    case.runtime.close().await;
}

#[tokio::test]
async fn an_action_resumes_a_sandbox_that_is_kept_and_is_executed_once() {
    let (engine, case) = connected("remote", HostedOptions { keep_alive: true, ..options() }).await;
    output(&case.runtime, "unset INITIAL").await;
    within(case.runtime.pause()).await.unwrap();
    assert_eq!(within(case.runtime.sandbox()).await.unwrap().state, SandboxState::Paused);
    assert_eq!(output(&case.runtime, "echo x >> ~/executed; echo $INITIAL").await, "value");
    assert_eq!(output(&case.runtime, "wc -l < ~/executed").await, "1");
    assert_eq!(engine.calls(), ["pause", "resume"]);
    assert_eq!(case.told(), "SR");

    // Many that find it paused let it resume once.
    within(case.runtime.pause()).await.unwrap();
    let lists: tokio::task::JoinSet<_> = (0..8)
        .map(|_| {
            let runtime = case.runtime.clone();
            async move { runtime.list_files(None).await }
        })
        .collect();
    assert!(within(lists.join_all()).await.iter().all(Result::is_ok));
    assert_eq!(engine.states(), [SandboxState::Running]);
    case.runtime.close().await;
}

#[tokio::test]
async fn what_cannot_be_resumed_says_both_reasons() {
    let (engine, case) = connected("remote", HostedOptions { keep_alive: true, ..options() }).await;
    within(case.runtime.pause()).await.unwrap();
    engine.script().fails.insert("resume");
    let told = lost(&case.runtime, "true").await;
    assert!(
        told.starts_with("Runtime is paused and could not be resumed. Original error: Server error '503 "),
        "{told}"
    );
    assert!(told.ends_with(", Resume error: remote could not resume: it was told to"), "{told}");
    case.runtime.close().await;

    // One that goes on refusing is resumed once, and then the refusal is the result.
    let (engine, case) = connected("remote", HostedOptions { keep_alive: true, ..options() }).await;
    engine.refuse("list_files", 503);
    let error = within(case.runtime.list_files(None)).await.unwrap_err();
    assert!(error.to_string().starts_with("Server error '503 Service Unavailable'"), "{error}");
    assert_eq!((engine.asked("list_files"), engine.calls()), ((2, 0), vec!["resume".to_owned()]));
    case.runtime.close().await;
}

#[tokio::test]
async fn a_session_that_does_not_keep_its_sandbox_resumes_it_when_it_is_told_to() {
    let (engine, case) = connected("local", options()).await;
    within(case.runtime.pause()).await.unwrap();
    assert!(lost(&case.runtime, "true").await.starts_with("Runtime is temporarily unavailable."));
    within(case.runtime.resume()).await.unwrap();
    assert_eq!(output(&case.runtime, "echo $INITIAL").await, "value");
    assert_eq!(engine.calls(), ["pause", "resume"]);
    assert_eq!(case.told(), "SR");
    assert!(within(case.runtime.delete()).await.unwrap());
    assert!(matches!(case.runtime.delete().await, Err(RuntimeError::NotConnected)));
    within(case.runtime.try_close()).await.unwrap();
    assert_eq!(engine.calls(), ["delete"]);
}

#[tokio::test]
async fn a_sandbox_that_has_ended_is_told_at_once_with_its_reason() {
    // So long would be waited if it were not known.
    let patient = || HostedOptions { retry_wait: LIMIT * 2, keep_alive: true, ..options() };
    for refusal in [Some(404), Some(502), Some(503), Some(504), None] {
        let (engine, case) = connected("docker", patient()).await;
        match refusal {
            Some(status) => engine.answer_with(status),
            None => engine.vanish(),
        }
        engine.set_state(&SandboxState::Failed("OOMKilled".to_owned()));
        let told = lost(&case.runtime, "true").await;
        let expected =
            "Runtime is gone: the sandbox `box-0` is failed (OOMKilled). Connect a new session. Original error: ";
        assert!(told.starts_with(expected), "{told}");
        assert!(engine.calls().is_empty());
        case.runtime.close().await;
    }
    let (engine, case) = connected("docker", patient()).await;
    engine.answer_with(404);
    assert!(within(gloveport_runtime::delete(&engine.provider(), &"session".parse().unwrap())).await.unwrap());
    let told = lost(&case.runtime, "true").await;
    assert!(told.starts_with("Runtime is gone: the sandbox `box-0` does not exist any more."), "{told}");
    case.runtime.close().await;
}

#[tokio::test]
async fn timed_the_end_of_a_sandbox_in_the_middle_of_an_action_is_told_at_once() {
    let patient = HostedOptions { retry_wait: LIMIT * 2, client: ClientOptions::new(""), ..options() };
    let (engine, case) = connected("local", patient).await;
    let (_, before) = engine.asked("execute_action");
    let began = Instant::now();
    let running = tokio::spawn({
        let runtime = case.runtime.clone();
        async move { lost(&runtime, "sleep 60").await }
    });
    until(|| engine.asked("execute_action").1 > before).await;
    engine.vanish();
    // The engine needs a while to notice.
    tokio::task::yield_now().await;
    engine.set_state(&SandboxState::Stopped("killed by signal 9".to_owned()));
    let told = within(running).await.unwrap();
    assert!(told.starts_with("Runtime is gone: the sandbox `box-0` is stopped (killed by signal 9)."), "{told}");
    // Less than the first wait of the client.
    assert!(began.elapsed() < Duration::from_secs(4).mul_f64(gloveport_testing::pace()));
    assert_eq!(engine.asked("execute_action").0, before + 1);
    case.runtime.close().await;
}

#[tokio::test]
async fn no_connection_is_tried_three_times_unless_that_is_switched_off() {
    for (retries, expected) in [(true, 3), (false, 1)] {
        let (engine, case) = connected("local", HostedOptions { retries, ..options() }).await;
        engine.vanish();
        // Connections that are kept for the next request close first.
        let _closed = within(case.runtime.list_files(None)).await;
        match run(&case.runtime, "true").await.unwrap_err() {
            ExecuteError::RetriesExhausted { attempts, last } => {
                assert_eq!(attempts, expected);
                assert!(matches!(*last, ExecuteError::Unreachable(_)), "{last:?}");
            }
            ExecuteError::Unreachable(_) => assert_eq!(expected, 1),
            other => panic!("{other:?}"),
        }
        case.runtime.close().await;
    }
}

/// A server that is alive and resets each connection after it has read an action; counts them.
async fn resetting(count: Arc<AtomicUsize>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let count = Arc::clone(&count);
            tokio::spawn(async move {
                let mut buffer = [0; 8192];
                while let Ok(length @ 1..) = stream.read(&mut buffer).await {
                    if buffer[..length].starts_with(b"GET /alive") {
                        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
                        continue;
                    }
                    count.fetch_add(1, Ordering::SeqCst);
                    stream.set_zero_linger().unwrap();
                    return;
                }
            });
        }
    });
    url
}

#[tokio::test]
async fn an_action_whose_connection_breaks_is_not_executed_again_but_a_question_is_asked_again() {
    let engine = Engine::new("remote", &[]);
    engine.by_another("session", SandboxState::Running, Lifetime::Kept).await;
    let count = Arc::new(AtomicUsize::new(0));
    engine.move_to(&resetting(Arc::clone(&count)).await);
    let case = Case::new(&engine, options(), true);
    within(case.runtime.connect()).await.unwrap();
    let error = run(&case.runtime, "true").await.unwrap_err();
    assert!(matches!(error, ExecuteError::ConnectionLost(_)), "{error:?}");
    assert_eq!(count.swap(0, Ordering::SeqCst), 1);
    assert!(within(case.runtime.list_files(None)).await.is_err());
    assert_eq!(count.load(Ordering::SeqCst), 3);
    case.runtime.close().await;
}

#[tokio::test]
async fn closing_ends_what_waits_for_the_sandbox() {
    let (engine, case) = connected("remote", HostedOptions { retry_wait: LIMIT * 2, ..options() }).await;
    engine.vanish();
    let _closed = within(case.runtime.list_files(Some("/")).or_close(&case.runtime)).await;
    assert!(matches!(case.runtime.list_files(None).await, Err(RuntimeError::Closed)));
}

/// A request during which its session is closed.
trait OrClose: Future + Sized {
    async fn or_close(self, runtime: &Runtime) -> Self::Output {
        tokio::join!(self, runtime.close()).0
    }
}

impl<F: Future> OrClose for F {}
