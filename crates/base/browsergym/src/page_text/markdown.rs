//! Writes tags and texts as Markdown, as the converter of the reference does (spec/browser.md §8.2).
//!
//! Blank lines and blanks are owed until something is written: what a tag owes can be forgiven by the next one.

use std::collections::HashMap;

use super::element::Element;
use super::escape;
use crate::repr::is_space;

/// The state of the text that is being written.
#[derive(Default)]
pub(super) struct Markdown {
    out: String,
    longest: usize,
    /// Where the last piece that was written begins.
    last_piece: usize,
    /// Open elements whose texts are dropped.
    quiet: usize,
    owed: Owed,
    quotes: usize,
    pre: Pre,
    code: bool,
    links: Links,
    lists: Lists,
    table: Table,
    abbreviations: Abbreviations,
    emphasis: Emphasis,
    /// The last character of the last text, even if it is dropped.
    last_character: Option<char>,
    last_tag: String,
}

/// What comes before the next piece.
#[derive(Default)]
struct Owed {
    /// Ends of lines, 0 to 2.
    lines: usize,
    /// What stands before each of them.
    line_end: &'static str,
    blank: bool,
    /// The next piece is the first, or stands right behind a mark: it is owed nothing.
    nothing: bool,
}

#[derive(Default)]
struct Pre {
    open: bool,
    /// The next piece is the first of it, even if it ended empty.
    begins: bool,
}

#[derive(Default)]
struct Links {
    /// Open links; those within the page have no target.
    open: Vec<Option<Link>>,
    /// The target of a link of which nothing is written yet.
    unopened: Option<String>,
    is_empty: bool,
}

#[derive(Default)]
struct Lists {
    open: Vec<List>,
    /// How far what belongs to an item is indented.
    item_indent: usize,
    /// The last tag was one of a list.
    after: bool,
}

#[derive(Default)]
struct Table {
    cell_open: bool,
    cells: usize,
    first_row: bool,
}

struct Link {
    href: String,
    title: Option<String>,
}

struct List {
    ordered: bool,
    number: i64,
    /// How far its items are indented.
    indent: usize,
}

/// Where the text is with respect to marks of emphasis.
#[derive(Default, PartialEq, Eq)]
enum Emphasis {
    #[default]
    None,
    /// Right behind the first mark.
    Begins,
    /// In the texts after that, the first of which is kept off the mark.
    Follows,
}

/// What `abbr` explains, listed at the end.
#[derive(Default)]
struct Abbreviations {
    /// What was written since an `abbr` began, if one is open.
    open: Option<String>,
    title: Option<String>,
    entries: Vec<(String, String)>,
    positions: HashMap<String, usize>,
}

/// What a piece is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Piece {
    Mark,
    /// The mark of a quotation, which is its own first one.
    QuoteMark,
    Text,
}

impl Markdown {
    pub(super) fn new(longest: usize) -> Self {
        Self { longest, owed: Owed { nothing: true, ..Owed::default() }, ..Self::default() }
    }

    pub(super) fn is_full(&self) -> bool {
        self.out.len() > self.longest
    }

    pub(super) fn start(&mut self, element: Element) {
        self.last_tag.clone_from(&element.name);
        let name = element.name.as_str();
        if !matches!(name, "p" | "div" | "style" | "dl" | "dt") && self.links.unopened.take().is_some() {
            self.mark("[");
            self.links.is_empty = false;
        }
        match name {
            "p" | "div" => self.paragraph_in_text(),
            "br" => self.mark(if self.quotes > 0 { "  \n> " } else { "  \n" }),
            "hr" => {
                self.paragraph();
                self.mark("* * *");
                self.paragraph();
            }
            "head" | "style" | "script" => self.quiet += 1,
            "body" => self.quiet = 0,
            "blockquote" => {
                self.paragraph();
                self.write("> ", Piece::QuoteMark);
                self.owed.nothing = true;
                self.quotes += 1;
            }
            "em" | "i" | "u" => self.begin_emphasis("_", |c| !is_ascii_space(c) && !c.is_ascii_punctuation()),
            "strong" | "b" => self.begin_emphasis("**", |c| c == '*'),
            "del" | "strike" | "s" => self.begin_emphasis("~~", |c| c == '~'),
            "kbd" | "code" | "tt" => self.toggle_code(),
            "abbr" => self.abbreviations.begin(element.title.clone()),
            "q" => self.mark("\""),
            "dl" => self.paragraph(),
            "dd" => self.mark("    "),
            "ol" | "ul" => self.begin_list(name == "ol", element.start.as_deref()),
            "li" => self.begin_item(),
            "table" => self.table.first_row = true,
            "tr" => self.table.cells = 0,
            "td" | "th" => {
                if self.table.cell_open {
                    self.mark("| ");
                }
                self.table.cell_open = true;
                self.table.cells += 1;
            }
            "pre" => {
                self.pre.begins = true;
                self.pre.open = true;
                self.paragraph();
            }
            _ => self.begin_heading(name),
        }
        self.lists.after = matches!(name, "ol" | "ul");
        if name == "a" {
            self.begin_link(element);
        }
    }

