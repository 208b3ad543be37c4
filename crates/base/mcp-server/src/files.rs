//! `read_file`, `write_file` and `edit_file`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gloveport_protocol::{Action, EditAction, Observation, files::FileKind};
use rmcp::model::{ContentBlock, JsonObject, Resource};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    answer::Answer,
    arguments::{absolute, parse},
    computer::{Computer, Failure},
    media,
    tool::Tool,
    uri,
};

/// Most bytes of text in an answer.
const MOST_TEXT: usize = 100_000;
/// Bytes that are read at once.
const PIECE: u64 = 1024 * 1024;
/// Most bytes that are passed over to reach a line.
const MOST_PASSED: u64 = 256 * 1024 * 1024;
/// Most bytes of a picture.
const MOST_IMAGE: u64 = 5 * 1024 * 1024;
/// Most entries of a directory.
const MOST_ENTRIES: usize = 1000;
/// What the editor's words begin with when it failed.
const EDITOR_ERROR: &str = "ERROR:\n";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    path: String,
    start_line: Option<u64>,
    lines: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteArguments {
    path: String,
    content: String,
    encoding: Option<Encoding>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    Text,
    Base64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EditArguments {
    path: String,
    old_text: String,
    new_text: String,
}

pub(crate) async fn read(computer: &dyn Computer, arguments: JsonObject) -> Result<Answer, Failure> {
    let ReadArguments { path, start_line, lines } = parse(Tool::ReadFile, arguments)?;
    if start_line == Some(0) || lines == Some(0) {
        return Err(Failure::new("start_line and lines count from 1"));
    }
    let path = absolute(computer.directory(), &path)?;
    let entry = computer.stat(&path).await?;
    if entry.kind == FileKind::Directory {
        return directory(computer, &path).await;
    }
    let first = computer.read(&path, 0, PIECE).await?;
    let head = media::head(&first.bytes);
    if let Some(kind) = media::picture(head).filter(|_| entry.size <= MOST_IMAGE) {
        let mut bytes = first.bytes;
        let mut is_end = first.is_end;
        while !is_end && (bytes.len() as u64) <= MOST_IMAGE {
            let next = computer.read(&path, bytes.len() as u64, PIECE).await?;
            bytes.extend(next.bytes);
            is_end = next.is_end;
        }
        let size = bytes.len();
        let mut answer =
            Answer::new(format!("{path}: {kind}, {size} bytes"), json!({"path": path, "kind": "image", "size": size}));
        answer.more.push(ContentBlock::image(STANDARD.encode(bytes), kind));
        return Ok(answer);
    }
    if !media::is_text(head) {
        let size = entry.size;
        let text = format!(
            "{path} is a binary file of {size} bytes ({}); its bytes are the resource behind this text",
            media::type_of(head)
        );
        let mut answer = Answer::new(text, json!({"path": path, "kind": "binary", "size": size}));
        let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
        answer.more.push(ContentBlock::resource_link(Resource::new(uri::of(&path), name).with_size(size)));
        return Ok(answer);
    }
    let mut taken = Lines::new(start_line.unwrap_or(1), lines);
    let (mut piece, mut offset) = (first, 0);
    loop {
        offset += piece.bytes.len() as u64;
        let is_enough = taken.take(&piece.bytes);
        if is_enough || piece.is_end {
            return taken.answer(&path, entry.size);
        }
        if offset >= MOST_PASSED {
            return Err(Failure::new(format!(
                "line {} of {path} is behind its first {MOST_PASSED} bytes; use shell (sed -n) to read it",
                start_line.unwrap_or(1)
            )));
        }
        piece = computer.read(&path, offset, PIECE).await?;
    }
}

/// Some lines of a file whose bytes come in pieces.
struct Lines {
    start: u64,
    wanted: Option<u64>,
    /// Number of the line that comes next.
    line: u64,
    /// The lines that are wanted, whole.
    taken: Vec<u8>,
    count: u64,
    /// A line whose end has not come.
    rest: Vec<u8>,
    /// The file goes on behind what was taken.
    more: bool,
}

impl Lines {
    const fn new(start: u64, wanted: Option<u64>) -> Self {
        Self { start, wanted, line: 1, taken: Vec::new(), count: 0, rest: Vec::new(), more: false }
    }

    /// Takes what comes next. True if no more is wanted.
    fn take(&mut self, bytes: &[u8]) -> bool {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line < self.start {
                self.line += u64::from(piece.ends_with(b"\n"));
                continue;
            }
            if self.is_full() {
                return true;
            }
            self.rest.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.end_line();
            } else if self.rest.len() > MOST_TEXT {
                // One endless line.
                return true;
            }
        }
        false
    }

    fn is_full(&mut self) -> bool {
        self.more = self.wanted.is_some_and(|wanted| self.count >= wanted) || self.taken.len() >= MOST_TEXT;
        self.more
    }

    fn end_line(&mut self) {
        self.taken.append(&mut self.rest);
        self.line += 1;
        self.count += 1;
    }

    fn answer(mut self, path: &str, size: u64) -> Result<Answer, Failure> {
        if !self.more && !self.rest.is_empty() {
            self.end_line();
        }
        if self.count == 0 && self.start > 1 {
            return Err(Failure::new(format!("{path} has no line {}: it has {}", self.start, self.line - 1)));
        }
        let mut text = String::from_utf8_lossy(&self.taken).into_owned();
        let mut data = json!({
            "path": path,
            "kind": "text",
            "content": Value::Null,
            "start_line": self.start,
            "lines": self.count,
            "size": size,
        });
        // A line that is longer than an answer is cut.
        let is_cut = text.len() > 2 * MOST_TEXT;
        if is_cut {
            let end = (0..=2 * MOST_TEXT).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text.truncate(end);
        }
        data["content"] = text.clone().into();
        let mut shown = text;
        let mut note = |words: String| {
            if !shown.is_empty() && !shown.ends_with('\n') {
                shown.push('\n');
            }
            shown.push_str(&words);
        };
        if is_cut {
            note("[a line is longer than this, and is cut here; use shell to see the rest]".to_owned());
        }
        if self.more {
            let next = self.start + self.count;
            data["next_line"] = next.into();
            note(format!("[the file goes on; read it from start_line {next}]"));
        } else if size == 0 {
            note("[the file is empty]".to_owned());
        }
        Ok(Answer::new(shown, data))
    }
}

