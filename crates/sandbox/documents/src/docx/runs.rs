//! The text of a paragraph with its links, pictures, bold and italic parts.

use std::collections::HashMap;

use super::{
    super::{markdown, package::Relation, xml::Element},
    value,
};

/// Parts within parts, such as links in insertions.
const DEPTH: usize = 20;

/// Pieces of text that look the same.
pub(super) struct Runs<'a> {
    relations: &'a HashMap<String, Relation>,
    pieces: Vec<Piece>,
}

#[derive(Debug, PartialEq, Eq)]
struct Piece {
    look: Look,
    text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Look {
    bold: bool,
    italic: bool,
    link: Option<String>,
}

impl<'a> Runs<'a> {
    pub(super) fn of(paragraph: &Element, relations: &'a HashMap<String, Relation>) -> Self {
        let mut runs = Self { relations, pieces: Vec::new() };
        runs.collect(paragraph, None, 0);
        runs
    }

    fn collect(&mut self, parent: &Element, link: Option<&str>, depth: usize) {
        for child in parent.elements() {
            match child.name.as_str() {
                "r" => self.add_run(child, link),
                "hyperlink" if depth < DEPTH => {
                    let target = child.relation("id").and_then(|id| self.relations.get(id));
                    let anchor = child.attribute("anchor").map(|anchor| format!("#{anchor}"));
                    let target = target.map(|relation| relation.target.clone()).or(anchor);
                    self.collect(child, target.as_deref().or(link), depth + 1);
                }
                "ins" | "smartTag" | "sdt" | "sdtContent" | "fldSimple" | "customXml" | "moveTo" if depth < DEPTH => {
                    self.collect(child, link, depth + 1);
                }
                _ => {}
            }
        }
    }

    fn add_run(&mut self, run: &Element, link: Option<&str>) {
        let is_on = |name| {
            run.path(&["rPr", name])
                .is_some_and(|property| !matches!(value(property), Some("0" | "false" | "off" | "none")))
        };
        let look = Look { bold: is_on("b"), italic: is_on("i"), link: link.map(str::to_owned) };
        for part in run.elements() {
            match part.name.as_str() {
                "t" => self.add(&look, &part.text()),
                "tab" => self.add(&look, "\t"),
                "br" | "cr" => self.add(&look, "\n"),
                "noBreakHyphen" => self.add(&look, "-"),
                "drawing" | "pict" => {
                    let picture = self.picture(part);
                    self.add(&Look::default(), &picture);
                }
                _ => {}
            }
        }
    }

    fn add(&mut self, look: &Look, text: &str) {
        match self.pieces.last_mut() {
            Some(last) if last.look == *look => last.text.push_str(text),
            _ => self.pieces.push(Piece { look: look.clone(), text: text.to_owned() }),
        }
    }

    /// A picture by its description and the name of its file.
    fn picture(&self, drawing: &Element) -> String {
        let Some(blip) = drawing.find("blip") else { return String::new() };
        let attribute = |name| drawing.find("docPr").and_then(|properties| properties.attribute(name));
        let alternative = attribute("descr").filter(|text| !text.is_empty()).or_else(|| attribute("name"));
        let target = blip.relation("embed").and_then(|id| self.relations.get(id));
        let file = target.and_then(|relation| relation.target.rsplit('/').next()).unwrap_or_default();
        format!("![{}]({file})", markdown::line(alternative.unwrap_or_default()))
    }

    /// All pieces with their marks.
    pub(super) fn text(&self) -> String {
        self.pieces.iter().map(Piece::marked).collect()
    }
}

impl Piece {
    /// Marks stand next to the text, blanks outside of them.
    fn marked(&self) -> String {
        let inner = self.text.trim();
        if inner.is_empty() {
            return self.text.clone();
        }
        let mark = match (self.look.bold, self.look.italic) {
            (true, true) => "***",
            (true, false) => "**",
            (false, true) => "*",
            (false, false) => "",
        };
        let marked = format!("{mark}{inner}{mark}");
        let marked = match &self.look.link {
            Some(target) => format!("[{marked}]({target})"),
            None => marked,
        };
        let start = self.text.len() - self.text.trim_start().len();
        let end = self.text.trim_end().len();
        format!("{}{marked}{}", &self.text[..start], &self.text[end..])
    }
}