    pub(super) fn end(&mut self, name: &str) {
        name.clone_into(&mut self.last_tag);
        match name {
            "p" | "div" => self.paragraph_in_text(),
            "head" | "style" | "script" => self.quiet = self.quiet.saturating_sub(1),
            "body" => self.quiet = 0,
            "blockquote" => {
                self.quotes = self.quotes.saturating_sub(1);
                self.paragraph();
            }
            "em" | "i" | "u" => self.mark("_"),
            "strong" | "b" => self.mark("**"),
            "del" | "strike" | "s" => self.mark("~~"),
            "kbd" | "code" | "tt" => self.toggle_code(),
            "abbr" => self.abbreviations.end(),
            "q" => self.mark("\""),
            "a" => self.end_link(),
            "dt" | "dd" => self.line(),
            "ol" | "ul" => self.end_list(),
            "li" => {
                self.lists.item_indent = 0;
                self.line();
            }
            "tr" => self.end_row(),
            "pre" => {
                self.pre.open = false;
                self.paragraph();
            }
            _ if heading(name).is_some() => {
                if self.links.open.is_empty() {
                    self.paragraph();
                } else {
                    self.owed.lines = 0;
                }
                // What came before the heading is still what a list looks at.
                return;
            }
            _ => {}
        }
        self.lists.after = matches!(name, "ol" | "ul");
    }

    /// A text between tags, or a part of it; `is_entity` if it is a character that HTML cannot write as it is.
    pub(super) fn data(&mut self, data: &str, is_entity: bool) {
        let Some(first) = data.chars().next() else { return };
        let mut data = std::borrow::Cow::Borrowed(data);
        match self.emphasis {
            Emphasis::None => {}
            Emphasis::Begins => {
                data = crate::repr::strip(&data).to_owned().into();
                self.emphasis = Emphasis::Follows;
            }
            Emphasis::Follows => {
                let keeps_off = !is_space(first) && !"][(){}.!?".contains(first);
                if keeps_off
                    && heading(&self.last_tag).is_none()
                    && !matches!(self.last_tag.as_str(), "a" | "code" | "pre")
                {
                    data = format!(" {data}").into();
                }
                self.emphasis = Emphasis::None;
            }
        }
        if let Some(href) = &self.links.unopened {
            if *href == data && is_absolute(href) {
                self.mark(&format!("<{data}>"));
                self.links.is_empty = false;
                return;
            }
            self.links.unopened = None;
            self.mark("[");
            self.links.is_empty = false;
        }
        if !self.code && !self.pre.open && !is_entity {
            data = escape::text(&data).into();
        }
        self.last_character = data.chars().next_back();
        self.write(&data, Piece::Text);
    }

    /// The whole text.
    pub(super) fn finish(mut self) -> String {
        // The text is dropped to its end if something is still open that drops it.
        if self.quiet == 0 {
            self.out.push('\n');
            for (short, title) in &self.abbreviations.entries {
                if self.out.len() > self.longest {
                    break;
                }
                self.out.extend(["  *[", short, "]: ", title, "\n"]);
            }
            if self.pre.begins {
                self.out.push('\n');
            }
        }
        self.out
    }
}

/// Writing.
impl Markdown {
    fn mark(&mut self, mark: &str) {
        self.write(mark, Piece::Mark);
    }

