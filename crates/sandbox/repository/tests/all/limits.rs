//! A git that does not answer as git does.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    time::{Duration, Instant},
};

use gloveport_repository::changes;
use gloveport_sys::Surroundings;

use crate::place::Place;

/// Surroundings in which this script is git. `$GIT` is the true one.
pub(crate) fn with_git(place: &Place, script: &str) -> Surroundings {
    let mut surroundings = place.surroundings();
    let git = surroundings.find("git").unwrap();
    place.write("bin/git", format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(place.path("bin/git"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", place.path("bin").display(), surroundings.variable("PATH").unwrap().display());
    surroundings.set("PATH", path);
    surroundings.set("GIT", git);
    surroundings
}

#[tokio::test]
async fn a_git_that_does_not_end_is_ended() {
    let place = Place::new();
    place.repository("r");
    let (mark, path) = (place.path("pid"), place.path("r"));
    let surroundings = with_git(&place, &format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 1000", mark.display()));
    let asked = tokio::spawn(async move { changes(&surroundings, &path, None).await });
    let began = Instant::now();
    while !mark.exists() {
        assert!(began.elapsed() < Duration::from_mins(1));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    // Now the clock goes on by itself to whatever is waited for.
    tokio::time::pause();
    let late = asked.await.unwrap().unwrap_err();
    assert_eq!(late.to_string(), "Git command failed: git rev-parse: it took longer than 30 s");
    let pid = fs::read_to_string(mark).unwrap();
    let runs = || {
        let state = fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat")).unwrap_or_default();
        state.contains("(sleep)") && !state.contains(") Z ")
    };
    let began = Instant::now();
    while runs() {
        assert!(began.elapsed() < Duration::from_mins(1), "it goes on");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[tokio::test]
async fn what_git_prints_has_a_bound_and_its_complaints_stop_nothing() {
    let place = Place::new();
    place.repository("r");
    place.write("r/kept", "2\n");
    let path = place.path("r");
    let surroundings = with_git(&place, "head -c 70000000 /dev/zero");
    let refused = changes(&surroundings, &path, None).await.unwrap_err().to_string();
    assert_eq!(refused, "Git command failed: git rev-parse: it printed more than 67108864 bytes");
    let surroundings = with_git(&place, "head -c 1000000 /dev/zero >&2 || exit; exec \"$GIT\" \"$@\"");
    assert_eq!(changes(&surroundings, &path, None).await.unwrap().len(), 1);
}

#[tokio::test]
async fn without_git_there_is_an_error_and_not_an_empty_answer() {
    let place = Place::new();
    place.repository("r");
    let mut surroundings = place.surroundings();
    surroundings.set("PATH", place.path("nothing"));
    let refused = changes(&surroundings, &place.path("r"), None).await.unwrap_err().to_string();
    assert_eq!(refused, "Git command failed: git rev-parse: `git` is not installed in the sandbox");
}
