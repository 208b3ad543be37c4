//! XML as a tree of bounded size. Prefixes of names are left out.

use quick_xml::{
    Reader, XmlVersion,
    escape::resolve_predefined_entity,
    events::{BytesRef, BytesStart, Event},
};

use super::ConversionError;

/// Most elements within each other.
const DEPTH: usize = 200;

/// Most elements and texts.
const NODES: usize = 1_000_000;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Element {
    /// Its name without a prefix.
    pub(super) name: String,
    /// Names with their prefixes, and values.
    attributes: Vec<(String, String)>,
    pub(super) children: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    Element(Element),
    Text(String),
}

impl Element {
    pub(super) fn elements(&self) -> impl Iterator<Item = &Self> {
        self.children.iter().filter_map(|child| match child {
            Node::Element(element) => Some(element),
            Node::Text(_) => None,
        })
    }

    /// The first child of that name.
    pub(super) fn child(&self, name: &str) -> Option<&Self> {
        self.elements().find(|element| element.name == name)
    }

    /// The element that a chain of names leads to.
    pub(super) fn path(&self, names: &[&str]) -> Option<&Self> {
        names.iter().try_fold(self, |element, name| element.child(name))
    }

    /// The first element of that name at any depth.
    pub(super) fn find(&self, name: &str) -> Option<&Self> {
        self.elements().find_map(|element| if element.name == name { Some(element) } else { element.find(name) })
    }

    /// The value of the attribute of that name, whatever its prefix.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| local(key) == name).map(|(_, value)| value.as_str())
    }

    /// The value of the attribute of that name which has a prefix, as ids of relations have.
    pub(super) fn relation(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(key, _)| key.contains(':') && local(key) == name);
        found.map(|(_, value)| value.as_str())
    }

    /// All text within.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        self.collect_text(&mut text);
        text
    }

    fn collect_text(&self, text: &mut String) {
        for child in &self.children {
            match child {
                Node::Text(part) => text.push_str(part),
                Node::Element(element) => element.collect_text(text),
            }
        }
    }

    fn add_text(&mut self, text: &str) {
        match self.children.last_mut() {
            Some(Node::Text(last)) => last.push_str(text),
            _ => self.children.push(Node::Text(text.to_owned())),
        }
    }
}

fn local(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}

/// The element at the root.
pub(super) fn parse(text: &str) -> Result<Element, ConversionError> {
    let mut reader = Reader::from_str(text);
    let mut open = vec![Element::default()];
    for count in 0.. {
        if count > NODES {
            return Err(ConversionError::Complex("it has more than a million elements"));
        }
        let Some(current) = open.last_mut() else { break };
        match reader.read_event().map_err(|error| ConversionError::Invalid(error.to_string()))? {
            Event::Start(start) => {
                if open.len() > DEPTH {
                    return Err(ConversionError::Complex("its elements are nested more than 200 deep"));
                }
                open.push(element(&start)?);
            }
            Event::Empty(start) => {
                let element = element(&start)?;
                current.children.push(Node::Element(element));
            }
            Event::End(_) => {
                if let Some(element) = open.pop()
                    && let Some(parent) = open.last_mut()
                {
                    parent.children.push(Node::Element(element));
                }
            }
            Event::Text(text) => current.add_text(&text.xml10_content()),
            Event::CData(text) => current.add_text(&text.xml10_content()),
            Event::GeneralRef(reference) => current.add_text(&resolved(&reference)),
            Event::Eof => break,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
    let [root] = <[Element; 1]>::try_from(open).map_err(|_| ConversionError::Invalid("its XML is cut".into()))?;
    let root = root.children.into_iter().find_map(|child| match child {
        Node::Element(element) => Some(element),
        Node::Text(_) => None,
    });
    root.ok_or_else(|| ConversionError::Invalid("its XML has no element".into()))
}

fn element(start: &BytesStart<'_>) -> Result<Element, ConversionError> {
    let mut attributes = Vec::new();
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| ConversionError::Invalid(error.to_string()))?;
        let value = attribute
            .normalized_value(XmlVersion::Implicit1_0)
            .map_err(|error| ConversionError::Invalid(error.to_string()))?;
        attributes.push((attribute.key.as_ref().to_owned(), value.into_owned()));
    }
    Ok(Element { name: start.local_name().as_ref().to_owned(), attributes, children: Vec::new() })
}

/// What `&name;` stands for. Entities that a document defines by itself are left as they are.
fn resolved(reference: &BytesRef<'_>) -> String {
    if let Ok(Some(character)) = reference.resolve_char_ref() {
        return character.into();
    }
    let name = reference.xml10_content();
    resolve_predefined_entity(&name).map_or_else(|| format!("&{name};"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_prefix_and_references_are_resolved() {
        let root = parse("<?xml version='1.0'?><w:a xmlns:w='u' r:id='1' id='2' t='&lt;'><b>x &amp; &#233;<![CDATA[<]]></b>&own;<c/></w:a>").unwrap();
        assert_eq!(root.name, "a");
        assert_eq!([root.attribute("id"), root.relation("id"), root.attribute("t")], [Some("1"), Some("1"), Some("<")]);
        assert_eq!(root.text(), "x & é<&own;");
        assert_eq!(root.path(&["b"]).map(Element::text), Some("x & é<".to_owned()));
        assert!(root.find("c").is_some() && root.find("d").is_none());
    }

    #[test]
    fn damaged_and_endless_xml_is_refused() {
        for text in ["", "text", "<a>", "<a></b>", "<a b='1", "<a/></a>"] {
            assert!(matches!(parse(text), Err(ConversionError::Invalid(_))), "{text}");
        }
        assert!(matches!(parse(&"<a>".repeat(DEPTH + 1)), Err(ConversionError::Complex(_))));
        let wide = format!("<a>{}</a>", "<b/>".repeat(NODES));
        assert!(matches!(parse(&wide), Err(ConversionError::Complex(_))));
    }
}
