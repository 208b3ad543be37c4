//! What hardened sandboxes cannot do, seen from inside.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use crate::docker::{DEBIAN, Place, run, start, until};
use gloveport_provider::{ResourceLimits, RunAs, SandboxSpec};
use serde_json::{Value, json};

/// A place whose sandboxes have these keys.
fn with(keys: &Value) -> Place {
    let mut place = Place::new();
    place.extend(keys);
    place
}

/// What the kernel says of a process in the sandbox.
const STATUS: &str = "grep -E '^(CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t' | tr '\\n' ' '";

/// The bits of capabilities that are there.
fn capabilities(status: &str) -> u64 {
    let hex = status.split_once("CapBnd:").unwrap().1.split(' ').next().unwrap();
    u64::from_str_radix(hex, 16).unwrap()
}

#[tokio::test]
async fn the_preset_takes_what_programs_seldom_need() {
    let place = with(&json!({"harden": true}));
    let backend = place.backend();
    let sandbox = start(&*backend, &place.spec("preset", DEBIAN)).await;
    let status = run(&sandbox, STATUS).await;
    // CHOWN 0, DAC_OVERRIDE 1, FOWNER 3, FSETID 4, KILL 5, SETGID 6, SETUID 7
    assert_eq!(capabilities(&status), 0b1111_1011, "{status}");
    assert!(status.contains("NoNewPrivs:1") && status.contains("Seccomp:2"), "{status}");
    // What an agent does goes on to work.
    assert_eq!(
        run(&sandbox, "touch /root/file /workspace/file /tmp/file && chown 1000 /tmp/file && echo works").await,
        "works"
    );
    assert_eq!(run(&sandbox, "mknod /tmp/device c 1 3 2>/dev/null || echo refused").await, "refused");
    let format = "{{.HostConfig.PidsLimit}}";
    assert_eq!(place.engine.docker(["inspect", "--format", format, sandbox.id.as_str()]), "2048");
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn without_options_the_engine_decides() {
    let place = Place::new();
    let backend = place.backend();
    let sandbox = start(&*backend, &place.spec("plain", DEBIAN)).await;
    let status = run(&sandbox, STATUS).await;
    assert!(capabilities(&status) & (1 << 27) != 0, "MKNOD is there: {status}");
    assert!(status.contains("NoNewPrivs:0") && status.contains("Seccomp:2"), "{status}");
    assert_eq!(run(&sandbox, "touch /file && echo works").await, "works");
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_read_only_root_leaves_the_workspace_and_temporary_files() {
    let place = with(&json!({"read_only": true, "writable": ["/root", "/etc/apt"]}));
    let backend = place.backend();
    for user in [None, Some(RunAs { user: 4321, group: None, files_group: None })] {
        let sandbox = start(&*backend, &SandboxSpec { user, ..place.spec("read-only", DEBIAN) }).await;
        for (path, expected) in
            [("/file", "refused"), ("/usr/file", "refused"), ("/workspace/file", "works"), ("/tmp/file", "works")]
        {
            let said = run(&sandbox, &format!("touch {path} 2>/dev/null && echo works || echo refused")).await;
            assert_eq!(said, expected, "{path} {user:?}");
        }
        let made = "printf '#!/bin/sh\\necho ran' > /tmp/program && chmod +x /tmp/program && /tmp/program";
        assert_eq!(run(&sandbox, made).await, "ran");
        // A directory that was asked for begins with what the image has there.
        assert_eq!(run(&sandbox, "test -d /etc/apt/sources.list.d && echo there").await, "there");
        if user.is_none() {
            assert_eq!(run(&sandbox, "touch /root/file && echo works").await, "works");
        }
        assert!(backend.delete(&sandbox.id).await.unwrap());
        place.assert_nothing_left();
    }
    backend.close().await;
    let volumes = place.engine.docker(["volume", "ls", "--quiet", "--filter", "dangling=true"]);
    let ours = volumes.lines().filter(|name| name.contains(&place.prefix)).count();
    assert_eq!(ours, 0, "{volumes}");
}

#[tokio::test]
async fn capabilities_privileges_and_system_calls_are_as_configured() {
    let place = with(&json!({"cap_drop": ["NET_RAW", "CHOWN"], "no_new_privileges": true, "seccomp": "unconfined"}));
    let backend = place.backend();
    let sandbox = start(&*backend, &place.spec("each", DEBIAN)).await;
    let status = run(&sandbox, STATUS).await;
    assert_eq!(capabilities(&status) & (1 | 1 << 13), 0, "{status}");
    assert!(capabilities(&status) & (1 << 7) != 0, "SETUID is there: {status}");
    assert!(status.contains("NoNewPrivs:1") && status.contains("Seccomp:0"), "{status}");
    assert_eq!(run(&sandbox, "touch /tmp/f; chown 1000 /tmp/f 2>/dev/null || echo refused").await, "refused");
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_seccomp_profile_of_a_file_is_used() {
    let mut place = Place::new();
    let profile = place.path().join("profile.json");
    let text = json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{"names": ["symlink", "symlinkat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}],
    });
    std::fs::write(&profile, text.to_string()).unwrap();
    place.extend(&json!({"seccomp": profile}));
    let backend = place.backend();
    let sandbox = start(&*backend, &place.spec("profile", DEBIAN)).await;
    let said = run(&sandbox, "ln -s /etc /tmp/new 2>&1; touch /tmp/file && echo works").await;
    assert!(said.contains("Operation not permitted") && said.ends_with("works"), "{said}");
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn processes_are_limited_and_the_session_has_the_last_word() {
    let place = with(&json!({"pids_limit": 60}));
    let backend = place.backend();
    let sandbox = start(&*backend, &place.spec("pids", DEBIAN)).await;
    let forks = "perl -e 'for (1..100) { $p = fork; if (!defined $p) { print \"$!\\n\"; kill 9, @p; exit } \
                 if (!$p) { sleep 20; exit } push @p, $p } print \"all\"; kill 9, @p'";
    let said = run(&sandbox, forks).await;
    assert!(said.contains("Resource temporarily unavailable"), "{said}");
    let limits = ResourceLimits { processes: Some(500), ..ResourceLimits::default() };
    let sandbox = start(&*backend, &SandboxSpec { limits, ..place.spec("more", DEBIAN) }).await;
    let format = "{{.HostConfig.PidsLimit}}";
    assert_eq!(place.engine.docker(["inspect", "--format", format, sandbox.id.as_str()]), "500");
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn the_engine_asks_the_server_for_its_health_and_has_a_first_process_of_its_own() {
    let place = with(&json!({"health_check": 1, "init": true}));
    let backend = place.backend();
    let sandbox = start(&*backend, &place.spec("health", DEBIAN)).await;
    assert!(run(&sandbox, "tr '\\0' ' ' < /proc/1/cmdline").await.contains("init"));
    let health = || place.engine.docker(["inspect", "--format", "{{.State.Health.Status}}", sandbox.id.as_str()]);
    until("the engine says that it is healthy", || health() == "healthy").await;
    backend.close().await;
    place.assert_nothing_left();
}
