//! The parts of a document that is a ZIP archive.

use std::{
    collections::HashMap,
    io::{Cursor, Read as _},
};

use zip::{ZipArchive, result::ZipError};

use super::{
    ConversionError,
    xml::{self, Element},
};
use gloveport_text::encoding;

/// Bytes that the parts of a document may unpack to, together.
pub(super) const UNPACKED: usize = 64 * 1024 * 1024;

/// Most parts of a document.
const PARTS: usize = 10_000;

pub(super) struct Package<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
    left: usize,
}

impl<'a> Package<'a> {
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, ConversionError> {
        let archive =
            ZipArchive::new(Cursor::new(bytes)).map_err(|error| ConversionError::Invalid(error.to_string()))?;
        if archive.len() > PARTS {
            return Err(ConversionError::Complex("it has more than 10000 parts"));
        }
        Ok(Self { archive, left: UNPACKED })
    }

    /// A part as XML; none if it does not exist.
    pub(super) fn xml(&mut self, name: &str) -> Result<Option<Element>, ConversionError> {
        let Some(bytes) = self.part(name)? else { return Ok(None) };
        let (text, _) = encoding::decode(bytes, None).map_err(|error| ConversionError::Invalid(error.to_string()))?;
        xml::parse(&text).map(Some)
    }

    /// A part that must be there.
    pub(super) fn required(&mut self, name: &str) -> Result<Element, ConversionError> {
        self.xml(name)?.ok_or_else(|| ConversionError::Invalid(format!("it has no {name}")))
    }

    /// Where the relations of a part lead, by their ids. Those within the document are full names of parts.
    pub(super) fn relations(&mut self, part: &str) -> Result<HashMap<String, Relation>, ConversionError> {
        let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
        let relations = self.xml(&joined(folder, &format!("_rels/{name}.rels")))?;
        let relations = relations.iter().flat_map(Element::elements).filter_map(|relation| {
            let target = relation.attribute("Target")?;
            let is_external = relation.attribute("TargetMode") == Some("External");
            let target = if is_external { target.to_owned() } else { joined(folder, target) };
            let kind = relation.attribute("Type").and_then(|kind| kind.rsplit('/').next()).unwrap_or_default();
            Some((relation.attribute("Id")?.to_owned(), Relation { kind: kind.to_owned(), target }))
        });
        Ok(relations.collect())
    }

    /// Unpacks all parts once, so that others may do the same without harm.
    pub(super) fn measure(&mut self) -> Result<(), ConversionError> {
        for index in 0..self.archive.len() {
            let part = self.archive.by_index(index).map_err(|error| ConversionError::Invalid(error.to_string()))?;
            // A damaged part is for the reader to complain about, what comes before the damage counts.
            let unpacked = std::io::copy(&mut part.take(self.left as u64 + 1), &mut std::io::sink()).unwrap_or(0);
            self.spend(usize::try_from(unpacked).unwrap_or(usize::MAX))?;
        }
        Ok(())
    }

    fn part(&mut self, name: &str) -> Result<Option<Vec<u8>>, ConversionError> {
        let part = match self.archive.by_name(name) {
            Ok(part) => part,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(error) => return Err(ConversionError::Invalid(error.to_string())),
        };
        let mut bytes = Vec::new();
        part.take(self.left as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| ConversionError::Invalid(error.to_string()))?;
        self.spend(bytes.len())?;
        Ok(Some(bytes))
    }

    fn spend(&mut self, bytes: usize) -> Result<(), ConversionError> {
        self.left = self.left.checked_sub(bytes).ok_or(ConversionError::Large(UNPACKED))?;
        Ok(())
    }
}

/// Where a relation leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Relation {
    /// The last word of its type: `hyperlink`, `image`, `notesSlide`.
    pub(super) kind: String,
    /// A part, or an address outside of the document.
    pub(super) target: String,
}

/// A name seen from a folder, with `..` resolved.
fn joined(folder: &str, name: &str) -> String {
    if let Some(absolute) = name.strip_prefix('/') {
        return absolute.to_owned();
    }
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write as _;

    use zip::{ZipWriter, write::SimpleFileOptions};

    use super::*;

    /// A document of the given parts.
    pub(in super::super) fn document(parts: &[(&str, &str)]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in parts {
            writer.start_file(*name, SimpleFileOptions::default()).unwrap();
            writer.write_all(content.as_bytes()).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    #[test]
    fn a_document_that_unpacks_to_too_much_is_refused() {
        let bomb = document(&[("a", &"x".repeat(UNPACKED / 2)), ("b", &"<a>".repeat(UNPACKED / 4))]);
        assert!(bomb.len() < UNPACKED / 100);
        assert!(matches!(Package::open(&bomb).unwrap().measure(), Err(ConversionError::Large(UNPACKED))));
        let mut package = Package::open(&bomb).unwrap();
        assert!(package.part("a").unwrap().is_some());
        assert!(matches!(package.part("b"), Err(ConversionError::Large(UNPACKED))));
    }

    #[test]
    fn relations_lead_to_parts_and_addresses() {
        let relations = "<Relationships><Relationship Id='r1' Type='http://x/image' Target='../media/i.png'/>\
            <Relationship Id='r2' Type='http://x/hyperlink' Target='https://example.org/?a&amp;b' TargetMode='External'/>\
            <Relationship Id='r3' Type='slide' Target='/ppt/slides/s.xml'/></Relationships>";
        let document = document(&[("ppt/slides/_rels/s.xml.rels", relations)]);
        let found = Package::open(&document).unwrap().relations("ppt/slides/s.xml").unwrap();
        for (id, kind, target) in [
            ("r1", "image", "ppt/media/i.png"),
            ("r2", "hyperlink", "https://example.org/?a&b"),
            ("r3", "slide", "ppt/slides/s.xml"),
        ] {
            assert_eq!(found[id], Relation { kind: kind.into(), target: target.into() });
        }
    }
}
