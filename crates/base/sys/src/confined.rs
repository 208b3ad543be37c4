//! Programs that the kernel keeps to a part of the machine: the isolation level `files`.
//!
//! A guard that is started with a [`Confinement`] takes it on before it starts anything, and all that it starts inherits
//! it. Nothing can be added to it, and nobody gets out of it. The server, whose clients ask it for files, keeps itself to its
//! own places before that.
//!
//! | layer | what it keeps |
//! |---|---|
//! | Landlock | files are read and written in the given places only; no signals and no tracing of processes outside |
//! | Landlock again, for each session | of all terminals only the session's own |
//! | a filter of system calls | no mounts, namespaces, keys, kernel modules, tracing of the kernel; no network, if it is off |
//! | somebody who is asked | connections to sockets with a name, which are made for programs: those of their own places alone ([`connections`]) |
//! | somebody who is asked, in containers whose files have several owners | modes that give rights, which are set without those bits |
//! | no new privileges | set-user-ID programs and capabilities of files give nothing; root has no capabilities |
//!
//! What it does not keep: names, sizes and times of files can be asked for by their names, modes and owners of the user's own
//! files can be changed, and the command lines of processes are seen. `docs/isolation.md` has the whole list.

mod calls;
pub(crate) mod connections;
pub(crate) mod modes;
pub(crate) mod rights;
mod rules;

use std::{
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use landlock::ABI;
use rustix::thread::set_no_new_privs;
use serde::{Deserialize, Serialize};

pub(crate) use calls::Modes;
pub(crate) use rules::{BesideTerminals, Layer};

/// What programs may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    /// Places, by names without links, whose files they read and run, beside those of the system ([`system_places`]).
    pub read: Vec<PathBuf>,
    /// Places in which they read, run, write, make and remove files.
    pub write: Vec<PathBuf>,
    /// Whether they have the network of this machine. Without it they have none, not even the machine itself.
    pub network: bool,
}

/// What this kernel can keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Support {
    /// Version of Landlock.
    pub version: u32,
    /// What it lacks, each as the end of "it does not keep programs from …".
    pub gaps: Vec<&'static str>,
}

/// Why a program cannot be confined here, and what helps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Unsupported {
    /// What is missing.
    pub reason: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

/// Why a confinement cannot be taken on. Nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// The machine cannot do it.
    #[error("programs cannot be confined here: {}; {}", .0.reason, .0.remedy)]
    Unsupported(#[from] Unsupported),
    /// A place cannot be opened.
    #[error("cannot give programs the place {}: {source}", .path.display())]
    Place {
        /// The place.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A step failed.
    #[error("cannot confine programs: {step} failed: {reason}")]
    Step {
        /// What was being done.
        step: String,
        /// Why it failed.
        reason: String,
    },
}

/// What this machine can do. Landlock before its third version does not keep files from being cut, and is refused.
pub fn support() -> Result<Support, Unsupported> {
    if crate::bpf::ARCHITECTURE.is_none() {
        let remedy = "use an x86-64 or 64-bit ARM machine, or a runtime with containers";
        return Err(Unsupported { reason: "the system calls of this processor are not known", remedy });
    }
    let version = match rules::version() {
        Ok(version) => version,
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            let remedy = "add landlock to the list of the boot parameter lsm=";
            return Err(Unsupported { reason: "Landlock is turned off in this kernel", remedy });
        }
        Err(_) => {
            let remedy = "use Linux 6.2 or later; in a container, a rule of its engine may forbid it";
            return Err(Unsupported { reason: "this kernel has no Landlock", remedy });
        }
    };
    let Some(gaps) = gaps(ABI::from(version)) else {
        return Err(Unsupported {
            reason: "Landlock of this kernel does not keep files from being cut to nothing",
            remedy: "use Linux 6.2 or later",
        });
    };
    Ok(Support { version: version.cast_unsigned(), gaps })
}

fn gaps(version: ABI) -> Option<Vec<&'static str>> {
    let mut gaps = Vec::new();
    if version < ABI::V3 {
        return None;
    }
    if version < ABI::V5 {
        gaps.push("commands to the devices that they may open (Linux 6.10 has that)");
    }
    if version < ABI::V6 {
        gaps.push("signals to your other processes (Linux 6.12 has that)");
    }
    Some(gaps)
}

/// What was opened and made before, so that it is only put on.
#[derive(Debug)]
pub(crate) struct Prepared {
    scopes: Option<rules::Scopes>,
    calls: calls::Filter,
    /// Not in a container, whose first process has given them up.
    has_capabilities: bool,
}

