//! Lists: which have numbers, and which number comes next.

use std::collections::HashMap;

use super::{super::xml::Element, value};

/// Deepest level of a list.
const LEVELS: usize = 8;

/// Where an item stands: in which list, and how deep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) list: String,
    pub(super) level: usize,
}

impl Place {
    /// What a `numPr` says.
    pub(super) fn of(properties: &Element) -> Self {
        let part = |name| properties.child(name).and_then(value);
        let level = part("ilvl").and_then(|level| level.parse().ok()).unwrap_or(0);
        Self { list: part("numId").unwrap_or("0").to_owned(), level: LEVELS.min(level) }
    }
}

/// Which levels of which lists have numbers.
#[derive(Debug)]
pub(super) struct Numbering(HashMap<(String, usize), bool>);

impl Numbering {
    pub(super) fn new(numbering: &Element) -> Self {
        let mut ordered = HashMap::new();
        for list in numbering.elements().filter(|list| list.name == "num") {
            let abstract_id = list.child("abstractNumId").and_then(value);
            let Some(pattern) = numbering
                .elements()
                .find(|pattern| pattern.name == "abstractNum" && pattern.attribute("abstractNumId") == abstract_id)
            else {
                continue;
            };
            let Some(id) = list.attribute("numId") else { continue };
            for level in pattern.elements().filter(|level| level.name == "lvl") {
                let number = level.attribute("ilvl").and_then(|level| level.parse().ok()).unwrap_or(0);
                let format = level.child("numFmt").and_then(value).unwrap_or("bullet");
                ordered.insert((id.to_owned(), number), !matches!(format, "bullet" | "none"));
            }
        }
        Self(ordered)
    }

    pub(super) fn is_ordered(&self, place: &Place) -> bool {
        self.0.get(&(place.list.clone(), place.level)).copied().unwrap_or(false)
    }
}

/// The numbers reached.
#[derive(Debug, Default)]
pub(super) struct Counters(HashMap<String, [usize; LEVELS + 1]>);

impl Counters {
    /// The number of the next item. Deeper levels begin again.
    pub(super) fn next(&mut self, place: &Place) -> usize {
        let counters = self.0.entry(place.list.clone()).or_default();
        counters[place.level + 1..].fill(0);
        counters[place.level] += 1;
        counters[place.level]
    }
}
