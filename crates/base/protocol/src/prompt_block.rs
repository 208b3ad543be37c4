//! The machine-readable block that the interactive shell prints as its prompt (actions-and-observations 4.3).

use std::ops::Range;

use serde_json::{Map, Value};

use crate::observation::CommandMetadata;
use crate::python;

/// First line of a block.
pub const BEGIN: &str = "###PS1JSON###";

/// Last line of a block.
pub const END: &str = "###PS1END###";

/// The keys of the block's JSON object, in order, with the shell expressions that give their values.
pub const EXPRESSIONS: [(&str, &str); 6] = [
    ("pid", "$!"),
    ("exit_code", "$?"),
    ("username", r"\u"),
    ("hostname", r"\h"),
    ("working_dir", "$(pwd)"),
    ("py_interpreter_path", r#"$(which python 2>/dev/null || echo "")"#),
];

/// A block found in the output of a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptBlock {
    /// Where the block is, in bytes, from the first byte of the begin marker to after the last of the end marker.
    pub range: Range<usize>,
    /// What it says.
    pub metadata: CommandMetadata,
}

/// The text of the prompt: what goes between the double quotes of `PS1="…"`.
pub fn prompt() -> String {
    layout(&EXPRESSIONS).replace('"', r#"\""#)
}

/// The block that a shell prints for these values, all of which are texts in it.
pub fn format(metadata: &CommandMetadata) -> String {
    let (pid, exit_code) = (metadata.pid.to_string(), metadata.exit_code.to_string());
    layout(&[
        ("pid", &pid),
        ("exit_code", &exit_code),
        ("username", metadata.username.as_deref().unwrap_or_default()),
        ("hostname", metadata.hostname.as_deref().unwrap_or_default()),
        ("working_dir", metadata.working_dir.as_deref().unwrap_or_default()),
        ("py_interpreter_path", metadata.py_interpreter_path.as_deref().unwrap_or_default()),
    ])
}

fn layout(members: &[(&str, &str)]) -> String {
    let lines: Vec<_> =
        members.iter().map(|(key, value)| format!("  {}: {}", Value::from(*key), Value::from(*value))).collect();
    format!("\n{BEGIN}\n{{\n{}\n}}\n{END}\n", lines.join(",\n"))
}

/// All valid blocks, in order.
pub fn find_all(text: &str) -> Vec<PromptBlock> {
    let mut blocks = Vec::new();
    let mut from = 0;
    while let Some((range, inner)) = next_block(text, from) {
        from = range.end;
        if let Ok(Value::Object(members)) = serde_json::from_str(inner.trim()) {
            blocks.push(PromptBlock { range, metadata: metadata(&members) });
        }
    }
    blocks
}

/// The facts of the last valid block, which are the current ones.
pub fn last_metadata(text: &str) -> Option<CommandMetadata> {
    find_all(text).pop().map(|block| block.metadata)
}

/// The next pair of markers at or after a byte offset, and the text between them.
fn next_block(text: &str, mut from: usize) -> Option<(Range<usize>, &str)> {
    loop {
        let start = from + text.get(from..)?.find(BEGIN)?;
        let inner_start = start + BEGIN.len();
        if start == 0 || text.as_bytes().get(start - 1) == Some(&b'\n') {
            let inner = text.get(inner_start..)?.split_once(END)?.0;
            return Some((start..inner_start + inner.len() + END.len(), inner));
        }
        from = inner_start;
    }
}

fn metadata(members: &Map<String, Value>) -> CommandMetadata {
    let number = |key: &str| members.get(key).map_or(-1, number);
    let text = |key: &str| members.get(key).and_then(Value::as_str).map(str::to_owned);
    CommandMetadata {
        exit_code: number("exit_code"),
        pid: number("pid"),
        username: text("username"),
        hostname: text("hostname"),
        working_dir: text("working_dir"),
        py_interpreter_path: text("py_interpreter_path"),
        prefix: text("prefix").unwrap_or_default(),
        suffix: text("suffix").unwrap_or_default(),
    }
}

/// The number that the value's text says, without its fraction; -1 if it says none.
#[expect(clippy::cast_possible_truncation, reason = "the fraction is dropped on purpose and the range is checked")]
fn number(value: &Value) -> i64 {
    let number = match value {
        Value::String(text) => python::parse_float(text),
        Value::Number(number) => number.as_f64(),
        _ => None,
    };
    number.filter(|number| number.abs() < 1e15).map_or(-1, |number| number as i64)
}
