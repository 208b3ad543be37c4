//! How a session comes to the sandbox of a provider, and what becomes of it (runtime-interface 4, remote-runtime-api 3).

use crate::support::{
    engine::Engine,
    hosted::{Case, options},
    output, within,
};
use gloveport_protocol::Secret;
use gloveport_provider::{Lifetime, Phase, SandboxState};
use gloveport_runtime::{HostedOptions, RuntimeError};

#[tokio::test]
async fn each_engine_tells_the_statuses_of_its_runtime_in_their_order() {
    use Phase::{Creating, PreparingImage, Started, Waiting};
    let running = Some(SandboxState::Running);
    let paused = Some(SandboxState::Paused);
    // The phases of the engine, what is there before, whether it is attached to, and the statuses.
    let table: [(_, &[Phase], _, _, _); 12] = [
        ("local", &[Creating, Started, Waiting], None, false, "SSR"),
        ("local", &[Creating], running.clone(), true, "SS"),
        ("docker", &[Creating, Started], None, false, "SSUSR"),
        ("docker", &[PreparingImage, Creating, Started], None, false, "SBSUSR"),
        ("docker", &[Creating, Started], running.clone(), true, "S"),
        ("docker", &[Creating, Started], running.clone(), false, "SSR"),
        ("remote", &[Creating], None, false, "SR"),
        ("remote", &[PreparingImage, Creating], None, false, "BSR"),
        ("remote", &[Creating], paused, false, "SR"),
        ("remote", &[Creating], running.clone(), true, "R"),
        ("kubernetes", &[Creating, Creating, Started], None, false, "SSSR"),
        ("kubernetes", &[Creating], running, true, "S"),
    ];
    for (name, phases, before, attach, expected) in table {
        let engine = Engine::new(name, phases);
        if let Some(state) = before.clone() {
            engine.by_another("session", state, Lifetime::Kept).await;
        }
        let case = Case::new(&engine, options(), attach);
        within(case.runtime.connect()).await.unwrap();
        assert_eq!(case.told(), expected, "{name} {phases:?} {before:?} {attach}");
        assert_eq!(case.runtime.timings().first().map(|timing| timing.phase), Some(Phase::Finding));
        assert_eq!(case.runtime.timings().last().map(|timing| timing.phase), Some(Phase::Alive));
        within(case.runtime.try_close()).await.unwrap();
    }

    let engine = Engine::new("kubernetes", &[Creating]);
    engine.script().born_as = Some(SandboxState::Failed("no node".to_owned()));
    engine.script().born_with = 502;
    let case = Case::new(&engine, options(), false);
    let error = within(case.runtime.connect()).await.unwrap_err();
    assert_eq!(error.to_string(), "Failed to connect to runtime: the sandbox `box-0` is failed (no node)");
    assert!(matches!(error, RuntimeError::Disconnected { .. }));
    assert_eq!(case.told(), "SSSD");
}

#[tokio::test]
async fn what_becomes_of_the_sandbox_is_in_the_table() {
    type Row = (bool, bool, bool, &'static [&'static str], &'static [&'static str]);
    let (keep, pause) = (true, true);
    // Attached, kept, paused when it is closed, and then the calls and what is left.
    let table: [Row; 6] = [
        (false, false, false, &["create", "delete"], &[]),
        (false, false, pause, &["create", "delete"], &[]),
        (false, keep, false, &["create", "hold", "release"], &["running"]),
        (false, keep, pause, &["create", "hold", "pause", "release"], &["paused"]),
        (true, false, false, &["hold", "release"], &["running"]),
        (true, keep, pause, &["hold", "release"], &["running"]),
    ];
    for (attach, keep_alive, pause_closed, calls, left) in table {
        let engine = Engine::new("local", &[]);
        if attach {
            engine.by_another("session", SandboxState::Running, Lifetime::Kept).await;
        }
        let case = Case::new(&engine, HostedOptions { keep_alive, pause_closed, ..options() }, attach);
        within(case.runtime.connect()).await.unwrap();
        within(case.runtime.try_close()).await.unwrap();
        within(case.runtime.try_close()).await.unwrap();
        let row = (attach, keep_alive, pause_closed);
        assert_eq!(engine.calls(), calls, "{row:?}");
        assert_eq!(engine.states().iter().map(SandboxState::word).collect::<Vec<_>>(), left, "{row:?}");
        assert!(matches!(case.runtime.list_files(None).await, Err(RuntimeError::Closed)));
    }
}

#[tokio::test]
async fn what_could_not_be_done_at_the_end_is_told_and_asked_for_once() {
    for (keep_alive, failing, calls) in
        [(false, "delete", vec!["create", "delete"]), (true, "pause", vec!["create", "hold", "pause", "release"])]
    {
        let engine = Engine::new("remote", &[]);
        let case = Case::new(&engine, HostedOptions { keep_alive, pause_closed: true, ..options() }, false);
        within(case.runtime.connect()).await.unwrap();
        engine.script().fails.insert(failing);
        let error = within(case.runtime.try_close()).await.unwrap_err();
        assert_eq!(error.to_string(), format!("remote could not {failing}: it was told to"));
        assert!(within(case.runtime.try_close()).await.is_err());
        assert_eq!(engine.calls(), calls);
    }
}

#[tokio::test]
async fn a_new_sandbox_is_reached_with_its_key_and_headers_and_works_in_its_own_directory() {
    let engine = Engine::new("local", &[]);
    let case = Case::new(&engine, options(), false);
    assert!(matches!(case.runtime.sandbox().await, Err(RuntimeError::NotConnected)));
    within(case.runtime.connect()).await.unwrap();
    assert_eq!(output(&case.runtime, "echo $INITIAL").await, "value");
    assert_eq!(case.runtime.workspace_root(), engine.homes()[0].to_str().unwrap());
    assert_eq!(case.runtime.session_api_key(), Some(Secret::new(crate::support::engine::KEY)));
    assert_eq!(within(case.runtime.sandbox()).await.unwrap().state, SandboxState::Running);
    case.runtime.close().await;
}
