//! What the reference answers to some hundred sequences of requests (`golden/generate.py`), and what we answer.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{collections::BTreeMap, fs, os::unix::fs::symlink, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gloveport_editor::{EditRequest, Editor, EditorOptions, ViewRange, binary, diff};
use serde::Deserialize;

/// What stands for the directory of a sequence.
const ROOT: &str = "ROOT";

#[derive(Deserialize)]
struct Golden {
    sequences: Vec<Sequence>,
    binaries: Vec<Binary>,
    diffs: Vec<Diff>,
}

#[derive(Deserialize)]
struct Sequence {
    steps: Vec<Step>,
    /// The files at the end, in base64.
    files: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Step {
    Put { put: String, content: String },
    Directory { directory: String },
    Link { link: String, target: String },
    Run(Box<Run>),
}

#[derive(Deserialize)]
struct Run {
    command: String,
    path: String,
    file_text: Option<String>,
    view_range: Option<Vec<i64>>,
    old_str: Option<String>,
    new_str: Option<String>,
    insert_line: Option<i64>,
    output: Option<String>,
    diff: Option<String>,
    error: Option<String>,
    failure: Option<String>,
}

#[derive(Deserialize)]
struct Binary {
    bytes: String,
    binary: bool,
}

#[derive(Deserialize)]
struct Diff {
    old: String,
    new: String,
    #[serde(rename = "diff")]
    expected: String,
}

fn golden() -> Golden {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/editor.json");
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Where we answer differently on purpose, and why.
fn differs(run: &Run) -> Option<&'static str> {
    let failure = run.failure.as_deref()?;
    [
        ("UnicodeDecodeError", "text that the reference can not decode has a legacy encoding here, or is refused"),
        ("UnicodeEncodeError", "what can not be encoded is a write failure here, and the file stays as it was"),
        ("TypeError", "the encoding of data is unknown there; here the binary test refuses it"),
    ]
    .into_iter()
    .find_map(|(kind, reason)| failure.starts_with(kind).then_some(reason))
}

/// Bytes that are text here and binary there: a few characters of UTF-8 are enough for us.
const TEXT_HERE: [&[u8]; 2] = ["é".as_bytes(), "世界和平\n".as_bytes()];

impl Run {
    /// What we answer: output and diff, or the error.
    fn answer(&self, editor: &Editor, root: &str) -> Result<(String, String), String> {
        let path = self.path.replace(ROOT, root);
        let request = EditRequest {
            command: &self.command,
            path: &path,
            file_text: self.file_text.as_deref(),
            view_range: self.view_range.as_deref().map(ViewRange::Lines),
            old_str: self.old_str.as_deref(),
            new_str: self.new_str.as_deref(),
            insert_line: self.insert_line,
        };
        match editor.run(&request) {
            Ok(report) => Ok((report.output.replace(root, ROOT), report.diff.replace(root, ROOT))),
            Err(error) => Err(error.to_string().replace(root, ROOT)),
        }
    }
}

fn play(sequence: &Sequence, number: usize) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let editor = Editor::new(EditorOptions::new(root.clone()));
    for (step, at) in sequence.steps.iter().zip(0..) {
        match step {
            Step::Put { put, content } => {
                let path = root.join(put);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, STANDARD.decode(content).unwrap()).unwrap();
            }
            Step::Directory { directory } => fs::create_dir_all(root.join(directory)).unwrap(),
            Step::Link { link, target } => symlink(target, root.join(link)).unwrap(),
            Step::Run(run) => {
                let answer = run.answer(&editor, root.to_str().unwrap());
                if differs(run).is_some() {
                    continue;
                }
                let expected = match (&run.output, &run.error) {
                    (Some(output), None) => Ok((output.clone(), run.diff.clone().unwrap())),
                    (None, Some(error)) => Err(error.clone()),
                    _ => panic!("sequence {number}, step {at} has no answer"),
                };
                assert_eq!(answer, expected, "sequence {number}, step {at}: {} {}", run.command, run.path);
            }
        }
    }
    for (name, content) in &sequence.files {
        let found = fs::read(root.join(name)).unwrap();
        let expected = STANDARD.decode(content).unwrap();
        assert!(
            found == expected,
            "sequence {number}, {name}:\n{:?}\n{:?}",
            String::from_utf8_lossy(&found),
            String::from_utf8_lossy(&expected)
        );
    }
}

#[test]
fn sequences_of_requests_are_answered_as_the_reference_answers_them() {
    let golden = golden();
    assert!(golden.sequences.len() > 200);
    for (number, sequence) in golden.sequences.iter().enumerate() {
        play(sequence, number);
    }
}

#[test]
fn diffs_are_those_of_the_reference() {
    for case in golden().diffs {
        assert_eq!(diff::unified("/w/file", &case.old, &case.new), case.expected, "{:?}\n{:?}", case.old, case.new);
    }
}

#[test]
fn bytes_are_judged_as_the_reference_judges_them() {
    for case in golden().binaries {
        let bytes = STANDARD.decode(&case.bytes).unwrap();
        let expected = case.binary && !TEXT_HERE.contains(&bytes.as_slice());
        assert_eq!(binary::is_binary(&bytes), expected, "{}", bytes.escape_ascii());
    }
}
