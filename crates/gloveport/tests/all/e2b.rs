//! The runtime `e2b` with our real server in its sandboxes, against a service on this machine that gives each sandbox files and
//! processes of its own.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use gloveport_protocol::Secret;
use gloveport_provider::Provider;
use gloveport_provider_conformance::{Make, Options, Verdict};
use gloveport_provider_e2b::{E2b, E2bOptions, Traffic};

use crate::{
    standin::{KEY, StandIn},
    support::{gloveport, text},
};

/// Whether sandboxes can be kept apart; told where they cannot.
fn can_be_apart() -> bool {
    let made = Command::new("unshare").args(["--mount", "--pid", "--fork", "true"]).status();
    let can = made.is_ok_and(|status| status.success());
    if !can {
        eprintln!("skipped: sandboxes of the stand-in need root and `unshare`");
    }
    can
}

/// Our program as it is uploaded: without what only debuggers read, which is most of a build for tests.
fn program(directory: &Path) -> PathBuf {
    let (own, small) = (PathBuf::from(env!("CARGO_BIN_EXE_gloveport")), directory.join("gloveport"));
    let stripped = Command::new("strip").arg("-o").arg(&small).arg(&own).status();
    if stripped.is_ok_and(|status| status.success()) { small } else { own }
}

fn options(service: &StandIn, home: &Path) -> E2bOptions {
    E2bOptions {
        key: Some(Secret::new(KEY)),
        api_url: service.url.clone(),
        domain: "sandboxes.test".to_owned(),
        sandbox_url: Some(service.url.clone()),
        template: "base".to_owned(),
        templates: [].into(),
        user: "root".to_owned(),
        directory: "/opt/gloveport-test".to_owned(),
        workspace: Some("/gloveport-test-workspace".to_owned()),
        // They share a network.
        port: None,
        traffic: Traffic::Private,
        time_limit: Duration::from_mins(15),
        answer_within: Duration::from_secs(60),
        program: program(home),
        backends: home.join("backends"),
    }
}

async fn passes(groups: &[&str], skipped: &[&str]) {
    if !can_be_apart() {
        return;
    }
    let (service, home) = (StandIn::apart().await, tempfile::tempdir().unwrap());
    let options = options(&service, home.path());
    let make: Make = Arc::new(move || Ok(Arc::new(E2b::new(options.clone())) as Arc<dyn Provider>));
    let wanted =
        Options { only: groups.iter().map(|group| (*group).to_owned()).collect(), at_once: 4, ..Options::default() };
    let report = gloveport_provider_conformance::run(&make, &wanted, |_| {}).await.unwrap();
    assert_eq!(report.counts().failed, 0, "{}", report.text());
    let is_skipped = |verdict: &Verdict| matches!(verdict, Verdict::Skip { .. });
    let found: Vec<&str> =
        report.results.iter().filter(|result| is_skipped(&result.verdict)).map(|result| result.id.as_str()).collect();
    assert_eq!(found, skipped, "{}", report.text());
    assert!(report.counts().passed > 0 && service.ids().is_empty(), "{:?}", service.ids());
    assert!(service.snapshots().is_empty(), "{:?}", service.snapshots());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_e2b_passes_the_checks_of_life() {
    passes(&["life/"], &["life/workspace-directory"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_e2b_passes_the_checks_of_lists() {
    passes(&["found/"], &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_e2b_passes_the_checks_of_specs() {
    passes(&["specs/", "waits/"], &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_e2b_passes_the_checks_of_ends() {
    passes(&["ends/"], &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_e2b_passes_the_checks_of_garbage() {
    passes(&["garbage/"], &["garbage/orphan", "garbage/backend-died"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_e2b_passes_the_checks_of_options() {
    passes(&["optional/"], &["optional/memory", "optional/processes", "optional/ports", "optional/warm"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_use_a_hosted_sandbox_as_any_other() {
    if !can_be_apart() {
        return;
    }
    let (service, home) = (StandIn::apart().await, tempfile::tempdir().unwrap());
    let key_file = home.path().join("key");
    fs::write(&key_file, format!("{KEY}\n")).unwrap();
    let config = format!(
        "[extended.e2b]\napi_key_file = \"{}\"\napi_url = \"{}\"\nport = 0\ndirectory = \"/opt/gloveport-test\"\n\
         workspace = \"/gloveport-test-workspace\"\n",
        key_file.display(),
        service.url
    );
    fs::write(home.path().join("config.toml"), config).unwrap();
    let run = async |arguments: &[&str]| {
        let mut command = gloveport(home.path());
        command.current_dir(home.path()).env("XDG_STATE_HOME", home.path()).env_remove("XDG_RUNTIME_DIR");
        command.env_remove("E2B_API_KEY").args(arguments);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let checked = run(&["provider", "ls", "e2b"]).await;
    assert!(checked.contains("works") && checked.contains("the key is accepted"), "{checked}");
    assert!(!checked.contains(KEY), "{checked}");
    run(&["session", "start", "--runtime", "e2b", "--id", "s1"]).await;
    assert_eq!(run(&["session", "exec", "s1", "echo $((6 * 7)) && pwd"]).await, "42\n/gloveport-test-workspace\n");
    run(&["session", "pause", "s1"]).await;
    assert!(run(&["session", "ls"]).await.contains("paused"));
    run(&["session", "resume", "s1"]).await;
    assert_eq!(run(&["session", "exec", "s1", "echo awake"]).await, "awake\n");
    run(&["session", "rm", "-f", "s1"]).await;
    assert!(service.ids().is_empty());
}
