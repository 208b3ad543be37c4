//! Closes elements where a lenient reader of HTML closes them, although the page has them nested otherwise.
//!
//! The page is read again as HTML on its way to a text (spec/browser.md §8.2), by rules older than those of browsers.
//! Tables here state what that reader is seen to do.

use std::collections::HashMap;

use super::element::Element;
use super::layout::Layout;

/// The most bytes that are read. A snapshot has each string once, so a page can be far longer than what is sent of it.
const MOST_READ: usize = 64 << 20;

/// Knows which elements are open.
pub(super) struct Nesting {
    out: Layout,
    open: Vec<String>,
    /// How often a name is in `open`.
    count: HashMap<String, usize>,
    read: usize,
}

impl Nesting {
    pub(super) fn new(out: Layout) -> Self {
        Self { out, open: Vec::new(), count: HashMap::new(), read: 0 }
    }

    pub(super) fn text(&mut self, text: &str) {
        self.read = self.read.saturating_add(text.len());
        if self.read <= MOST_READ {
            self.out.text(text);
        }
    }

    pub(super) fn start(&mut self, element: Element) {
        let attributes = [&element.href, &element.title, &element.start].into_iter().flatten();
        let length = attributes.map(String::len).fold(element.name.len(), usize::saturating_add);
        self.read = self.read.saturating_add(length);
        while self.open.last().is_some_and(|open| is_closed_by(open, &element.name)) {
            self.close_last();
        }
        if is_void(&element.name) {
            self.out.void(element);
            return;
        }
        *self.count.entry(element.name.clone()).or_default() += 1;
        self.open.push(element.name.clone());
        self.out.start(element);
    }

    pub(super) fn end(&mut self, name: &str) {
        if self.count.get(name).is_none_or(|&count| count == 0) {
            return;
        }
        let strength = strength(name);
        for open in self.open.iter().rev() {
            if open == name {
                break;
            }
            if self::strength(open) > strength {
                return;
            }
        }
        while let Some(closed) = self.close_last() {
            if closed == name {
                return;
            }
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.read > MOST_READ || self.out.is_full()
    }

    pub(super) fn finish(mut self) -> String {
        while self.close_last().is_some() {}
        self.out.finish()
    }

    fn close_last(&mut self) -> Option<String> {
        let name = self.open.pop()?;
        if let Some(count) = self.count.get_mut(&name) {
            *count -= 1;
        }
        self.out.end(&name);
        Some(name)
    }
}

/// Elements that end where they start.
fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "basefont"
            | "br"
            | "col"
            | "embed"
            | "frame"
            | "hr"
            | "img"
            | "input"
            | "isindex"
            | "link"
            | "meta"
            | "param"
    )
}

/// An end tag closes no stronger element than its own on its way.
fn strength(name: &str) -> u8 {
    match name {
        "div" => 1,
        "td" | "th" => 2,
        "tr" => 3,
        "thead" | "tbody" | "tfoot" => 4,
        "table" => 5,
        "head" | "body" => 6,
        "html" => 7,
        _ => 0,
    }
}

/// Whether the start of `next` right inside of `open` closes it.
fn is_closed_by(open: &str, next: &str) -> bool {
    closed_by(next).split(' ').any(|closed| closed == open)
}

/// The elements that the start of `next` closes.
fn closed_by(next: &str) -> &'static str {
    match next {
        "a" => "a",
        "fieldset" => "a h1 h2 h3 h4 h5 h6 legend listing p pre",
        "table" => "a h1 h2 h3 h4 h5 h6 listing p pre",
        "td" | "th" => "a b font i p span td th u",
        "dd" | "dl" => "address dir dt listing menu p pre",
        "dt" => "address dd dir listing menu p pre",
        "form" => "address dir dl form h1 h2 h3 h4 h5 h6 listing menu ol p pre ul",
        "li" => "address dl h1 h2 h3 h4 h5 h6 li listing p pre",
        "ul" => "address dir listing menu p pre",
        "center" => "b font i p",
        "p" => "b big h1 h2 h3 h4 h5 h6 i p s small strike tt u",
        "col" => "caption p",
        "colgroup" => "caption colgroup p",
        "tbody" => "caption colgroup p tbody td tfoot th thead tr",
        "tfoot" => "caption colgroup p tbody td th thead tr",
        "thead" => "caption colgroup",
        "tr" => "caption colgroup p td th tr",
        "optgroup" | "option" => "option",
        "address" | "menu" | "pre" => "p ul",
        "blockquote" | "caption" | "dir" | "div" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "hr" | "listing"
        | "ol" | "title" | "xmp" => "p",
        _ => "",
    }
}
