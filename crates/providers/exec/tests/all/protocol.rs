//! What a program gets: a verb, variables, and the whole request.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use crate::support::{Program, exec, spec};
use gloveport_config::Config;
use gloveport_protocol::Secret;
use gloveport_provider::{
    ExposedPort, GcOptions, ListFilter, Mount, MountSource, NetworkPolicy, Progress, Provider as _, ProviderContext,
    ProviderError, Registry, ResourceLimits, RunAs, SandboxId, SandboxSpec, SessionId, Workspace,
};
use gloveport_provider_exec::register;
use serde_json::{Value, json};

/// A program that can do everything, and keeps what it got.
const EVERYTHING: &str = r#"{"protocol": 1, "verbs": ["hold", "release", "warm", "close"], "environment": ["ENGINE_*"],
    "capabilities": {"isolation": "container", "images": true, "commands": true, "host_directories": true,
    "volumes": true, "limit_cpus": true, "limit_memory": true, "limit_disk": true, "limit_processes": true,
    "resource_factor": true, "gpus": true, "network_policy": true, "ports": true, "labels": true, "users": true,
    "runtime_classes": true, "pause": true, "logs": true, "time_to_live": true, "idle_stop": true, "keep_alive": true,
    "warm": true}}"#;

const KEEP: &str = r#"cat > "$DIR/request"; env | sort > "$DIR/environment"; tr '\0' ' ' < /proc/$$/cmdline > "$DIR/arguments"
case $1 in
create | find | find-session) echo "{\"sandbox\": $SANDBOX}" ;;
list) echo "{\"sandboxes\": [$SANDBOX]}" ;;
delete) echo '{"deleted": true}' ;;
check) echo '{"checks": [{"name": "n", "works": true, "found": "f"}]}' ;;
collect-garbage) echo '{"removed": [{"id": "x", "session_id": null, "reason": "old"}], "failed": ["y"]}' ;;
*) echo '{}' ;;
esac"#;

fn request(program: &Program) -> Value {
    let mut request: Value = serde_json::from_str(&program.file("request")).unwrap();
    let backend = request["backend"].take();
    assert_eq!(backend["pid"], std::process::id());
    assert!(backend["lock"].as_str().is_some_and(|lock| lock.ends_with(backend["id"].as_str().unwrap())), "{backend}");
    request.as_object_mut().unwrap().remove("backend");
    request
}

fn everything() -> SandboxSpec {
    let mount = |source, target: &str| Mount { source, target: target.to_owned(), read_only: true };
    SandboxSpec {
        image: Some("debian:12".to_owned()),
        command: Some(vec!["a".to_owned(), "b".to_owned()]),
        working_dir: Some("/w".to_owned()),
        environment: [("PLAIN".to_owned(), "p".to_owned())].into(),
        secrets: [("TOKEN".to_owned(), Secret::new("hunter2"))].into(),
        session_key: Some(Secret::new("the-key")),
        workspace: Workspace::Directory("/home/w".into()),
        mounts: vec![
            mount(MountSource::Directory("/a".into()), "/b"),
            mount(MountSource::Volume("v".to_owned()), "/c"),
            mount(MountSource::Overlay("/d".into()), "/e"),
        ],
        limits: ResourceLimits {
            cpus: Some(1.5),
            memory: Some(1024 * 1024 * 1024),
            disk: Some(3),
            processes: Some(4),
            factor: Some(2),
            gpus: true,
        },
        network: NetworkPolicy::Only(vec!["host:1".to_owned()]),
        ports: vec![ExposedPort { name: "web".to_owned(), port: Some(80) }],
        labels: [("l".to_owned(), "v".to_owned())].into(),
        plugins: vec!["jupyter".to_owned()],
        user: Some(RunAs { user: 1, group: Some(2), files_group: None }),
        runtime_class: Some("gvisor".to_owned()),
        time_to_live: Some(Duration::from_millis(1500)),
        idle_stop: Some(Duration::from_mins(1)),
        keep_alive: true,
        warm: false,
        ..spec()
    }
}

