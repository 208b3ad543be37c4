//! The package's own tests, with a Python that has the libraries, and the package as it is unpacked.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

use std::{path::Path, process::Command};

use gloveport_skills::Skills;
use gloveport_sys::Surroundings;
use gloveport_testing::python;

/// Runs the tests of one file, which must be some.
async fn passes(file: &str) {
    let directory = tempfile::tempdir().unwrap();
    let surroundings = Surroundings::inherited("/".into());
    let skills = Skills::start_below(&surroundings, vec![directory.path().join("state")]).await.unwrap();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../python/tests");
    let mut command = Command::new(python());
    command.args(["-B", "-m", "unittest", "-v", file]).current_dir(tests);
    command.env("PYTHONPATH", skills.packages()).env("GLOVEPORT_EDITOR_SOCKET", skills.socket());
    let done = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains(" ... ok\n"), "{said}");
    skills.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_looked_into_and_searched_as_specified() {
    passes("test_navigation").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_read_as_specified() {
    passes("test_readers").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sounds_and_pictures_are_described_as_specified() {
    passes("test_media").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_editor_answers_kernels_as_specified() {
    passes("test_editor").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_functions_are_found_under_both_names() {
    passes("test_package").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_import_cell_gives_the_functions_and_prints_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let surroundings = Surroundings::inherited("/".into());
    let skills = Skills::start_below(&surroundings, vec![directory.path().join("state")]).await.unwrap();
    let code = format!("{}print(file_editor.__module__, open_file.__module__)", Skills::import_cell());
    let mut command = Command::new(python());
    command.args(["-B", "-c", &code]).env("PYTHONPATH", skills.packages());
    let done = command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stdout), "gloveport.skills.editor gloveport.skills.navigation\n");
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
}
