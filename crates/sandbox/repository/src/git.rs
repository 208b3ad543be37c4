//! One call of git: within a time and a size, and not as a hostile repository would have it.

use std::{
    ffi::OsString,
    fmt::Display,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    time::Duration,
};

use gloveport_sys::{Surroundings, surroundings::TalkingProgram};
use tokio::{io::AsyncReadExt as _, net::unix::pipe::Receiver, time::timeout};

/// Time for one call.
const LIMIT: Duration = Duration::from_secs(30);
/// Time for one that asks another machine.
const REMOTE_LIMIT: Duration = Duration::from_secs(10);
/// Most bytes that it may print.
const MOST: u64 = 64 * 1024 * 1024;
/// Most bytes that are kept of what it complains of.
const COMPLAINT: u64 = 64 * 1024;
/// Settings that a repository has no say in: programs that it would have run, and texts that it would have changed.
const SETTINGS: [&str; 9] = [
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.quotePath=false",
    "-c",
    "log.showSignature=false",
    "--no-optional-locks",
];

/// The environment that git has. Ways to another machine that run programs of the repository's choice are not allowed.
const VARIABLES: [(&str, &str); 7] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_SSH_COMMAND", "ssh -oBatchMode=yes"),
    ("GIT_ASKPASS", "false"),
    ("SSH_ASKPASS", "false"),
    ("GIT_ALLOW_PROTOCOL", "file:http:https:ssh"),
    ("LC_ALL", "C"),
    ("GIT_PAGER", "cat"),
];
/// Variables that would name another repository, or a program.
const REMOVED: [&str; 7] =
    ["GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_NAMESPACE", "GIT_EXTERNAL_DIFF", "GIT_TRACE"];
/// Why there is no answer. The text is for whoever asked.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// Git says no.
    #[error("Git command failed: git {command}: {reason}")]
    Failed {
        /// Its words, without the settings.
        command: String,
        /// What it complains of.
        reason: String,
    },
    /// Git is not there, takes too long, or prints too much.
    #[error("Git command failed: git {command}: {reason}")]
    Unanswered {
        /// Its words, without the settings.
        command: String,
        /// Why it does not answer.
        reason: String,
    },
    /// There is no such file, neither on the disk nor in the commit.
    #[error("File does not exist: {}", .0.display())]
    NoFile(PathBuf),
    /// A text is too long to be compared.
    #[error("File too large for git diff: {size} bytes (max: {most} bytes)")]
    TooLarge {
        /// Its length.
        size: u64,
        /// The longest that is possible.
        most: u64,
    },
}

/// Git in a directory.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    surroundings: Surroundings,
    /// What stands before the words of every call.
    settings: Vec<&'static str>,
}

impl Git {
    /// Git in a directory of a repository with files; none in any other.
    pub(crate) async fn open(surroundings: &Surroundings, directory: &Path) -> Result<Option<Self>, GitError> {
        let mut surroundings = surroundings.clone();
        directory.clone_into(&mut surroundings.directory);
        for (name, value) in VARIABLES {
            surroundings.set(name, value);
        }
        for name in REMOVED {
            surroundings.unset(name);
        }
        let settings = SETTINGS.into_iter().chain(["--literal-pathspecs"]).collect();
        let git = Self { surroundings, settings };
        if git.line(&["rev-parse", "--is-inside-work-tree"]).await?.is_none_or(|line| line != "true") {
            return Ok(None);
        }
        Ok(Some(git))
    }

    /// The same with variables of its own.
    pub(crate) fn with(mut self, variables: impl IntoIterator<Item = (&'static str, OsString)>) -> Self {
        for (name, value) in variables {
            self.surroundings.set(name, value);
        }
        self
    }

    /// The same, but patterns of paths are patterns, and names of files stand in patches as git writes them by itself.
    pub(crate) fn with_pathspecs(mut self) -> Self {
        self.settings = SETTINGS.into_iter().chain(["-c", "core.quotePath=true"]).collect();
        self
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.surroundings.directory
    }

    /// What git prints.
    pub(crate) async fn run(&self, words: &[&str]) -> Result<Vec<u8>, GitError> {
        self.within(LIMIT, words).await
    }

    /// The same for what asks another machine.
    pub(crate) async fn ask(&self, words: &[&str]) -> Result<Vec<u8>, GitError> {
        self.within(REMOTE_LIMIT, words).await
    }

    /// A line that git prints; none if it says no, or nothing.
    pub(crate) async fn line(&self, words: &[&str]) -> Result<Option<String>, GitError> {
        let printed = said(self.run(words).await)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&printed);
        let text = text.trim_end_matches(['\r', '\n']);
        Ok((!text.is_empty()).then(|| text.to_owned()))
    }