#[tokio::test]
async fn a_program_gets_the_whole_spec_and_secrets_only_on_its_input() {
    let program = Program::new(EVERYTHING, KEEP);
    let exec = program.start().unwrap();
    exec.create(&everything(), &Progress::silent()).await.unwrap();
    let expected = json!({
        "protocol": 1,
        "verb": "create",
        "provider": "exec:test",
        "server": {
            "program": "/opt/gloveport",
            "arguments": ["serve", "--max-memory-gb", "1"],
            "environment": {"GLOVEPORT_KEY": "the-key", "PLAIN": "p", "TOKEN": "hunter2"},
        },
        "spec": {
            "session_id": "s",
            "image": "debian:12",
            "command": ["a", "b"],
            "working_dir": "/w",
            "environment": {"PLAIN": "p"},
            "secrets": {"TOKEN": "hunter2"},
            "session_key": "the-key",
            "workspace": {"kind": "directory", "path": "/home/w"},
            "mounts": [
                {"kind": "directory", "path": "/a", "target": "/b", "read_only": true},
                {"kind": "volume", "volume": "v", "target": "/c", "read_only": true},
                {"kind": "overlay", "path": "/d", "target": "/e", "read_only": true},
            ],
            "limits": {"cpus": 1.5, "memory": 1_073_741_824, "disk": 3, "processes": 4, "factor": 2, "gpus": true},
            "network": {"mode": "only", "hosts": ["host:1"]},
            "ports": [{"name": "web", "port": 80}],
            "labels": {"l": "v"},
            "plugins": ["jupyter"],
            "user": {"user": 1, "group": 2, "files_group": null},
            "runtime_class": "gvisor",
            "time_to_live": 1.5,
            "idle_stop": 60.0,
            "keep_alive": true,
            "warm": false,
        },
    });
    assert_eq!(request(&program), expected);
    let (environment, arguments) = (program.file("environment"), program.file("arguments"));
    for secret in ["hunter2", "the-key"] {
        assert!(!environment.contains(secret) && !arguments.contains(secret));
    }
}

#[tokio::test]
async fn a_program_gets_the_plain_values_as_variables_and_of_the_backend_only_what_it_may_have() {
    let program = Program::new(EVERYTHING, KEEP);
    let mut options = program.options();
    for (name, value) in [("ENGINE_HOST", "e"), ("GLOVEPORT_PROVIDER_X", "x"), ("LANG", "C"), ("GLOVEPORT_KEY", "k")] {
        options.environment.insert(name.to_owned(), value.to_owned());
    }
    let exec = gloveport_provider_exec::Exec::start(options).unwrap();
    exec.create(&everything(), &Progress::silent()).await.unwrap();
    let environment = program.file("environment");
    let found: BTreeMap<&str, &str> = environment.lines().filter_map(|line| line.split_once('=')).collect();
    let ours = ["PWD", "OLDPWD", "SHLVL", "_", "PATH", "GLOVEPORT_BACKEND_ID", "GLOVEPORT_BACKEND_LOCK"];
    let found: Vec<(&str, &str)> = found.into_iter().filter(|(name, _)| !ours.contains(name)).collect();
    let expected = [
        ("ENGINE_HOST", "e"),
        ("GLOVEPORT_IMAGE", "debian:12"),
        ("GLOVEPORT_KEEP_ALIVE", "1"),
        ("GLOVEPORT_PROTOCOL", "1"),
        ("GLOVEPORT_PROVIDER_X", "x"),
        ("GLOVEPORT_SERVER", "/opt/gloveport"),
        ("GLOVEPORT_SESSION_ID", "s"),
        ("GLOVEPORT_TIME_TO_LIVE", "1.5"),
        ("GLOVEPORT_VERB", "create"),
        ("GLOVEPORT_WORKSPACE", "/home/w"),
        ("GLOVEPORT_WORKSPACE_KIND", "directory"),
        ("LANG", "C"),
    ];
    assert_eq!(found, expected);
}

#[tokio::test]
async fn each_method_is_one_verb_with_its_values() {
    let program = Program::new(EVERYTHING, KEEP);
    let exec = program.start().unwrap();
    let id = SandboxId::new("b").unwrap();
    let asked = |verb: &str, body: Value| {
        let mut expected = json!({"protocol": 1, "verb": verb, "provider": "exec:test"});
        expected.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        assert_eq!(request(&program), expected);
    };
    let sandbox = exec.find(&id).await.unwrap().unwrap();
    asked("find", json!({"id": "b"}));
    let session = SessionId::new("s").unwrap();
    assert_eq!(exec.find_session(&session).await.unwrap().unwrap().id, sandbox.id);
    asked("find-session", json!({"session_id": "s"}));
    let labels: BTreeMap<_, _> = [("a".to_owned(), "b".to_owned())].into();
    // The program does not look at the labels, and its sandbox has none.
    assert!(exec.list(&ListFilter { labels: labels.clone(), ended: true }).await.unwrap().is_empty());
    asked("list", json!({"labels": {"a": "b"}, "ended": true}));
    exec.pause(&id).await.unwrap();
    asked("pause", json!({"id": "b"}));
    exec.resume(&id).await.unwrap();
    asked("resume", json!({"id": "b"}));
    exec.hold(&id).await.unwrap();
    asked("hold", json!({"id": "b"}));
    exec.release(&id).await.unwrap();
    asked("release", json!({"id": "b"}));
    assert!(exec.delete(&id).await.unwrap());
    asked("delete", json!({"id": "b"}));
    let report = exec.collect_garbage(&GcOptions { all: true, dry_run: true }).await.unwrap();
    asked("collect-garbage", json!({"all": true, "dry_run": true}));
    assert_eq!((report.removed[0].reason.as_str(), report.failed), ("old", vec!["y".to_owned()]));
    assert_eq!(exec.check().await[0].found, "f");
    asked("check", json!({}));
    exec.warm(3).await.unwrap();
    let server = json!({"program": "/opt/gloveport", "arguments": ["serve"], "environment": {}});
    asked("warm", json!({"server": server, "count": 3}));
    exec.close().await;
    asked("close", json!({}));
    let closed = exec.create(&spec(), &Progress::silent()).await.unwrap_err();
    assert!(matches!(closed, ProviderError::Closed(name) if name == "exec:test"));
}

