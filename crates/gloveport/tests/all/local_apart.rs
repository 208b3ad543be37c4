//! The provider `local` where it keeps sandboxes apart from this machine. `tests/isolation` tries to get out of them.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use crate::sandboxes::{Place, alive_in, client, has_containers, run, spec, until};
use gloveport_audit::{Event, Reader, Text};
use gloveport_protocol::{
    Action, ActionEvent, ActionExecutor as _, ExecuteError, Observation, ReadAction, Secret, WriteAction,
};
use gloveport_provider::{
    Confinement, EdgeSecret, Level, NetworkChange, NetworkPolicy, Progress, Provider as _, ProviderError,
    ResourceLimits, Sandbox, SandboxSpec, Workspace,
};
use gloveport_provider_local::Local;
use gloveport_sys::amounts::Kept;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

fn apart(name: &str) -> SandboxSpec {
    let confinement = Confinement { level: Level::Files, ..Confinement::default() };
    SandboxSpec { confinement: Some(confinement), ..spec(name) }
}

fn contained(name: &str) -> SandboxSpec {
    let confinement = Confinement { level: Level::Container, ..Confinement::default() };
    SandboxSpec { confinement: Some(confinement), ..spec(name) }
}

async fn create(local: &Local, spec: &SandboxSpec) -> Result<Sandbox, ProviderError> {
    local.create(spec, &Progress::silent()).await
}

async fn act(sandbox: &Sandbox, action: Action) -> Result<Observation, ExecuteError> {
    client(sandbox).execute(&ActionEvent::from(action)).await
}

/// What clients are told who ask for a secret outside and write to it, which does nothing to it. They do write in the workspace.
#[expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]
async fn read_and_written(sandbox: &Sandbox, secret: &Path, work: &Path) -> [String; 2] {
    let path = secret.display().to_string();
    let actions = [Action::Read(ReadAction::new(&path)), Action::Write(WriteAction::new(&path, "another"))];
    let mut all = [const { String::new() }; 2];
    for (told, action) in all.iter_mut().zip(actions) {
        let done = act(sandbox, action).await;
        *told = done.map_or_else(|error| error.to_string(), |observation| format!("{observation:?}"));
        assert!(!told.contains("a secret"), "{told}");
    }
    assert_eq!(fs::read_to_string(secret).unwrap(), "a secret");
    let here = work.join("here");
    act(sandbox, Action::Write(WriteAction::new(here.display().to_string(), "words"))).await.unwrap();
    assert_eq!(fs::read_to_string(&here).unwrap(), "words\n");
    all
}

