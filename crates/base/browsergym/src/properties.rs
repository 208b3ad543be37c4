//! What is known of every marked element besides the accessibility tree (spec/browser.md §5.1).

use std::collections::HashMap;

use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};

use crate::snapshot::{Document, Layout, Snapshot};

/// Attributes in which marking leaves what it found (§3).
const BID: &str = "bid";
const VISIBILITY: &str = "browsergym_visibility_ratio";
const SET_OF_MARKS: &str = "browsergym_set_of_marks";

/// Longer ids are none of ours: a page has written them.
const LONGEST_BID: usize = 1024;

/// What `extra_element_properties` says of one element.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ElementProperties {
    /// The part of the element that is in the viewport, 0 to 1.
    pub visibility: f64,
    /// Left, top, width and height in CSS pixels from the top left of the main frame's viewport, if it is laid out.
    pub bbox: Option<[f64; 4]>,
    /// Whether Chromium says that it takes clicks.
    pub clickable: bool,
    /// Whether it has a mark on the picture (§6).
    pub set_of_marks: bool,
}

/// Properties by bid, in the order of the documents.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExtraProperties {
    entries: Vec<(String, ElementProperties)>,
    positions: HashMap<String, usize>,
}

impl ExtraProperties {
    /// Sets the properties of `bid`; one that is there keeps its place.
    pub fn insert(&mut self, bid: impl Into<String>, properties: ElementProperties) {
        let bid = bid.into();
        if let Some(entry) = self.positions.get(&bid).and_then(|&position| self.entries.get_mut(position)) {
            entry.1 = properties;
        } else {
            self.positions.insert(bid.clone(), self.entries.len());
            self.entries.push((bid, properties));
        }
    }

    /// The properties of `bid`.
    pub fn get(&self, bid: &str) -> Option<&ElementProperties> {
        self.positions.get(bid).and_then(|&position| self.entries.get(position)).map(|(_, properties)| properties)
    }

    /// All in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ElementProperties)> {
        self.entries.iter().map(|(bid, properties)| (bid.as_str(), properties))
    }

    /// How many elements are known.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no element is known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// A snapshot, and where the top left of its main document's viewport is in that of the page, in CSS pixels.
///
/// A frame that another process renders has a snapshot of its own; that of the page itself is at 0, 0.
#[derive(Debug, Clone, Copy)]
pub struct PlacedSnapshot<'a> {
    /// What Chromium answers.
    pub snapshot: &'a Snapshot,
    /// How far right of the page's left edge it is.
    pub x: f64,
    /// How far below the page's upper edge it is.
    pub y: f64,
}

/// The properties of all elements with a bid, of which every document of the snapshots that is shown is searched.
pub fn extra_properties(snapshots: &[PlacedSnapshot<'_>]) -> ExtraProperties {
    let mut all = ExtraProperties::default();
    for placed in snapshots {
        for (document, x, y) in placed_documents(placed) {
            add_document(&mut all, placed.snapshot, document, (x, y));
        }
    }
    all
}

/// The documents that are reached from the first one, each once, with the place of their upper left corner: that is
/// above and left of the frame if they are scrolled.
fn placed_documents<'a>(placed: &PlacedSnapshot<'a>) -> Vec<(&'a Document, f64, f64)> {
    let documents = &placed.snapshot.documents;
    let mut origins: Vec<Option<(f64, f64)>> = vec![None; documents.len()];
    let mut found = Vec::new();
    let mut pending = vec![(0, placed.x, placed.y)];
    if let Some(first) = origins.first_mut() {
        *first = Some((placed.x, placed.y));
        found.push(0);
    }
    while let Some((at, frame_x, frame_y)) = pending.pop() {
        let Some(document) = documents.get(at) else { continue };
        let (x, y) = (frame_x - document.scroll_offset_x, frame_y - document.scroll_offset_y);
        origins[at] = Some((x, y));
        let bounds = bounds_by_node(&document.layout);
        for (element, child) in document.nodes.content_documents() {
            if origins.get(child).is_some_and(Option::is_none) {
                // What is not laid out has its frame where the page begins.
                let inner = bounds.get(&element).map_or((0.0, 0.0), |[left, top, ..]| (x + left, y + top));
                origins[child] = Some(inner);
                found.push(child);
                pending.push((child, inner.0, inner.1));
            }
        }
    }
    found
        .into_iter()
        .filter_map(|at| Some((documents.get(at)?, (*origins.get(at)?)?)))
        .map(|(d, (x, y))| (d, x, y))
        .collect()
}

/// Bounds of the nodes that are laid out; the first if there are several.
fn bounds_by_node(layout: &Layout) -> HashMap<usize, [f64; 4]> {
    let mut all = HashMap::with_capacity(layout.node_index.len());
    for (&node, bounds) in layout.node_index.iter().zip(&layout.bounds) {
        if let Ok(bounds) = <[f64; 4]>::try_from(bounds.as_slice()) {
            all.entry(node).or_insert(bounds);
        }
    }
    all
}

