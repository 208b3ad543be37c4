//! Texts of Word as Markdown: headings, lists, tables, links, bold and italic text.

mod numbering;
mod runs;

use std::collections::HashMap;

use self::{
    numbering::{Counters, Numbering, Place},
    runs::Runs,
};
use super::{
    ConversionError, markdown,
    package::{Package, Relation},
    xml::Element,
};

const DOCUMENT: &str = "word/document.xml";

/// Parts within parts, such as tables in tables.
const DEPTH: usize = 20;

pub(super) fn convert(bytes: &[u8]) -> Result<String, ConversionError> {
    let mut package = Package::open(bytes)?;
    let document = package.required(DOCUMENT)?;
    let styles = package.xml("word/styles.xml")?.unwrap_or_default();
    let numbering = package.xml("word/numbering.xml")?.unwrap_or_default();
    let mut converter = Converter {
        relations: package.relations(DOCUMENT)?,
        styles: Styles::new(&styles),
        numbering: Numbering::new(&numbering),
        counters: Counters::default(),
        text: String::new(),
        in_list: false,
    };
    let body = document.child("body").ok_or_else(|| ConversionError::Invalid(format!("{DOCUMENT} has no body")))?;
    converter.add_blocks(body, 0);
    Ok(converter.text.trim().to_owned())
}

struct Converter {
    relations: HashMap<String, Relation>,
    styles: Styles,
    numbering: Numbering,
    counters: Counters,
    text: String,
    /// Whether the last block is an item of a list, which the next one may follow without an empty line.
    in_list: bool,
}

impl Converter {
    fn add_blocks(&mut self, parent: &Element, depth: usize) {
        for block in parent.elements() {
            match block.name.as_str() {
                "p" => self.add_paragraph(block),
                "tbl" => {
                    let table = markdown::table(&self.rows(block, depth));
                    self.add_block(table.trim_end(), false);
                }
                // Content controls and the like.
                "sdt" | "sdtContent" | "customXml" | "ins" if depth < DEPTH => self.add_blocks(block, depth + 1),
                _ => {}
            }
        }
    }

    fn add_paragraph(&mut self, paragraph: &Element) {
        let properties = paragraph.child("pPr");
        let style = properties.and_then(|properties| value(properties.child("pStyle")?));
        let style = style.map(|id| self.styles.resolved(id)).unwrap_or_default();
        let text = Runs::of(paragraph, &self.relations).text();
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        if let Some(level) = style.heading {
            let text = markdown::line(text);
            return self.add_block(&format!("{} {text}", "#".repeat(level)), false);
        }
        let own = properties.and_then(|properties| properties.child("numPr")).map(Place::of);
        let place = own.or(style.place).filter(|place| place.list != "0");
        let Some(place) = place else { return self.add_block(text, false) };
        let mark =
            if self.numbering.is_ordered(&place) { format!("{}.", self.counters.next(&place)) } else { "*".to_owned() };
        let indent = "    ".repeat(place.level);
        let text = text.replace('\n', &format!("\n{indent}  "));
        self.add_block(&format!("{indent}{mark} {text}"), true);
    }

    fn add_block(&mut self, text: &str, in_list: bool) {
        if text.is_empty() {
            return;
        }
        self.text.push_str(if self.in_list && in_list { "\n" } else { "\n\n" });
        self.in_list = in_list;
        self.text.push_str(text);
    }

    fn rows(&self, table: &Element, depth: usize) -> Vec<Vec<String>> {
        let rows = table.elements().filter(|row| row.name == "tr");
        rows.map(|row| {
            let cells = row.elements().filter(|cell| cell.name == "tc");
            cells.map(|cell| self.cell(cell, depth)).collect()
        })
        .collect()
    }

