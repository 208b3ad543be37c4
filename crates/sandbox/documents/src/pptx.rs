//! Slides as Markdown.

use std::fmt::Write as _;

use super::{
    ConversionError, markdown,
    package::Package,
    xml::{Element, Node},
};

/// Shapes within groups within groups.
const DEPTH: usize = 20;

pub(super) fn convert(bytes: &[u8]) -> Result<String, ConversionError> {
    const PRESENTATION: &str = "ppt/presentation.xml";
    let mut package = Package::open(bytes)?;
    let presentation = package.required(PRESENTATION)?;
    let relations = package.relations(PRESENTATION)?;
    let ids = presentation.child("sldIdLst").map(|list| list.elements().filter_map(|slide| slide.relation("id")));
    let parts: Vec<String> =
        ids.into_iter().flatten().filter_map(|id| relations.get(id)).map(|relation| relation.target.clone()).collect();
    let mut text = String::new();
    for (number, part) in (1..).zip(&parts) {
        let slide = package.required(part)?;
        // Writing into a string cannot fail.
        let _ = write!(text, "\n\n<!-- Slide number: {number} -->\n");
        if let Some(shapes) = slide.path(&["cSld", "spTree"]) {
            add_shapes(&mut text, shapes, 0);
        }
        let notes = package.relations(part)?.into_values().find(|relation| relation.kind == "notesSlide");
        if let Some(notes) = notes
            && let Some(notes) = package.xml(&notes.target)?
            && let Some(notes) = notes_text(&notes)
        {
            text.truncate(text.trim_end().len());
            text.push_str("\n\n### Notes:\n");
            text.push_str(&notes);
        }
        text.truncate(text.trim_end().len());
    }
    Ok(text.trim().to_owned())
}

fn add_shapes(text: &mut String, shapes: &Element, depth: usize) {
    for shape in shapes.elements() {
        match shape.name.as_str() {
            "sp" => add_text_shape(text, shape),
            "pic" => add_picture(text, shape),
            "graphicFrame" => {
                if let Some(table) = shape.find("tbl") {
                    let _ = write!(text, "\n{}\n", markdown::table(&rows(table)));
                }
            }
            "grpSp" if depth < DEPTH => add_shapes(text, shape, depth + 1),
            // The same for programs that know less stands beside it.
            "AlternateContent" if depth < DEPTH => {
                if let Some(choice) = shape.child("Choice") {
                    add_shapes(text, choice, depth + 1);
                }
            }
            _ => {}
        }
    }
}

fn add_text_shape(text: &mut String, shape: &Element) {
    let Some(body) = shape.child("txBody") else { return };
    let content = paragraphs(body);
    if content.trim().is_empty() {
        return;
    }
    if matches!(placeholder(shape), Some("title" | "ctrTitle")) {
        text.push_str("# ");
        text.push_str(content.trim_start());
    } else {
        text.push_str(&content);
    }
    text.push('\n');
}

fn add_picture(text: &mut String, picture: &Element) {
    let properties = picture.path(&["nvPicPr", "cNvPr"]);
    let attribute = |name| properties.and_then(|properties| properties.attribute(name)).unwrap_or_default();
    let name = attribute("name");
    let alternative = if attribute("descr").is_empty() { name } else { attribute("descr") };
    let file: String = name.chars().filter(|character| character.is_alphanumeric() || *character == '_').collect();
    let _ = write!(text, "\n![{}]({file}.jpg)\n", markdown::line(alternative));
}

fn rows(table: &Element) -> Vec<Vec<String>> {
    let rows = table.elements().filter(|row| row.name == "tr");
    rows.map(|row| {
        let cells = row.elements().filter(|cell| cell.name == "tc");
        cells.map(|cell| cell.child("txBody").map(paragraphs).unwrap_or_default()).collect()
    })
    .collect()
}

