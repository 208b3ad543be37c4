//! The inner part of a page while it is written.

/// Bytes that texts may take. What elements take is bounded by their numbers.
const TEXT: usize = 8 * 1024 * 1024;

/// Elements that are written for what stands in a file.
const ELEMENTS: usize = 200_000;

/// A page that grows, and says at its end what did not fit.
#[derive(Debug)]
pub(super) struct Html {
    text: String,
    elements: usize,
    /// Bytes of texts that fit.
    room: usize,
    is_cut: bool,
}

impl Default for Html {
    fn default() -> Self {
        Self { text: String::new(), elements: ELEMENTS, room: TEXT, is_cut: false }
    }
}

impl Html {
    /// Markup of ours.
    pub(super) fn markup(&mut self, markup: &str) {
        self.text.push_str(markup);
    }

    /// Whether there is room for another element. If not, the page says that it is cut.
    pub(super) fn takes_element(&mut self) -> bool {
        if self.elements == 0 || self.room == 0 {
            self.is_cut = true;
            return false;
        }
        self.elements -= 1;
        true
    }

    /// A text of the file, escaped, as much of it as fits.
    pub(super) fn text(&mut self, text: &str) {
        for character in text.chars() {
            let mut own = [0; 4];
            let shown: &str = match character {
                '&' => "&amp;",
                '<' => "&lt;",
                '>' => "&gt;",
                '"' => "&quot;",
                // They would be no characters of a page.
                '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\x7f' => "\u{fffd}",
                other => other.encode_utf8(&mut own),
            };
            if shown.len() > self.room {
                self.room = 0;
                self.is_cut = true;
                return;
            }
            self.room -= shown.len();
            self.text.push_str(shown);
        }
    }

    /// Something that makes sense as a whole only, such as the bytes of an image. Returns whether it fits.
    pub(super) fn whole(&mut self, text: &str) -> bool {
        let fits = text.len() <= self.room;
        if fits {
            self.text.push_str(text);
            self.room -= text.len();
        }
        fits
    }

    /// A text whose lines stay as they are.
    pub(super) fn pre(&mut self, class: &'static str, text: &str) {
        self.markup("<pre class=\"");
        self.markup(class);
        self.markup("\">");
        // A page drops the first line end.
        if text.starts_with('\n') {
            self.markup("\n");
        }
        self.text(text);
        self.markup("</pre>\n");
    }

    /// Something that we have to say about the file.
    pub(super) fn note(&mut self, text: &str) {
        self.markup("<p class=\"note\">");
        self.text(text);
        self.markup("</p>\n");
    }

    /// Bytes of text that still fit.
    pub(super) const fn room(&self) -> usize {
        self.room
    }

    /// Elements that still fit.
    pub(super) const fn elements(&self) -> usize {
        self.elements
    }

    /// What was written by somebody else of these: so many bytes, so many elements, and whether something was left out.
    pub(super) fn spend(&mut self, bytes: usize, elements: usize, is_cut: bool) {
        self.room = self.room.saturating_sub(bytes);
        self.elements = self.elements.saturating_sub(elements);
        self.is_cut |= is_cut;
    }

    /// The page.
    pub(super) fn finish(mut self) -> String {
        if self.is_cut {
            self.markup(
                "<p class=\"note\">There is more in the file than a page can show; the rest is left out.</p>\n",
            );
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_cut_where_the_room_ends() {
        let mut page = Html { room: 12, ..Html::default() };
        page.text("a<b\0c");
        assert!(page.whole("12"), "{page:?}");
        assert!(!page.whole("123"), "{page:?}");
        page.text("&&");
        let end = "<p class=\"note\">There is more in the file than a page can show; the rest is left out.</p>\n";
        assert_eq!(page.finish(), format!("a&lt;b\u{fffd}c12{end}"));
    }

    #[test]
    fn the_first_line_end_of_a_text_stays() {
        let mut page = Html::default();
        page.pre("text", "\n\nx");
        assert_eq!(page.finish(), "<pre class=\"text\">\n\n\nx</pre>\n");
    }
}
