//! What goes wrong around a container: its engine, its image, its ports and names, and whoever made it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first broken assumption")]

use std::{
    net::TcpListener,
    os::unix::net::UnixListener,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use crate::docker::{
    BUSYBOX, DEBIAN, Engine, LIMIT, OwnEngine, Place, alive, context_at, execute, refused, run, start, try_run, until,
};
use gloveport_config::Config;
use gloveport_hosting::{WaitOptions, wait_until_alive};
use gloveport_protocol::{Action, RunAction, WriteAction};
use gloveport_provider::{
    ExposedPort, GcOptions, ListFilter, Progress, ProviderError, ResourceLimits, SandboxSpec, SandboxState,
};
use gloveport_provider_docker::Docker;
use serde_json::json;
use tokio::time::timeout;

/// How long an engine may keep somebody waiting who asks it for nothing large.
const ANSWER: Duration = Duration::from_secs(45);

fn kwargs(place: &mut Place, value: serde_json::Value) {
    let serde_json::Value::Object(map) = value else { panic!("no object") };
    place.config.sandbox.docker_runtime_kwargs = Some(map.into());
}

#[tokio::test]
async fn an_engine_that_is_stopped_is_told_clearly_and_a_sandbox_goes_on_when_it_is_started_again() {
    let own = OwnEngine::with("debian");
    let place = Place::on(&own.engine);
    let backend = place.backend();
    let spec = SandboxSpec { keep_alive: true, ..place.spec("kept", DEBIAN) };
    let sandbox = start(&*backend, &spec).await;
    backend.hold(&sandbox.id).await.unwrap();
    run(&sandbox, "echo here > ~/mark").await;

    own.stop();
    assert!(try_run(&sandbox, "true").await.is_err());
    let error = backend.find(&sandbox.id).await.unwrap_err();
    let text = error.to_string();
    assert!(error.is_temporary() && text.contains("cannot be reached") && text.contains("docker.sock"), "{text}");
    let error = refused(&*backend, &place.spec("other", DEBIAN), ANSWER).await;
    assert!(error.is_temporary(), "{error}");
    let checks = backend.check().await;
    assert!(
        checks
            .iter()
            .any(|check| !check.works && check.remedy.as_ref().is_some_and(|remedy| !check.found.contains(remedy))),
        "{checks:?}"
    );

    own.start();
    let found = backend.find_session(&spec.session_id).await.unwrap().unwrap();
    assert_eq!(found.id, sandbox.id);
    assert_ne!(found.state, SandboxState::Running);
    backend.resume(&found.id).await.unwrap();
    let found = backend.find(&found.id).await.unwrap().unwrap();
    let again = alive(&*backend, found).await;
    assert_eq!(run(&again, "cat ~/mark").await, "here");
    assert!(backend.delete(&again.id).await.unwrap());
    place.assert_nothing_left();
    backend.close().await;
}

#[tokio::test]
async fn an_engine_that_is_stopped_while_sandboxes_are_made_leaves_none_behind() {
    let own = Arc::new(OwnEngine::with("busybox"));
    let place = Place::on(&own.engine);
    let backend = place.backend();
    let specs: Vec<SandboxSpec> = (0..4).map(|number| place.spec(&number.to_string(), BUSYBOX)).collect();
    let silent = Progress::silent();
    let making = futures_util::future::join_all(specs.iter().map(|spec| backend.create(spec, &silent)));
    let stopping = tokio::task::spawn_blocking({
        let own = Arc::clone(&own);
        move || {
            std::thread::sleep(Duration::from_millis(150));
            own.stop();
        }
    });
    // Whether one is made before the engine ends is chance; each answer is a sandbox or an error within the limit.
    let made = timeout(LIMIT, making).await.unwrap();
    stopping.await.unwrap();
    own.start();
    for error in made.into_iter().filter_map(Result::err) {
        assert!(!error.to_string().is_empty());
    }
    backend.close().await;
    let report = place.backend().collect_garbage(&GcOptions { all: true, dry_run: false }).await.unwrap();
    assert_eq!(report.failed, Vec::<String>::new());
    place.nothing_left_soon().await;
}

#[tokio::test]
async fn a_container_that_is_killed_has_failed_and_says_so_and_its_session_gets_another_one() {
    let place = Place::new();
    let backend = place.backend();
    let spec = place.spec("killed", DEBIAN);
    let sandbox = start(&*backend, &spec).await;
    place.engine.docker(["kill", &place.engine.container_of(&spec.session_id)]);
    let found = backend.find(&sandbox.id).await.unwrap().unwrap();
    assert!(matches!(found.state, SandboxState::Failed(_)), "{}", found.state);
    assert!(found.state.reason().contains("137") || found.state.reason().contains("killed"), "{}", found.state);
    let ended = timeout(ANSWER, try_run(&sandbox, "true")).await.unwrap();
    assert!(ended.is_err());
    let waited = wait_until_alive(&*backend, found, &WaitOptions::default(), &Progress::silent()).await;
    assert!(waited.is_err());

    let again = start(&*backend, &spec).await;
    assert_eq!(run(&again, "echo again").await, "again");
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_container_that_is_removed_by_somebody_is_gone() {
    let place = Place::new();
    let backend = place.backend();
    let spec = place.spec("removed", BUSYBOX);
    let sandbox = start(&*backend, &spec).await;
    place.engine.docker(["rm", "--force", &place.engine.container_of(&spec.session_id)]);
    assert!(backend.find(&sandbox.id).await.unwrap().is_none());
    let error = backend.pause(&sandbox.id).await.unwrap_err();
    assert!(matches!(error, ProviderError::NotFound(_)), "{error}");
    assert!(!backend.delete(&sandbox.id).await.unwrap());
    start(&*backend, &spec).await;
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_container_that_is_paused_by_somebody_is_paused_and_can_be_resumed() {
    let place = Place::new();
    let backend = place.backend();
    let spec = place.spec("paused", DEBIAN);
    let sandbox = start(&*backend, &spec).await;
    run(&sandbox, "mark=here").await;
    place.engine.docker(["pause", &place.engine.container_of(&spec.session_id)]);
    let found = backend.find(&sandbox.id).await.unwrap().unwrap();
    assert_eq!(found.state, SandboxState::Paused);
    backend.pause(&sandbox.id).await.unwrap();
    backend.resume(&sandbox.id).await.unwrap();
    let found = backend.find(&sandbox.id).await.unwrap().unwrap();
    assert_eq!((found.state.clone(), &found.url), (SandboxState::Running, &sandbox.url));
    assert_eq!(run(&alive(&*backend, found).await, "echo $mark").await, "here");
    // One that is paused is deleted all the same.
    place.engine.docker(["pause", &place.engine.container_of(&spec.session_id)]);
    assert!(backend.delete(&sandbox.id).await.unwrap());
    place.assert_nothing_left();
    backend.close().await;
}

/// A gigabyte in memory, in any shell.
const HUNGRY: &str = "tail -c 1000000000 /dev/zero | tail -n 1 | wc -c";

#[tokio::test]
async fn a_command_that_wants_too_much_memory_is_killed_and_the_sandbox_lives() {
    let place = Place::new();
    let backend = place.backend();
    let limits = ResourceLimits { memory: Some(96 << 20), ..ResourceLimits::default() };
    let sandbox = start(&*backend, &SandboxSpec { limits, ..place.spec("hungry", DEBIAN) }).await;
    let command = format!("{HUNGRY}; echo ends ${{PIPESTATUS[*]}}");
    let output = run(&sandbox, &command).await;
    assert!(output.contains("137"), "{output}");
    assert_eq!(run(&sandbox, "echo alive").await, "alive");
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_container_that_the_kernel_killed_for_its_memory_says_so() {
    let place = Place::new();
    let backend = place.backend();
    let limits = ResourceLimits { memory: Some(16 << 20), ..ResourceLimits::default() };
    // The first process of the container is the one that grows.
    let command = ["tail", "-n", "1", "/dev/zero"].map(str::to_owned).to_vec();
    let spec = SandboxSpec { limits, command: Some(command), ..place.spec("oom", BUSYBOX) };
    let made = backend.create(&spec, &Progress::silent()).await.unwrap();
    let error = wait_until_alive(&*backend, made, &WaitOptions::default(), &Progress::silent()).await.unwrap_err();
    assert!(error.to_string().contains("memory"), "{error}");
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_full_disk_is_an_error_of_the_action_and_the_sandbox_lives() {
    let mut place = Place::new();
    kwargs(&mut place, json!({"tmpfs": {"/small": "size=1m"}}));
    let backend = place.backend();
    let sandbox = start(&*backend, &place.spec("full", DEBIAN)).await;
    let output = run(&sandbox, "head -c 3000000 /dev/zero > /small/zeros; echo $?").await;
    assert!(output.contains("No space left on device") && output.ends_with('1'), "{output}");
    let error =
        execute(&sandbox, Action::Write(WriteAction::new("/small/file", "x".repeat(100_000)))).await.unwrap_err();
    assert!(error.to_string().contains("No space left on device"), "{error}");
    assert_eq!(run(&sandbox, "rm /small/zeros; echo alive").await, "alive");
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn an_image_that_cannot_be_had_is_an_error_with_its_name_and_leaves_nothing() {
    let place = Place::new();
    let backend = place.backend();
    // The name of a registry that there is not, so that no other is asked.
    let error = refused(&*backend, &place.spec("missing", "127.0.0.1:9/nobody/nothing:1"), ANSWER).await;
    let text = error.to_string();
    assert!(text.contains("127.0.0.1:9/nobody/nothing:1") && text.contains("refused"), "{text}");
    place.assert_nothing_left();
    for wrong in ["", "UPPER/case", "a b", "x:y:z"] {
        let error = refused(&*backend, &place.spec("wrong", wrong), ANSWER).await;
        assert!(error.to_string().contains(wrong), "{error}");
    }
    place.assert_nothing_left();
    backend.close().await;
}

/// An image like another one that says of itself that it is for another processor.
fn foreign_image(engine: &Engine, place: &Place, tag: &str) {
    let script = r#"
        set -e
        mkdir "$1/image" && cd "$1/image"
        docker --host "$2" save "$3" | tar -x
        config=$(sed -E 's/.*"Config":"([^"]*)".*/\1/' manifest.json)
        sed -i 's/"architecture":"amd64"/"architecture":"arm64"/' "$config"
        sed -i "s#\"RepoTags\":\[[^]]*\]#\"RepoTags\":[\"$4\"]#" manifest.json
        rm -f repositories
        tar -c . | docker --host "$2" load
    "#;
    let mut command = Command::new("bash");
    command.args(["-c", script, "bash"]).arg(place.path()).args([&engine.0, BUSYBOX, tag]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(engine.docker(["image", "inspect", "--format", "{{.Architecture}}", tag]), "arm64");
}

#[tokio::test]
async fn an_image_for_another_processor_is_refused_by_its_name_and_both_processors() {
    let place = Place::new();
    let tag = format!("gloveport-test/foreign:{}", place.prefix);
    foreign_image(&place.engine, &place, &tag);
    let backend = place.backend();
    let error = refused(&*backend, &place.spec("foreign", &tag), ANSWER).await.to_string();
    place.engine.docker(["image", "rm", &tag]);
    assert!(error.contains(&tag) && error.contains("arm64") && error.contains("amd64"), "{error}");
    place.assert_nothing_left();
    backend.close().await;
}

#[tokio::test]
async fn a_port_that_is_taken_is_an_error_with_its_number_and_leaves_nothing() {
    let place = Place::new();
    let taken = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let backend = place.backend();
    // The port of the editor is the same inside and outside.
    let ports = vec![ExposedPort { name: "vscode".to_owned(), port: Some(port) }];
    let spec = SandboxSpec { ports, ..place.spec("port", BUSYBOX) };
    let error = refused(&*backend, &spec, ANSWER).await.to_string();
    assert!(error.contains(&port.to_string()), "{error}");
    place.assert_nothing_left();
    drop(taken);
    let sandbox = start(&*backend, &spec).await;
    assert!(sandbox.urls["vscode"].ends_with(&format!(":{port}")), "{:?}", sandbox.urls);
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_name_that_a_foreign_container_has_is_an_error_and_the_container_stays_as_it_is() {
    let place = Place::new();
    let backend = place.backend();
    let spec = place.spec("name", BUSYBOX);
    let made = backend.create(&spec, &Progress::silent()).await.unwrap();
    let name = place.engine.container_of(&spec.session_id);
    backend.delete(&made.id).await.unwrap();
    place.assert_nothing_left();

    // Never started, running, and ended in both ways.
    for (command, starts) in [("true", false), ("sleep 600", true), ("true", true), ("false", true)] {
        let words = ["create", "--name", &name, BUSYBOX].into_iter().chain(command.split(' '));
        let foreign = place.engine.docker(words);
        if starts {
            place.engine.docker(["start", &name]);
        }
        if starts && command != "sleep 600" {
            place.engine.docker(["wait", &name]);
        }
        let error = refused(&*backend, &spec, ANSWER).await.to_string();
        assert!(error.contains(&name), "{error}");
        backend.collect_garbage(&GcOptions { all: true, dry_run: false }).await.unwrap();
        assert_eq!(place.engine.docker(["inspect", "--format", "{{.Id}}", &name]), foreign, "{command}");
        place.engine.docker(["rm", "--force", &name]);
    }
    place.backend().close().await;
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_create_that_is_given_up_at_any_moment_leaves_nothing() {
    let place = Place::new();
    let backend = place.backend();
    for milliseconds in (5..=400).step_by(15) {
        let spec = place.spec("given-up", BUSYBOX);
        let silent = Progress::silent();
        let made = timeout(Duration::from_millis(milliseconds), backend.create(&spec, &silent)).await;
        if let Ok(made) = made {
            // The one before may not be gone yet, and this says so; else it is there and is deleted.
            match made {
                Ok(sandbox) => assert!(backend.delete(&sandbox.id).await.unwrap()),
                Err(ProviderError::SessionExists { .. }) => {}
                Err(error) => panic!("{milliseconds} ms: {error}"),
            }
        }
    }
    place.nothing_left_soon().await;
    backend.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_sandboxes_that_are_made_at_once_are_all_alive() {
    let place = Place::new();
    let backend = place.backend();
    let began = Instant::now();
    let mut starting = tokio::task::JoinSet::new();
    for number in 0..20 {
        let (backend, spec) = (backend.clone(), place.spec(&format!("n{number}"), DEBIAN));
        starting.spawn(async move {
            let sandbox = start(&*backend, &spec).await;
            (run(&sandbox, &format!("echo I am {number}")).await, format!("I am {number}"))
        });
    }
    for (said, expected) in starting.join_all().await {
        assert_eq!(said, expected);
    }
    eprintln!("20 at once: {:?}", began.elapsed());
    let listed = backend.list(&ListFilter::default()).await.unwrap();
    let ours = listed.iter().filter(|sandbox| sandbox.session_id.as_str().starts_with(&place.prefix));
    assert_eq!(ours.count(), 20);
    backend.close().await;
    place.assert_nothing_left();
}

/// Where the backend works that is killed, and what its sessions begin with. Without it the program is no backend.
const PLACE: &str = "GLOVEPORT_TEST_PLACE";
const PREFIX: &str = "GLOVEPORT_TEST_PREFIX";

/// A backend that makes a sandbox that lives with it and one that is kept and held, and is killed then. Not a test of its own.
#[test]
fn backend() {
    let Ok(place) = std::env::var(PLACE) else { return };
    let prefix = std::env::var(PREFIX).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let backend = Docker::factory(&context_at(Path::new(&place), &Engine::shared(), Config::default())).unwrap();
        let session = |name: &str| gloveport_provider::SessionId::new(format!("{prefix}-{name}")).unwrap();
        let spec = |name: &str| SandboxSpec { image: Some(DEBIAN.to_owned()), ..SandboxSpec::new(session(name)) };
        start(&*backend, &spec("mine")).await;
        let kept = start(&*backend, &SandboxSpec { keep_alive: true, ..spec("kept") }).await;
        backend.hold(&kept.id).await.unwrap();
        println!("ready");
        std::future::pending::<()>().await;
    });
}

#[tokio::test]
async fn the_containers_of_a_backend_that_is_killed_end_by_themselves_and_kept_ones_are_garbage() {
    let place = Place::new();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "faults::backend", "--nocapture"]).env(PLACE, place.path()).env(PREFIX, &place.prefix);
    let mut killed = command.stdout(Stdio::piped()).spawn().unwrap();
    let output = killed.stdout.take().unwrap();
    let ready = tokio::task::spawn_blocking(move || {
        std::io::BufRead::lines(std::io::BufReader::new(output)).any(|line| line.unwrap().ends_with("ready"))
    });
    let ready = timeout(LIMIT, ready).await.unwrap().unwrap();
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(ready);

    // Nobody collects anything yet.
    let running = || {
        let listed = place.engine.docker(["ps", "--format", "{{.Names}}"]);
        listed.lines().filter(|name| name.contains(&place.prefix)).map(str::to_owned).collect::<Vec<_>>()
    };
    until("the container that lived with its backend has ended", || {
        !running().iter().any(|name| name.contains("mine"))
    })
    .await;
    assert_eq!(running().len(), 1, "{:?}", running());
    let backend = place.backend();
    let report = backend.collect_garbage(&GcOptions::default()).await.unwrap();
    assert_eq!(report.failed, Vec::<String>::new());
    place.assert_nothing_left();
    backend.close().await;
}

/// Containers of one machine may have the same files under the same path, in layers of their own. Nobody sees locks through them.
const THROUGH_A_LAYER: &str = r#"set -e
mount -t tmpfs none /mnt
mkdir /mnt/changes /mnt/work
mount -t overlay overlay -o "lowerdir=$HOME,upperdir=/mnt/changes,workdir=/mnt/work" "$HOME"
exec "$1" session gc --runtime docker"#;

#[tokio::test]
async fn a_backend_whose_files_are_seen_through_a_layer_is_not_taken_for_a_dead_one() {
    let place = Place::new();
    let backend = place.backend();
    let sandbox = start(&*backend, &place.spec("lives", DEBIAN)).await;
    let held = start(&*backend, &SandboxSpec { keep_alive: true, ..place.spec("held", DEBIAN) }).await;
    backend.hold(&held.id).await.unwrap();
    let mut collect = Command::new("unshare");
    collect.args(["--mount", "sh", "-c", THROUGH_A_LAYER, "sh", env!("CARGO_BIN_EXE_gloveport")]);
    collect.env_clear().envs(place.context().environment).stdin(Stdio::null());
    let done = tokio::task::spawn_blocking(move || collect.output().unwrap()).await.unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(run(&sandbox, "echo here").await, "here", "{done:?}");
    assert_eq!(run(&held, "echo here").await, "here", "{done:?}");
    backend.delete(&held.id).await.unwrap();
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn an_engine_that_accepts_and_says_nothing_is_an_error_within_a_limit() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("silent.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    // All connections are kept open, and nobody reads.
    std::thread::spawn(move || {
        let mut open = Vec::new();
        while let Ok((connection, _)) = listener.accept() {
            open.push(connection);
        }
    });
    let place = Place::on(&Engine(format!("unix://{}", socket.display())));
    let backend = place.backend();
    let spec = place.spec("silent", BUSYBOX);
    let asking = async { backend.find_session(&spec.session_id).await.map(|_| ()) };
    let listing = async { backend.list(&ListFilter::default()).await.map(|_| ()) };
    let silent = Progress::silent();
    let making = async { backend.create(&spec, &silent).await.map(|_| ()) };
    let answers = async { tokio::join!(asking, listing, making) };
    let began = Instant::now();
    let (asked, listed, made) = timeout(ANSWER, answers).await.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(1), "nobody waited");
    for answer in [asked, listed, made] {
        let error = answer.unwrap_err();
        eprintln!("{error}");
        assert!(error.is_temporary() && error.to_string().contains("silent.sock"), "{error}");
    }
    let checks = timeout(ANSWER, backend.check()).await.unwrap();
    assert!(checks.iter().any(|check| !check.works), "{checks:?}");
    timeout(ANSWER, backend.close()).await.unwrap();
}

#[tokio::test]
async fn a_file_that_is_no_socket_and_one_that_is_not_there_are_told_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file.sock"), "").unwrap();
    for name in ["file.sock", "nothing.sock"] {
        let place = Place::on(&Engine(format!("unix://{}", directory.path().join(name).display())));
        let backend = place.backend();
        let error = refused(&*backend, &place.spec("none", BUSYBOX), ANSWER).await;
        let ProviderError::Unreachable { hint, .. } = &error else { panic!("{error}") };
        assert!(!hint.is_empty() && error.to_string().contains(name), "{error}");
        backend.close().await;
    }
}

#[tokio::test]
async fn an_action_that_runs_when_its_container_is_killed_ends_with_an_error() {
    let place = Place::new();
    let backend = place.backend();
    let spec = place.spec("busy", DEBIAN);
    let sandbox = start(&*backend, &spec).await;
    let running = tokio::spawn({
        let sandbox = sandbox.clone();
        async move { execute(&sandbox, Action::Run(RunAction::new("touch /tmp/runs; sleep 600"))).await }
    });
    let name = place.engine.container_of(&spec.session_id);
    until("it runs", || place.engine.try_docker(["exec", &name, "test", "-e", "/tmp/runs"])).await;
    place.engine.docker(["kill", &name]);
    let ended = timeout(ANSWER, running).await.unwrap().unwrap();
    assert!(ended.is_err(), "{ended:?}");
    backend.close().await;
    place.assert_nothing_left();
}