/// A command ends what it has started, and the sandbox ends with nothing left.
#[expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]
async fn ends(local: &Local, place: &Place, sandbox: &Sandbox) {
    let ended = run(sandbox, "sleep 600 & kill $! && wait $!; echo $?").await;
    assert!(ended.ends_with("143"), "{ended}");
    assert!(local.delete(&sandbox.id).await.unwrap());
    local.close().await;
    assert_eq!((alive_in(place), place.left()), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn a_sandbox_that_is_kept_apart_has_its_own_files_whoever_asks_for_others() {
    let place = Place::new();
    let (secret, work) = (place.path().join("home/secret"), place.path().join("work"));
    fs::write(&secret, "a secret").unwrap();
    let local = place.backend();
    let wanted = SandboxSpec { workspace: Workspace::Directory(work.clone()), ..apart("one") };
    let sandbox = create(&local, &wanted).await.unwrap();
    // What runs in it.
    let tried = run(&sandbox, &format!("cat {}; echo x > ../new; echo x > file; cat file", secret.display())).await;
    assert_eq!(tried.matches("Permission denied").count(), 2, "{tried}");
    assert!(tried.ends_with('x') && fs::read_to_string(work.join("file")).unwrap() == "x\n", "{tried}");
    let own = run(&sandbox, "touch ~/a $TMPDIR/b && ls ~ $TMPDIR; tty; echo error > /dev/stderr").await;
    for found in ["a", "b", "/dev/pts/", "error"] {
        assert!(own.contains(found), "{own}");
    }
    // What its server does for clients.
    for told in read_and_written(&sandbox, &secret, &work).await {
        assert!(told.contains("ermission"), "{told}");
    }
    ends(&local, &place, &sandbox).await;
    assert!(work.join("file").exists());
}

#[tokio::test]
async fn without_a_network_there_is_none_and_the_server_is_reached_all_the_same() {
    let place = Place::new();
    let local = place.backend();
    let closed = create(&local, &SandboxSpec { network: NetworkPolicy::None, ..apart("closed") }).await.unwrap();
    let port = closed.url.clone().unwrap().rsplit_once(':').unwrap().1.to_owned();
    let ask = format!("bash -c 'echo > /dev/tcp/127.0.0.1/{port}' 2>&1");
    assert!(run(&closed, &ask).await.contains("Permission denied"));
    let open = create(&local, &apart("open")).await.unwrap();
    assert_eq!(run(&open, &ask).await, "");
    local.close().await;
    assert_eq!((alive_in(&place), place.left()), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn a_killed_server_that_kept_a_sandbox_apart_leaves_no_process_and_no_file() {
    let place = Place::new();
    let local = place.backend();
    let sandbox = create(&local, &apart("one")).await.unwrap();
    let workspace = PathBuf::from(sandbox.workspace.clone().unwrap());
    run(&sandbox, "touch file; setsid -f sleep 600 >/dev/null 2>&1").await;
    assert!(workspace.starts_with(place.state()) && workspace.join("file").exists());
    servers(&place).into_iter().for_each(kill);
    until("nothing of it lives", || alive_in(&place).is_empty()).await;
    let again = create(&local, &apart("one")).await.unwrap();
    assert_eq!(run(&again, "ls").await, "");
    local.close().await;
    assert_eq!(place.left(), Vec::<String>::new());
}

/// All processes of servers in this place, each after those that started it.
fn servers(place: &Place) -> Vec<u32> {
    let line = |pid| gloveport_sys::process::command_line(pid).unwrap_or_default();
    let all = gloveport_sys::process::descendants(std::process::id());
    all.into_iter().filter(|pid| line(*pid).contains(&place.state().display().to_string())).collect()
}

fn kill(server: u32) {
    let pid = i32::try_from(server).ok().and_then(rustix::process::Pid::from_raw);
    let _ended_with_another = pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::KILL));
}

#[tokio::test]
async fn a_container_has_what_it_was_given_and_sees_nothing_else_whoever_asks() {
    if !has_containers() {
        return;
    }
    let place = Place::new();
    let (secret, work) = (place.path().join("home/secret"), place.path().join("work"));
    fs::write(&secret, "a secret").unwrap();
    let local = place.backend();
    let wanted = SandboxSpec { workspace: Workspace::Directory(work.clone()), ..contained("one") };
    let sandbox = create(&local, &wanted).await.unwrap();
    // What runs in it.
    let path = secret.display().to_string();
    let tried =
        run(&sandbox, &format!("cat {path}; pwd; echo x > file; cat file; echo y > ~/secret; cat {path}")).await;
    assert!(tried.contains("No such file") && !tried.contains("a secret"), "{tried}");
    assert!(tried.contains(&work.display().to_string()) && tried.ends_with("x\ny"), "{tried}");
    let own =
        run(&sandbox, "echo $TMPDIR; touch /tmp/b; ls -A ~ /tmp; tty; readlink /proc/1/ns/pid /proc/self/ns/pid").await;
    for found in ["/tmp", "secret", "b", "/dev/pts/0"] {
        assert!(own.contains(found), "{own}");
    }
    // What its server does for clients.
    read_and_written(&sandbox, &secret, &work).await;
    // Files are stored as whoever asked for the sandbox, not as who works in it.
    assert_eq!(fs::metadata(work.join("here")).unwrap().uid(), rustix::process::geteuid().as_raw());
    ends(&local, &place, &sandbox).await;
    assert!(work.join("file").exists());
}

#[tokio::test]
async fn a_container_without_a_network_has_its_own_and_its_ports_lead_into_it() {
    if !has_containers() {
        return;
    }
    let place = Place::new();
    let local = place.backend();
    let closed = create(&local, &SandboxSpec { network: NetworkPolicy::None, ..contained("closed") }).await.unwrap();
    let port = closed.url.clone().unwrap().rsplit_once(':').unwrap().1.to_owned();
    let ask = format!("bash -c 'echo > /dev/tcp/127.0.0.1/{port}' 2>&1");
    assert!(run(&closed, &ask).await.contains("Connection refused"));
    let interfaces = run(&closed, "grep -c : /proc/net/dev").await;
    assert_eq!(interfaces, "1", "there is more than the loopback interface");
    if run(&closed, "command -v /usr/bin/python3").await.is_empty() {
        println!("skipped the ports: there is no python3");
    } else {
        run(&closed, "echo served > file; setsid -f /usr/bin/python3 -m http.server $WORK_PORT_1 >/dev/null 2>&1")
            .await;
        let url = format!("{}/file", closed.urls["work-1"]);
        let mut text = String::new();
        for _attempt in 0..100 {
            text = match reqwest::get(&url).await {
                Ok(answer) => answer.text().await.unwrap(),
                Err(_not_yet) => String::new(),
            };
            if !text.is_empty() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        assert_eq!(text, "served\n");
        // Nobody listens on the other one, which is told at once.
        assert!(reqwest::get(&closed.urls["work-2"]).await.is_err());
    }
    let open = create(&local, &contained("open")).await.unwrap();
    assert_eq!(run(&open, &ask).await, "");
    local.close().await;
    assert_eq!((alive_in(&place), place.left()), (Vec::new(), Vec::new()));
}

/// Says this to whoever asks.
fn answer(listener: TcpListener, text: &'static str) {
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut asked = [0; 4096];
            let _whatever = stream.read(&mut asked).await;
            let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", text.len());
            let _gone = stream.write_all(format!("{head}{text}").as_bytes()).await;
        }
    });
}

