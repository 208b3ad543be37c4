//! What an edit changed: a unified diff without context (file-editor 3.9).

mod lines;
mod matcher;

use std::{fmt::Write as _, ops::Range};

use crate::python;

/// The diff of two texts; nothing if they are the same. Lines end at LF, and a text that ends with LF has an empty one
/// behind it. White space at the end of a line is not shown.
///
/// The changes are those that Python's `difflib` finds, unless that takes very long; then they are coarser.
pub fn unified(path: &str, old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let (old_lines, new_lines) = (lines::split(old), lines::split(new));
    let mut diff = String::with_capacity(256 + 2 * path.len());
    add_line(&mut diff, "--- ", path);
    add_line(&mut diff, "+++ ", path);
    for change in matcher::changes(&old_lines, &new_lines) {
        // Writing into a string cannot fail.
        let _ = writeln!(diff, "@@ -{} +{} @@", Place(&change.old), Place(&change.new));
        for line in &old_lines[change.old] {
            add_line(&mut diff, "-", line);
        }
        for line in &new_lines[change.new] {
            add_line(&mut diff, "+", line);
        }
    }
    diff.pop();
    diff
}

/// A part that is not the same in both texts: 0-based numbers of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) old: Range<usize>,
    pub(crate) new: Range<usize>,
}

/// The changes between two texts, in order.
pub(crate) fn changes(old: &str, new: &str) -> Vec<Change> {
    matcher::changes(&lines::split(old), &lines::split(new))
}

fn add_line(diff: &mut String, sign: &str, line: &str) {
    let start = diff.len();
    diff.push_str(sign);
    diff.push_str(line);
    let length = python::strip_end(&diff[start..]).len();
    diff.truncate(start + length);
    diff.push('\n');
}

/// Lines as the head of a hunk names them.
struct Place<'a>(&'a Range<usize>);

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.len() {
            0 => write!(formatter, "{},0", self.0.start),
            1 => write!(formatter, "{}", self.0.start + 1),
            length => write!(formatter, "{},{length}", self.0.start + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn diffs_have_the_form_of_the_wire() {
        for (old, new, expected) in [
            ("a", "a", ""),
            ("", "a\nb\nc", "--- /p\n+++ /p\n@@ -1 +1,3 @@\n-\n+a\n+b\n+c"),
            ("a\nb\nc", "a\nB\nc", "--- /p\n+++ /p\n@@ -2 +2 @@\n-b\n+B"),
            ("a\n", "a", "--- /p\n+++ /p\n@@ -2 +1,0 @@\n-"),
            ("b", "a\nb", "--- /p\n+++ /p\n@@ -0,0 +1 @@\n+a"),
            ("x y  \n1", "x y\n1", "--- /p\n+++ /p\n@@ -1 +1 @@\n-x y\n+x y"),
            ("a\nb\nc\nd", "A\nb\nc\nD", "--- /p\n+++ /p\n@@ -1 +1 @@\n-a\n+A\n@@ -4 +4 @@\n-d\n+D"),
        ] {
            assert_eq!(unified("/p", old, new), expected, "{old:?} {new:?}");
        }
    }

    /// The old lines with the changes applied.
    fn apply(old: &str, new: &str) -> String {
        let (old_lines, new_lines) = (lines::split(old), lines::split(new));
        let mut applied = Vec::new();
        let mut at = 0;
        for change in matcher::changes(&old_lines, &new_lines) {
            applied.extend_from_slice(&old_lines[at..change.old.start]);
            applied.extend_from_slice(&new_lines[change.new.clone()]);
            assert_eq!(applied.len(), change.new.end);
            at = change.old.end;
        }
        applied.extend_from_slice(&old_lines[at..]);
        applied.join("\n")
    }

    proptest! {
        #[test]
        fn the_changes_applied_to_the_old_text_give_the_new(
            old in "([ab]?\n){0,40}[abc]?", new in "([ab]?\n){0,40}[abc]?",
        ) {
            prop_assert_eq!(apply(&old, &new), new);
        }

        #[test]
        fn so_they_do_with_many_lines_of_which_some_are_too_common_to_hold_on_to(
            old in prop::collection::vec(0_u8..40, 150..400), at in 0_usize..150, put in prop::collection::vec(0_u8..40, 0..90),
        ) {
            let mut new = old.clone();
            new.splice(at..(at + 3).min(old.len()), put);
            let text = |lines: &[u8]| lines.iter().map(u8::to_string).collect::<Vec<_>>().join("\n");
            prop_assert_eq!(apply(&text(&old), &text(&new)), text(&new));
        }
    }

    #[test]
    fn texts_on_which_the_search_takes_very_long_still_have_a_diff() {
        let old = "a\nb\n".repeat(60_000);
        let new = "b\na\nc\n".repeat(70);
        assert_eq!(apply(&old, &new), new);
        assert_eq!(apply(&new, &old), old);
    }
}
