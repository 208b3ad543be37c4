//! Where a browser cannot be started, words say why and what to do.

use std::{os::unix::fs::PermissionsExt as _, path::Path, time::Duration};

use gloveport_browser::{Browser, BrowserError, BrowserOptions, BrowserState};

use crate::house::{fails, options};

/// A browser whose program is a script.
fn of_script(directory: &tempfile::TempDir, script: &str) -> BrowserOptions {
    let program = directory.path().join("browser");
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut options = options(directory);
    options.program = Some(program);
    options
}

async fn not_started(options: BrowserOptions) -> (String, String) {
    let browser = Browser::new(options);
    let (error, _) = fails(&browser, "noop()").await;
    let BrowserError::NotStarted { reason, remedy } = error else { panic!("{error}") };
    let failed = BrowserState::Failed { reason: reason.clone(), remedy: remedy.clone() };
    assert_eq!(*browser.state().borrow(), failed);
    browser.close().await;
    (reason, remedy)
}

#[tokio::test]
async fn without_a_browser_the_error_names_the_package() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(&directory);
    options.surroundings.set("PATH", directory.path());
    options.surroundings.set("HOME", directory.path());
    options.surroundings.unset("PLAYWRIGHT_BROWSERS_PATH");
    options.surroundings.unset("GLOVEPORT_CHROMIUM");
    let (reason, remedy) = not_started(options).await;
    assert_eq!(reason, "there is no Chromium");
    assert!(remedy.contains("install the package `chromium`"), "{remedy}");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named_with_what_to_install() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(&directory);
    options.program = Some("/nowhere/chromium".into());
    let (reason, remedy) = not_started(options).await;
    assert!(reason.contains("/nowhere/chromium"), "{reason}");
    assert!(remedy.contains("`chromium`"), "{remedy}");
}

#[tokio::test]
async fn what_a_program_says_before_it_ends_is_in_the_error() {
    let directory = tempfile::tempdir().unwrap();
    let (reason, _) = not_started(of_script(&directory, "echo 'no such luck' >&2; exit 7")).await;
    assert!(reason.contains("no such luck") && reason.contains("status 7"), "{reason}");
}

#[tokio::test]
async fn a_program_that_does_not_talk_is_ended_in_time() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = of_script(&directory, "echo $$ > pid; echo hello; sleep 1000; exit 0");
    options.start_limit = Duration::from_millis(500);
    let (reason, _) = not_started(options).await;
    assert!(reason.contains("it was not up within 0.5 s"), "{reason}");
    assert!(reason.contains("hello"), "{reason}");
    let pid = std::fs::read_to_string(directory.path().join("pid")).unwrap();
    assert!(!Path::new("/proc").join(pid.trim()).exists());
}

#[tokio::test]
async fn closing_does_not_wait_for_a_start() {
    let directory = tempfile::tempdir().unwrap();
    let browser = Browser::new(of_script(&directory, "sleep 1000; exit 0"));
    let mut state = browser.state();
    let closed = async {
        state.wait_for(|state| *state == BrowserState::Starting).await.unwrap();
        browser.close().await;
    };
    let both = async { tokio::join!(browser.start(), closed) };
    let (started, ()) = tokio::time::timeout(Duration::from_secs(5), both).await.unwrap();
    assert_eq!(started, Err(BrowserError::Closed));
}
