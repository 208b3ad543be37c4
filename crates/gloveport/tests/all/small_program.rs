//! Which program goes into sandboxes: the small one beside ours, if it is of the same build.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Output},
};

use gloveport_build_id::BUILD;
use serde_json::Value;

/// A folder with our program in it, and room for another one beside it.
struct Installed {
    folder: tempfile::TempDir,
}

impl Installed {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let own = Path::new(env!("CARGO_BIN_EXE_gloveport"));
        // A copy of a program with all its symbols takes long.
        fs::hard_link(own, folder.path().join("gloveport")).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, content: &[u8]) {
        let _not_there = fs::remove_file(self.path("gloveport-sandbox"));
        fs::write(self.path("gloveport-sandbox"), content).unwrap();
        fs::set_permissions(self.path("gloveport-sandbox"), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn run(&self, words: &[&str]) -> Output {
        let home = self.path("home");
        fs::create_dir_all(&home).unwrap();
        let mut command = Command::new(self.path("gloveport"));
        command.args(words).env_clear().env("HOME", &home).env("PATH", std::env::var_os("PATH").unwrap());
        command.output().unwrap()
    }

    /// What `doctor` says of the program in sandboxes: the verdict and the text.
    fn doctor(&self) -> (String, String) {
        let output = self.run(&["doctor", "--json"]);
        let checks: Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut checks = checks.as_array().unwrap().iter();
        let check = checks.find(|check| check["name"] == "program in sandboxes").unwrap();
        let text = |key: &str| check[key].as_str().unwrap().to_owned();
        (text("verdict"), text("found"))
    }
}

/// A file that has nothing of a program but its build.
fn program(build: &str) -> Vec<u8> {
    let id: Vec<u8> =
        (0..build.len()).step_by(2).map(|at| u8::from_str_radix(&build[at..at + 2], 16).unwrap()).collect();
    let length = u32::try_from(id.len()).unwrap().to_le_bytes();
    let note = [&4_u32.to_le_bytes()[..], &length, &3_u32.to_le_bytes(), b"GNU\0", &id].concat();
    let mut file = vec![0; 120];
    file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    (file[32], file[54], file[56], file[64], file[72]) = (64, 56, 1, 4, 120);
    file[96] = u8::try_from(note.len()).unwrap();
    [file, note].concat()
}

#[test]
fn the_program_beside_ours_goes_into_sandboxes_if_it_is_of_the_same_build() {
    let installed = Installed::new();
    let own = installed.path("gloveport").display().to_string();
    let small = installed.path("gloveport-sandbox").display().to_string();
    assert_eq!(installed.doctor(), ("ok".to_owned(), format!("{own}; no gloveport-sandbox is in its folder")));
    installed.put(&program(BUILD));
    assert_eq!(installed.doctor(), ("ok".to_owned(), small.clone()));
    installed.put(&program(&"0".repeat(32)));
    let other = format!("{own}, because {small} is of another build");
    assert_eq!(installed.doctor(), ("warning".to_owned(), other));
    installed.put(b"#!/bin/sh\nexit 0\n");
    let none = format!("{own}, because {small} cannot be used: it is no program for Linux");
    assert_eq!(installed.doctor(), ("warning".to_owned(), none));
    // Not beside the link, but beside the file that it leads to.
    installed.put(&program(BUILD));
    let elsewhere = tempfile::tempdir().unwrap();
    symlink(installed.path("gloveport"), elsewhere.path().join("gloveport")).unwrap();
    let output = Command::new(elsewhere.path().join("gloveport")).args(["doctor", "--json"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains(&small), "{output:?}");
}

#[test]
fn a_program_of_another_build_and_a_file_that_is_none_are_started_by_nobody() {
    let installed = Installed::new();
    for content in [program(&"0".repeat(32)), b"#!/bin/sh\nexit 9\n".to_vec()] {
        installed.put(&content);
        let output = installed.run(&["run", "--runtime", "local", "echo hi"]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "hi\n", "{output:?}");
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn the_program_that_is_chosen_is_the_one_that_is_started() {
    let installed = Installed::new();
    // It has the build, and cannot run: the error says that it was started.
    installed.put(&program(BUILD));
    let output = installed.run(&["run", "--runtime", "local", "echo hi"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("gloveport-sandbox"), "{output:?}");
}