/// What programs of a container are kept to beside it, whether they have the network of the machine, and what becomes of modes that
/// give rights.
pub(crate) fn prepare_inside(network: bool, modes: Modes) -> Result<Prepared, ConfineError> {
    let calls = calls::Filter::inside(modes).ok_or_else(no_filter)?;
    // Sockets with abstract names belong to a network.
    let version = if network { support().map_or(0, |support| support.version) } else { 0 };
    Ok(Prepared { scopes: rules::Scopes::new(version)?, calls, has_capabilities: false })
}

fn no_filter() -> ConfineError {
    ConfineError::Step {
        step: "the filter of system calls".to_owned(),
        reason: "the system calls of this processor are not known".to_owned(),
    }
}

impl Confinement {
    /// Opens its places, which the server keeps to, and all that comes from it.
    pub(crate) fn prepare_places(&self) -> Result<Places, ConfineError> {
        support()?;
        Ok(Places(rules::Rules::new(self)?))
    }

    /// Makes what programs are kept to beside that.
    pub(crate) fn prepare(&self) -> Result<Prepared, ConfineError> {
        let version = support()?.version;
        let calls = calls::Filter::new(self.network).ok_or_else(no_filter)?;
        Ok(Prepared { scopes: rules::Scopes::new(version)?, calls, has_capabilities: true })
    }

    /// Looks for all places that are no terminals, which confined processes cannot.
    pub(crate) fn beside_terminals(&self) -> Result<BesideTerminals, ConfineError> {
        BesideTerminals::new(self)
    }
}

/// The places alone.
#[derive(Debug)]
pub(crate) struct Places(rules::Rules);

impl Places {
    /// Keeps this process, which must have one thread, to the places, for good, and to nothing else of it.
    pub(crate) fn enter(self) -> Result<(), ConfineError> {
        let failed = |step: &str, error: &dyn std::fmt::Display| ConfineError::Step {
            step: step.to_owned(),
            reason: error.to_string(),
        };
        set_no_new_privs(true).map_err(|error| failed("PR_SET_NO_NEW_PRIVS", &error))?;
        self.0.enter().map_err(|error| failed("Landlock", &error))
    }
}

/// How the guard tells that it is confined, or why not.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Entered(pub(crate) Result<(), (String, String)>);

impl Prepared {
    /// Confines this process, which must have one thread, for good. Beside what is told there is what asks for connections.
    pub(crate) fn enter(self) -> (Entered, Option<OwnedFd>) {
        match self.put_on() {
            Ok(notices) => (Entered(Ok(())), notices),
            Err((step, error)) => (Entered(Err((step.to_owned(), error.to_string()))), None),
        }
    }

    fn put_on(self) -> Result<Option<OwnedFd>, rights::Failed> {
        rights::close()?;
        if let Some(scopes) = self.scopes {
            scopes.enter().map_err(|error| ("Landlock", error))?;
        }
        if self.has_capabilities {
            rights::drop_capabilities()?;
        }
        self.calls.install().map_err(|error| ("seccomp", error))
    }
}

/// Keeps this process from being looked into, and what it starts from getting rights.
pub(crate) fn close_this_process() -> Result<(), ConfineError> {
    rights::close().map_err(|(step, error)| ConfineError::Step { step: step.to_owned(), reason: error.to_string() })
}

/// Keeps this process, which must have one thread, from all files but those of the system, which it reads, and from getting rights,
/// for good. Where the kernel knows no such rules it gives up its rights all the same.
pub fn close_all_but_the_network() -> Result<(), ConfineError> {
    let failed =
        |(step, error): rights::Failed| ConfineError::Step { step: step.to_owned(), reason: error.to_string() };
    rights::close().map_err(failed)?;
    if support().is_ok() {
        let nothing = Confinement { read: Vec::new(), write: Vec::new(), network: true };
        nothing.prepare_places()?.enter()?;
    }
    rights::drop_capabilities().map_err(failed)
}

/// What the system is made of: programs, libraries, settings, what the kernel tells. No directory of a user is among it.
pub fn system_places() -> impl Iterator<Item = &'static Path> {
    rules::SYSTEM.iter().map(Path::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_lacks_what_came_later_and_one_that_lets_files_be_cut_is_none() {
        assert_eq!(gaps(ABI::V1), None);
        assert_eq!(gaps(ABI::V2), None);
        assert_eq!(gaps(ABI::V4).unwrap().len(), 2);
        assert_eq!(gaps(ABI::V5).unwrap().len(), 1);
        assert_eq!(gaps(ABI::V7), Some(vec![]));
    }
}
