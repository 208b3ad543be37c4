//! Which sandbox a session gets, and what is left when it gets none (remote-runtime-api 3).

use std::{sync::Arc, time::Duration};

use crate::support::{
    engine::Engine,
    hosted::{Case, options, until},
    output, within,
};
use gloveport_config::Config;
use gloveport_provider::{Capabilities, Lifetime, SandboxSpec, SandboxState, SessionId};
use gloveport_runtime::{Hosted, HostedOptions, Runtime, RuntimeError, RuntimeOptions, SandboxConnection, WarmPool};

fn stopped() -> SandboxState {
    SandboxState::Stopped("its time is over".to_owned())
}

#[tokio::test]
async fn a_paused_sandbox_comes_back_with_its_environment() {
    for attach in [false, true] {
        let engine = Engine::new("remote", &[]);
        engine.by_another("session", SandboxState::Paused, Lifetime::Kept).await;
        let case = Case::new(&engine, HostedOptions { keep_alive: true, ..options() }, attach);
        within(case.runtime.connect()).await.unwrap();
        assert_eq!(engine.calls(), ["resume", "hold"]);
        assert_eq!(output(&case.runtime, "echo \"($INITIAL)\"").await, if attach { "()" } else { "(value)" });
        assert_eq!(case.told(), "SR");
        case.runtime.close().await;
        assert_eq!(engine.states(), [SandboxState::Running]);
    }
}

#[tokio::test]
async fn a_paused_sandbox_that_has_ended_is_followed_by_a_new_one() {
    let engine = Engine::new("remote", &[]);
    engine.by_another("session", SandboxState::Paused, Lifetime::Kept).await;
    engine.script().resume_ends = true;
    engine.script().fails.insert("resume");
    let case = Case::new(&engine, options(), false);
    within(case.runtime.connect()).await.unwrap();
    assert_eq!(engine.calls(), ["resume", "create"]);
    assert_eq!(output(&case.runtime, "echo $INITIAL").await, "value");
    case.runtime.close().await;

    engine.set_state(&SandboxState::Paused);
    let case = Case::new(&engine, options(), true);
    let error = within(case.runtime.connect()).await.unwrap_err();
    assert_eq!(error.to_string(), "Could not find existing runtime for SID: session");
}

#[tokio::test]
async fn what_is_in_a_sandbox_that_cannot_be_resumed_is_not_thrown_away() {
    let engine = Engine::new("remote", &[]);
    engine.by_another("session", SandboxState::Paused, Lifetime::Kept).await;
    engine.script().fails.insert("resume");
    let case = Case::new(&engine, options(), false);
    let error = within(case.runtime.connect()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the paused sandbox `box-0` of the session could not be resumed; delete it to get a new one: remote could not \
         resume: it was told to"
            .replace(" of the session", "")
    );
    assert!(error.is_unavailable());
    within(case.runtime.try_close()).await.unwrap();
    assert_eq!(engine.calls(), ["resume", "create"]);
    assert_eq!(engine.states(), [SandboxState::Paused]);
}

#[tokio::test]
async fn a_lost_race_ends_in_the_sandbox_of_the_winner() {
    let engine = Engine::new("local", &[]);
    engine.script().lose_race = true;
    let case = Case::new(&engine, HostedOptions { keep_alive: true, ..options() }, false);
    within(case.runtime.connect()).await.unwrap();
    assert_eq!(engine.calls(), ["create", "hold"]);
    assert_eq!(engine.states().len(), 1);
    assert_eq!(output(&case.runtime, "echo $INITIAL").await, "value");
    case.runtime.close().await;

    let engine = Engine::new("local", &[]);
    let cases: Vec<_> =
        (0..8).map(|_| Case::new(&engine, HostedOptions { keep_alive: true, ..options() }, false)).collect();
    let connecting: tokio::task::JoinSet<_> = cases
        .iter()
        .map(|case| {
            let runtime = case.runtime.clone();
            async move { runtime.connect().await }
        })
        .collect();
    let connected = within(connecting.join_all()).await;
    assert!(connected.iter().all(Result::is_ok), "{connected:?}");
    assert_eq!(engine.states().len(), 1);
}

#[tokio::test]
async fn there_is_nothing_to_attach_to() {
    for (name, text, found) in [
        ("local", "No existing server found for session session", true),
        ("docker", "Container openhands-runtime-session not found.", true),
        ("kubernetes", "Pod openhands-runtime-session not found.", true),
        ("remote", "Could not find existing runtime for SID: session", false),
        ("other", "No existing sandbox found for session session", true),
    ] {
        for ended in [false, true] {
            let engine = Engine::new(name, &[]);
            if ended {
                engine.by_another("session", stopped(), Lifetime::Kept).await;
            }
            let case = Case::new(&engine, options(), true);
            let error = within(case.runtime.connect()).await.unwrap_err();
            assert_eq!(error.to_string(), text);
            assert_eq!(matches!(error, RuntimeError::Disconnected { .. }), found, "{error:?}");
            assert!(error.is_unavailable());
            within(case.runtime.try_close()).await.unwrap();
            assert!(engine.calls().is_empty());
        }
    }
}

