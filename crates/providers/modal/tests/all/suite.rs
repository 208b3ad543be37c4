//! The runtime `modal` with our real server in its sandboxes, against a service on this machine that gives each sandbox files and
//! processes of its own: the suite of all providers.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use gloveport_provider::Provider;
use gloveport_provider_conformance::{Make, Options, Verdict};
use gloveport_provider_modal::{Modal, ModalOptions};
use gloveport_stand_ins::{StandIn, can_be_apart, modal};

/// Our program: the one that `GLOVEPORT_TEST_BINARY` names, else the one that was built beside this test program.
fn built() -> Option<PathBuf> {
    let named = std::env::var_os("GLOVEPORT_TEST_BINARY").map(PathBuf::from);
    let beside = || std::env::current_exe().ok()?.parent()?.parent().map(|directory| directory.join("gloveport"));
    let found = named.or_else(beside).filter(|program| program.is_file());
    if found.is_none() {
        println!("skipped: the program is not built; build it, or name one in GLOVEPORT_TEST_BINARY");
    }
    found
}

/// The same as it is uploaded: without what only debuggers read, which is most of a build for tests.
fn stripped(built: PathBuf, directory: &Path) -> PathBuf {
    let small = directory.join("gloveport");
    let status = Command::new("strip").arg("-o").arg(&small).arg(&built).status();
    if status.is_ok_and(|status| status.success()) { small } else { built }
}

fn options(service: &StandIn<modal::Modal>, home: &Path, program: PathBuf) -> ModalOptions {
    ModalOptions {
        directory: "/opt/gloveport-test".to_owned(),
        workspace: Some("/gloveport-test-workspace".to_owned()),
        answer_within: Duration::from_mins(1),
        start_within: Duration::from_mins(3),
        ..crate::support::options(service, program, home.join("backends"))
    }
}

async fn passes(groups: &[&str], skipped: &[&str]) {
    let Some(built) = built() else { return };
    if !can_be_apart() {
        println!("skipped: sandboxes of the stand-in need root and `unshare`");
        return;
    }
    let (service, home) = (StandIn::<modal::Modal>::apart().await, tempfile::tempdir().unwrap());
    let options = options(&service, home.path(), stripped(built, home.path()));
    let make: Make = Arc::new(move || Ok(Arc::new(Modal::new(options.clone())) as Arc<dyn Provider>));
    let wanted =
        Options { only: groups.iter().map(|group| (*group).to_owned()).collect(), at_once: 4, ..Options::default() };
    let report = gloveport_provider_conformance::run(&make, &wanted, |_| {}).await.unwrap();
    assert_eq!(report.counts().failed, 0, "{}", report.text());
    let is_skipped = |verdict: &Verdict| matches!(verdict, Verdict::Skip { .. });
    let found: Vec<&str> =
        report.results.iter().filter(|result| is_skipped(&result.verdict)).map(|result| result.id.as_str()).collect();
    assert_eq!(found, skipped, "{}", report.text());
    assert!(report.counts().passed > 0 && service.ids().is_empty(), "{:?}", service.ids());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_modal_passes_the_checks_of_life() {
    passes(&["life/"], &["life/workspace-directory"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_modal_passes_the_checks_of_lists() {
    passes(&["found/"], &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_modal_passes_the_checks_of_specs() {
    passes(&["specs/", "waits/"], &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_modal_passes_the_checks_of_ends() {
    passes(&["ends/"], &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_modal_passes_the_checks_of_garbage() {
    passes(&["garbage/"], &["garbage/orphan", "garbage/backend-died"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_modal_passes_the_checks_of_options() {
    // The stand-in limits no memory: that takes groups of the kernel, which not every machine gives.
    let groups = [
        "optional/pause",
        "optional/logs",
        "optional/follow-logs",
        "optional/processes",
        "optional/ports",
        "optional/fork",
        "optional/warm",
    ];
    passes(&groups, &["optional/pause", "optional/processes", "optional/warm"]).await;
}
