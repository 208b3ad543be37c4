//! Files as the inner part of a page for a browser.
//!
//! All that stands in a file is text to a page: nothing in it becomes an element, an attribute or a script but by a rule
//! of these modules. What is too much of anything is left out, and the page says so.

mod html;
mod markdown;
mod notebook;
mod table;

use gloveport_text::{binary, encoding};

use crate::{View, error::ConversionError, xlsx};
use html::Html;
pub(crate) use table::{COLUMNS, ROWS};

/// A file, or its beginning.
#[derive(Debug)]
pub(crate) struct Input {
    /// What was read of it.
    pub(crate) bytes: Vec<u8>,
    /// Whether there is more.
    pub(crate) is_cut: bool,
}

/// The inner part of the page that shows a file.
pub(crate) fn shown(view: View, input: Input) -> Result<String, ConversionError> {
    let mut page = Html::default();
    let is_cut = input.is_cut;
    match view {
        View::Workbook => table::sheets(&mut page, &xlsx::sheets(&input.bytes)?),
        View::Notebook if input.bytes.is_empty() => return Err(ConversionError::Empty),
        View::Notebook => notebook::notebook(&mut page, &input.bytes)?,
        _ if input.bytes.is_empty() => page.note("The file is empty."),
        View::Markdown => markdown::markdown(&mut page, &text(input)?),
        View::Separated => table::separated(&mut page, &text(input)?, None),
        View::Tabs => table::separated(&mut page, &text(input)?, Some('\t')),
        View::Text => page.pre("text", &text(input)?),
    }
    if is_cut {
        page.note(&format!("The file is longer. Only its first {} MB are shown.", view.input() / (1024 * 1024)));
    }
    Ok(page.finish())
}

/// What stands in a text file.
fn text(input: Input) -> Result<String, ConversionError> {
    let Input { mut bytes, is_cut } = input;
    if binary::is_binary(&bytes) {
        return Err(ConversionError::Invalid("it is not text".to_owned()));
    }
    // A beginning may end within a character, which is no reason to take it for another encoding.
    if is_cut
        && let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    match encoding::decode(bytes, None) {
        Ok((text, _)) => Ok(text),
        Err(error) => Err(ConversionError::Invalid(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(view: View, bytes: &[u8]) -> String {
        shown(view, Input { bytes: bytes.to_vec(), is_cut: false }).unwrap()
    }

    #[test]
    fn text_is_shown_as_it_is_in_any_encoding() {
        assert_eq!(show(View::Text, b"if a < b && c:\n"), "<pre class=\"text\">if a &lt; b &amp;&amp; c:\n</pre>\n");
        assert_eq!(show(View::Text, "größer".as_bytes()), "<pre class=\"text\">größer</pre>\n");
        assert_eq!(show(View::Text, b"\xff\xfeh\0i\0"), "<pre class=\"text\">hi</pre>\n");
        let markup = show(View::Text, b"</pre><script>alert(1)</script>");
        assert_eq!(markup, "<pre class=\"text\">&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;</pre>\n");
        assert_eq!(show(View::Text, b""), "<p class=\"note\">The file is empty.</p>\n");
    }

    #[test]
    fn what_is_not_text_is_refused() {
        for view in [View::Text, View::Markdown, View::Separated, View::Tabs] {
            let error = shown(view, Input { bytes: b"\x7fELF\0\0\0\xff".to_vec(), is_cut: false }).unwrap_err();
            assert_eq!(error.to_string(), "the file is not a valid document: it is not text", "{view:?}");
        }
        assert!(shown(View::Notebook, Input { bytes: Vec::new(), is_cut: false }).is_err());
        assert!(shown(View::Workbook, Input { bytes: b"no package".to_vec(), is_cut: false }).is_err());
    }

    #[test]
    fn a_beginning_that_ends_within_a_character_is_shown_without_it_and_says_that_there_is_more() {
        let bytes = "aü".as_bytes()[..2].to_vec();
        let page = shown(View::Text, Input { bytes, is_cut: true }).unwrap();
        let note = "The file is longer. Only its first 1 MB are shown.";
        assert_eq!(page, format!("<pre class=\"text\">a</pre>\n<p class=\"note\">{note}</p>\n"));
    }
}
