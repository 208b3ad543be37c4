//! Who may know whom: folders say where code runs, and no half of the system knows the other (`docs/architecture.md`).
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{path::Path, process::Command};

use serde_json::Value;

/// Folders of crates, and those whose crates they may use.
const FOLDERS: [(&str, &[&str]); 7] = [
    ("base", &["base"]),
    ("sandbox", &["base", "sandbox"]),
    ("agent", &["base", "agent"]),
    ("providers", &["base", "agent"]),
    ("examples", &["base", "agent"]),
    ("checks", &["base", "sandbox", "agent", "providers", "checks"]),
    ("gloveport", &["base", "sandbox", "agent", "providers", "checks"]),
];
/// The one way from one half to the other: a session whose tools work in its own process.
const IN_PROCESS: &str = "gloveport-runtime";

/// The folder of a crate, by a path of it.
fn folder(root: &Path, path: &str) -> String {
    let path = Path::new(path);
    let inner = path.strip_prefix(root.join("crates")).unwrap_or_else(|_| path.strip_prefix(root).unwrap());
    inner.components().next().unwrap().as_os_str().to_str().unwrap().to_owned()
}

#[test]
fn no_half_knows_the_other_but_for_sessions_in_their_own_process() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(&root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let (mut known, mut wrong) = (0, Vec::new());
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let own = folder(&root, package["manifest_path"].as_str().unwrap());
        let (_, allowed) = FOLDERS.iter().find(|(folder, _)| *folder == own).unwrap_or_else(|| panic!("{name}: {own}"));
        for dependency in package["dependencies"].as_array().unwrap() {
            // Tests may use both halves: one is what the other is tried with.
            let (Some(path), true) = (dependency["path"].as_str(), dependency["kind"].is_null()) else { continue };
            known += 1;
            let other = folder(&root, path);
            let is_in_process = name == IN_PROCESS && other == "sandbox" && dependency["optional"] == true;
            if !allowed.contains(&other.as_str()) && !is_in_process {
                wrong.push(format!("{name} in {own} uses {} in {other}", dependency["name"]));
            }
        }
    }
    assert!(known > 60, "only {known} dependencies were found");
    assert_eq!(wrong, Vec::<String>::new());
}