    /// The paragraphs of a cell in one line; those of a table within it too.
    fn cell(&self, cell: &Element, depth: usize) -> String {
        let blocks = cell.elements().map(|block| match block.name.as_str() {
            "p" => Runs::of(block, &self.relations).text(),
            "tbl" if depth < DEPTH => self.rows(block, depth + 1).into_iter().flatten().collect::<Vec<_>>().join(" "),
            _ => String::new(),
        });
        blocks.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

/// What the styles of paragraphs mean.
struct Styles(HashMap<String, Style>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Style {
    heading: Option<usize>,
    place: Option<Place>,
    parent: Option<String>,
}

impl Styles {
    fn new(styles: &Element) -> Self {
        let styles = styles.elements().filter(|style| style.name == "style").filter_map(|style| {
            let name = style.child("name").and_then(|name| value(Some(name)?)).unwrap_or_default();
            let place = style.path(&["pPr", "numPr"]).map(Place::of);
            let parent = style.child("basedOn").and_then(|parent| value(Some(parent)?)).map(str::to_owned);
            Some((style.attribute("styleId")?.to_owned(), Style { heading: heading(name), place, parent }))
        });
        Self(styles.collect())
    }

    /// A style with what it has from those that it is based on.
    fn resolved(&self, id: &str) -> Style {
        let Some(mut style) = self.0.get(id).cloned() else {
            return Style { heading: heading(id), ..Style::default() };
        };
        // A circle is possible in a damaged document.
        for _ in 0..10 {
            let Some(parent) = style.parent.as_ref().and_then(|parent| self.0.get(parent)) else { break };
            style.heading = style.heading.or(parent.heading);
            style.place = style.place.or_else(|| parent.place.clone());
            style.parent.clone_from(&parent.parent);
        }
        style
    }
}

/// The level of a heading by the name of its style: `heading 2`, `Heading2`, `Title`.
fn heading(name: &str) -> Option<usize> {
    let name = name.to_ascii_lowercase();
    if name == "title" {
        return Some(1);
    }
    let level = name.strip_prefix("heading")?.trim().parse().ok()?;
    (1..=6).contains(&level).then_some(level)
}

/// The attribute that most elements hold their value in.
fn value(element: &Element) -> Option<&str> {
    element.attribute("val")
}

#[cfg(test)]
mod tests {
    use super::{super::package::tests::document, *};

    fn paragraph(properties: &str, text: &str) -> String {
        format!("<w:p><w:pPr>{properties}</w:pPr><w:r><w:t xml:space='preserve'>{text}</w:t></w:r></w:p>")
    }

    fn item(list: u32, level: u32, text: &str) -> String {
        paragraph(&format!("<w:numPr><w:ilvl w:val='{level}'/><w:numId w:val='{list}'/></w:numPr>"), text)
    }

    fn converted(body: &str) -> String {
        let numbering = "<w:numbering>\
            <w:abstractNum w:abstractNumId='0'><w:lvl w:ilvl='0'><w:numFmt w:val='bullet'/></w:lvl></w:abstractNum>\
            <w:abstractNum w:abstractNumId='1'><w:lvl w:ilvl='0'><w:numFmt w:val='decimal'/></w:lvl>\
            <w:lvl w:ilvl='1'><w:numFmt w:val='lowerLetter'/></w:lvl></w:abstractNum>\
            <w:num w:numId='1'><w:abstractNumId w:val='0'/></w:num><w:num w:numId='2'><w:abstractNumId w:val='1'/></w:num></w:numbering>";
        let styles = "<w:styles><w:style w:styleId='U1'><w:name w:val='heading 1'/></w:style>\
            <w:style w:styleId='Own'><w:name w:val='own'/><w:basedOn w:val='U1'/></w:style>\
            <w:style w:styleId='Punkte'><w:name w:val='List Bullet'/><w:pPr><w:numPr><w:numId w:val='1'/></w:numPr></w:pPr></w:style></w:styles>";
        let relations = "<r><Relationship Id='r1' Type='x/hyperlink' Target='https://example.org/' TargetMode='External'/>\
            <Relationship Id='r2' Type='x/image' Target='media/image1.png'/></r>";
        let file = document(&[
            (DOCUMENT, &format!("<w:document><w:body>{body}</w:body></w:document>")),
            ("word/numbering.xml", numbering),
            ("word/styles.xml", styles),
            ("word/_rels/document.xml.rels", relations),
        ]);
        convert(&file).unwrap()
    }

    #[test]
    fn headings_are_known_by_the_names_of_their_styles() {
        let body = [
            paragraph("<w:pStyle w:val='U1'/>", "One"),
            paragraph("<w:pStyle w:val='Own'/>", "Own"),
            paragraph("<w:pStyle w:val='Heading2'/>", "Two"),
            paragraph("", "plain &amp; simple"),
            paragraph("", ""),
        ];
        assert_eq!(converted(&body.concat()), "# One\n\n# Own\n\n## Two\n\nplain & simple");
    }

    #[test]
    fn lists_are_marked_and_counted() {
        let body = [
            item(1, 0, "point"),
            paragraph("<w:pStyle w:val='Punkte'/>", "by style"),
            item(2, 0, "first"),
            item(2, 1, "within"),
            item(2, 1, "within"),
            item(2, 0, "second"),
            item(2, 1, "again"),
            paragraph("", "text"),
        ];
        assert_eq!(
            converted(&body.concat()),
            "* point\n* by style\n1. first\n    1. within\n    2. within\n2. second\n    1. again\n\ntext"
        );
    }

    #[test]
    fn runs_are_bold_italic_linked_and_pictures() {
        let run = |properties: &str, text: &str| {
            format!("<w:r><w:rPr>{properties}</w:rPr><w:t xml:space='preserve'>{text}</w:t></w:r>")
        };
        let body = format!(
            "<w:p>{}{}{}{}<w:r><w:br/><w:t>next</w:t><w:tab/></w:r></w:p>\
             <w:p><w:hyperlink r:id='r1'>{}</w:hyperlink><w:del>{}</w:del><w:ins>{}</w:ins></w:p>\
             <w:p><w:r><w:drawing><wp:docPr name='Picture 1' descr='a view'/><a:blip r:embed='r2'/></w:drawing></w:r></w:p>",
            run("<w:b/>", "bo"),
            run("<w:b w:val='1'/>", "ld "),
            run("<w:i/>", "italic"),
            run("<w:b w:val='0'/>", " plain"),
            run("", "a link"),
            run("", "gone"),
            run("", " new"),
        );
        assert_eq!(
            converted(&body),
            "**bold** *italic* plain\nnext\n\n[a link](https://example.org/) new\n\n![a view](image1.png)"
        );
    }

    #[test]
    fn tables_have_a_line_for_each_row() {
        let cell = |text: &str| format!("<w:tc>{}{}</w:tc>", paragraph("", text), paragraph("", "more"));
        let row = |first: &str, second: &str| format!("<w:tr>{}{}</w:tr>", cell(first), cell(second));
        let body = format!("<w:tbl>{}{}</w:tbl>{}", row("a", "b"), row("c", "d"), paragraph("", "end"));
        assert_eq!(converted(&body), "| a more | b more |\n| --- | --- |\n| c more | d more |\n\nend");
    }
}
