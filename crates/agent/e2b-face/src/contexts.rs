//! What is known of contexts of code. The kernels are those of the sandboxes; what is here is told beside them.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use gloveport_provider::SandboxId;

/// Contexts of which something is known here.
const MOST: usize = 65_536;

/// What is known of a context.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub(crate) directory: Option<String>,
    /// Cells that have run.
    pub(crate) count: u64,
}

/// What is known of contexts.
#[derive(Debug, Default)]
pub(crate) struct Contexts {
    all: Mutex<HashMap<(SandboxId, String), Known>>,
}

impl Contexts {
    fn all(&self) -> MutexGuard<'_, HashMap<(SandboxId, String), Known>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn known(&self, sandbox: &SandboxId, id: &str) -> Known {
        self.all().get(&(sandbox.clone(), id.to_owned())).cloned().unwrap_or_default()
    }

    pub(crate) fn set(&self, sandbox: &SandboxId, id: &str, known: Known) {
        let mut all = self.all();
        if all.len() >= MOST {
            // Nothing of it is needed: counts begin anew, and directories are told as those of the sandbox.
            all.clear();
        }
        all.insert((sandbox.clone(), id.to_owned()), known);
    }

    /// The number of a cell.
    pub(crate) fn count(&self, sandbox: &SandboxId, id: &str) -> u64 {
        let known = self.known(sandbox, id);
        let count = known.count + 1;
        self.set(sandbox, id, Known { count, ..known });
        count
    }

    pub(crate) fn forget(&self, sandbox: &SandboxId, id: &str) {
        self.all().remove(&(sandbox.clone(), id.to_owned()));
    }
}