/// The text of the notes, which is in the placeholder of the body.
fn notes_text(notes: &Element) -> Option<String> {
    let shapes = notes.path(&["cSld", "spTree"])?;
    let body = shapes.elements().find(|shape| shape.name == "sp" && placeholder(shape) == Some("body"))?;
    let text = paragraphs(body.child("txBody")?);
    (!text.trim().is_empty()).then_some(text)
}

fn placeholder(shape: &Element) -> Option<&str> {
    shape.path(&["nvSpPr", "nvPr", "ph"])?.attribute("type")
}

/// The paragraphs of a frame, one a line.
fn paragraphs(body: &Element) -> String {
    let paragraphs = body.elements().filter(|paragraph| paragraph.name == "p").map(|paragraph| {
        let mut text = String::new();
        for child in &paragraph.children {
            let Node::Element(run) = child else { continue };
            match run.name.as_str() {
                "r" | "fld" => text.push_str(&run.child("t").map(Element::text).unwrap_or_default()),
                "br" => text.push('\n'),
                _ => {}
            }
        }
        text
    });
    paragraphs.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::{super::package::tests::document, *};

    #[test]
    fn slides_are_shown_in_their_order_with_their_notes() {
        let shape = |kind: &str, text: &str| {
            let lines =
                format!("<a:p><a:r><a:t>{}</a:t></a:r></a:p>", text.replace('\n', "</a:t></a:r></a:p><a:p><a:r><a:t>"));
            format!("<p:sp><p:nvSpPr><p:nvPr>{kind}</p:nvPr></p:nvSpPr><p:txBody>{lines}</p:txBody></p:sp>")
        };
        let slide = |shapes: &str| format!("<p:sld><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>");
        let cell = |text: &str| format!("<a:tc><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>");
        let first = [
            shape("<p:ph type='ctrTitle'/>", "The Title"),
            shape("", "one\ntwo &amp; three"),
            format!(
                "<p:graphicFrame><a:tbl><a:tr>{}{}</a:tr><a:tr>{}{}</a:tr></a:tbl></p:graphicFrame>",
                cell("h"),
                cell("i"),
                cell("c"),
                cell("d")
            ),
            "<p:pic><p:nvPicPr><p:cNvPr name='Picture 4' descr='a view'/></p:nvPicPr></p:pic>".to_owned(),
            format!("<p:grpSp>{}</p:grpSp>", shape("", "in a group")),
        ]
        .concat();
        let notes =
            slide(&[shape("<p:ph type='sldNum'/>", "7"), shape("<p:ph type='body'/>", "remember\nthis")].concat());
        let relation =
            |id: &str, kind: &str, target: &str| format!("<Relationship Id='{id}' Type='x/{kind}' Target='{target}'/>");
        let document = document(&[
            (
                "ppt/presentation.xml",
                "<p:presentation><p:sldIdLst><p:sldId id='256' r:id='b'/><p:sldId id='257' r:id='a'/></p:sldIdLst></p:presentation>",
            ),
            (
                "ppt/_rels/presentation.xml.rels",
                &format!("<r>{}{}</r>", relation("a", "slide", "slides/1.xml"), relation("b", "slide", "slides/2.xml")),
            ),
            ("ppt/slides/2.xml", &slide(&first)),
            ("ppt/slides/1.xml", &slide("")),
            ("ppt/slides/_rels/2.xml.rels", &format!("<r>{}</r>", relation("n", "notesSlide", "../notes/n.xml"))),
            ("ppt/notes/n.xml", &notes),
        ]);
        let expected = "<!-- Slide number: 1 -->\n# The Title\none\ntwo & three\n\n| h | i |\n| --- | --- |\n| c | d |\n\n\n\
            ![a view](Picture4.jpg)\nin a group\n\n### Notes:\nremember\nthis\n\n<!-- Slide number: 2 -->";
        assert_eq!(convert(&document).unwrap(), expected);
    }
}
