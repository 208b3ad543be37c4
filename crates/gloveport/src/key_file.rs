//! The key for a server: from a flag, a file, a variable, or as the server has made it for itself on this machine.

use std::{fs, path::Path};

use anyhow::Context as _;
use gloveport_client::ClientOptions;

use crate::here;

/// How the server at this URL is asked: with the key in the file, with the one that is given, or with that which it has
/// made for itself on this machine.
pub(crate) fn options(url: &str, key: Option<&str>, file: Option<&Path>) -> anyhow::Result<ClientOptions> {
    Ok(ClientOptions::new(url).with_key(chosen(url, key, file)?.as_deref()))
}

/// The key for the server at this URL, if there is one.
pub(crate) fn chosen(url: &str, key: Option<&str>, file: Option<&Path>) -> anyhow::Result<Option<String>> {
    if let Some(file) = file {
        return given(file).map(Some);
    }
    let Some(key) = key else { return Ok(here::known_key(url)) };
    // The flag and the variable are one to the parser.
    if std::env::var("GLOVEPORT_KEY").ok().as_deref() != Some(key) {
        tracing::warn!(
            "everyone on this machine can see the key in the arguments; use --key-file or GLOVEPORT_KEY instead"
        );
    }
    Ok(Some(key.to_owned()))
}

/// The key in a file.
pub(crate) fn given(file: &Path) -> anyhow::Result<String> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read the key file {}", file.display()))?;
    anyhow::ensure!(!text.trim().is_empty(), "the key file {} is empty", file.display());
    Ok(text.trim().to_owned())
}
