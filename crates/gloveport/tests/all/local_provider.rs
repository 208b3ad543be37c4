//! The provider `local` with our real server: life, attach, names, ends.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    collections::BTreeMap,
    collections::BTreeSet,
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use crate::sandboxes::{LIMIT, Place, alive_in, options_at, run, spec, until};
use futures_util::{StreamExt as _, future::join_all};
use gloveport_protocol::Secret;
use gloveport_provider::{
    ExposedPort, GcOptions, Lifetime, ListFilter, LogOptions, Progress, Provider as _, ProviderError, ResourceLimits,
    Sandbox, SandboxSpec, SandboxState, Workspace,
};
use gloveport_provider_local::{Local, LocalOptions, Observer, Step};
use gloveport_sys::process;
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::mpsc;

async fn create(local: &Local, spec: &SandboxSpec) -> Result<Sandbox, ProviderError> {
    local.create(spec, &Progress::silent()).await
}

fn kept(name: &str) -> SandboxSpec {
    SandboxSpec { keep_alive: true, ..spec(name) }
}

/// The state of a sandbox as another backend sees it.
async fn state_of(place: &Place, sandbox: &Sandbox) -> SandboxState {
    place.backend().find(&sandbox.id).await.unwrap().unwrap().state
}

/// Process id of the server of a sandbox.
fn server(place: &Place, sandbox: &Sandbox) -> u32 {
    let path = place.state().join("sandboxes").join(sandbox.id.as_str()).join("sandbox.json");
    let record: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    record["server"]["pid"].as_u64().unwrap().try_into().unwrap()
}

/// Kills the server that has the lock of this directory.
fn kill_server_of(directory: &Path) {
    let lock = directory.join("lock");
    for pid in process::descendants(std::process::id()) {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let holds = open.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|target| target == lock);
        // Its guard and its owners hold it, too, and have other names.
        if holds && process::stat(pid).is_some_and(|stat| stat.name == "gloveport") {
            kill(pid);
        }
    }
}

fn kill(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

/// The end of a process that was interrupted is as near as the end of `close`.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_is_closed_when_what_was_being_made_for_nobody_is_gone() {
    for step in
        [Step::ServerStarted, Step::Listening, Step::RecordWritten, Step::Published, Step::Ready, Step::Committed]
    {
        let place = Place::new();
        let (tell, mut told) = mpsc::unbounded_channel();
        let observer = Observer::new(move |taken| {
            if taken == step {
                let _nobody_listens = tell.send(());
                thread::sleep(Duration::from_millis(200));
            }
        });
        let local = Local::new(LocalOptions { observer, warm: 0, ..options_at(place.path()) }).unwrap();
        let wanted = kept("one");
        let given_up = tokio::select! {
            made = create(&local, &wanted) => made.err(),
            reached = told.recv() => reached.map(|()| ProviderError::Closed(String::new())),
        };
        assert!(matches!(given_up, Some(ProviderError::Closed(_))), "{step:?}: {given_up:?}");
        local.close().await;
        let left = place.backend().list(&ListFilter::default()).await.unwrap();
        assert!(left.is_empty(), "{step:?}: {left:?}");
        assert_eq!(alive_in(&place), Vec::<String>::new(), "{step:?}");
    }
}

#[tokio::test]
async fn a_sandbox_is_made_found_used_and_deleted_and_nothing_is_left() {
    let place = Place::new();
    let local = place.backend();
    let made = create(&local, &spec("one")).await.unwrap();
    assert_eq!((made.state.clone(), made.lifetime), (SandboxState::Running, Lifetime::Backend));
    let workspace = made.workspace.clone().unwrap();
    assert_eq!(run(&made, "pwd").await, workspace);
    // A program that has detached itself is the sandbox's, too.
    run(&made, "setsid -f sleep 600 >/dev/null 2>&1; touch file").await;

    let found = local.find(&made.id).await.unwrap().unwrap();
    let by_session = local.find_session(&made.session_id).await.unwrap().unwrap();
    let listed = local.list(&ListFilter::default()).await.unwrap();
    for other in [&found, &by_session, &listed[0]] {
        assert_eq!((&other.id, &other.url, &other.session_key), (&made.id, &made.url, &made.session_key));
    }
    assert!(local.delete(&made.id).await.unwrap());
    assert!(!local.delete(&made.id).await.unwrap());
    assert!(local.find(&made.id).await.unwrap().is_none());
    assert!(!fs::exists(workspace).unwrap());
    assert_eq!(alive_in(&place), Vec::<String>::new());
    local.close().await;
    assert_eq!(place.left(), Vec::<String>::new());
}