async fn directory(computer: &dyn Computer, path: &str) -> Result<Answer, Failure> {
    let list = computer.list(path, MOST_ENTRIES).await?;
    let mut text = String::new();
    for entry in &list.entries {
        text.push_str(&entry.path);
        if entry.kind == FileKind::Directory {
            text.push('/');
        }
        text.push('\n');
    }
    let data = json!({"path": path, "kind": "directory", "content": text, "lines": list.entries.len()});
    let shown = match (list.entries.is_empty(), list.truncated) {
        (true, _) => format!("[{path} is empty]"),
        (false, true) => format!("{text}[there are more than {MOST_ENTRIES} entries]"),
        (false, false) => text,
    };
    Ok(Answer::new(shown, data))
}

pub(crate) async fn write(computer: &dyn Computer, arguments: JsonObject) -> Result<Answer, Failure> {
    let WriteArguments { path, content, encoding } = parse(Tool::WriteFile, arguments)?;
    let path = absolute(computer.directory(), &path)?;
    let bytes = match encoding.unwrap_or(Encoding::Text) {
        Encoding::Text => content.into_bytes(),
        Encoding::Base64 => {
            let compact: String = content.split_ascii_whitespace().collect();
            STANDARD.decode(compact).map_err(|error| Failure::new(format!("content is no base64: {error}")))?
        }
    };
    let size = bytes.len();
    computer.write(&path, bytes).await?;
    Ok(Answer::new(format!("{path}: {size} bytes written"), json!({"path": path, "bytes": size})))
}

pub(crate) async fn edit(computer: &dyn Computer, arguments: JsonObject) -> Result<Answer, Failure> {
    let EditArguments { path, old_text, new_text } = parse(Tool::EditFile, arguments)?;
    let path = absolute(computer.directory(), &path)?;
    if old_text.is_empty() {
        return Err(Failure::new("old_text is empty; write_file writes a whole file"));
    }
    let edit = EditAction {
        command: "str_replace".to_owned(),
        old_str: Some(old_text),
        new_str: Some(new_text),
        ..EditAction::new(&path)
    };
    match computer.act(Action::Edit(edit)).await? {
        Observation::Edit(edit) => {
            if let Some(error) = edit.content.strip_prefix(EDITOR_ERROR) {
                return Err(Failure::new(error));
            }
            let mut data = json!({"path": path});
            if let Some(diff) = edit.diff {
                data["diff"] = diff.into();
            }
            Ok(Answer::new(edit.content, data))
        }
        Observation::Error(error) => Err(Failure::new(error.content)),
        other => Err(Failure::new(other.content().to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, start: u64, wanted: Option<u64>, piece: usize) -> Result<(String, Value), Failure> {
        let mut lines = Lines::new(start, wanted);
        for piece in text.as_bytes().chunks(piece) {
            if lines.take(piece) {
                break;
            }
        }
        lines.answer("/f", text.len() as u64).map(|answer| (answer.text, answer.data))
    }

    #[test]
    fn lines_are_counted_from_one_and_what_follows_is_told() {
        for piece in [1, 2, 3, 100] {
            let (text, data) = lines("a\nb\nc\nd", 2, Some(2), piece).unwrap();
            assert_eq!(text, "b\nc\n[the file goes on; read it from start_line 4]");
            assert_eq!(
                (&data["content"], &data["lines"], &data["next_line"]),
                (&"b\nc\n".into(), &2.into(), &4.into())
            );
            let (text, data) = lines("a\nb", 1, None, piece).unwrap();
            assert_eq!((text.as_str(), &data["lines"], data.get("next_line")), ("a\nb", &2.into(), None));
            assert_eq!(lines("a\nb", 2, Some(1), piece).unwrap().0, "b");
            let error = lines("a\nb\n", 4, None, piece).unwrap_err();
            assert_eq!(error.text, "/f has no line 4: it has 2");
        }
        assert_eq!(lines("", 1, None, 1).unwrap().0, "[the file is empty]");
    }

    #[test]
    fn a_text_that_is_too_long_is_read_in_parts_and_an_endless_line_is_cut() {
        let text = "0123456789\n".repeat(20_000);
        let (_, data) = lines(&text, 1, None, 4096).unwrap();
        let next = data["next_line"].as_u64().unwrap();
        assert!(data["content"].as_str().unwrap().len() < MOST_TEXT + 20 && next > 9000, "{next}");
        let (shown, _) = lines(&"x".repeat(3 * MOST_TEXT), 1, None, 1024 * 1024).unwrap();
        assert!(shown.ends_with("is cut here; use shell to see the rest]") && shown.len() < 2 * MOST_TEXT + 100);
    }
}
