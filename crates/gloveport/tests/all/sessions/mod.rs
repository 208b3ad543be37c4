//! The session commands in a home of their own, whose sandboxes are gone when it is dropped.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

pub(crate) mod person;

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use gloveport_sys::process;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{LIMIT, alive, gloveport, text, until};

pub(crate) struct Home {
    directory: TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// `gloveport session` with these words.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = gloveport(self.path());
        command.env_remove("XDG_STATE_HOME").current_dir(self.path()).arg("session").args(words);
        command
    }

    /// Runs `gloveport session` to its end.
    pub(crate) fn session(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Standard output of one that must succeed.
    #[track_caller]
    pub(crate) fn ok(&self, words: &[&str]) -> String {
        let output = self.session(words);
        assert!(output.status.success(), "{words:?}: {} {}", output.status, text(&output.stderr));
        text(&output.stdout)
    }

    /// Exit code and standard error of one that must fail.
    #[track_caller]
    pub(crate) fn failed(&self, words: &[&str]) -> (i32, String) {
        let output = self.session(words);
        assert!(!output.status.success(), "{words:?} succeeded: {}", text(&output.stdout));
        (output.status.code().unwrap_or(-1), text(&output.stderr))
    }

    /// Exit code and standard output of a command in a session.
    pub(crate) fn exec(&self, id: &str, command: &str) -> (Option<i32>, String) {
        let output = self.session(&["exec", id, "--", command]);
        (output.status.code(), text(&output.stdout))
    }

    /// Starts a session of this id.
    #[track_caller]
    pub(crate) fn start(&self, id: &str) {
        assert_eq!(self.ok(&["start", "--id", id]), format!("{id}\n"));
    }

    /// What `session ls --json` prints.
    pub(crate) fn listed(&self) -> Vec<Value> {
        serde_json::from_str(&self.ok(&["ls", "--json"])).unwrap()
    }

    /// The ids of all sessions that have a sandbox.
    pub(crate) fn ids(&self) -> Vec<String> {
        let listed: Vec<Value> = serde_json::from_str(&self.ok(&["ls", "--json", "--all"])).unwrap();
        // Of the others only the history is left.
        let with_sandbox = listed.iter().filter(|session| session["history"].is_null());
        let mut ids: Vec<String> =
            with_sandbox.map(|session| session["session_id"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        ids
    }

    /// The events of a session, as stored.
    pub(crate) fn events(&self, id: &str) -> Vec<Value> {
        let lines = self.ok(&["events", "--json", id]);
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Where the runtime `local` has what it must know.
    pub(crate) fn state(&self) -> PathBuf {
        self.path().join(".local/state/gloveport/local")
    }

    /// Directories of servers and sandboxes that are there.
    pub(crate) fn left(&self) -> Vec<String> {
        let mut left = Vec::new();
        for kind in ["new", "sandboxes", "old"] {
            let entries = fs::read_dir(self.state().join(kind)).into_iter().flatten().flatten();
            left.extend(entries.map(|entry| format!("{kind}/{}", entry.file_name().display())));
        }
        left
    }

    /// Processes that hold a lock of a sandbox here or work in this home.
    pub(crate) fn alive(&self) -> Vec<String> {
        let holds = |pid: u32| {
            let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
            let mut targets = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
            targets.any(|target| target.starts_with(self.state()))
        };
        let works = |pid: u32| process::working_directory(pid).is_some_and(|at| at.starts_with(self.path()));
        let found = process::all().into_iter().filter(|pid| alive(*pid) && (holds(*pid) || works(*pid)));
        found.map(|pid| format!("{pid} {}", process::command_line(pid).unwrap_or_default())).collect()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // An engine, or a cluster, is that of others as well.
        let _failed_before = self.session(&["gc", "--all", "--runtime", "local"]);
        if !std::thread::panicking() {
            until("all sandboxes are gone", || self.left().is_empty());
            until("all processes are gone", || self.alive().is_empty());
        }
    }
}

/// A started process whose output can be waited for.
pub(crate) struct Running {
    pub(crate) child: Child,
    seen: Vec<u8>,
}

impl Running {
    pub(crate) fn new(command: &mut Command) -> Self {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Self { child, seen: Vec::new() }
    }

    /// Reads its output until this text is in it.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) {
        let began = Instant::now();
        let output = self.child.stdout.as_mut().unwrap();
        let mut piece = [0; 4096];
        while !String::from_utf8_lossy(&self.seen).contains(text) {
            assert!(began.elapsed() < LIMIT, "{text:?} does not come");
            let count = output.read(&mut piece).unwrap();
            assert!(count > 0, "the end, and no {text:?} in {:?}", String::from_utf8_lossy(&self.seen));
            self.seen.extend_from_slice(&piece[..count]);
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Its exit code.
    #[track_caller]
    pub(crate) fn end(mut self) -> Option<i32> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(began.elapsed() < LIMIT, "it does not end");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