    fn write(&mut self, piece: &str, kind: Piece) {
        self.abbreviations.add(piece, self.longest);
        if self.quiet > 0 || self.is_full() {
            return;
        }
        let mut data = std::borrow::Cow::Borrowed(piece);
        if kind == Piece::Text && !self.pre.open {
            let collapsed = collapse(piece);
            self.owed.blank |= collapsed.starts_with(' ');
            data = collapsed.strip_prefix(' ').map(str::to_owned).unwrap_or(collapsed).into();
        }
        if data.is_empty() {
            return;
        }
        if self.pre.begins && !data.starts_with(['\n']) && !data.starts_with("\r\n") {
            data = format!("\n{data}").into();
        }
        let owes_lines = self.owed.lines > 0 && !self.owed.nothing;
        let prefix = if owes_lines || self.pre.open { self.line_prefix(kind) } else { String::new() };
        if self.pre.open {
            data = self.indent_lines(&data, &prefix).into();
        }
        if std::mem::take(&mut self.pre.begins) && !self.lists.open.is_empty() {
            let margin = |c| c == '\n' || (self.pre.open && prefix.contains(c));
            data = data.trim_start_matches(margin).to_owned().into();
        }
        if std::mem::take(&mut self.owed.nothing) {
            self.owed.blank = false;
            self.owed.lines = 0;
        }
        for _ in 0..std::mem::take(&mut self.owed.lines) {
            self.out.push_str(self.owed.line_end);
            self.out.push('\n');
            self.out.push_str(&prefix);
            self.owed.blank = false;
        }
        if owes_lines {
            self.owed.line_end = "";
        }
        if std::mem::take(&mut self.owed.blank) && !self.out.ends_with('\n') {
            self.out.push(' ');
        }
        self.last_piece = self.out.len();
        self.out.push_str(&data);
    }

    /// Puts a prefix on every line but the first, as long as the text has room for it.
    fn indent_lines(&self, data: &str, prefix: &str) -> String {
        let mut out = String::with_capacity(data.len());
        for line in data.split_inclusive('\n') {
            if self.out.len() + out.len() > self.longest {
                break;
            }
            out.push_str(line);
            if line.ends_with('\n') {
                out.push_str(prefix);
            }
        }
        out
    }

    /// What a line begins with in quotations and in `pre`.
    fn line_prefix(&self, kind: Piece) -> String {
        let mut prefix = ">".repeat(self.quotes);
        if self.quotes > 0 && kind != Piece::QuoteMark {
            prefix.push(' ');
        }
        if self.pre.open {
            let indent = if self.lists.open.is_empty() { 0 } else { self.lists.item_indent };
            prefix.extend(std::iter::repeat_n(' ', indent + 4));
        }
        prefix
    }

    fn paragraph(&mut self) {
        self.owed.lines = 2;
    }

    fn line(&mut self) {
        self.owed.lines = self.owed.lines.max(1);
    }

    /// The end of a line that stays one where Markdown joins lines.
    fn hard_line(&mut self) {
        self.line();
        self.owed.line_end = "  ";
    }
}

/// Elements.
impl Markdown {
    /// A paragraph, except in links and in rows of tables, which stay on their line.
    fn paragraph_in_text(&mut self) {
        if self.links.open.is_empty() && !self.table.cell_open {
            self.paragraph();
        }
    }

    fn begin_heading(&mut self, name: &str) {
        let Some(level) = heading(name) else { return };
        let marks = format!("{} ", "#".repeat(level));
        if self.links.open.is_empty() {
            self.paragraph();
            self.mark(&marks);
        } else if self.out.get(self.last_piece..) == Some("[") {
            // The marks come before the link.
            self.out.pop();
            self.owed.blank = false;
            self.mark(&marks);
            self.mark("[");
        }
    }

    /// A mark of emphasis, with a blank before it if that follows a character by which it would not count.
    fn begin_emphasis(&mut self, mark: &str, spoils: fn(char) -> bool) {
        if self.last_character.is_some_and(spoils) {
            self.last_character = Some(' ');
            self.mark(&format!(" {mark}"));
        } else {
            self.mark(mark);
        }
        self.emphasis = Emphasis::Begins;
    }

