//! Text as the caller sees it: cut to a bound, with numbered lines (file-editor 3.3 and 3.4).

use std::fmt::Write as _;

/// Most characters of a text that are shown, before numbers are added.
const LIMIT: usize = 16_000;

/// What stands where a text file was cut.
const TEXT_NOTICE: &str = "<response clipped><NOTE>Due to the max output limit, only part of this file has been \
    shown to you. You should retry this tool after you have searched inside the file with `grep -n` in order to find \
    the line numbers of what you are looking for.</NOTE>";
/// What stands where a converted document was cut.
const DOCUMENT_NOTICE: &str = "<response clipped><NOTE>Due to the max output limit, only part of this file has been \
    shown to you. Please use Python libraries to view the entire file or search for specific content within the \
    file.</NOTE>";
/// What stands where a list of a directory was cut.
const DIRECTORY_NOTICE: &str = "<response clipped><NOTE>Due to the max output limit, only part of this directory has \
    been shown to you. You should use `ls -la` instead to view large directories incrementally.</NOTE>";

/// The lines with their numbers, counted from `first`, under a headline.
pub(crate) fn numbered(text: &str, description: &str, first: usize) -> String {
    let (shown, notice) = cut(text, TEXT_NOTICE);
    let lines = memchr::memchr_iter(b'\n', shown.as_bytes()).count() + 1;
    let mut output = String::with_capacity(64 + description.len() + shown.len() + notice.len() + lines * 8);
    // Writing into a string cannot fail.
    let _ = writeln!(output, "Here's the result of running `cat -n` on {description}:");
    for (index, line) in shown.split('\n').enumerate() {
        if index > 0 {
            output.push('\n');
        }
        let _ = write!(output, "{:6}\t{line}", first + index);
    }
    output.push_str(notice);
    output.push('\n');
    output
}

/// A converted document under a headline.
pub(crate) fn markdown(text: &str, description: &str) -> String {
    let (shown, notice) = cut(text, DOCUMENT_NOTICE);
    format!("Here's the content of the file {description} displayed in Markdown format:\n{shown}{notice}\n")
}

/// A list of paths under a headline; `hidden` entries are not in it.
pub(crate) fn directory(list: &str, path: &str, hidden: usize) -> String {
    let (shown, notice) = cut(list, DIRECTORY_NOTICE);
    let mut output = format!(
        "Here's the files and directories up to 2 levels deep in {path}, excluding hidden items:\n{shown}{notice}"
    );
    if hidden > 0 {
        let _ = write!(
            output,
            "\n\n{hidden} hidden files/directories in this directory are excluded. You can use 'ls -la {path}' to see \
             them."
        );
    }
    output
}

/// The part that is shown, and the notice if that is not all.
fn cut<'a>(text: &'a str, notice: &'static str) -> (&'a str, &'static str) {
    // A character has a byte at least, so most texts need no look at their characters.
    if text.len() > LIMIT
        && let Some((end, _)) = text.char_indices().nth(LIMIT)
    {
        return (&text[..end], notice);
    }
    (text, "")
}

/// How many characters of a list of paths are shown.
pub(crate) const fn list_limit() -> usize {
    LIMIT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_thousand_characters_are_shown_whole_and_one_more_is_cut() {
        for character in ["x", "é", "𝄞"] {
            let whole = character.repeat(LIMIT);
            assert_eq!(cut(&whole, TEXT_NOTICE), (whole.as_str(), ""));
            let more = character.repeat(LIMIT + 1);
            assert_eq!(cut(&more, TEXT_NOTICE), (whole.as_str(), TEXT_NOTICE));
        }
    }

    #[test]
    fn a_cut_text_has_the_notice_on_its_last_line() {
        let output = numbered(&"Line 1\n".repeat(16_000), "/f", 1);
        let expected = format!("  2286\tLine {TEXT_NOTICE}\n");
        assert!(output.ends_with(&expected), "{}", &output[output.len() - 400..]);
    }

    #[test]
    fn line_numbers_are_as_wide_as_they_need_to_be() {
        assert_eq!(
            numbered("a\n\tb", "x", 999_999),
            "Here's the result of running `cat -n` on x:\n999999\ta\n1000000\t\tb\n"
        );
        assert_eq!(numbered("", "x", 1), "Here's the result of running `cat -n` on x:\n     1\t\n");
    }

    #[test]
    fn a_document_is_cut_with_its_own_notice() {
        let head = "Here's the content of the file /d.pdf displayed in Markdown format:\n";
        assert_eq!(markdown("text", "/d.pdf"), format!("{head}text\n"));
        assert_eq!(
            markdown(&"x".repeat(LIMIT + 1), "/d.pdf"),
            format!("{head}{}{DOCUMENT_NOTICE}\n", "x".repeat(LIMIT))
        );
    }
}
