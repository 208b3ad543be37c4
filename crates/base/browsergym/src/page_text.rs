//! The text of a page, which `browse` answers (spec/browser.md §8.2).
//!
//! A document goes through three hands, each of which passes tags and texts on to the next: `nesting` closes what a
//! lenient reader of HTML closes, `layout` puts every tag and text on a line of its own, `markdown` writes.

mod element;
mod escape;
mod layout;
mod markdown;
mod nesting;
mod noscript;
#[cfg(test)]
mod tests;

use crate::snapshot::{Document, Nodes, Snapshot};
use element::Element;
use layout::Layout;
use markdown::Markdown;
use nesting::Nesting;

/// The longest text of a page; the rest is left out.
const LONGEST: usize = 16 << 20;

/// The numbers of DOM's node types.
const ELEMENT: i64 = 1;
const TEXT: i64 = 3;
const CDATA: i64 = 4;

/// What is still to be done on the walk through the documents.
enum Step {
    Enter { document: usize, node: usize, parent: Parent },
    Leave(String),
}

/// What the texts in a node are.
#[derive(Debug, Clone, Copy)]
enum Parent {
    /// No part of the page: it is a document or a fragment.
    Skipped,
    Element,
    /// HTML.
    Noscript,
}

/// Children of every node of a document, in order.
struct Children {
    /// Where the children of a node begin in `nodes`, and after the last one where they end.
    begins: Vec<usize>,
    nodes: Vec<usize>,
}

/// The page as Markdown. Documents of frames stand in their element, shadow roots in their host.
pub fn page_text(snapshot: &Snapshot) -> String {
    let mut out = Nesting::new(Layout::new(Markdown::new(LONGEST)));
    let mut children: Vec<Option<Children>> = snapshot.documents.iter().map(|_| None).collect();
    let mut pending = Vec::new();
    enter_document(snapshot, 0, &mut children, &mut pending);
    while let Some(step) = pending.pop() {
        match step {
            Step::Leave(name) => out.end(&name),
            Step::Enter { document, node, parent } => {
                let Some(nodes) = snapshot.documents.get(document).map(|document| &document.nodes) else { continue };
                let entered = enter(snapshot, document, node, parent, &mut out);
                let Entered::Children { parent, leave } = entered else { continue };
                pending.extend(leave.map(Step::Leave));
                if let Some(known) = children.get(document).and_then(Option::as_ref) {
                    let enter = |&node: &usize| Step::Enter { document, node, parent };
                    pending.extend(known.of(node).iter().rev().map(enter));
                }
                if let Some(inner) = content_document(nodes, node) {
                    enter_document(snapshot, inner, &mut children, &mut pending);
                }
            }
        }
        if out.is_full() {
            break;
        }
    }
    out.finish()
}

/// What there is to do after a node is written.
enum Entered {
    Nothing,
    Children { parent: Parent, leave: Option<String> },
}

fn enter(snapshot: &Snapshot, document: usize, node: usize, parent: Parent, out: &mut Nesting) -> Entered {
    let Some(nodes) = snapshot.documents.get(document).map(|document| &document.nodes) else { return Entered::Nothing };
    let value = || nodes.node_value.get(node).and_then(|&value| snapshot.string(value)).unwrap_or_default();
    match nodes.node_type.get(node) {
        Some(&(TEXT | CDATA)) => {
            match parent {
                Parent::Skipped => {}
                Parent::Element => out.text(value()),
                Parent::Noscript => noscript::read(value(), out),
            }
            Entered::Nothing
        }
        Some(&ELEMENT) => {
            let element = element(snapshot, nodes, node);
            let in_frame = document != 0;
            if element.name.starts_with(':') || (in_frame && element.name == "head") {
                // Pseudo-elements are no elements of the page, and there is one head.
                return Entered::Nothing;
            }
            if in_frame && matches!(element.name.as_str(), "html" | "body") {
                return Entered::Children { parent: Parent::Element, leave: None };
            }
            let parent = if element.name == "noscript" { Parent::Noscript } else { Parent::Element };
            let leave = Some(element.name.clone());
            out.start(element);
            Entered::Children { parent, leave }
        }
        Some(_) => Entered::Children { parent: Parent::Skipped, leave: None },
        None => Entered::Nothing,
    }
}

fn element(snapshot: &Snapshot, nodes: &Nodes, node: usize) -> Element {
    let name = nodes.node_name.get(node).and_then(|&name| snapshot.string(name)).unwrap_or_default();
    let mut element = Element { name: name.trim().to_lowercase(), href: None, title: None, start: None };
    if !matches!(element.name.as_str(), "a" | "abbr" | "ol" | "ul") {
        return element;
    }
    for (name, value) in nodes.attributes_of(node) {
        let place = match snapshot.string(name) {
            Some("href") => &mut element.href,
            Some("title") => &mut element.title,
            Some("start") => &mut element.start,
            _ => continue,
        };
        // An empty value has no position.
        *place = Some(snapshot.string(value).unwrap_or_default().to_owned());
    }
    element
}

/// Prepares the walk through a document that has not been walked through yet, so that frames within themselves end.
fn enter_document(snapshot: &Snapshot, document: usize, children: &mut [Option<Children>], pending: &mut Vec<Step>) {
    let Some(place) = children.get_mut(document).filter(|place| place.is_none()) else { return };
    let Some(found) = snapshot.documents.get(document) else { return };
    *place = Some(Children::new(found));
    pending.push(Step::Enter { document, node: 0, parent: Parent::Element });
}

fn content_document(nodes: &Nodes, node: usize) -> Option<usize> {
    let rare = &nodes.content_document_index;
    // Chromium lists them in the order of the nodes.
    let at = rare.index.binary_search(&node).ok()?;
    usize::try_from(*rare.value.get(at)?).ok()
}

impl Children {
    fn new(document: &Document) -> Self {
        let parents = &document.nodes.parent_index;
        let count = parents.len();
        // A parent stands before its children, which excludes loops.
        let parent_of = |node: usize| parents.get(node).and_then(|&p| usize::try_from(p).ok()).filter(|&p| p < node);
        let mut begins = vec![0; count + 1];
        for parent in (0..count).filter_map(parent_of) {
            begins[parent + 1] += 1;
        }
        for node in 0..count {
            begins[node + 1] += begins[node];
        }
        let mut next = begins.clone();
        let mut nodes = vec![0; begins[count]];
        for node in 0..count {
            if let Some(parent) = parent_of(node) {
                nodes[next[parent]] = node;
                next[parent] += 1;
            }
        }
        Self { begins, nodes }
    }

    fn of(&self, node: usize) -> &[usize] {
        match (self.begins.get(node), self.begins.get(node + 1)) {
            (Some(&begin), Some(&end)) => self.nodes.get(begin..end).unwrap_or_default(),
            _ => &[],
        }
    }
}