    fn toggle_code(&mut self) {
        if !self.pre.open {
            self.mark("`");
            self.code = !self.code;
        }
    }

    fn begin_link(&mut self, element: Element) {
        let target = element.href.filter(|href| !href.starts_with('#'));
        if let Some(href) = &target {
            self.links.unopened = Some(href.clone());
            self.links.is_empty = true;
        }
        self.links.open.push(target.map(|href| Link { href, title: element.title }));
    }

    fn end_link(&mut self) {
        let Some(link) = self.links.open.pop() else { return };
        if !self.links.is_empty && self.links.unopened.as_ref().is_some_and(|href| !href.is_empty()) {
            // It is its own target, and is written.
            self.links.unopened = None;
            return;
        }
        let Some(link) = link else { return };
        if std::mem::take(&mut self.links.is_empty) {
            self.mark("[");
            self.links.unopened = None;
        }
        self.owed.lines = 0;
        let title = escape::link(link.title.as_deref().unwrap_or_default());
        let title = if title.trim_matches(is_space).is_empty() { String::new() } else { format!(" \"{title}\"") };
        self.mark(&format!("]({}{title})", escape::link(&link.href)));
    }

    fn begin_list(&mut self, ordered: bool, start: Option<&str>) {
        if self.lists.open.is_empty() && !self.lists.after {
            self.paragraph();
        }
        let indent = self.lists.open.last().map_or(2, |outer| outer.indent + if outer.ordered { 3 } else { 2 });
        let first: Option<i64> = start.and_then(|start| start.trim_matches(is_space).parse().ok());
        self.lists.open.push(List { ordered, number: first.map_or(0, |first| first.saturating_sub(1)), indent });
    }

    fn end_list(&mut self) {
        if self.lists.open.is_empty() && !self.lists.after {
            self.paragraph();
        }
        if self.lists.open.pop().is_some() && self.lists.open.is_empty() {
            self.mark("\n");
        }
    }

    fn begin_item(&mut self) {
        self.line();
        self.lists.item_indent = self.lists.open.last().map_or(0, |list| list.indent);
        self.mark(&" ".repeat(self.lists.item_indent));
        let number = self.lists.open.last_mut().filter(|list| list.ordered).map(|list| {
            list.number = list.number.saturating_add(1);
            list.number
        });
        if let Some(number) = number {
            self.lists.item_indent += 3;
            self.mark(&format!("{number}. "));
        } else {
            self.lists.item_indent += 2;
            self.mark("* ");
        }
        self.owed.nothing = true;
    }

    fn end_row(&mut self) {
        self.table.cell_open = false;
        self.hard_line();
        if std::mem::take(&mut self.table.first_row) {
            self.mark(&vec!["---"; self.table.cells].join("|"));
            self.hard_line();
        }
    }
}

impl Abbreviations {
    fn begin(&mut self, title: Option<String>) {
        self.title = title;
        self.open = Some(String::new());
    }

    fn add(&mut self, piece: &str, longest: usize) {
        if let Some(open) = self.open.as_mut().filter(|open| open.len() < longest) {
            open.push_str(piece);
        }
    }

    fn end(&mut self) {
        let (Some(short), Some(title)) = (self.open.take(), self.title.take()) else { return };
        if let Some(entry) = self.positions.get(&short).and_then(|&position| self.entries.get_mut(position)) {
            entry.1 = title;
        } else {
            self.positions.insert(short.clone(), self.entries.len());
            self.entries.push((short, title));
        }
    }
}

/// The level of a heading, 1 to 9.
fn heading(name: &str) -> Option<usize> {
    match *name.as_bytes() {
        [b'h', level @ b'1'..=b'9'] => Some(usize::from(level - b'0')),
        _ => None,
    }
}

/// Whether a link begins with a scheme and two slashes.
fn is_absolute(href: &str) -> bool {
    href.split_once("://")
        .is_some_and(|(scheme, _)| !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphabetic() || c == '+'))
}

fn is_ascii_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}

/// One blank for each run of white space.
fn collapse(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_space = false;
    for c in text.chars() {
        let space = is_space(c);
        if !space {
            out.push(c);
        } else if !in_space {
            out.push(' ');
        }
        in_space = space;
    }
    out
}