/// A place for containers whose programs ask with curl; `None` where one of them cannot be had.
#[expect(clippy::print_stdout, reason = "a test that is left out says so")]
fn with_curl() -> Option<(Place, Local)> {
    let curl = std::process::Command::new("curl").arg("--version").output();
    if curl.is_err() || !has_containers() {
        println!("skipped: there is no curl, or there are no containers");
        return None;
    }
    let place = Place::new();
    let local = place.backend();
    Some((place, local))
}

#[tokio::test]
async fn a_container_reaches_the_hosts_that_were_named_through_its_gate_and_nobody_else() {
    let Some((place, local)) = with_curl() else { return };
    // Who is named, by an address of this machine, and who is not.
    let (named, other) =
        (TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let [named_port, other_port] = [&named, &other].map(|listener| listener.local_addr().unwrap().port());
    answer(named, "here it is");
    answer(other, "somebody else");
    let rules = vec![format!("127.0.0.1:{named_port}")];
    let wanted = SandboxSpec { network: NetworkPolicy::Only(rules), ..contained("one") };
    let sandbox = create(&local, &wanted).await.unwrap();
    let ask = |way: &str, port: u16| format!("curl -sS -m 10 {way} http://127.0.0.1:{port}/ 2>&1");
    // Programs do not ask the gate for this machine by themselves.
    let through = "--noproxy '' --proxy \"$HTTP_PROXY\"";
    assert_eq!(run(&sandbox, &ask(through, named_port)).await, "here it is");
    let refused = run(&sandbox, &ask(through, other_port)).await;
    assert!(refused.starts_with("gloveport:") && refused.contains("127.0.0.1"), "{refused}");
    for port in [named_port, other_port] {
        let alone = run(&sandbox, &ask("--noproxy '*'", port)).await;
        assert!(alone.contains("onnect"), "{alone}");
    }
    // The gate is closed as well, and ends with the container, as does who would start it again.
    let gates = gates();
    assert_eq!(gates.len(), 2);
    for gate in &gates {
        let status = fs::read_to_string(format!("/proc/{gate}/status")).unwrap();
        assert!(status.contains("NoNewPrivs:\t1") && status.contains("CapEff:\t0000000000000000"), "{status}");
    }
    local.close().await;
    until("the gate has ended", || gates.iter().all(|gate| gloveport_sys::process::stat(*gate).is_none())).await;
    assert_eq!((alive_in(&place), place.left()), (Vec::new(), Vec::new()));
}

/// The processes of the gates that this process has started: for each one who starts it again, and itself behind that.
fn gates() -> Vec<u32> {
    let line = |pid: &u32| gloveport_sys::process::command_line(*pid).unwrap_or_default();
    let below = gloveport_sys::process::descendants(std::process::id());
    let mut gates: Vec<u32> = below.into_iter().filter(|pid| line(pid).contains("--proxy-on-input")).collect();
    gates.sort_by_key(|pid| gloveport_sys::process::stat(*pid).map(|stat| stat.start_ticks));
    let is_first = |pid: &u32| !gloveport_sys::process::stat(*pid).is_some_and(|stat| gates.contains(&stat.parent));
    let (first, copies): (Vec<u32>, Vec<u32>) = gates.iter().partition(|pid| is_first(pid));
    first.into_iter().chain(copies).collect()
}

#[tokio::test]
async fn a_gate_that_is_killed_is_started_again_with_the_rules_that_it_had() {
    let Some((place, local)) = with_curl() else { return };
    let (named, other) =
        (TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let [named_host, other_host] = [&named, &other].map(|listener| listener.local_addr().unwrap().to_string());
    answer(named, "here it is");
    answer(other, "somebody else");
    let secret = EdgeSecret { value: Secret::new("hunter2hunter2"), hosts: vec!["a.test".to_owned()] };
    let wanted = SandboxSpec {
        network: NetworkPolicy::Only(vec![other_host.clone()]),
        edge_secrets: [("TOKEN".to_owned(), secret)].into(),
        audit: Some(place.path().join("audit.jsonl")),
        ..contained("one")
    };
    let sandbox = create(&local, &wanted).await.unwrap();
    let ask = |host: &str| format!("curl -sS -m 10 --noproxy '' --proxy \"$HTTP_PROXY\" http://{host}/ 2>&1");
    let change = NetworkChange { allow: vec![named_host.clone()], deny: vec![other_host.clone()] };
    let changed = local.network(&sandbox.id, &change).await.unwrap();
    for _ in 0..3 {
        let killed = gates();
        kill(killed[1]);
        until("there is another gate", || gates().get(1).is_some_and(|gate| *gate != killed[1])).await;
        assert_eq!(run(&sandbox, &ask(&named_host)).await, "here it is");
        assert!(run(&sandbox, &ask(&other_host)).await.starts_with("gloveport:"));
        let now = local.network(&sandbox.id, &NetworkChange::default()).await.unwrap();
        assert_eq!((&now.allowed, &now.denied), (&changed.allowed, &changed.denied));
        assert_eq!(gates()[0], killed[0]);
    }
    // All of them have added to one chain.
    assert!(recorded(&wanted.audit.unwrap()).contains(&Event::Connection { target: other_host, allowed: false }));
    // Nobody starts one again without who does.
    kill(gates()[0]);
    until("the gate has ended", || gates().is_empty()).await;
    assert!(run(&sandbox, &ask(&named_host)).await.contains("curl:"));
    local.close().await;
    assert_eq!((alive_in(&place), place.left()), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn of_a_container_that_loses_its_keeper_or_its_first_process_nothing_lives() {
    if !has_containers() {
        return;
    }
    for victim in [0, 1] {
        let place = Place::new();
        let local = place.backend();
        let sandbox = create(&local, &contained("one")).await.unwrap();
        run(&sandbox, "touch file; setsid -f sleep 600 >/dev/null 2>&1; trap '' TERM HUP; (trap '' TERM; sleep 600) &")
            .await;
        kill(servers(&place)[victim]);
        until("nothing of it lives", || alive_in(&place).is_empty()).await;
        let again = create(&local, &contained("one")).await.unwrap();
        assert_eq!(run(&again, "ls").await, "");
        local.close().await;
        assert_eq!(place.left(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn what_a_level_cannot_have_is_refused_and_nothing_is_made() {
    let place = Place::new();
    let local = place.backend();
    let (home, state) = (place.path().join("home"), place.state());
    fs::create_dir_all(&state).unwrap();
    let with = |read: Vec<PathBuf>, write: Vec<PathBuf>| SandboxSpec {
        confinement: Some(Confinement { level: Level::Files, read, write, ..Confinement::default() }),
        ..spec("s")
    };
    let inside = |path: &str| {
        let confinement = Confinement { level: Level::Container, read: vec![path.into()], ..Confinement::default() };
        SandboxSpec { confinement: Some(confinement), ..spec("s") }
    };
    let nothing_kept = Confinement { read: vec![home.clone()], ..Confinement::default() };
    for (wanted, expected) in [
        (SandboxSpec { workspace: Workspace::Directory(home.clone()), ..apart("s") }, "your home directory"),
        (SandboxSpec { workspace: Workspace::Directory("/".into()), ..apart("s") }, "your home directory"),
        (with(vec![state.clone()], vec![]), "the keys of other sandboxes"),
        (with(vec![place.path().to_owned()], vec![]), "the keys of other sandboxes"),
        (with(vec![], vec![home.clone()]), "your home directory"),
        (with(vec!["/there/is/none".into()], vec![]), "No such file"),
        (SandboxSpec { network: NetworkPolicy::Only(vec!["a.test".to_owned()]), ..apart("s") }, "`full` or `none`"),
        (SandboxSpec { confinement: Some(nothing_kept), ..spec("s") }, "choose a level"),
        (SandboxSpec { workspace: Workspace::Directory(home.clone()), ..contained("s") }, "your home directory"),
        (SandboxSpec { network: NetworkPolicy::Only(vec!["a b".to_owned()]), ..contained("s") }, "network"),
        (inside("/dev/shm"), "its own /dev"),
        (inside("/proc/self"), "its own /proc"),
    ] {
        let error = create(&local, &wanted).await.unwrap_err();
        assert!(matches!(error, ProviderError::Spec { .. }) && error.to_string().contains(expected), "{error}");
    }
    let closed = SandboxSpec { network: NetworkPolicy::None, ..spec("s") };
    assert!(matches!(create(&local, &closed).await, Err(ProviderError::Unsupported { .. })));
    local.close().await;
    assert_eq!((alive_in(&place), place.left()), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn where_nobody_chooses_the_strongest_level_that_can_be_had_is_taken_and_what_was_asked_for_is_kept() {
    let place = Place::new();
    let local = place.backend();
    let strongest = |spec| SandboxSpec { confinement: Some(Confinement::strongest()), ..spec };
    // A container has a /dev of its own.
    let shared = tempfile::tempdir_in("/dev/shm").unwrap();
    let in_memory = |spec| SandboxSpec { workspace: Workspace::Directory(shared.path().to_owned()), ..spec };
    let labels: &[(SandboxSpec, &str)] = &[
        (strongest(spec("one")), if has_containers() { "container" } else { "files" }),
        (strongest(in_memory(spec("two"))), "files"),
        (SandboxSpec { confinement: Some(Confinement::default()), ..spec("three") }, "none"),
    ];
    for (wanted, level) in labels {
        let made = create(&local, wanted).await.unwrap();
        assert_eq!(made.labels.get(Level::LABEL).map(String::as_str), Some(*level));
        assert_eq!(local.find(&made.id).await.unwrap().unwrap().labels, made.labels);
    }
    assert_eq!(create(&local, &spec("four")).await.unwrap().labels.get(Level::LABEL), None);
    // What only the stronger one does is not left out, and the person's own choice is not weakened.
    let hosts = SandboxSpec { network: NetworkPolicy::Only(vec!["a.test".to_owned()]), ..spec("five") };
    for wanted in [strongest(in_memory(hosts)), in_memory(contained("six"))] {
        let error = create(&local, &wanted).await.unwrap_err().to_string();
        assert!(error.contains("its own /dev"), "{error}");
    }
    local.close().await;
    assert_eq!((alive_in(&place), place.left()), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn a_secret_for_some_hosts_is_a_placeholder_in_the_sandbox_and_refused_where_it_cannot_be_put_in() {
    const VALUE: &str = "a secret of eight bytes and more";
    let place = Place::new();
    let local = place.backend();
    let with = |spec: SandboxSpec, value: &str, host: &str| {
        let secret = EdgeSecret { value: Secret::new(value), hosts: vec![host.to_owned()] };
        SandboxSpec { edge_secrets: [("TOKEN".to_owned(), secret)].into(), ..spec }
    };
    let closed = SandboxSpec { network: NetworkPolicy::None, ..contained("s") };
    for (wanted, expected) in [
        (with(spec("s"), VALUE, "a.test"), "a secret for some hosts"),
        (with(apart("s"), VALUE, "a.test"), "a secret for some hosts"),
        (with(contained("s"), "short", "a.test"), "at least 8 bytes"),
        (with(contained("s"), "two\nlines, both long", "a.test"), "one line"),
        (with(contained("s"), VALUE, "a b"), "says no host"),
        (with(closed, VALUE, "a.test"), "there is no way"),
    ] {
        let error = create(&local, &wanted).await.unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains(VALUE), "{error}");
    }
    if has_containers() {
        let (listener, file) =
            (TcpListener::bind("127.0.0.1:0").await.unwrap(), "/run/gloveport/trust/certificates.pem");
        let port = listener.local_addr().unwrap().port();
        let network = NetworkPolicy::Only(vec![format!("127.0.0.1:{port}")]);
        let wanted = with(SandboxSpec { network, ..contained("one") }, VALUE, "a.test");
        let sandbox = create(&local, &wanted).await.unwrap();
        let told = run(&sandbox, "echo $TOKEN $SSL_CERT_FILE $NODE_EXTRA_CA_CERTS").await;
        let words: Vec<&str> = told.split(' ').collect();
        assert!(words[0].starts_with("gloveport-secret-") && words[1] == file, "{told}");
        assert!(
            run(&sandbox, &format!("tail -n 1 {file}; cat $NODE_EXTRA_CA_CERTS")).await.contains("END CERTIFICATE")
        );
        assert!(run(&sandbox, &format!("echo x >> {file}; rm {file}")).await.contains("Read-only"));
        let seen = run(&sandbox, "env; tr '\\0' '\\n' < /proc/1/environ; cat /proc/1/cmdline /proc/1/maps").await;
        assert!(seen.contains("TOKEN=") && !seen.contains(VALUE), "{seen}");
    }
    local.close().await;
    assert_eq!((alive_in(&place), place.left()), (Vec::new(), Vec::new()));
}

/// What a log holds, as it was written.
#[expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]
fn recorded(log: &Path) -> Vec<Event> {
    Reader::open(log).unwrap().map(|record| record.unwrap().event).collect()
}

#[tokio::test]
async fn what_a_sandbox_does_is_recorded_where_it_does_not_reach_and_changes_are_seen() {
    const VALUE: &str = "hunter2hunter2";
    let place = Place::new();
    let local = place.backend();
    let log = place.path().join("home/audit.jsonl");
    let audited = |spec: SandboxSpec| SandboxSpec {
        audit: Some(log.clone()),
        secrets: [("TOKEN".to_owned(), Secret::new(VALUE))].into(),
        ..spec
    };
    let contained = has_containers().then(|| contained("two"));
    for wanted in [apart("one")].into_iter().chain(contained) {
        let sandbox = create(&local, &audited(wanted)).await.unwrap();
        assert_eq!(sandbox.labels.get("gloveport.audit"), Some(&log.display().to_string()));
        run(&sandbox, &format!("echo {VALUE} | wc -c; (exit 3)")).await;
        let path = log.display();
        let tries = format!("cat {path}; echo x >> {path}; rm -f {path}; mv {path} x");
        let told = run(&sandbox, &format!("({tries}) 2>&1 </dev/null")).await;
        assert!(!told.contains("\"previous\""), "{told}");
        let open = "ls -l /proc/[0-9]*/fd /proc/[0-9]*/task/*/fd 2>/dev/null | grep -c audit.jsonl";
        assert_eq!(run(&sandbox, open).await, "0");
        let file = format!("{}/written", run(&sandbox, "pwd").await);
        act(&sandbox, Action::Write(WriteAction::new(&file, "words"))).await.unwrap();
        local.delete(&sandbox.id).await.unwrap();
        let events = recorded(&log);
        let all = format!("{events:?}");
        assert!(matches!(&events[0], Event::Started { network, .. } if *network == ["full"]), "{all}");
        let masked = Text::new("echo <secret TOKEN> | wc -c; (exit 3)");
        let command = events.iter().find_map(|event| match event {
            Event::Command { command, text } if *text == masked => Some(*command),
            _ => None,
        });
        let ended = Event::CommandEnded { command: command.unwrap(), status: 3 };
        assert!(events.contains(&ended) && !all.contains(VALUE), "{all}");
        assert!(events.contains(&Event::Wrote { path: Text::new(&file), bytes: 6 }), "{all}");
        assert!(events.iter().any(|event| matches!(event, Event::Program { .. })), "{all}");
    }
    // Both are in one chain, and whatever is done to it is seen.
    let text = fs::read_to_string(&log).unwrap();
    let starts = recorded(&log).iter().filter(|event| matches!(event, Event::Started { .. })).count();
    assert_eq!(starts, if has_containers() { 2 } else { 1 });
    fs::write(&log, text.replacen("exit 3", "exit 0", 1)).unwrap();
    assert!(Reader::open(&log).unwrap().any(|record| record.is_err()));
    // The last line is whole, so a log goes on; where there is none, nothing is made.
    let (work, other) = (place.path().join("work"), place.path().join("home/other"));
    fs::create_dir(&work).unwrap();
    fs::write(&other, "words").unwrap();
    let at = |spec: SandboxSpec, log: &Path| SandboxSpec { audit: Some(log.to_owned()), ..spec };
    let working = SandboxSpec { workspace: Workspace::Directory(work.clone()), ..apart("s") };
    for (wanted, expected) in [
        (at(spec("s"), &log), "kept from nothing"),
        (at(working, &work.join("log")), "could change it"),
        (at(apart("s"), &other), "no record of an audit log"),
        (at(apart("s"), &work), "Is a directory"),
        (at(apart("s"), &work.join("none/log")), "cannot be entered"),
    ] {
        let error = create(&local, &wanted).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!((fs::read_to_string(&other).unwrap(), fs::read_dir(&work).unwrap().count()), ("words".to_owned(), 0));
    local.close().await;
    assert_eq!((alive_in(&place), place.left()), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn whom_a_running_container_reaches_is_changed_and_told() {
    let Some((place, local)) = with_curl() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    answer(listener, "here it is");
    let network = NetworkPolicy::Only(vec!["a.test".to_owned()]);
    let audit = Some(place.path().join("audit.jsonl"));
    let sandbox = create(&local, &SandboxSpec { network, audit: audit.clone(), ..contained("one") }).await.unwrap();
    let ask = format!("curl -sS -m 10 --noproxy '' --proxy \"$HTTP_PROXY\" http://{host}/ 2>&1");
    let change = |allow: &[&str], deny: &[&str]| {
        let [allow, deny] = [allow, deny].map(|rules| rules.iter().map(|rule| (*rule).to_owned()).collect());
        NetworkChange { allow, deny }
    };
    assert!(run(&sandbox, &ask).await.starts_with("gloveport:"));
    let state = local.network(&sandbox.id, &change(&[&host], &[])).await.unwrap();
    assert_eq!(state.allowed, ["a.test", &host]);
    assert_eq!(run(&sandbox, &ask).await, "here it is");
    let state = local.network(&sandbox.id, &change(&["0.0.0.0/0"], &["127.0.0.0/8"])).await.unwrap();
    assert_eq!((state.allowed.len(), state.denied), (3, vec!["127.0.0.0/8".to_owned()]));
    assert!(run(&sandbox, &ask).await.starts_with("gloveport:"));
    let asked = local.network(&sandbox.id, &NetworkChange::default()).await.unwrap().asked;
    assert_eq!((asked.len(), &asked[0].target, asked[0].times, asked[0].allowed), (1, &host, 3, false));
    let known = recorded(audit.as_deref().unwrap());
    for event in [
        Event::Connection { target: host.clone(), allowed: false },
        Event::Network { allow: vec![host.clone()], deny: Vec::new() },
        Event::Connection { target: host.clone(), allowed: true },
    ] {
        assert!(known.contains(&event), "{event:?} {known:?}");
    }
    let wrong = local.network(&sandbox.id, &change(&["b.test", "a b"], &[])).await.unwrap_err().to_string();
    assert!(wrong.contains("`a b` says no host"), "{wrong}");
    // Nothing of that has changed, and there is nothing to change where there is no gate.
    assert_eq!(local.network(&sandbox.id, &NetworkChange::default()).await.unwrap().allowed.len(), 3);
    let open = create(&local, &contained("open")).await.unwrap();
    for id in [&open.id, &gloveport_provider::SandboxId::new("none").unwrap()] {
        local.network(id, &NetworkChange::default()).await.unwrap_err();
    }
    local.close().await;
    assert_eq!((alive_in(&place), place.left()), (Vec::new(), Vec::new()));
}

/// Where no control group is this user's, each process has limits of its own.
#[tokio::test]
async fn limits_of_a_container_hold_and_one_that_nobody_keeps_is_refused() {
    let place = Place::new();
    let local = place.backend();
    if !has_containers() {
        println!("skipped: there are no containers");
        return;
    }
    let kept = Kept::here();
    let limits = ResourceLimits { memory: Some(128 << 20), processes: Some(60), ..ResourceLimits::default() };
    let sandbox = create(&local, &SandboxSpec { limits: limits.clone(), ..contained("a") }).await.unwrap();
    let got = run(&sandbox, "head -c 600000000 /dev/zero | tail -n 1 | wc -c; echo after").await;
    assert!(!got.contains("600000000") && got.ends_with("after"), "{got}");
    let got = run(&sandbox, "bash -c 'for i in $(seq 200); do sleep 5 & done; jobs -r | wc -l' 2>/dev/null").await;
    let started: u32 = got.lines().last().and_then(|line| line.trim().parse().ok()).unwrap_or(0);
    assert!(started < 100, "{got}");
    if kept.memory {
        let got =
            run(&sandbox, "head -c 300000000 /dev/zero >/dev/shm/file; stat -c %s /dev/shm/file; rm /dev/shm/file")
                .await;
        assert!(!got.contains("300000000"), "{got}");
    }
    local.delete(&sandbox.id).await.unwrap();

    let with_processors = ResourceLimits { cpus: Some(0.25), ..limits };
    let made = create(&local, &SandboxSpec { limits: with_processors.clone(), ..contained("b") }).await;
    if kept.processors {
        let sandbox = made.unwrap();
        let got = run(&sandbox, "timeout 2 bash -c 'while :; do :; done'; times | tail -n 1").await;
        assert!(got.contains("0m0."), "{got}");
        local.delete(&sandbox.id).await.unwrap();
    } else {
        let error = made.unwrap_err().to_string();
        assert!(error.contains("a limit on processors") && error.contains("systemd-run"), "{error}");
    }
    let elsewhere =
        create(&local, &SandboxSpec { limits: with_processors, ..apart("c") }).await.unwrap_err().to_string();
    assert!(elsewhere.contains("--isolation container"), "{elsewhere}");
    local.close().await;
    assert_eq!((alive_in(&place), place.left()), (Vec::new(), Vec::new()));
}
