//! `gloveport provider json`: a value out of JSON, so that a provider program in shell needs no other tool.

use std::{io::Read as _, process::ExitCode};

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;

/// Most bytes that are read.
const MOST: u64 = 16 * 1024 * 1024;

#[derive(Debug, Args)]
#[command(after_help = "A text is printed as it is, everything else as JSON; nothing for null. Exit codes: 0 done; 1 \
    there is no such value, or the input is not JSON; 2 wrong command line.")]
pub(super) struct JsonArgs {
    /// Where the value is, as a JSON pointer (RFC 6901): /spec/session_key
    pointer: String,
    /// Print a text as JSON as well, with its quotes.
    #[arg(long, conflicts_with = "export")]
    quoted: bool,
    /// Print an object as `export NAME='VALUE'` lines for `eval`.
    #[arg(long)]
    export: bool,
}

pub(super) fn json(arguments: &JsonArgs) -> anyhow::Result<ExitCode> {
    let mut input = Vec::new();
    std::io::stdin().take(MOST + 1).read_to_end(&mut input).context("cannot read standard input")?;
    anyhow::ensure!(input.len() as u64 <= MOST, "the input is larger than {} MiB", MOST / 1024 / 1024);
    let value: Value = serde_json::from_slice(&input).context("the input is not JSON")?;
    let found = value.pointer(&arguments.pointer).with_context(|| format!("there is no {}", arguments.pointer))?;
    super::print(&if arguments.export { exports(found)? } else { shown(found, arguments.quoted) })?;
    Ok(ExitCode::SUCCESS)
}

fn shown(value: &Value, quoted: bool) -> String {
    match value {
        Value::Null if !quoted => String::new(),
        Value::String(text) if !quoted => format!("{text}\n"),
        other => format!("{other}\n"),
    }
}

/// Lines that a POSIX shell reads back to the same values.
fn exports(value: &Value) -> anyhow::Result<String> {
    let object = value.as_object().context("only an object can be exported")?;
    let mut text = String::new();
    for (name, value) in object {
        let is_name = |text: &str| {
            text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                && text.bytes().next().is_some_and(|first| !first.is_ascii_digit())
        };
        anyhow::ensure!(is_name(name), "`{name}` cannot be the name of a variable in a shell");
        let value = value.as_str().with_context(|| format!("{name} is no text"))?;
        text.extend(["export ", name, "='", &value.replace('\'', "'\\''"), "'\n"]);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_survive_quotes_and_lines_and_refuse_what_is_no_name() {
        let value = serde_json::json!({"A": "it's $HOME\n`x`", "B_1": ""});
        assert_eq!(exports(&value).unwrap(), "export A='it'\\''s $HOME\n`x`'\nexport B_1=''\n");
        for wrong in [serde_json::json!({"A;id": ""}), serde_json::json!({"1": ""}), serde_json::json!({"A": 1})] {
            assert!(exports(&wrong).is_err(), "{wrong}");
        }
    }
}
