//! `gloveport image` as a user meets it, without an engine.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{fs, path::Path, process::Output};

use crate::support::{gloveport, text};
use serde_json::Value;

fn image(home: &Path, words: &[&str]) -> Output {
    let mut command = gloveport(home);
    command.current_dir(home).env_remove("OH_RUNTIME_RUNTIME_IMAGE_REPO").env("DOCKER_HOST", "unix:///no/engine.sock");
    command.arg("image").args(words).output().unwrap()
}

fn names(home: &Path, words: &[&str]) -> Value {
    // Hashing a large program without optimisation takes long.
    let output = image(home, &[&["tag", "--json", "--binary", "/bin/true"], words].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn tag_tells_four_names_and_asks_no_engine() {
    let home = tempfile::tempdir().unwrap();
    let found = names(home.path(), &["--base-image", "debian:11"]);
    assert_eq!(found["generic"], "localhost/gloveport/runtime:oh_v0.62.0_image_debian_tag_11");
    assert_eq!(found["versioned"], "localhost/gloveport/runtime:oh_v0.62.0_debian_t_11");
    let (lock, source) = (found["lock"].as_str().unwrap(), found["source"].as_str().unwrap());
    assert!(source.starts_with(&format!("{lock}_")), "{lock} {source}");
    let plain = image(home.path(), &["tag", "--base-image", "debian:11", "--binary", "/bin/true"]);
    let lines = text(&plain.stdout);
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines, [source, lock, found["versioned"].as_str().unwrap(), found["generic"].as_str().unwrap()]);
}

#[test]
fn what_the_flags_leave_open_the_configuration_says() {
    let home = tempfile::tempdir().unwrap();
    let bare = names(home.path(), &["--base-image", "debian:12"]);
    let flags = names(home.path(), &["--base-image", "debian:12", "--extra-deps", "true", "--platform", "linux/amd64"]);
    assert_ne!(bare["lock"], flags["lock"]);
    let text =
        "[sandbox]\nbase_container_image = \"debian:12\"\nruntime_extra_deps = \"true\"\nplatform = \"linux/amd64\"\n";
    fs::write(home.path().join("config.toml"), text).unwrap();
    assert_eq!(names(home.path(), &[]), flags);
}

#[test]
fn a_build_folder_gets_the_dockerfile_and_the_tags() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("folder");
    let words = [
        "build",
        "--base-image",
        "debian:12",
        "--force",
        "--json",
        "--binary",
        "/bin/true",
        "--build-folder",
        "folder",
    ];
    let missing = image(home.path(), &words);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("does not exist"), "{}", text(&missing.stderr));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("config.sh"), "DOCKER_IMAGE=runtime\n").unwrap();
    for _ in 0..2 {
        let output = image(home.path(), &words);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let found = names(home.path(), &["--base-image", "debian:12"]);
    let source = found["source"].as_str().unwrap().rsplit(':').next().unwrap().to_owned();
    let tags = format!("\nDOCKER_IMAGE_TAG=oh_v0.62.0_image_debian_tag_12\nDOCKER_IMAGE_SOURCE_TAG={source}\n");
    let expected = format!("DOCKER_IMAGE=runtime\n{tags}{tags}");
    assert_eq!(fs::read_to_string(folder.join("config.sh")).unwrap(), expected);
    assert!(fs::read_to_string(folder.join("Dockerfile")).unwrap().contains("\nFROM debian:12\n"));
    assert!(folder.join("code/openhands/bin/gloveport").is_file() && folder.join("setup/setup.sh").is_file());
}

#[test]
fn what_cannot_be_built_is_told_before_anything_is_started() {
    let home = tempfile::tempdir().unwrap();
    let long = ["build", "--base-image", "debian:12"];
    let key = "SANDBOX_API_KEY";
    let rows: [(&[&str], i32, &str); 12] = [
        (&["build", "--base-image", "debian:12\nRUN true"], 1, "debian:12\\nRUN true"),
        (&["build", "--base-image", "Debian"], 1, "lower-case"),
        (&[&long[..], &["--user", "a b"]].concat(), 1, "user name"),
        (&[&long[..], &["--platform", "windows/amd64"]].concat(), 1, "linux/ARCHITECTURE"),
        (&[&long[..], &["--platform", "linux/s390x"]].concat(), 1, "--binary"),
        (&[&long[..], &["--binary", "/etc/passwd"]].concat(), 1, "it is not a Linux program"),
        (&[&long[..], &["--vscode", "https://a:b@c/d"]].concat(), 1, "no user or password"),
        (&[&long[..], &["--plain", "--jupyter"]].concat(), 2, "cannot be used with"),
        (&["build", "--base-image", "scratch"], 1, "plain image"),
        (&["build", "--scratch"], 2, "--tag"),
        (&["build", "--scratch", "--tag", "x:1", "--user", "somebody"], 1, "give a number"),
        (&["build", "--builder", "remote", "--api-url", "http://127.0.0.1:9"], 1, key),
    ];
    for (words, code, expected) in rows {
        let output = image(home.path(), words);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {told}");
        assert!(told.contains(expected) && !told.contains("no/engine.sock"), "{words:?}: {told}");
    }
}

#[test]
fn an_engine_that_is_not_there_is_no_missing_image() {
    let home = tempfile::tempdir().unwrap();
    let output = image(home.path(), &["exists", "debian:12"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("/no/engine.sock"), "{told}");
}

#[test]
fn help_has_examples_and_exit_codes() {
    let home = tempfile::tempdir().unwrap();
    let told = text(&image(home.path(), &["build", "--help"]).stdout);
    assert!(told.contains("Examples:") && told.contains("130 interrupted"), "{told}");
    assert!(text(&image(home.path(), &["exists", "--help"]).stdout).contains("3 it does not"));
}
