//! Who may know whom: folders say where code runs, and no half of the system knows the other (`docs/architecture.md`); and
//! within a crate, files do not know each other in large rings.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

mod circles;
mod systems;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

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

/// Crates of the half beside the agent, and of what both halves stand on, that are Linux's or know all systems.
const OF_SYSTEMS: [&str; 4] = ["base/sys", "base/platform", "providers/local", "agent/oci-image"];
/// Crates that the program checks servers and providers with.
const CHECKS: [&str; 2] = ["checks/conformance", "checks/provider-conformance"];
/// Crates whose texts name files of the sandbox, which is Linux's.
const ABOUT_SANDBOXES: [&str; 2] = ["agent/security", "checks/provider-conformance"];
/// The program. What of it is Linux's alone is its module `here`.
const PROGRAM: &str = "gloveport";

/// Directories of all crates.
fn crate_directories(root: &Path) -> BTreeSet<PathBuf> {
    let below = |directory: &Path| -> Vec<PathBuf> {
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
    };
    let folders = below(&root.join("crates"));
    let all = folders.iter().flat_map(|folder| below(folder)).chain(folders.clone());
    all.filter(|directory| directory.join("Cargo.toml").is_file()).collect()
}

#[test]
fn no_more_than_three_files_of_a_crate_use_each_other_in_a_ring() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let crates = crate_directories(&root);
    assert!(crates.len() > 25, "only {} crates were found", crates.len());
    let mut found = Vec::new();
    for directory in &crates {
        let name = |path: &Path| path.strip_prefix(directory).unwrap().display().to_string();
        for ring in circles::large_circles(directory) {
            let uses = ring.iter().map(|((from, to), path)| format!("  {} uses {path} of {}", name(from), name(to)));
            found.push(format!("{}:\n{}", directory.display(), uses.collect::<Vec<_>>().join("\n")));
        }
    }
    assert!(found.is_empty(), "files use each other in a ring:\n{}", found.join("\n"));
}

#[test]
fn a_ring_is_found_through_imports_paths_macros_and_re_exports_and_not_through_tests() {
    let crate_of = |files: &[(&str, &str)]| {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = directory.path().join("src").join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let rings = circles::large_circles(directory.path());
        rings.iter().map(|ring| ring.keys().map(|(from, _)| from.clone()).collect::<BTreeSet<_>>().len()).collect()
    };
    let ring = [
        ("lib.rs", "mod a; mod d; pub use a::{A, b::B};"),
        ("a.rs", "pub(crate) mod b; mod c { pub struct C; } use c::C; pub struct A(b::B, C);"),
        ("a/b.rs", "use crate::d; pub struct B; fn f() { println!(\"{}\", d::e::g()) }"),
        ("d/mod.rs", "pub mod e; pub fn h() -> crate::A { todo!() }"),
        ("d/e.rs", "pub fn g() -> u8 { super::h(); 1 }"),
    ];
    let sizes: Vec<usize> = crate_of(&ring);
    assert_eq!(sizes, [4]);
    // Without one of its uses it is none, and in tests everybody may know everybody.
    let mut open = ring;
    open[4].1 =
        "pub fn g() -> u8 { 1 } #[cfg(test)] mod tests { use super::super::h; } #[cfg(test)] fn t() { super::h(); }";
    let sizes: Vec<usize> = crate_of(&open);
    assert_eq!(sizes, [] as [usize; 0]);
}

/// The crates of the sandbox half, and the runtime `local`, as code calls them.
fn of_sandboxes(directories: &BTreeSet<PathBuf>) -> Vec<String> {
    let mut names = vec!["gloveport_provider_local".to_owned()];
    for directory in directories.iter().filter(|directory| directory.parent().unwrap().ends_with("sandbox")) {
        let manifest = fs::read_to_string(directory.join("Cargo.toml")).unwrap();
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")).unwrap();
        names.push(name.trim_end_matches('"').replace('-', "_"));
    }
    names
}

#[test]
fn the_half_beside_the_agent_uses_nothing_that_only_one_system_has() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let (mut files, mut found) = (0, Vec::new());
    let directories = crate_directories(&root);
    let of_sandboxes = of_sandboxes(&directories);
    assert!(of_sandboxes.iter().any(|name| name == "gloveport_sandbox"), "{of_sandboxes:?}");
    for directory in directories {
        let name = directory.strip_prefix(root.join("crates")).unwrap().to_str().unwrap().to_owned();
        let is_beside = ["agent/", "providers/", "base/"].iter().any(|folder| name.starts_with(folder))
            || CHECKS.contains(&name.as_str());
        let roots: &[&str] = match &*name {
            PROGRAM => &["src/main.rs", "src/elsewhere.rs"],
            name if is_beside && !OF_SYSTEMS.contains(&name) => &["src/lib.rs"],
            _ => continue,
        };
        for file in roots {
            let uses = systems::uses(&directory.join(file), if name == PROGRAM { &of_sandboxes } else { &[] });
            files += uses.files;
            let texts = if ABOUT_SANDBOXES.contains(&name.as_str()) { Vec::new() } else { uses.texts };
            for (file, what) in uses.paths.into_iter().chain(texts) {
                found.push(format!("{}: {what}", file.strip_prefix(&root).unwrap().display()));
            }
        }
    }
    assert!(files > 350, "only {files} files were read");
    let help = "ask `gloveport-platform`, let the item say which system it is for (`#[cfg(…)]`), or move it to `here` of \
        the program";
    assert!(found.is_empty(), "{help}:\n{}", found.join("\n"));
}

#[test]
fn a_use_of_one_system_is_found_unless_its_item_is_for_that_system() {
    let uses_of = |text: &str| -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("src");
        fs::create_dir_all(source.join("a")).unwrap();
        fs::write(source.join("lib.rs"), "mod a; #[cfg(unix)] mod unix;").unwrap();
        fs::write(source.join("a.rs"), "mod b;").unwrap();
        fs::write(source.join("a/b.rs"), text).unwrap();
        fs::write(source.join("unix.rs"), "use rustix::fs;").unwrap();
        let uses = systems::uses(&source.join("lib.rs"), &["of_sandboxes".to_owned()]);
        assert_eq!(uses.files, 3);
        uses.paths.into_iter().chain(uses.texts).map(|(_, what)| what).collect()
    };
    for (text, expected) in [
        ("use rustix::fs;", "rustix"),
        ("use {std::{io, os::unix::fs::FileExt as _}};", "std::os"),
        ("fn f() { let _ = gloveport_sys::process::stat(1); }", "gloveport_sys"),
        ("fn f() { println!(\"{}\", libc::getpid()); }", "libc"),
        ("type T = tokio::net::UnixStream;", "UnixStream"),
        ("fn f() -> bool { std::path::Path::new(\"/proc/self\").exists() }", "/proc"),
        ("fn f() { format!(\"/proc/{}\", 1); }", "/proc"),
        ("use std::{io, path::Path}; /// `/proc`\nfn f() {}", ""),
        ("#[cfg(target_os = \"linux\")] use rustix::fs; #[cfg(test)] mod tests { use std::os::unix::fs; }", ""),
        ("struct S { #[cfg(target_os = \"linux\")] a: rustix::fs::Mode, b: u8 }", ""),
        ("#[cfg(feature = \"x\")] use rustix::fs;", "rustix"),
        ("fn f() -> of_sandboxes::Owner { crate::made() }", "of_sandboxes"),
    ] {
        let expected: Vec<&str> = Some(expected).filter(|what| !what.is_empty()).into_iter().collect();
        assert_eq!(uses_of(text), expected, "{text}");
    }
}
