//! Texts that are given on the command line: as they are, as `@FILE` for the content of a file, or as `-` for standard
//! input.

use std::io::{IsTerminal as _, Read as _};

use anyhow::Context as _;

/// The bytes that are given.
pub(super) fn bytes(given: &str) -> anyhow::Result<Vec<u8>> {
    if given == "-" {
        return standard_input();
    }
    match given.strip_prefix('@') {
        Some(file) => std::fs::read(file).with_context(|| format!("cannot read the text from {file}")),
        None => Ok(given.as_bytes().to_vec()),
    }
}

/// The text that is given.
pub(super) fn text(given: &str) -> anyhow::Result<String> {
    let place = || match given.strip_prefix('@') {
        Some(file) => format!("{file} is not UTF-8 text"),
        None => "standard input is not UTF-8 text".to_owned(),
    };
    String::from_utf8(bytes(given)?).with_context(place)
}

/// All of standard input.
pub(super) fn standard_input() -> anyhow::Result<Vec<u8>> {
    let mut input = std::io::stdin();
    if input.is_terminal() {
        tracing::info!("reading the text from the terminal; end it with C-d");
    }
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).context("cannot read the text from standard input")?;
    Ok(bytes)
}