#[tokio::test]
async fn one_that_has_ended_is_followed_by_a_new_one() {
    let engine = Engine::new("docker", &[]);
    engine.by_another("session", stopped(), Lifetime::Kept).await;
    let case = Case::new(&engine, options(), false);
    within(case.runtime.connect()).await.unwrap();
    within(case.runtime.try_close()).await.unwrap();
    assert_eq!(engine.calls(), ["create", "delete"]);
    assert_eq!(engine.states(), [stopped()]);
}

#[tokio::test]
async fn a_connection_that_fails_leaves_nothing_and_says_why() {
    let failed = || SandboxState::Failed("no such image".to_owned());
    let looping = || SandboxState::CrashLooping("OOMKilled".to_owned());
    let late = "did not answer within 0.2 s: Server error '502 Bad Gateway'";
    for (name, state, text) in [
        ("local", failed(), "Server process died: the sandbox `box-0` is failed (no such image)"),
        ("docker", failed(), "Container box-0 has exited.: failed (no such image)"),
        ("other", failed(), "the sandbox `box-0` is failed (no such image)"),
        ("remote", failed(), "Runtime is unavailable (status: failed). Please try again.: no such image"),
        (
            "remote",
            looping(),
            "Runtime crashed and is being restarted, potentially due to memory usage. Please try again.: OOMKilled",
        ),
        ("local", SandboxState::Running, late),
        ("remote", SandboxState::Running, late),
        ("kubernetes", SandboxState::Running, late),
    ] {
        let engine = Engine::new(name, &[]);
        engine.script().born_as = Some(state);
        engine.script().born_with = 502;
        let limit = Duration::from_millis(if text == late { 200 } else { 60_000 });
        let options = HostedOptions { alive_within: limit, keep_alive: true, ..options() };
        let case = Case::new(&engine, options, false);
        let error = within(case.runtime.connect()).await.unwrap_err();
        assert!(error.to_string().contains(text), "{name}: {error}");
        assert!(error.is_unavailable(), "{name}: {error}");
        assert_eq!(engine.calls(), ["create", "hold", "delete"]);
        assert!(engine.states().is_empty());
        within(case.runtime.try_close()).await.unwrap();
        assert!(engine.calls().is_empty());
    }
}

#[tokio::test]
async fn what_the_engine_refuses_is_told_as_its_runtime_tells_it() {
    for (name, call, text, unavailable) in [
        ("local", "create", "local could not create: it was told to", false),
        (
            "remote",
            "create",
            "the runtime service did not start a sandbox: remote could not create: it was told to",
            true,
        ),
        (
            "kubernetes",
            "create",
            "Failed to initialize kubernetes resources: kubernetes could not create: it was told to",
            true,
        ),
        ("local", "find", "local could not find: it was told to", false),
        ("local", "hold", "local could not hold: it was told to", false),
    ] {
        let engine = Engine::new(name, &[]);
        engine.script().fails.insert(call);
        let case = Case::new(&engine, HostedOptions { keep_alive: true, ..options() }, false);
        let error = within(case.runtime.connect()).await.unwrap_err();
        assert_eq!((error.to_string().as_str(), error.is_unavailable()), (text, unavailable));
        assert!(engine.states().is_empty());
    }
    let engine = Engine::with("local", &[], Capabilities::NONE);
    let spec = SandboxSpec::new(SessionId::new("one").unwrap());
    let runtime = Runtime::new(RuntimeOptions {
        sid: "other".to_owned(),
        ..RuntimeOptions::new(Config::default(), Hosted::new(engine.provider(), spec, options()))
    })
    .unwrap();
    let error = within(runtime.connect()).await.unwrap_err().to_string();
    assert_eq!(error, "session_id of the sandbox cannot be used: it is for `one`, and the session is `other`");
}

