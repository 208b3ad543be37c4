//! What `DOMSnapshot.captureSnapshot` of Chromium answers, as far as it is read here.
//!
//! Documents are flat: a node is a position in lists of equal length, and texts are positions in a list of strings.

use serde::Deserialize;

/// The answer: all documents of a page that one process renders, the main one first.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    pub(crate) documents: Vec<Document>,
    pub(crate) strings: Vec<String>,
}

/// One document.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Document {
    pub(crate) scroll_offset_x: f64,
    pub(crate) scroll_offset_y: f64,
    pub(crate) nodes: Nodes,
    pub(crate) layout: Layout,
}

/// The nodes of a document, parents before children.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Nodes {
    pub(crate) parent_index: Vec<i64>,
    pub(crate) node_type: Vec<i64>,
    pub(crate) node_name: Vec<i64>,
    pub(crate) node_value: Vec<i64>,
    pub(crate) backend_node_id: Vec<i64>,
    pub(crate) attributes: Vec<Vec<i64>>,
    pub(crate) content_document_index: Rare,
    pub(crate) is_clickable: Rare,
}

/// A property that few nodes have: the nodes that have it, and its values unless it is a yes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Rare {
    pub(crate) index: Vec<usize>,
    pub(crate) value: Vec<i64>,
}

/// Where nodes are. The lists have equal length.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Layout {
    pub(crate) node_index: Vec<usize>,
    pub(crate) bounds: Vec<Vec<f64>>,
    pub(crate) client_rects: Vec<Vec<f64>>,
}

impl Snapshot {
    /// The string at a position; positions of nothing are negative.
    pub(crate) fn string(&self, position: i64) -> Option<&str> {
        self.strings.get(usize::try_from(position).ok()?).map(String::as_str)
    }

    /// The position of a string that is there.
    pub(crate) fn position(&self, text: &str) -> Option<i64> {
        self.strings.iter().position(|known| known == text).and_then(|position| i64::try_from(position).ok())
    }
}

impl Nodes {
    /// Name and value of each attribute of a node, as positions of strings.
    pub(crate) fn attributes_of(&self, node: usize) -> impl Iterator<Item = (i64, i64)> {
        let pairs = self.attributes.get(node).map(Vec::as_slice).unwrap_or_default().chunks_exact(2);
        pairs.filter_map(|pair| Some((*pair.first()?, *pair.last()?)))
    }

    /// The elements that show other documents, with the positions of these.
    pub(crate) fn content_documents(&self) -> impl Iterator<Item = (usize, usize)> {
        let rare = &self.content_document_index;
        rare.index
            .iter()
            .zip(&rare.value)
            .filter_map(|(&node, &document)| Some((node, usize::try_from(document).ok()?)))
    }
}