    /// Whether git says yes.
    pub(crate) async fn is_so(&self, words: &[&str]) -> Result<bool, GitError> {
        Ok(said(self.run(words).await)?.is_some())
    }

    /// The full name of a commit; none if this names none.
    pub(crate) async fn commit(&self, name: &str) -> Result<Option<String>, GitError> {
        // It would be an option.
        if name.starts_with('-') || name.contains('\0') {
            return Ok(None);
        }
        let found = self.line(&["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")]).await?;
        // `^name` is all that is no part of it.
        Ok(found.filter(|found| found.bytes().all(|byte| byte.is_ascii_hexdigit())))
    }

    /// The tree without anything.
    pub(crate) async fn empty_tree(&self) -> Result<String, GitError> {
        let words = ["hash-object", "-t", "tree", "/dev/null"];
        self.line(&words).await?.ok_or_else(|| failed(&words, "it has no name for the empty tree"))
    }

    /// The commit before this one, or the empty tree.
    pub(crate) async fn parent(&self, commit: &str) -> Result<String, GitError> {
        match self.commit(&format!("{commit}^")).await? {
            Some(parent) => Ok(parent),
            None => self.empty_tree().await,
        }
    }

    /// The same for what may take longer, or not as long.
    pub(crate) async fn within(&self, limit: Duration, words: &[&str]) -> Result<Vec<u8>, GitError> {
        let argv: Vec<OsString> = ["git"].iter().chain(&self.settings).chain(words).map(OsString::from).collect();
        let unanswered = |error: &dyn Display| unanswered(words, &error.to_string());
        let work = async {
            let started = self.surroundings.start_to_talk(&argv).await.map_err(|error| unanswered(&error))?;
            let TalkingProgram { mut process, input, output, errors } = started;
            drop(input);
            let (printed, complaint) = tokio::join!(read(output), read_and_drain(errors));
            let exit = process.exited().await;
            process.end(Duration::ZERO).await;
            let printed = printed.map_err(|error| unanswered(&error))?;
            if exit.shell_status() == 0 {
                return Ok(printed);
            }
            let complaint = complaint.unwrap_or_default();
            let complaint = String::from_utf8_lossy(&complaint);
            let reason = complaint.trim();
            let code = exit.shell_status().to_string();
            Err(failed(words, if reason.is_empty() { &code } else { reason }))
        };
        // What is dropped ends its process.
        let late = format!("it took longer than {} s", limit.as_secs());
        timeout(limit, work).await.unwrap_or_else(|_| Err(unanswered(&late)))
    }
}

/// What git prints; none if it says no.
fn said(answer: Result<Vec<u8>, GitError>) -> Result<Option<Vec<u8>>, GitError> {
    match answer {
        Ok(printed) => Ok(Some(printed)),
        Err(GitError::Failed { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(crate) fn failed(words: &[&str], reason: &str) -> GitError {
    GitError::Failed { command: words.first().copied().unwrap_or_default().to_owned(), reason: reason.to_owned() }
}

fn unanswered(words: &[&str], reason: &str) -> GitError {
    GitError::Unanswered { command: words.first().copied().unwrap_or_default().to_owned(), reason: reason.to_owned() }
}

/// Reads to the end, up to a bound.
async fn read(pipe: OwnedFd) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Receiver::from_owned_fd(pipe)?.take(MOST + 1).read_to_end(&mut bytes).await?;
    if bytes.len() as u64 > MOST {
        return Err(io::Error::other(format!("it printed more than {MOST} bytes")));
    }
    Ok(bytes)
}

/// Reads to the end, and keeps the first bytes.
async fn read_and_drain(pipe: OwnedFd) -> io::Result<Vec<u8>> {
    let mut pipe = Receiver::from_owned_fd(pipe)?;
    let mut kept = Vec::new();
    (&mut pipe).take(COMPLAINT).read_to_end(&mut kept).await?;
    tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
    Ok(kept)
}