#[tokio::test]
async fn a_connection_that_is_given_up_deletes_what_it_made_and_leaves_what_it_found() {
    for (dropped, found) in [(false, false), (true, false), (false, true), (true, true)] {
        let engine = Engine::new("local", &[]);
        engine.script().born_with = 502;
        if found {
            engine.by_another("session", SandboxState::Running, Lifetime::Kept).await;
        }
        let case = Case::new(&engine, HostedOptions { keep_alive: !found, ..options() }, false);
        let connecting = tokio::spawn({
            let runtime = case.runtime.clone();
            async move { runtime.connect().await }
        });
        until(|| engine.asked("alive").0 > 0).await;
        if dropped {
            connecting.abort();
            assert!(connecting.await.unwrap_err().is_cancelled());
            within(case.runtime.try_close()).await.unwrap();
        } else {
            within(case.runtime.try_close()).await.unwrap();
            assert!(matches!(connecting.await.unwrap(), Err(RuntimeError::Closed)));
        }
        assert_eq!(engine.states().len(), usize::from(found), "{dropped} {found}");
        let calls: &[_] = if found { &["hold", "release"] } else { &["create", "hold", "delete"] };
        assert_eq!(engine.calls(), calls);
        assert!(matches!(case.runtime.connect().await, Err(RuntimeError::Closed)));
    }
}

#[tokio::test]
async fn a_sandbox_that_was_found_and_does_not_answer_is_not_deleted_by_the_failure() {
    let engine = Engine::new("local", &[]);
    engine.by_another("session", SandboxState::Running, Lifetime::Kept).await;
    engine.answer_with(502);
    let case = Case::new(&engine, HostedOptions { alive_within: Duration::from_millis(100), ..options() }, false);
    assert!(within(case.runtime.connect()).await.is_err());
    assert_eq!(engine.calls(), ["hold", "release"]);
    assert_eq!(engine.states(), [SandboxState::Running]);
    // It can be tried again.
    engine.answer_with(0);
    within(case.runtime.connect()).await.unwrap();
    case.runtime.close().await;
}

#[tokio::test]
async fn warm_sandboxes_are_started_before_the_first_session_and_after_each_connection() {
    let variables = [("INITIAL_NUM_WARM_SERVERS", "2"), ("DESIRED_NUM_WARM_SERVERS", " 3 ")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let pool = WarmPool::from_environment(&variables).unwrap();
    assert_eq!(pool, WarmPool { initial: 2, desired: 3 });
    assert_eq!(WarmPool::from_environment(&[].into()).unwrap(), WarmPool::default());
    let wrong = WarmPool::from_environment(&[("INITIAL_NUM_WARM_SERVERS".to_owned(), "many".to_owned())].into());
    let expected = "the variable `INITIAL_NUM_WARM_SERVERS` must be a number of sandboxes, not `many`";
    assert_eq!(wrong.unwrap_err().to_string(), expected);

    let engine = Engine::new("local", &[]);
    within(pool.set_up(&*engine.provider())).await.unwrap();
    assert_eq!(engine.calls(), ["warm 2"]);
    let case = Case::new(&engine, HostedOptions { warm: pool.desired, ..options() }, false);
    within(case.runtime.connect()).await.unwrap();
    until(|| engine.script().calls.len() == 2).await;
    assert_eq!(engine.calls(), ["create", "warm 3"]);
    case.runtime.close().await;

    // OpenHands has them for one runtime only, and passes them over for the others.
    let engine = Engine::with("docker", &[], Capabilities { keep_alive: true, ..Capabilities::NONE });
    within(pool.set_up(&*engine.provider())).await.unwrap();
    assert!(engine.calls().is_empty());
}

#[tokio::test]
async fn all_of_a_session_can_be_deleted_without_it() {
    let engine = Engine::new("local", &[]);
    for state in [SandboxState::Running, stopped(), SandboxState::Paused] {
        engine.by_another("session", state, Lifetime::Kept).await;
    }
    engine.by_another("other", SandboxState::Running, Lifetime::Kept).await;
    let provider = engine.provider();
    let session = SessionId::new("session").unwrap();
    assert!(within(gloveport_runtime::delete(&provider, &session)).await.unwrap());
    assert_eq!(engine.states(), [SandboxState::Running]);
    assert!(!within(gloveport_runtime::delete(&provider, &session)).await.unwrap());
}

#[tokio::test]
async fn what_needs_a_provider_says_so_without_one() {
    let sandbox = crate::support::Sandbox::start().await;
    let runtime = Runtime::new(sandbox.options()).unwrap();
    within(runtime.connect()).await.unwrap();
    let text = " needs a sandbox that a provider hosts; this session's has none";
    assert_eq!(runtime.pause().await.unwrap_err().to_string(), format!("pausing{text}"));
    assert_eq!(runtime.resume().await.unwrap_err().to_string(), format!("resuming{text}"));
    assert_eq!(runtime.delete().await.unwrap_err().to_string(), format!("deleting the sandbox{text}"));
    assert!(runtime.sandbox().await.is_err() && runtime.web_hosts().is_err() && runtime.vscode_url().await.is_err());
    assert!(runtime.timings().is_empty());
    runtime.close().await;
    sandbox.stop().await;
    let scripted: Arc<dyn SandboxConnection> = Arc::new(crate::support::Scripted::obedient());
    assert!(scripted.workspace().is_none() && scripted.vscode_token().await.unwrap().is_empty());
}
