//! The kernels of a sandbox, by name.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use gloveport_kernel::KernelOptions;
pub use gloveport_kernel::{Cell, CellEnd, CellReport, Kernel, KernelError, KernelState, Output};
use gloveport_plugin::PluginError;

/// Kernels at the same time.
pub const MOST: usize = 16;
/// Longest name.
const MAX_NAME: usize = 64;

/// Why there is no such kernel.
#[derive(Debug, thiserror::Error)]
pub enum KernelsError {
    /// The name is not one.
    #[error("a kernel's name has 1 to {MAX_NAME} letters, digits, `-`, `_` and `.`, and is {0:?}")]
    Name(String),
    /// There are too many.
    #[error("{MOST} kernels run already; end one of them first")]
    TooMany,
    /// Nobody has started it.
    #[error("no kernel has the name `{0}`")]
    Unknown(String),
    /// The sandbox is ending.
    #[error("the sandbox is ending, so no kernel can be started")]
    Closed,
    /// What it needs cannot be had.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// It does not run the cell.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}

/// The kernels of a sandbox.
#[derive(Debug, Default)]
pub struct Kernels {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    all: BTreeMap<String, Kernel>,
    closed: bool,
}

impl Kernels {
    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kernel of this name.
    pub fn find(&self, name: &str) -> Option<Kernel> {
        self.table().all.get(name).cloned()
    }

    /// All of them by name, with how they stand.
    pub fn list(&self) -> Vec<(String, KernelState)> {
        self.table().all.iter().map(|(name, kernel)| (name.clone(), kernel.state().borrow().clone())).collect()
    }

    /// Starts a kernel of a name that is one, or answers with the one that there is. The second value says whether it was started.
    pub(crate) fn start(&self, name: &str, options: KernelOptions) -> Result<(Kernel, bool), KernelsError> {
        let mut table = self.table();
        if let Some(kernel) = table.all.get(name) {
            return Ok((kernel.clone(), false));
        }
        if table.closed {
            return Err(KernelsError::Closed);
        }
        if table.all.len() >= MOST {
            return Err(KernelsError::TooMany);
        }
        let kernel = Kernel::start(options);
        table.all.insert(name.to_owned(), kernel.clone());
        Ok((kernel, true))
    }

    /// Ends a kernel, and returns when nothing of it is left.
    pub async fn remove(&self, name: &str) -> Result<(), KernelsError> {
        let kernel = self.table().all.remove(name).ok_or_else(|| KernelsError::Unknown(name.to_owned()))?;
        kernel.close().await;
        Ok(())
    }

    /// Ends all of them; no other one is started.
    pub(crate) async fn close(&self) {
        let all = {
            let mut table = self.table();
            table.closed = true;
            std::mem::take(&mut table.all)
        };
        let mut ends = tokio::task::JoinSet::new();
        for kernel in all.into_values() {
            ends.spawn(async move { kernel.close().await });
        }
        ends.join_all().await;
    }
}

/// Whether this can be the name of a kernel.
pub(crate) fn check(name: &str) -> Result<(), KernelsError> {
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(valid) {
        return Err(KernelsError::Name(name.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_letters_digits_and_few_signs() {
        for (name, valid) in
            [("default", true), ("a.b-c_1", true), ("", false), ("a/b", false), ("é", false), (&"x".repeat(65), false)]
        {
            assert_eq!(check(name).is_ok(), valid, "{name:?}");
        }
    }
}