#[tokio::test]
async fn of_several_backends_exactly_one_makes_the_sandbox_of_a_session() {
    let place = Place::new();
    let backends: Vec<Local> = (0..6).map(|_| place.backend()).collect();
    let wanted = spec("same");
    let results = join_all(backends.iter().map(|local| create(local, &wanted))).await;
    let (made, refused): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    assert_eq!(made.len(), 1);
    for error in refused {
        assert!(matches!(error, Err(ProviderError::SessionExists { .. })), "{error:?}");
    }
    let made = made.into_iter().next().unwrap().unwrap();
    assert_eq!(run(&made, "echo mine").await, "mine");
    join_all(backends.iter().map(gloveport_provider::Provider::close)).await;
    assert_eq!((alive_in(&place), place.left()), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn a_killed_server_leaves_no_process_is_seen_as_failed_and_makes_room() {
    let place = Place::new();
    let local = place.backend();
    let first = create(&local, &spec("s")).await.unwrap();
    run(&first, "setsid -f sleep 600 >/dev/null 2>&1").await;
    kill(server(&place, &first));
    until("nothing of it lives", || alive_in(&place).is_empty()).await;
    let state = state_of(&place, &first).await;
    assert!(matches!(state, SandboxState::Failed(_)), "{state}");
    assert!(local.list(&ListFilter::default()).await.unwrap().is_empty());
    assert_eq!(local.list(&ListFilter { ended: true, ..ListFilter::default() }).await.unwrap().len(), 1);

    let second = create(&local, &spec("s")).await.unwrap();
    assert_ne!(second.workspace, first.workspace);
    assert!(!fs::exists(first.workspace.unwrap()).unwrap());
    assert_eq!(run(&second, "echo again").await, "again");
    local.close().await;
    assert_eq!(place.left(), Vec::<String>::new());
}

#[tokio::test]
async fn a_kept_sandbox_is_used_by_other_backends_and_collected_when_all_that_held_it_have_died() {
    let place = Place::new();
    let first = place.backend();
    let made = create(&first, &kept("k")).await.unwrap();
    run(&made, "X=5").await;
    let second = place.backend();
    second.hold(&made.id).await.unwrap();
    // It ends without giving the sandbox up.
    drop(first);
    let seen = second.find(&made.id).await.unwrap().unwrap();
    assert_eq!((seen.lifetime, run(&seen, "echo $X").await.as_str()), (Lifetime::Kept, "5"));
    assert!(second.collect_garbage(&GcOptions::default()).await.unwrap().removed.is_empty());
    drop(second);

    let third = place.backend();
    assert_eq!(third.find(&made.id).await.unwrap().unwrap().lifetime, Lifetime::Orphaned);
    let dry = GcOptions { dry_run: true, ..GcOptions::default() };
    assert_eq!(third.collect_garbage(&dry).await.unwrap().removed.len(), 1);
    assert_eq!(run(&made, "echo $X").await, "5");
    let report = third.collect_garbage(&GcOptions::default()).await.unwrap();
    assert_eq!((report.removed.len(), report.failed), (1, Vec::new()));
    assert_eq!(report.removed[0].reason, "its backend has died");
    third.close().await;
    assert_eq!((alive_in(&place), place.left()), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn a_kept_sandbox_that_was_given_up_stays_until_all_are_collected() {
    let place = Place::new();
    let first = place.backend();
    let made = create(&first, &kept("k")).await.unwrap();
    first.release(&made.id).await.unwrap();
    first.close().await;
    let second = place.backend();
    assert_eq!(second.find(&made.id).await.unwrap().unwrap().lifetime, Lifetime::Kept);
    assert!(second.collect_garbage(&GcOptions::default()).await.unwrap().removed.is_empty());
    assert_eq!(run(&made, "echo here").await, "here");
    // While somebody holds it, it is not collected either.
    second.hold(&made.id).await.unwrap();
    let all = GcOptions { all: true, ..GcOptions::default() };
    let third = place.backend();
    assert!(third.collect_garbage(&all).await.unwrap().removed.is_empty());
    second.close().await;
    assert_eq!(third.collect_garbage(&all).await.unwrap().removed.len(), 1);
    assert!(matches!(third.hold(&made.id).await, Err(ProviderError::NotFound(_))));
    third.close().await;
    assert_eq!((alive_in(&place), place.left()), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn sandboxes_end_with_the_value_that_made_them() {
    let place = Place::new();
    let local = place.backend();
    local.warm(2).await.unwrap();
    let made = create(&local, &SandboxSpec { warm: false, ..spec("b") }).await.unwrap();
    run(&made, "setsid -f sleep 600 >/dev/null 2>&1").await;
    drop(local);
    until("all have ended and removed themselves", || alive_in(&place).is_empty()).await;
    let left: Vec<_> = place.left().into_iter().filter(|path| !path.starts_with("state/backends")).collect();
    assert_eq!(left, Vec::<String>::new());
}

#[tokio::test]
async fn a_creation_that_is_given_up_at_any_moment_leaves_nothing_that_is_not_collected() {
    let place = Place::new();
    let local = place.backend();
    let started = Instant::now();
    create(&local, &spec("whole")).await.unwrap();
    let whole = started.elapsed();
    for part in 0..20 {
        let limit = whole * part / 20;
        for wanted in [spec("given-up"), kept("given-up")] {
            let _given_up = tokio::time::timeout(limit, create(&local, &wanted)).await;
            let other = place.backend();
            if let Some(made) = other.find_session(&wanted.session_id).await.unwrap() {
                other.delete(&made.id).await.unwrap();
            }
        }
    }
    local.close().await;
    until("nothing lives", || alive_in(&place).is_empty()).await;
    let other = place.backend();
    let report = other.collect_garbage(&GcOptions::default()).await.unwrap();
    assert_eq!(report.failed, Vec::<String>::new());
    other.close().await;
    assert_eq!(place.left(), Vec::<String>::new());
}

#[tokio::test]
async fn a_warm_server_works_in_the_session_s_own_workspace_with_its_key_and_variables() {
    let place = Place::new();
    let local = place.backend();
    local.warm(2).await.unwrap();
    let waiting = || fs::read_dir(place.state().join("new")).unwrap().count();
    assert_eq!(waiting(), 2);
    let directory = place.path().join("project");
    let wanted = SandboxSpec {
        workspace: Workspace::Directory(directory.clone()),
        environment: [("GREETING".to_owned(), "hello".to_owned())].into(),
        session_key: Some(Secret::new("key of the session")),
        limits: ResourceLimits { memory: Some(1 << 30), ..ResourceLimits::default() },
        ..spec("w")
    };
    let made = create(&local, &wanted).await.unwrap();
    assert_eq!(waiting(), 1);
    assert_eq!(run(&made, "pwd; echo $GREETING; ulimit -d").await, format!("{}\nhello\n1048576", directory.display()));
    assert_eq!(made.session_key, wanted.session_key);
    let without_key = Sandbox { session_key: None, ..made.clone() };
    assert!(crate::sandboxes::try_run(&without_key, "echo in").await.is_err());
    // The next one has died meanwhile: another one takes its place.
    for entry in fs::read_dir(place.state().join("new")).unwrap() {
        kill_server_of(&entry.unwrap().path());
    }
    let other = create(&local, &spec("x")).await.unwrap();
    assert_eq!(run(&other, "echo fresh").await, "fresh");
    run(&made, "echo kept > file").await;
    local.close().await;
    assert_eq!((alive_in(&place), place.left()), (Vec::new(), Vec::new()));
    // A directory of the user stays.
    assert_eq!(fs::read_to_string(directory.join("file")).unwrap(), "kept\n");
}

#[tokio::test]
async fn the_pool_is_filled_again_after_each_start() {
    let place = Place::new();
    let local = Local::new(LocalOptions { warm: 2, ..place.options() }).unwrap();
    create(&local, &spec("a")).await.unwrap();
    let waiting = || fs::read_dir(place.state().join("new")).map_or(0, Iterator::count);
    until("two wait", || waiting() == 2).await;
    create(&local, &spec("b")).await.unwrap();
    until("two wait again", || waiting() == 2).await;
    local.close().await;
    assert_eq!(place.left(), Vec::<String>::new());
    assert!(matches!(create(&local, &spec("c")).await, Err(ProviderError::Closed(_))));
}

#[tokio::test]
async fn a_sandbox_ends_by_itself_when_its_time_is_over_or_nobody_uses_it() {
    let place = Place::new();
    let local = place.backend();
    let limit = Duration::from_millis(300);
    let short = create(&local, &SandboxSpec { time_to_live: Some(limit), ..kept("short") }).await.unwrap();
    let unused = create(&local, &SandboxSpec { idle_stop: Some(limit), ..kept("unused") }).await.unwrap();
    let used = create(&local, &SandboxSpec { idle_stop: Some(limit), ..kept("used") }).await.unwrap();
    assert!(short.expires.is_some());
    // A command that runs is a use.
    let command = tokio::spawn(async move { run(&used, "sleep 1; echo still here").await });
    until("its time is over", || !place.state().join("sandboxes/short").exists()).await;
    assert!(local.find(&short.id).await.unwrap().is_none());
    let began = Instant::now();
    while state_of(&place, &unused).await.is_live() {
        assert!(began.elapsed() < LIMIT);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(state_of(&place, &unused).await, SandboxState::Stopped("nobody used it for 0.3 s".to_owned()));
    assert_eq!(command.await.unwrap(), "still here");
    let reasons = |report: gloveport_provider::GcReport| -> BTreeSet<String> {
        report.removed.into_iter().map(|removed| removed.reason).collect()
    };
    until("all have ended", || alive_in(&place).is_empty()).await;
    let report = local.collect_garbage(&GcOptions::default()).await.unwrap();
    assert_eq!(reasons(report), ["it has ended".to_owned()].into());
    local.close().await;
    assert_eq!(place.left(), Vec::<String>::new());
}

#[tokio::test]
async fn nothing_secret_is_in_arguments_environments_logs_or_files_of_others() {
    let place = Place::new();
    let options = place.options();
    let mut environment = options.environment.clone();
    environment.insert("BACKEND_TOKEN".to_owned(), "secret-1".to_owned());
    environment.insert("GLOVEPORT_KEY".to_owned(), "secret-2".to_owned());
    let local = Local::new(LocalOptions { environment, ..options }).unwrap();
    let secrets = [("TOKEN".to_owned(), Secret::new("secret-3"))].into();
    let wanted = SandboxSpec { secrets, session_key: Some(Secret::new("secret-4")), ..spec("s") };
    let made = create(&local, &wanted).await.unwrap();
    assert_eq!(run(&made, "echo $TOKEN $BACKEND_TOKEN $GLOVEPORT_KEY").await, "secret-3 secret-1");
    let directory = place.state().join("sandboxes/s");
    let server = server(&place, &made);
    let bytes = |path: String| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    for pid in process::descendants(server).into_iter().chain([server]) {
        let stat = process::stat(pid).unwrap();
        assert!(!bytes(format!("/proc/{pid}/cmdline")).contains("secret"), "{stat:?}");
        // The shells are the tools, and have the variables of the sandbox.
        if stat.name != "bash" {
            assert!(!bytes(format!("/proc/{pid}/environ")).contains("secret"), "{stat:?}");
        }
    }
    let record = fs::read_to_string(directory.join("sandbox.json")).unwrap();
    assert!(!record.contains("secret-1") && !record.contains("secret-3"), "{record}");
    assert!(!fs::read_to_string(directory.join("log")).unwrap().contains("secret"));
    for (path, mode) in [(place.state(), 0o700), (directory.clone(), 0o700), (directory.join("sandbox.json"), 0o600)] {
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode, "{}", path.display());
    }
    assert_eq!(fs::metadata(made.workspace.unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    local.close().await;
}

#[tokio::test]
async fn a_start_that_fails_says_why_and_leaves_nothing() {
    let place = Place::new();
    let file = place.path().join("file");
    fs::write(&file, "").unwrap();
    let local = place.backend();
    let no_directory = SandboxSpec { workspace: Workspace::Directory(file), ..spec("f") };
    let no_plugin = SandboxSpec { plugins: vec!["nonsense".to_owned()], ..spec("f") };
    for (wanted, expected) in [(no_directory, "cannot make the workspace"), (no_plugin, "Plugin nonsense not found")] {
        let error = create(&local, &wanted).await.unwrap_err();
        assert!(matches!(&error, ProviderError::Start { reason, .. } if reason.contains(expected)), "{error}");
    }
    let unsupported = SandboxSpec { image: Some("debian".to_owned()), ..spec("f") };
    assert!(matches!(create(&local, &unsupported).await, Err(ProviderError::Unsupported { .. })));
    local.close().await;
    for program in ["/bin/false", "/nonexistent/gloveport"] {
        let local = Local::new(LocalOptions { program: program.into(), ..place.options() }).unwrap();
        let error = create(&local, &spec("f")).await.unwrap_err().to_string();
        assert!(error.contains("its server") || error.contains(program), "{error}");
        local.close().await;
    }
    assert_eq!((alive_in(&place), place.left()), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn ports_are_reserved_until_a_program_listens_on_them() {
    let place = Place::new();
    let local = place.backend();
    let ports = vec![
        ExposedPort { name: "web".to_owned(), port: None },
        ExposedPort { name: "fixed".to_owned(), port: Some(4711) },
    ];
    let made = create(&local, &SandboxSpec { ports, ..spec("p") }).await.unwrap();
    assert_eq!(made.urls["fixed"], "http://localhost:4711");
    let names: Vec<_> = made.urls.keys().map(String::as_str).collect();
    assert_eq!(names, ["fixed", "web", "work-1", "work-2"]);
    let told = run(&made, "echo $WORK_PORT_1 $APP_PORT_1 $LOCAL_RUNTIME_MODE").await;
    let port: u16 = made.urls["work-1"].rsplit(':').next().unwrap().parse().unwrap();
    assert_eq!(told, format!("{port} {port} 1"));
    let any: Vec<TcpListener> = (0..200).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    assert!(any.iter().all(|other| other.local_addr().unwrap().port() != port));
    // It sets SO_REUSEADDR, as servers do.
    TcpListener::bind(("127.0.0.1", port)).unwrap();
    local.close().await;
}

#[tokio::test]
async fn the_log_can_be_followed_until_the_sandbox_ends() {
    let place = Place::new();
    let local = place.backend();
    let plugins = vec!["vscode".to_owned()];
    let environment = BTreeMap::from([("GLOVEPORT_VSCODE".to_owned(), "/no/such/program".to_owned())]);
    let made = create(&local, &SandboxSpec { plugins, environment, ..spec("l") }).await.unwrap();
    let follow = LogOptions { follow: true, tail: None };
    let mut log = local.logs(&made.id, follow).await.unwrap();
    let first = String::from_utf8(log.next().await.unwrap().unwrap().to_vec()).unwrap();
    assert!(first.contains("VS Code is disabled"), "{first}");
    let rest = tokio::spawn(async move { log.collect::<Vec<_>>().await });
    local.delete(&made.id).await.unwrap();
    let rest = tokio::time::timeout(LIMIT, rest).await.unwrap().unwrap();
    assert!(rest.iter().all(Result::is_ok));
    assert!(matches!(local.logs(&made.id, follow).await, Err(ProviderError::NotFound(_))));
    local.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_sandboxes_at_once_all_come_up_and_all_are_gone_after_the_collection() {
    let place = Place::new();
    let first = Arc::new(place.backend());
    let made = join_all((0..50).map(|number| {
        let first = Arc::clone(&first);
        tokio::spawn(async move {
            let made = create(&first, &kept(&format!("many-{number}"))).await.unwrap();
            run(&made, &format!("echo {number}")).await
        })
    }));
    for (number, output) in made.await.into_iter().enumerate() {
        assert_eq!(output.unwrap(), number.to_string());
    }
    first.close().await;
    let second = place.backend();
    assert_eq!(second.list(&ListFilter::default()).await.unwrap().len(), 50);
    let report = second.collect_garbage(&GcOptions { all: true, ..GcOptions::default() }).await.unwrap();
    assert_eq!((report.removed.len(), report.failed), (50, Vec::new()));
    second.close().await;
    assert_eq!((alive_in(&place), place.left()), (Vec::new(), Vec::new()));
}
