//! What an edit changed: a unified diff without context (file-editor 3.9).

mod lines;
mod matcher;
mod shortcut;

use std::fmt::Write as _;

use crate::python;

/// The diff of two texts; nothing if they are the same. Lines end at LF, and a text that ends with LF has an empty one
/// behind it. White space at the end of a line is not shown.
///
/// The changes are those that Python's `difflib` finds, unless that takes very long; then they are coarser.
pub fn unified(path: &str, old: &str, new: &str) -> String {
    let changes = changes(old, new);
    if changes.is_empty() {
        return String::new();
    }
    let mut diff = String::with_capacity(256 + 2 * path.len());
    add_line(&mut diff, "--- ", path);
    add_line(&mut diff, "+++ ", path);
    for Change { old, new } in changes {
        // Writing into a string cannot fail.
        let _ = writeln!(diff, "@@ -{old} +{new} @@");
        old.lines.iter().for_each(|line| add_line(&mut diff, "-", line));
        new.lines.iter().for_each(|line| add_line(&mut diff, "+", line));
    }
    diff.pop();
    diff
}

/// A part that is not the same in both texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change<'a> {
    pub(crate) old: Side<'a>,
    pub(crate) new: Side<'a>,
}

/// What one text has there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Side<'a> {
    /// The 0-based number of the first line.
    pub(crate) start: usize,
    pub(crate) lines: Vec<&'a str>,
}

impl Side<'_> {
    /// The number of the line behind the last.
    pub(crate) fn end(&self) -> usize {
        self.start + self.lines.len()
    }
}

/// As the head of a hunk names the lines.
impl std::fmt::Display for Side<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.lines.len() {
            0 => write!(formatter, "{},0", self.start),
            1 => write!(formatter, "{}", self.start + 1),
            length => write!(formatter, "{},{length}", self.start + 1),
        }
    }
}

/// The changes between two texts, in order.
pub(crate) fn changes<'a>(old: &'a str, new: &'a str) -> Vec<Change<'a>> {
    if old == new {
        return Vec::new();
    }
    match shortcut::only_change(old, new) {
        Some(change) => vec![change],
        None => matcher::changes(&lines::split(old), &lines::split(new)),
    }
}

fn add_line(diff: &mut String, sign: &str, line: &str) {
    let start = diff.len();
    diff.push_str(sign);
    diff.push_str(line);
    let length = python::strip_end(&diff[start..]).len();
    diff.truncate(start + length);
    diff.push('\n');
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
        let old_lines = lines::split(old);
        let mut applied = Vec::new();
        let mut at = 0;
        for change in changes(old, new) {
            applied.extend_from_slice(&old_lines[at..change.old.start]);
            assert_eq!(change.old.lines, old_lines[change.old.start..change.old.end()]);
            assert_eq!(applied.len(), change.new.start);
            applied.extend_from_slice(&change.new.lines);
            at = change.old.end();
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

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]
        #[test]
        fn the_shortcut_finds_what_the_search_finds(
            lines in prop_oneof![prop::collection::vec(0_u8..4, 0..12), prop::collection::vec(0_u8..30, 0..12), prop::collection::vec(0_u8..9, 190..230)],
            period in 1_usize..8, repeated in 0_usize..60,
            at in any::<prop::sample::Index>(), removed in prop::collection::vec(prop_oneof![0_u8..20, 200_u8..202], 0..3),
            put in prop::collection::vec(prop_oneof![0_u8..20, 100_u8..103], 0..3),
        ) {
            let mut old: Vec<u8> = lines;
            let again: Vec<u8> = old.iter().copied().cycle().take(if old.is_empty() { 0 } else { repeated * period }).collect();
            old.extend(again);
            let mut new = old.clone();
            let at = at.index(old.len() + 1);
            old.splice(at..at, removed);
            new.splice(at..at, put);
            let text = |lines: &[u8]| lines.iter().map(u8::to_string).collect::<Vec<_>>().join("\n").replace('3', "");
            let (old, new) = (text(&old), text(&new));
            if old != new && let Some(change) = shortcut::only_change(&old, &new) {
                prop_assert_eq!(vec![change], matcher::changes(&lines::split(&old), &lines::split(&new)));
            }
        }
    }

    #[test]
    fn the_shortcut_is_sure_of_the_usual_edit() {
        let lines: Vec<String> = (0..1_000).map(|line| format!("line {}\n", line % 700)).collect();
        let text = |range: std::ops::Range<usize>| lines[range].concat();
        let (before, after) = (text(0..500), text(502..1_000));
        for (old, new) in [("old\n", "new\n"), ("", "new\nlines\n"), ("old\nlines\n", "")] {
            let (old, new) = (format!("{before}{old}{after}"), format!("{before}{new}{after}"));
            let change = shortcut::only_change(&old, &new);
            assert_eq!(
                change.into_iter().collect::<Vec<_>>(),
                matcher::changes(&lines::split(&old), &lines::split(&new))
            );
        }
        assert_eq!(shortcut::only_change("a\nb\nx\na\nb", "a\nx\na\nb"), None);
    }

    #[test]
    fn texts_on_which_the_search_takes_very_long_still_have_a_diff() {
        let old = "a\nb\n".repeat(60_000);
        let new = "b\na\nc\n".repeat(70);
        assert_eq!(apply(&old, &new), new);
        assert_eq!(apply(&new, &old), old);
    }
}