#[tokio::test]
async fn verbs_that_a_program_does_not_know_are_not_asked() {
    let (program, exec) = exec("echo \"$1\" >> $DIR/verbs; exit 1");
    let id = SandboxId::new("b").unwrap();
    exec.hold(&id).await.unwrap();
    exec.release(&id).await.unwrap();
    exec.close().await;
    for refused in [
        exec.warm(1).await,
        exec.logs(&id, gloveport_provider::LogOptions { follow: true, tail: None }).await.map(drop),
    ] {
        assert!(matches!(refused, Err(ProviderError::Unsupported { .. })), "{refused:?}");
    }
    assert_eq!(program.file("verbs"), "");
}

#[tokio::test]
async fn the_end_of_a_backend_deletes_what_it_made_and_keeps_what_is_to_be_kept() {
    let body = r#"read -r line; echo "$1 $GLOVEPORT_SANDBOX_ID" >> $DIR/verbs
case $1 in create) echo "{\"sandbox\": $SANDBOX}" | sed "s/\"b\"/\"of-$GLOVEPORT_SESSION_ID\"/; s/\"s\"/\"$GLOVEPORT_SESSION_ID\"/" ;;
delete) echo '{"deleted": true}' ;; esac"#;
    let program = Program::new(r#"{"protocol": 1, "capabilities": {"keep_alive": true}}"#, body);
    let exec = program.start().unwrap();
    for (session, keep_alive) in [("own", false), ("kept", true)] {
        let spec = SandboxSpec { keep_alive, ..SandboxSpec::new(SessionId::new(session).unwrap()) };
        exec.create(&spec, &Progress::silent()).await.unwrap();
    }
    exec.close().await;
    exec.close().await;
    assert_eq!(program.file("verbs"), "create \ncreate \ndelete of-own\n");
}

#[tokio::test]
async fn programs_are_named_by_their_path_or_found_in_path() {
    let program = Program::new(r#"{"protocol": 1, "capabilities": {"logs": true}}"#, "");
    let directory = program.directory.path();
    std::fs::copy(&program.path, directory.join("gloveport-provider-cloud")).unwrap();
    let mut registry = Registry::new();
    register(&mut registry);
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap_or_default());
    let home = directory.display().to_string();
    let context = ProviderContext {
        config: Config::default(),
        program: PathBuf::from("/opt/gloveport"),
        inside: PathBuf::from("/opt/gloveport-sandbox"),
        environment: [("PATH".to_owned(), path), ("HOME".to_owned(), home)].into(),
        argument: None,
    };
    let full = format!("exec:{}", program.path.display());
    let by_word = format!("exec:{}", directory.join("gloveport-provider-cloud").display());
    for (name, expected) in
        [(full.as_str(), full.as_str()), ("exec:gloveport-provider-cloud", &by_word), ("cloud", "cloud")]
    {
        let provider = registry.make(name, &context).unwrap();
        assert_eq!((provider.name(), provider.capabilities().logs), (expected, true));
    }
    for (name, expected) in [
        ("exec", "exec:/path/to/program"),
        ("exec:", "exec:/path/to/program"),
        ("exec:no-such-program", "cannot find in PATH no-such-program"),
        ("nobody", "Runtime nobody not supported, known are: exec"),
        ("../cloud", "not supported"),
    ] {
        let error = registry.make(name, &context).unwrap_err().to_string();
        assert!(error.contains(expected), "{name}: {error}");
    }
}
