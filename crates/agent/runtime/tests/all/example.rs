//! The program of the documentation does what it says.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Deserializer, Value};

/// The built example, which stands beside the folder of the test programs.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().join("examples").join(name)
}

#[test]
fn a_repository_is_cloned_its_tests_run_and_the_observations_are_printed() {
    let home = tempfile::tempdir().unwrap();
    let origin = home.path().join("origin");
    std::fs::create_dir(&origin).unwrap();
    std::fs::write(origin.join("test.sh"), "echo 3 tests passed\n").unwrap();
    let git = "git init -q && git add -A && git -c user.name=t -c user.email=t@example.invalid commit -qm first";
    assert!(Command::new("sh").args(["-c", git]).current_dir(&origin).status().unwrap().success());
    let mut command = Command::new(example("session"));
    command.arg(&origin).arg("sh test.sh").env("HOME", home.path()).env("TMPDIR", home.path());
    let output = command.output().unwrap();
    let printed: Vec<Value> =
        Deserializer::from_slice(&output.stdout).into_iter::<Value>().map(Result::unwrap).collect();
    assert!(output.status.success(), "{output:?}");
    let found: Vec<_> = printed
        .iter()
        .map(|event| (event["cause"].as_i64(), event["extras"]["metadata"]["exit_code"].as_i64()))
        .collect();
    assert_eq!(found, [(Some(0), Some(0)), (Some(2), Some(0))]);
    assert_eq!(printed[1]["content"], "3 tests passed");
    // Its workspace was a temporary one.
    assert!(!home.path().join("repository").exists());
}
