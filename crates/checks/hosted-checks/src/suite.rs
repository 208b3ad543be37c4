//! Our real server in sandboxes, against a service on this machine that gives each sandbox files and processes of its own: the suite
//! of all providers.
#![expect(clippy::print_stdout, reason = "a test that cannot do its work says so")]

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use gloveport_provider::Provider;
use gloveport_provider_conformance::{Make, Options, Verdict};
use gloveport_stand_ins::{Kind, can_be_apart};

use crate::{Here, Hosted, Service as _};

/// Checks by the beginnings of their ids, and those among them that a provider cannot be asked.
pub type Group<'a> = (&'a [&'a str], &'a [&'a str]);

/// The life of a sandbox.
pub const LIFE: Group<'static> = (&["life/"], &["life/workspace-directory"]);
/// Lists.
pub const LISTS: Group<'static> = (&["found/"], &[]);
/// What sandboxes are made of.
pub const SPECS: Group<'static> = (&["specs/", "waits/"], &[]);
/// Ends.
pub const ENDS: Group<'static> = (&["ends/"], &[]);
/// Garbage.
pub const GARBAGE: Group<'static> = (&["garbage/"], &["garbage/orphan", "garbage/backend-died"]);
/// What a provider may declare, with what no hosted service has whose sandboxes rest.
pub const OPTIONS: Group<'static> =
    (&["optional/"], &["optional/memory", "optional/processes", "optional/ports", "optional/warm"]);

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

/// The same as it is put into sandboxes: without what only debuggers read, which is most of a build for tests.
fn stripped(built: PathBuf, directory: &Path) -> PathBuf {
    let small = directory.join("gloveport");
    let status = Command::new("strip").arg("-o").arg(&small).arg(&built).status();
    if status.is_ok_and(|status| status.success()) { small } else { built }
}

/// A provider passes the checks of a group, and nothing is left in the service. Told, where that cannot be found out here.
pub async fn passes<H: Hosted>((wanted, skipped): Group<'_>) {
    if !can_be_apart() {
        println!("skipped: sandboxes of the stand-in need root and `unshare`");
        return;
    }
    let Some(built) = built() else { return };
    let (service, home) = (H::Service::start(Kind::Apart).await, tempfile::tempdir().unwrap());
    let here = Here {
        program: stripped(built, home.path()),
        backends: home.path().join("backends"),
        directory: "/opt/gloveport-test".to_owned(),
        workspace: Some("/gloveport-test-workspace".to_owned()),
        answer_within: Duration::from_mins(1),
        start_within: Duration::from_mins(3),
    };
    let options = H::options(&service, here);
    let make: Make = Arc::new(move || Ok(Arc::new(H::backend(options.clone())) as Arc<dyn Provider>));
    let only = wanted.iter().map(|group| (*group).to_owned()).collect();
    let wanted = Options { only, at_once: 4, ..Options::default() };
    let report = gloveport_provider_conformance::run(&make, &wanted, |_| {}).await.unwrap();
    assert_eq!(report.counts().failed, 0, "{}", report.text());
    let is_skipped = |verdict: &Verdict| matches!(verdict, Verdict::Skip { .. });
    let found: Vec<&str> =
        report.results.iter().filter(|result| is_skipped(&result.verdict)).map(|result| result.id.as_str()).collect();
    assert_eq!(found, skipped, "{}", report.text());
    assert!(report.counts().passed > 0 && service.ids().is_empty(), "{:?}", service.ids());
    let snapshots = H::snapshots(&service);
    assert!(snapshots.is_empty(), "{snapshots:?}");
}