fn add_document(all: &mut ExtraProperties, snapshot: &Snapshot, document: &Document, (x, y): (f64, f64)) {
    let names = [BID, VISIBILITY, SET_OF_MARKS].map(|name| snapshot.position(name));
    let mut clickable = vec![false; document.nodes.parent_index.len()];
    for &node in &document.nodes.is_clickable.index {
        clickable.get_mut(node).into_iter().for_each(|clickable| *clickable = true);
    }
    let boxes = boxes(&document.layout, clickable.len(), x, y);
    for node in 0..clickable.len() {
        let mut bid = None;
        let mut properties =
            ElementProperties { bbox: boxes[node], clickable: clickable[node], ..ElementProperties::default() };
        for (name, value) in document.nodes.attributes_of(node) {
            let text = snapshot.string(value);
            if Some(name) == names[0] {
                bid = text.filter(|bid| (1..=LONGEST_BID).contains(&bid.len()));
            } else if Some(name) == names[1] {
                properties.visibility = text.map_or(0.0, ratio);
            } else if Some(name) == names[2] {
                properties.set_of_marks = text == Some("1");
            }
        }
        if let Some(bid) = bid {
            all.insert(bid, properties);
        }
    }
}

/// The boxes of nodes in pixels of the page; the last if a node is laid out twice, none if it has no rectangle.
fn boxes(layout: &Layout, nodes: usize, x: f64, y: f64) -> Vec<Option<[f64; 4]>> {
    let mut boxes = vec![None; nodes];
    for ((&node, bounds), client_rect) in layout.node_index.iter().zip(&layout.bounds).zip(&layout.client_rects) {
        let Some(place) = boxes.get_mut(node) else { continue };
        *place = match *bounds.as_slice() {
            [left, top, width, height] if !client_rect.is_empty() => Some([left + x, top + y, width, height]),
            _ => None,
        };
    }
    boxes
}

/// The number in an attribute; pages can write anything there.
fn ratio(text: &str) -> f64 {
    text.trim().parse().ok().filter(|ratio: &f64| ratio.is_finite()).unwrap_or(0.0)
}

impl Serialize for ExtraProperties {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.entries.len()))?;
        for (bid, properties) in &self.entries {
            map.serialize_entry(bid, properties)?;
        }
        map.end()
    }
}

impl Serialize for ElementProperties {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_struct("ElementProperties", 4)?;
        members.serialize_field("visibility", &self.visibility)?;
        members.serialize_field("bbox", &self.bbox.map(|sides| sides.map(Pixels)))?;
        members.serialize_field("clickable", &self.clickable)?;
        members.serialize_field("set_of_marks", &self.set_of_marks)?;
        members.end()
    }
}

/// A length as Chromium writes it: whole numbers have no `.0`.
struct Pixels(f64);

impl Serialize for Pixels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match whole(self.0) {
            Some(whole) => serializer.serialize_i64(whole),
            None => serializer.serialize_f64(self.0),
        }
    }
}

fn whole(pixels: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if pixels.fract() == 0.0 && pixels.abs() < EXACT { format!("{pixels:.0}").parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn snapshot(documents: &serde_json::Value, strings: &[&str]) -> Snapshot {
        serde_json::from_value(json!({"documents": documents, "strings": strings})).unwrap()
    }

    #[test]
    fn elements_of_frames_are_placed_in_the_viewport_of_the_page() {
        let strings = ["bid", "browsergym_visibility_ratio", "browsergym_set_of_marks", "1", "0.5", "a", "a0", "nan"];
        let main = json!({
            "scrollOffsetX": 0, "scrollOffsetY": 10.5,
            "nodes": {
                "parentIndex": [-1, 0, 1], "attributes": [[], [0, 3, 1, 4, 2, 3], [0, 5, 1, 7]],
                "isClickable": {"index": [1, 99]}, "contentDocumentIndex": {"index": [2], "value": [1]},
            },
            "layout": {"nodeIndex": [1, 2], "bounds": [[8, 20, 100, 30.25], [3, 100, 50, 60]],
                       "clientRects": [[0, 0, 1, 1], []]},
        });
        let inner = json!({
            "scrollOffsetX": 1, "scrollOffsetY": 2,
            "nodes": {"parentIndex": [-1], "attributes": [[0, 6, 2, 4, 1]],
                      "contentDocumentIndex": {"index": [0, 0], "value": [0, -1]}},
            "layout": {"nodeIndex": [0], "bounds": [[5, 6, 7, 8]], "clientRects": [[1, 1, 1, 1]]},
        });
        let page = snapshot(&json!([main, inner]), &strings);
        let other = snapshot(
            &json!([{"nodes": {"parentIndex": [-1], "attributes": [[0, 1]]},
                     "layout": {"nodeIndex": [0], "bounds": [[1, 2, 3, 4]], "clientRects": [[0]]}}]),
            &["bid", "b0"],
        );
        let placed = [
            PlacedSnapshot { snapshot: &page, x: 0.0, y: 0.0 },
            PlacedSnapshot { snapshot: &other, x: 100.0, y: 200.5 },
        ];
        assert_eq!(
            serde_json::to_string(&extra_properties(&placed)).unwrap(),
            concat!(
                r#"{"1":{"visibility":0.5,"bbox":[8,9.5,100,30.25],"clickable":true,"set_of_marks":true},"#,
                r#""a":{"visibility":0.0,"bbox":null,"clickable":false,"set_of_marks":false},"#,
                r#""a0":{"visibility":0.0,"bbox":[7,93.5,7,8],"clickable":false,"set_of_marks":false},"#,
                r#""b0":{"visibility":0.0,"bbox":[101,202.5,3,4],"clickable":false,"set_of_marks":false}}"#
            )
        );
    }
}
