//! What the shell's latest prompt told.

use std::path::PathBuf;

use gloveport_sys::host::find_program;
use tokio::sync::watch;

use crate::{request::Facts, scanner::PromptReport};

#[derive(Debug)]
pub(super) struct Known {
    pub(super) facts: watch::Sender<Facts>,
    pub(super) path: String,
    /// Option letters of the shell (`$-`).
    pub(super) letters: String,
}

impl Known {
    pub(super) fn new(facts: watch::Sender<Facts>) -> Self {
        Self { facts, path: String::new(), letters: String::new() }
    }

    /// Where the shell is.
    pub(super) fn directory(&self) -> PathBuf {
        PathBuf::from(self.facts.borrow().directory.clone())
    }

    /// Status of the last command.
    pub(super) fn status(&self) -> i32 {
        self.facts.borrow().status
    }

    pub(super) fn set_status(&self, status: i32) {
        self.facts.send_modify(|facts| facts.status = status);
    }

    /// Takes what a prompt told, of a shell of this user, in this directory; empty if that is not known.
    pub(super) fn note(&mut self, report: &PromptReport, directory: String, user_name: String) {
        if let Some(path) = &report.path {
            self.path.clone_from(path);
        }
        self.letters.clone_from(&report.options);
        let python = find_program("python", &self.path, directory.as_ref());
        self.facts.send_modify(|facts| {
            facts.status = report.status;
            facts.background_pid = report.background_pid;
            if !directory.is_empty() {
                facts.directory = directory;
            }
            facts.python = python;
            facts.user_name = user_name;
        });
    }
}
