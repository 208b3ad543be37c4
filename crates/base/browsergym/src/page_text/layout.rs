//! Puts every tag and every text on a line of its own, except inside of `pre` and `textarea`.
//!
//! So blanks come between inline texts, which the text of the reference has (spec/browser.md §8.2).

use super::element::Element;
use super::markdown::Markdown;
use crate::repr::strip;

/// The farthest indentation; deeper lines would make the text grow with the square of the depth. All of it counts as one
/// blank, except in what `abbr` explains.
const FARTHEST: usize = 40;

/// Collects text between tags.
pub(super) struct Layout {
    out: Markdown,
    /// What the next tag ends: the ends of lines and texts since the last tag.
    data: String,
    /// The text nodes since the last tag.
    text: String,
    depth: usize,
    /// The depth of the element in which everything stays as it is.
    literal: Option<usize>,
    /// How many scripts and styles are open; their texts are not read as HTML.
    raw: usize,
}

impl Layout {
    pub(super) fn new(out: Markdown) -> Self {
        Self { out, data: String::new(), text: String::new(), depth: 0, literal: None, raw: 0 }
    }

    pub(super) fn text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    pub(super) fn start(&mut self, element: Element) {
        self.flush();
        let is_literal = self.literal.is_none() && matches!(element.name.as_str(), "pre" | "textarea");
        self.indent();
        self.pass_on();
        self.raw += usize::from(is_raw(&element.name));
        self.out.start(element);
        if is_literal {
            self.literal = Some(self.depth);
        }
        self.end_line();
        self.depth += 1;
    }

    /// An element that ends where it starts.
    pub(super) fn void(&mut self, element: Element) {
        let name = element.name.clone();
        self.flush();
        self.indent();
        self.pass_on();
        self.out.start(element);
        self.out.end(&name);
        self.end_line();
    }

    pub(super) fn end(&mut self, name: &str) {
        self.flush();
        self.depth = self.depth.saturating_sub(1);
        self.indent();
        self.pass_on();
        self.raw = self.raw.saturating_sub(usize::from(is_raw(name)));
        self.out.end(name);
        if self.literal == Some(self.depth) {
            self.literal = None;
        }
        self.end_line();
    }

    pub(super) fn is_full(&self) -> bool {
        self.out.is_full()
    }

    pub(super) fn finish(mut self) -> String {
        self.flush();
        self.pass_on();
        self.out.finish()
    }

    fn end_line(&mut self) {
        if self.literal.is_none() {
            self.data.push('\n');
        }
    }

    fn indent(&mut self) {
        if self.literal.is_none() {
            self.data.extend(std::iter::repeat_n(' ', self.depth.min(FARTHEST)));
        }
    }

    /// Makes the text nodes since the last tag a line.
    fn flush(&mut self) {
        if self.literal.is_some() {
            self.data.push_str(&self.text);
        } else {
            let text = std::mem::take(&mut self.text);
            let stripped = strip(&text);
            if !stripped.is_empty() {
                self.indent();
                self.data.push_str(stripped);
                self.data.push('\n');
            }
        }
        self.text.clear();
    }

    /// Passes on what is between two tags. Characters that HTML writes as entities come alone.
    fn pass_on(&mut self) {
        let data = std::mem::take(&mut self.data);
        if self.raw > 0 {
            self.out.data(&data, false);
            return;
        }
        let mut rest = data.as_str();
        while let Some(at) = rest.find(['&', '<', '>']) {
            let (before, from) = rest.split_at(at);
            // All of them are one byte long.
            let (entity, after) = from.split_at(1);
            self.out.data(before, false);
            self.out.data(entity, true);
            rest = after;
        }
        self.out.data(rest, false);
    }
}

fn is_raw(name: &str) -> bool {
    matches!(name, "script" | "style")
}
