//! What a sandbox is from inside: in any image, with its volumes, limits, ports and variables.

use std::fs;

use crate::docker::{BARE, BUSYBOX, DEBIAN, PYTHON, Place, USER, get, read, run, start, until, write};
use gloveport_protocol::{Observation, Secret};
use gloveport_provider::{ExposedPort, ListFilter, Mount, MountSource, ResourceLimits, RunAs, SandboxSpec, Workspace};
use serde_json::json;

#[tokio::test]
async fn files_work_in_every_image_and_commands_in_each_that_has_a_shell() {
    let place = Place::new();
    let backend = place.backend();
    for (name, image, user) in [
        ("debian", DEBIAN, Some("0")),
        ("busybox", BUSYBOX, Some("0")),
        ("bare", BARE, None),
        ("user", USER, Some("1234")),
        ("python", PYTHON, Some("0")),
    ] {
        let sandbox = start(&*backend, &place.spec(name, image)).await;
        assert_eq!(sandbox.image.as_deref(), Some(image));
        let written = write(&sandbox, "/tmp/file", "one\ntwo").await;
        assert!(matches!(written, Observation::Write(_)), "{name}: {written:?}");
        assert_eq!(read(&sandbox, "/tmp/file").await.trim_end(), "one\ntwo", "{name}");
        let said = run(&sandbox, "x=$(id -u); cd /tmp; echo $x $(wc -l < file)").await;
        match user {
            Some(user) => assert_eq!(said.trim(), format!("{user} 2"), "{name}"),
            None => assert!(said.contains("no shell"), "{name}: {said}"),
        }
        backend.delete(&sandbox.id).await.unwrap();
    }
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn the_user_of_the_spec_is_the_user_of_commands_and_files() {
    let place = Place::new();
    let backend = place.backend();
    let user = Some(RunAs { user: 4321, group: Some(8765), files_group: None });
    let sandbox = start(&*backend, &SandboxSpec { user, ..place.spec("user", DEBIAN) }).await;
    assert_eq!(run(&sandbox, "id -u; id -g").await, "4321\n8765");
    write(&sandbox, "/tmp/file", "x").await;
    assert_eq!(run(&sandbox, "stat -c %u:%g /tmp/file").await, "4321:8765");
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_binary_that_is_copied_into_the_engine_works_in_every_image_and_is_copied_once() {
    let mut place = Place::new();
    place.extend(&json!({"binary": "copy"}));
    let backend = place.backend();
    for image in [DEBIAN, BUSYBOX, USER, BARE] {
        let spec = place.spec("copied", image);
        let sandbox = start(&*backend, &spec).await;
        let name = place.engine.container_of(&spec.session_id);
        let binds = place.engine.docker(["inspect", "--format", "{{json .HostConfig.Binds}}", &name]);
        assert!(!binds.contains(env!("CARGO_BIN_EXE_gloveport")), "{binds}");
        write(&sandbox, "/tmp/file", "copied").await;
        assert_eq!(read(&sandbox, "/tmp/file").await.trim_end(), "copied", "{image}");
        backend.delete(&sandbox.id).await.unwrap();
    }
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn directories_of_the_host_are_there_and_one_that_is_read_only_cannot_be_written() {
    let mut place = Place::new();
    let overlays = place.directory("overlays");
    place.variables.insert("SANDBOX_VOLUME_OVERLAYS".to_owned(), overlays.display().to_string());
    let (open, closed, layered) = (place.directory("open"), place.directory("closed"), place.directory("layered"));
    fs::write(closed.join("file"), "closed").unwrap();
    fs::write(layered.join("file"), "lower\n").unwrap();
    let mount = |source, target: &str, read_only| Mount { source, target: target.to_owned(), read_only };
    let mounts = vec![
        mount(MountSource::Directory(open.clone()), "/mnt/open", false),
        mount(MountSource::Directory(closed.clone()), "/mnt/closed", true),
        mount(MountSource::Overlay(layered.clone()), "/mnt/layered", false),
    ];
    let backend = place.backend();
    let sandbox = start(&*backend, &SandboxSpec { mounts, ..place.spec("mounts", DEBIAN) }).await;
    assert_eq!(run(&sandbox, "echo from inside > /mnt/open/file; cat /mnt/closed/file").await, "closed");
    assert_eq!(fs::read_to_string(open.join("file")).unwrap(), "from inside\n");
    let refused = run(&sandbox, "echo x > /mnt/closed/file").await;
    assert!(refused.contains("Read-only file system"), "{refused}");
    assert_eq!(
        run(&sandbox, "cat /mnt/layered/file; echo upper > /mnt/layered/file; cat /mnt/layered/file").await,
        "lower\nupper"
    );
    assert_eq!(fs::read_to_string(layered.join("file")).unwrap(), "lower\n");
    backend.close().await;
    place.assert_nothing_left();
    assert_eq!(fs::read_to_string(closed.join("file")).unwrap(), "closed");
    assert_eq!(fs::read_dir(overlays).unwrap().count(), 0);
}

#[tokio::test]
async fn a_workspace_is_where_the_spec_says_and_a_named_volume_outlives_its_sandbox() {
    let place = Place::new();
    let volume = format!("{}-volume", place.prefix);
    let shared = place.directory("shared");
    fs::write(shared.join("mark"), "host").unwrap();
    let backend = place.backend();
    let on_host = SandboxSpec { workspace: Workspace::Directory(shared.clone()), ..place.spec("host", DEBIAN) };
    let sandbox = start(&*backend, &on_host).await;
    assert_eq!(run(&sandbox, "cat mark; echo inside > other").await, "host");
    assert_eq!(fs::read_to_string(shared.join("other")).unwrap(), "inside\n");
    for expected in ["", "first"] {
        let workspace = Workspace::Volume(volume.clone());
        let sandbox = start(&*backend, &SandboxSpec { workspace, ..place.spec("volume", DEBIAN) }).await;
        assert_eq!(run(&sandbox, "cat mark 2>/dev/null; echo first > mark").await, expected);
        backend.delete(&sandbox.id).await.unwrap();
    }
    backend.close().await;
    place.engine.docker(["volume", "rm", &volume]);
    place.assert_nothing_left();
}

#[tokio::test]
async fn limits_hold_inside() {
    let place = Place::new();
    let backend = place.backend();
    let limits =
        ResourceLimits { cpus: Some(0.5), memory: Some(200 << 20), processes: Some(64), ..ResourceLimits::default() };
    let spec = SandboxSpec { limits, ..place.spec("limits", DEBIAN) };
    let sandbox = start(&*backend, &spec).await;
    // The same files have other names in the two versions of control groups.
    let file = async |old: &str, new: &str| {
        run(&sandbox, &format!("cat /sys/fs/cgroup/{old} 2>/dev/null || cat /sys/fs/cgroup/{new}")).await
    };
    assert_eq!(file("memory/memory.limit_in_bytes", "memory.max").await, (200 << 20).to_string());
    assert_eq!(file("pids/pids.max", "pids.max").await, "64");
    let quota = file("cpu/cpu.cfs_quota_us", "cpu.max").await;
    assert!(quota.starts_with("50000"), "{quota}");
    let forks =
        r#"for (1..100) { $p = fork; unless (defined $p) { $e = "$!"; last } $p or sleep 20, exit; push @p, $p }"#;
    let said = run(&sandbox, &format!("perl -e '{forks} kill 9, @p; print $e'")).await;
    assert_eq!(said, "Resource temporarily unavailable");
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn variables_secrets_labels_and_ports_are_those_of_the_spec() {
    let place = Place::new();
    let backend = place.backend();
    let label = ("example.com/team".to_owned(), "blue sky".to_owned());
    let spec = SandboxSpec {
        environment: [("PLAIN".to_owned(), "a b$c\n'd'".to_owned())].into(),
        secrets: [("TOKEN".to_owned(), Secret::new("s3cr3t-value"))].into(),
        labels: [label.clone()].into(),
        ports: vec![
            ExposedPort { name: "web".to_owned(), port: Some(8080) },
            ExposedPort { name: "any".to_owned(), port: None },
        ],
        ..place.spec("spec", PYTHON)
    };
    let sandbox = start(&*backend, &spec).await;
    assert_eq!(run(&sandbox, "printf %s \"$PLAIN/$TOKEN\"").await, "a b$c\n'd'/s3cr3t-value");
    let name = place.engine.container_of(&spec.session_id);
    let described = place.engine.docker(["inspect", &name]);
    assert!(described.contains("blue sky") && !described.contains("s3cr3t-value"), "{described}");
    let listed = backend.list(&ListFilter { labels: [label].into(), ended: false }).await.unwrap();
    assert_eq!(listed.iter().map(|sandbox| &sandbox.session_id).collect::<Vec<_>>(), [&spec.session_id]);

    assert_eq!(sandbox.ports["web"], 8080);
    run(&sandbox, "mkdir -p /tmp/www; echo hello > /tmp/www/file").await;
    for port in ["web", "any"] {
        let serve = format!("python3 -m http.server {} --directory /tmp/www >/dev/null 2>&1 &", sandbox.ports[port]);
        run(&sandbox, &serve).await;
        let url = format!("{}/file", sandbox.urls[port].trim_end_matches('/'));
        until(&url, || get(&url).is_some_and(|body| body == "hello\n")).await;
    }
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_session_of_the_command_line_gets_its_secret_and_nobody_else_sees_it() {
    let place = Place::new();
    let session = place.session("secret");
    let gloveport = |words: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_gloveport"));
        command.arg("session").args(words).env("HOME", place.path()).env("XDG_STATE_HOME", place.path().join("state"));
        command.env("DOCKER_HOST", &place.engine.0).env("TOKEN", "s3cr3t-value").stdin(std::process::Stdio::null());
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let words = ["start", "--runtime", "docker", "--image", PYTHON, "--id", session.as_str(), "--secret", "TOKEN"];
    let (code, _, complaint) = gloveport(&words);
    assert_eq!(code, Some(0), "{complaint}");
    let printed = gloveport(&["exec", session.as_str(), "printf %s \"$TOKEN\" | rev; echo \"$TOKEN\""]);
    let name = place.engine.container_of(&session);
    let described = place.engine.docker(["inspect", &name]);
    let events = gloveport(&["events", session.as_str()]);
    let removed = gloveport(&["rm", "-f", session.as_str()]);
    assert!(printed.1.starts_with("eulav-t3rc3s"), "{printed:?}");
    assert!(!described.contains("s3cr3t-value") && !events.1.contains("s3cr3t-value"), "{described} {events:?}");
    assert_eq!(removed.0, Some(0), "{removed:?}");
    place.assert_nothing_left();
}

#[tokio::test]
async fn nothing_of_the_entrypoint_or_the_command_of_an_image_runs() {
    let place = Place::new();
    let backend = place.backend();
    let sandbox = start(&*backend, &place.spec("entrypoint", USER)).await;
    let name = place.engine.container_of(&place.session("entrypoint"));
    let first = place.engine.docker(["inspect", "--format", "{{.Path}} {{.Args}}", &name]);
    assert!(!first.contains("/bin/false"), "{first}");
    assert_eq!(run(&sandbox, "echo runs").await, "runs");
    backend.close().await;
    place.assert_nothing_left();
}
