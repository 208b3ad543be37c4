//! The life of sessions over the provider `local`: our real server, found, attached to, paused, killed and closed.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::sandboxes::{Place, alive_in, session, spec};
use gloveport_config::Config;
use gloveport_protocol::{Action, ExecuteError, Observation, RunAction, Secret};
use gloveport_provider::{GcOptions, Lifetime, Phase, Provider, Sandbox, SandboxState};
use gloveport_provider_local::Local;
use gloveport_runtime::{
    FromConfig, Hosted, HostedOptions, Runtime, RuntimeError, RuntimeOptions, RuntimeStatus, WarmPool,
};
use gloveport_testing::within;
use rustix::process::{Pid, Signal, kill_process};

/// What a session tells, by the names of the interface.
type Told = Arc<Mutex<Vec<RuntimeStatus>>>;

fn runtime(provider: &Arc<dyn Provider>, options: HostedOptions, attach: bool) -> (Runtime, Told) {
    let told = Told::default();
    let teller = Arc::clone(&told);
    let made = Runtime::new(RuntimeOptions {
        sid: "conversation".to_owned(),
        attach_to_existing: attach,
        env_vars: [("initial".to_owned(), Secret::new("value"))].into(),
        status_callback: Some(Arc::new(move |_, status, _| teller.lock().unwrap().push(status))),
        ..RuntimeOptions::new(Config::default(), Hosted::new(Arc::clone(provider), spec("conversation"), options))
    });
    (made.unwrap(), told)
}

async fn run(runtime: &Runtime, command: &str) -> Result<String, ExecuteError> {
    match within(runtime.run_action(&Action::Run(RunAction::new(command)).into())).await {
        Ok(Observation::Run(run)) => Ok(run.content),
        Err(RuntimeError::Execute(error)) => Err(error),
        other => Err(ExecuteError::Failed(format!("{other:?}"))),
    }
}

fn backend(place: &Place) -> Arc<dyn Provider> {
    Arc::new(place.backend())
}

