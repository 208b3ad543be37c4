//! Edits against a simple model: a text, and the texts before it.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use crate::common::Desk;
use gloveport_editor::{EditReport, EditorError};
use proptest::prelude::*;

/// States of a file that can be brought back.
const STATES: usize = 10;

#[derive(Debug, Clone)]
enum Step {
    /// From, length and replacement, in characters.
    Replace(prop::sample::Index, usize, String),
    /// A text that may occur or not.
    ReplaceText(String, String),
    Insert(prop::sample::Index, String),
    Undo,
}

/// What a file is to be, and what it was.
struct Model {
    text: String,
    before: Vec<String>,
}

impl Model {
    fn change(&mut self, text: String) {
        self.before.push(std::mem::replace(&mut self.text, text));
        if self.before.len() > STATES {
            self.before.remove(0);
        }
    }

    /// The text that is to be found: as given, or without white space around it.
    fn replace(&mut self, old: &str, new: &str) -> bool {
        for (old, new) in [(old, new), (old.trim(), new.trim())] {
            match positions(&self.text, old).as_slice() {
                [] => {}
                [at] => {
                    let text = format!("{}{new}{}", &self.text[..*at], &self.text[at + old.len()..]);
                    self.change(text);
                    return true;
                }
                _ => return false,
            }
        }
        false
    }

    fn insert(&mut self, line: usize, new: &str) {
        let mut lines: Vec<String> = self.text.split_inclusive('\n').map(str::to_owned).collect();
        lines.insert(line, format!("{new}\n"));
        self.change(lines.concat());
    }
}

/// Where a text occurs, without overlaps.
fn positions(text: &str, wanted: &str) -> Vec<usize> {
    text.match_indices(wanted).map(|(at, _)| at).collect()
}

fn step() -> impl Strategy<Value = Step> {
    let text = || "[ab \n\té]{0,6}";
    prop_oneof![
        (any::<prop::sample::Index>(), 0_usize..12, text())
            .prop_map(|(at, length, new)| Step::Replace(at, length, new)),
        (text(), text()).prop_map(|(old, new)| Step::ReplaceText(old, new)),
        (any::<prop::sample::Index>(), text()).prop_map(|(line, new)| Step::Insert(line, new)),
        Just(Step::Undo),
    ]
}

/// The new text, made from the old one and the diff. A diff has no white space at the ends of its lines, so texts are
/// compared without it.
fn patched(report: &EditReport) -> Vec<String> {
    let old = report.old_text.as_ref().unwrap();
    let old: Vec<&str> = old.split('\n').map(str::trim_end).collect();
    let mut new = Vec::new();
    let mut at = 0;
    for line in report.diff.lines().skip(2) {
        if let Some(head) = line.strip_prefix("@@ -") {
            let (start, length) =
                head.split(' ').next().unwrap().split_once(',').unwrap_or((head.split(' ').next().unwrap(), "1"));
            let (start, length): (usize, usize) = (start.parse().unwrap(), length.parse().unwrap());
            let start = if length == 0 { start } else { start - 1 };
            new.extend(old[at..start].iter().map(|line| (*line).to_owned()));
            at = start;
        } else if let Some(line) = line.strip_prefix('-') {
            assert_eq!(line, old[at]);
            at += 1;
        } else {
            new.push(line.strip_prefix('+').unwrap().to_owned());
        }
    }
    new.extend(old[at..].iter().map(|line| (*line).to_owned()));
    new
}

fn check(report: Result<EditReport, EditorError>, model: &Model) {
    let report = report.unwrap();
    assert_eq!(report.new_text.as_deref(), Some(&model.text));
    let expected: Vec<&str> = model.text.split('\n').map(str::trim_end).collect();
    assert_eq!(patched(&report), expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_file_is_what_the_edits_make_of_it(start in "[ab \n\té]{0,60}", steps in prop::collection::vec(step(), 1..25)) {
        let desk = Desk::new();
        desk.put("file", &start);
        let mut model = Model { text: start, before: Vec::new() };
        for step in steps {
            let characters: Vec<char> = model.text.chars().collect();
            match step {
                Step::Replace(at, length, new) => {
                    let at = at.index(characters.len() + 1);
                    let old: String = characters[at..].iter().take(length).collect();
                    let report = desk.replace("file", &old, &new);
                    if old != new && model.replace(&old, &new) {
                        check(report, &model);
                    } else {
                        prop_assert!(report.is_err());
                    }
                }
                Step::ReplaceText(old, new) => {
                    let report = desk.replace("file", &old, &new);
                    if old != new && model.replace(&old, &new) {
                        check(report, &model);
                    } else {
                        prop_assert!(report.is_err());
                    }
                }
                Step::Insert(line, new) => {
                    let line = line.index(model.text.split_inclusive('\n').count() + 1);
                    let report = desk.insert("file", i64::try_from(line).unwrap(), &new);
                    model.insert(line, &new);
                    check(report, &model);
                }
                Step::Undo => {
                    let report = desk.undo("file");
                    match model.before.pop() {
                        Some(text) => {
                            model.text = text;
                            check(report, &model);
                        }
                        None => prop_assert!(matches!(report, Err(EditorError::NoHistory(_)))),
                    }
                }
            }
            prop_assert_eq!(desk.content("file"), model.text.as_bytes());
        }
    }
}
