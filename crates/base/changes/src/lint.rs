//! What an edit broke: the issues of a linter that were not there before (file-editor 3.10).

mod process;
mod python;

use std::{fmt, fmt::Write as _, path::Path};

pub use self::python::PythonLinter;
use crate::diff;

/// Something that a linter finds wrong. It is shown as `Line 3, Column 5: invalid syntax`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Issue {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Issue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Line {}, Column {}: {}", self.line, self.column, self.message)
    }
}

/// Judges text.
pub trait Linter: Send + Sync {
    /// What is wrong with the text that a file has, or is to have. A linter that does not know such files, or fails,
    /// finds nothing. It may block, for a bounded time.
    fn lint(&self, path: &Path, text: &str) -> Vec<Issue>;
}

/// The report about the issues that an edit brought.
pub fn report(linter: &dyn Linter, path: &Path, old: &str, new: &str) -> String {
    let issues = new_issues(linter, path, old, new);
    if issues.is_empty() {
        return "No linting issues found in the changes.".to_owned();
    }
    let mut report = "Linting issues found in the changes:\n".to_owned();
    for issue in issues {
        // Writing into a string cannot fail.
        let _ = writeln!(report, "- {issue}");
    }
    report
}

/// Issues of changed lines, and those of other lines that the same line did not have before.
pub fn new_issues(linter: &dyn Linter, path: &Path, old: &str, new: &str) -> Vec<Issue> {
    let mut issues = linter.lint(path, new);
    if issues.is_empty() {
        return issues;
    }
    let before = linter.lint(path, old);
    let changes = diff::changes(old, new);
    issues.retain(|issue| match line_before(&changes, issue.line) {
        None => true,
        Some(line) => !before
            .iter()
            .any(|known| (known.line, known.column, &known.message) == (line, issue.column, &issue.message)),
    });
    issues.sort_unstable();
    issues
}

/// The number that a line of the new text had in the old; none if it is a changed one. Numbers count from 1.
fn line_before(changes: &[diff::Change<'_>], line: usize) -> Option<usize> {
    let line = line.checked_sub(1)?;
    let before = &changes[..changes.partition_point(|change| change.new.start <= line)];
    match before.last() {
        None => Some(line + 1),
        Some(change) if line < change.new.end() => None,
        Some(change) => Some(line - change.new.end() + change.old.end() + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds each `!`.
    struct Marks;

    impl Linter for Marks {
        fn lint(&self, _: &Path, text: &str) -> Vec<Issue> {
            let lines = text.split('\n').zip(1..);
            lines
                .flat_map(|(text, line)| {
                    text.match_indices('!').map(move |(at, _)| Issue { line, column: at + 1, message: "mark".into() })
                })
                .collect()
        }
    }

    #[test]
    fn only_new_issues_are_reported() {
        let clean = "No linting issues found in the changes.";
        let found = "Linting issues found in the changes:\n";
        for (old, new, expected) in [
            ("a!\nb\nc", "a!\nB\nc", clean.to_owned()),
            ("a\nb\nc", "a\nb!\nc!", format!("{found}- Line 2, Column 2: mark\n- Line 3, Column 2: mark\n")),
            ("a!\nb", "x\na!\nb", clean.to_owned()),
            ("a!\nb!", "a!\nb!!", format!("{found}- Line 2, Column 2: mark\n- Line 2, Column 3: mark\n")),
            ("", "!", format!("{found}- Line 1, Column 1: mark\n")),
            ("x\ny\na!", "a!", clean.to_owned()),
        ] {
            assert_eq!(report(&Marks, Path::new("/f"), old, new), expected, "{old:?} {new:?}");
        }
    }
}