/// Kills the server of a sandbox, which its provider knows.
fn kill_server(place: &Place, sandbox: &Sandbox) {
    let path = place.state().join("sandboxes").join(sandbox.id.as_str()).join("sandbox.json");
    let record: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let pid = record["server"]["pid"].as_i64().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_session_makes_its_sandbox_tells_its_statuses_and_leaves_nothing() {
    use RuntimeStatus::{Ready, StartingRuntime};
    let place = Place::new();
    let provider = backend(&place);
    let (runtime, told) = runtime(&provider, HostedOptions::default(), false);
    within(runtime.connect()).await.unwrap();
    assert_eq!(*told.lock().unwrap(), [StartingRuntime, StartingRuntime, Ready]);
    let sandbox = within(runtime.sandbox()).await.unwrap();
    assert_eq!((sandbox.state, sandbox.lifetime), (SandboxState::Running, Lifetime::Backend));
    assert_eq!(run(&runtime, "echo $INITIAL; pwd").await.unwrap(), format!("value\n{}", runtime.workspace_root()));
    let phases: Vec<_> = runtime.timings().iter().map(|timing| timing.phase).collect();
    assert_eq!((phases.first(), phases.last()), (Some(&Phase::Finding), Some(&Phase::Alive)));
    let ports: Vec<_> = runtime.web_hosts().unwrap().into_iter().collect();
    assert!(ports.iter().all(|(url, port)| url == &format!("http://localhost:{port}")), "{ports:?}");
    within(runtime.try_close()).await.unwrap();
    assert_eq!(alive_in(&place), Vec::<String>::new());
    provider.close().await;
    assert_eq!(place.left(), Vec::<String>::new());
}

#[tokio::test]
async fn another_session_attaches_and_leaves_the_sandbox_as_it_is() {
    let place = Place::new();
    // Two backends, as two processes have them.
    let (one, two) = (backend(&place), backend(&place));
    let (first, _) = runtime(&one, HostedOptions { keep_alive: true, ..HostedOptions::default() }, false);
    within(first.connect()).await.unwrap();
    run(&first, "cd /usr && MINE=1").await.unwrap();
    for provider in [&one, &two] {
        let (second, told) = runtime(provider, HostedOptions::default(), true);
        within(second.connect()).await.unwrap();
        assert_eq!(*told.lock().unwrap(), [RuntimeStatus::StartingRuntime; 2]);
        assert_eq!(run(&second, "echo $MINE $PWD").await.unwrap(), "1 /usr");
        assert_eq!(within(second.sandbox()).await.unwrap().id, within(first.sandbox()).await.unwrap().id);
        within(second.try_close()).await.unwrap();
    }
    assert_eq!(run(&first, "echo $MINE $PWD").await.unwrap(), "1 /usr");
    within(first.try_close()).await.unwrap();

    // Kept beyond its backend, until somebody deletes it.
    within(one.close()).await;
    let kept = within(two.find_session(&session("conversation"))).await.unwrap().unwrap();
    assert_eq!((kept.state, kept.lifetime), (SandboxState::Running, Lifetime::Kept));
    assert!(within(gloveport_runtime::delete(&two, &session("conversation"))).await.unwrap());
    let (third, _) = runtime(&two, HostedOptions::default(), true);
    let error = within(third.connect()).await.unwrap_err();
    assert_eq!(error.to_string(), "No existing server found for session conversation");
    assert_eq!(alive_in(&place), Vec::<String>::new());
}

#[tokio::test]
async fn a_sandbox_rests_between_two_sessions_and_comes_back_with_its_processes() {
    let place = Place::new();
    let provider = backend(&place);
    let options = || HostedOptions { keep_alive: true, pause_closed: true, ..HostedOptions::default() };
    let (first, _) = runtime(&provider, options(), false);
    within(first.connect()).await.unwrap();
    run(&first, "MINE=1; unset INITIAL; echo content > file").await.unwrap();
    within(first.try_close()).await.unwrap();
    let paused = within(provider.find_session(&session("conversation"))).await.unwrap().unwrap();
    assert_eq!(paused.state, SandboxState::Paused);

    let (second, _) = runtime(&provider, options(), false);
    within(second.connect()).await.unwrap();
    assert_eq!(run(&second, "echo $MINE $INITIAL $(cat file)").await.unwrap(), "1 value content");
    // An action that finds it paused resumes it, and is executed once.
    within(second.pause()).await.unwrap();
    assert_eq!(run(&second, "echo x >> executed; wc -l < executed").await.unwrap(), "1");
    assert_eq!(second.status(), Some(RuntimeStatus::Ready));
    assert!(within(second.delete()).await.unwrap());
    within(second.try_close()).await.unwrap();
    assert_eq!(alive_in(&place), Vec::<String>::new());
}

#[tokio::test]
async fn timed_a_server_that_is_killed_in_the_middle_of_an_action_is_told_at_once_and_replaced_by_the_next_session() {
    let place = Place::new();
    let provider = backend(&place);
    let (first, _) = runtime(&provider, HostedOptions { keep_alive: true, ..HostedOptions::default() }, false);
    within(first.connect()).await.unwrap();
    let began = Instant::now();
    let running = tokio::spawn({
        let runtime = first.clone();
        async move { run(&runtime, "echo $$ > started; sleep 60").await }
    });
    let marker = std::path::Path::new(first.workspace_root()).join("started");
    within(async {
        while !marker.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    kill_server(&place, &within(first.sandbox()).await.unwrap());
    let error = within(running).await.unwrap().unwrap_err();
    let ExecuteError::Disconnected(text) = &error else { panic!("{error:?}") };
    assert!(text.starts_with("Runtime is gone: the sandbox `"), "{text}");
    assert!(text.contains("killed or has crashed"), "{text}");
    // Less than the first wait before a request is sent again.
    assert!(began.elapsed() < Duration::from_secs(4).mul_f64(gloveport_testing::pace()), "{:?}", began.elapsed());
    assert!(matches!(run(&first, "true").await, Err(ExecuteError::Disconnected(_))));
    within(first.try_close()).await.unwrap();

    let (second, _) = runtime(&provider, HostedOptions::default(), false);
    within(second.connect()).await.unwrap();
    assert_eq!(run(&second, "echo $INITIAL").await.unwrap(), "value");
    within(second.try_close()).await.unwrap();
    within(provider.collect_garbage(&GcOptions { all: true, dry_run: false })).await.unwrap();
    assert_eq!(alive_in(&place), Vec::<String>::new());
}

#[tokio::test]
async fn each_way_to_close_leaves_what_it_says() {
    for (keep_alive, pause_closed, left) in
        [(false, false, None), (false, true, None), (true, false, Some("running")), (true, true, Some("paused"))]
    {
        let place = Place::new();
        let provider = backend(&place);
        let options = HostedOptions { keep_alive, pause_closed, ..HostedOptions::default() };
        let (closed, _) = runtime(&provider, options, false);
        within(closed.connect()).await.unwrap();
        within(closed.try_close()).await.unwrap();
        let found = within(provider.find_session(&session("conversation"))).await.unwrap();
        assert_eq!(found.as_ref().map(|sandbox| sandbox.state.word()), left);
        assert_eq!(alive_in(&place).is_empty(), left.is_none());
        within(gloveport_runtime::delete(&provider, &session("conversation"))).await.unwrap();
        assert_eq!(alive_in(&place), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_configuration_makes_a_session_in_the_users_directory_from_a_warm_server() {
    let place = Place::new();
    let local = place.backend();
    let work = place.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let mut config = Config { workspace_base: Some(work.to_str().unwrap().to_owned()), ..Config::default() };
    config.sandbox.runtime_startup_env_vars = [("STARTUP".to_owned(), Secret::new("a \"b\" $c"))].into();
    let variables = [("INITIAL_NUM_WARM_SERVERS", "1"), ("SESSION_API_KEY", "a key of the backend")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let can = Local::capabilities(&local);
    let made = FromConfig::new(&config, "local", &can, session("conversation"), &[], &variables).unwrap();
    assert!(made.ignored.is_empty(), "{:?}", made.ignored);
    let provider: Arc<dyn Provider> = Arc::new(local);
    within(WarmPool::from_environment(&variables).unwrap().set_up(&*provider)).await.unwrap();
    let sid = "conversation".to_owned();
    let connector = Hosted::new(Arc::clone(&provider), made.spec, made.options);
    let runtime = Runtime::new(RuntimeOptions { sid, ..RuntimeOptions::new(config, connector) }).unwrap();
    within(runtime.connect()).await.unwrap();
    assert_eq!(runtime.session_api_key(), Some(Secret::new("a key of the backend")));
    let expected = format!("{}\na \"b\" $c", work.display());
    assert_eq!(run(&runtime, "pwd; echo \"$STARTUP\"; touch mine").await.unwrap(), expected);
    within(runtime.try_close()).await.unwrap();
    within(provider.close()).await;
    assert!(work.join("mine").exists());
    assert_eq!(alive_in(&place), Vec::<String>::new());
}
