//! A directory of this machine that somebody names.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// An existing directory as an absolute path.
pub(crate) fn existing(path: &Path) -> anyhow::Result<PathBuf> {
    let absolute = std::path::absolute(path).with_context(|| format!("cannot use the directory {}", path.display()))?;
    anyhow::ensure!(absolute.is_dir(), "{} is not a directory", absolute.display());
    Ok(absolute)
}
