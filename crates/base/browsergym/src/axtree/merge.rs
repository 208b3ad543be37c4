//! One accessibility tree out of those of all frames (spec/browser.md §7.1).

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use crate::repr::is_space;

/// What stands before the bid in an ARIA text of a marked element (§3.3).
const MARK: &str = "browsergym_id_";

/// The accessibility tree of one frame.
#[derive(Debug, Clone, Default)]
pub struct FrameTree {
    /// The id of the frame.
    pub frame: String,
    /// The member `nodes` of what `Accessibility.getFullAXTree` answers, the root first.
    pub nodes: Vec<Value>,
    /// Frames in this one: the backend node id of the element (`iframe`, `frame`) to the id of its content frame.
    pub content_frames: HashMap<i64, String>,
}

/// Puts the trees into one object with the member `nodes`; the first tree is that of the main frame.
///
/// Every node of a marked element gets the member `browsergym_id`, and its role description and description are again
/// what the page says; empty ones are removed. A node of role `Iframe` has the root of its content frame as last child.
/// The trees of frames in other processes may use the same node ids: those of the later frame are changed.
pub fn merge(mut frames: Vec<FrameTree>) -> Value {
    make_ids_unique(&mut frames);
    let roots: HashMap<String, Value> = frames
        .iter()
        .filter_map(|tree| Some((tree.frame.clone(), tree.nodes.first()?.get("nodeId")?.clone())))
        .collect();
    let mut nodes = Vec::with_capacity(frames.iter().map(|tree| tree.nodes.len()).sum());
    for mut tree in frames {
        for node in tree.nodes.iter_mut().filter_map(Value::as_object_mut) {
            restore(node);
            connect(node, &tree.content_frames, &roots);
        }
        nodes.append(&mut tree.nodes);
    }
    json!({ "nodes": nodes })
}

/// Gives the nodes of a tree new ids if a tree before it has one of them.
fn make_ids_unique(frames: &mut [FrameTree]) {
    let mut taken: HashSet<String> = HashSet::new();
    let mut next: u64 = 1;
    for tree in frames {
        let own: HashSet<String> =
            tree.nodes.iter().filter_map(|node| node.get("nodeId")?.as_str().map(str::to_owned)).collect();
        if own.is_disjoint(&taken) {
            taken.extend(own);
            continue;
        }
        let mut renamed: HashMap<String, String> = HashMap::with_capacity(own.len());
        for node in &tree.nodes {
            let Some(old) = node.get("nodeId").and_then(Value::as_str) else { continue };
            if renamed.contains_key(old) {
                continue;
            }
            while taken.contains(&next.to_string()) {
                next += 1;
            }
            taken.insert(next.to_string());
            renamed.insert(old.to_owned(), next.to_string());
        }
        tree.nodes.iter_mut().for_each(|node| rename(node, &renamed));
    }
}

fn rename(node: &mut Value, renamed: &HashMap<String, String>) {
    let change = |id: &mut Value| {
        if let Some(new) = id.as_str().and_then(|old| renamed.get(old)) {
            *id = Value::from(new.as_str());
        }
    };
    for member in ["nodeId", "parentId"] {
        node.get_mut(member).into_iter().for_each(change);
    }
    node.get_mut("childIds").and_then(Value::as_array_mut).into_iter().flatten().for_each(change);
}

/// Takes the bid out of the ARIA texts of a node.
fn restore(node: &mut Map<String, Value>) {
    let mut bid = None;
    if let Some(properties) = node.get_mut("properties").and_then(Value::as_array_mut) {
        let at = properties.iter().position(|property| property["name"] == "roledescription");
        if let Some(at) = at
            && take_mark(properties[at].get_mut("value"), &mut bid)
        {
            properties.remove(at);
        }
    }
    let mut second = None;
    if take_mark(node.get_mut("description"), &mut second) {
        node.remove("description");
    }
    if let Some(bid) = bid.or(second) {
        node.insert("browsergym_id".to_owned(), Value::from(bid));
    }
}

/// Moves the bid out of the text in a value of the accessibility tree; whether the text is empty then.
fn take_mark(value: Option<&mut Value>, bid: &mut Option<String>) -> bool {
    let Some(Value::String(text)) = value.and_then(|value| value.get_mut("value")) else { return false };
    if let Some((found, original)) = split_mark(text) {
        *bid = Some(found.to_owned());
        *text = original.to_owned();
    }
    text.is_empty()
}

fn split_mark(text: &str) -> Option<(&str, &str)> {
    let marked = text.strip_prefix(MARK)?;
    let end = marked.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(marked.len());
    let (bid, rest) = marked.split_at(end);
    (!bid.is_empty()).then(|| (bid, rest.strip_prefix(is_space).unwrap_or(rest)))
}

/// Makes the root of a content frame the last child of the node of its element.
fn connect(node: &mut Map<String, Value>, content_frames: &HashMap<i64, String>, roots: &HashMap<String, Value>) {
    if node.get("role").is_none_or(|role| role["value"] != "Iframe") {
        return;
    }
    let element = node.get("backendDOMNodeId").and_then(Value::as_i64);
    let Some(root) = element.and_then(|id| content_frames.get(&id)).and_then(|frame| roots.get(frame)) else { return };
    if let Value::Array(children) = node.entry("childIds").or_insert_with(|| json!([])) {
        children.push(root.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(frame: &str, nodes: &Value, content_frames: &[(i64, &str)]) -> FrameTree {
        FrameTree {
            frame: frame.to_owned(),
            nodes: nodes.as_array().cloned().unwrap(),
            content_frames: content_frames.iter().map(|&(element, frame)| (element, frame.to_owned())).collect(),
        }
    }

    #[test]
    fn bids_become_a_member_and_what_the_page_says_stays() {
        let text = |text: &str| json!({"type": "string", "value": text});
        let role = |value: Value| json!({"name": "roledescription", "value": value});
        for (node, expected) in [
            (
                json!({"properties": [role(text("browsergym_id_a12 "))], "x": 1}),
                json!({"properties": [], "x": 1, "browsergym_id": "a12"}),
            ),
            (
                json!({"properties": [{"name": "level"}, role(text("browsergym_id_3 my role"))]}),
                json!({"properties": [{"name": "level"}, role(text("my role"))], "browsergym_id": "3"}),
            ),
            (
                json!({"description": text("browsergym_id_4 two\nlines")}),
                json!({"description": text("two\nlines"), "browsergym_id": "4"}),
            ),
            (json!({"description": text("browsergym_id_4")}), json!({"browsergym_id": "4"})),
            (
                json!({"properties": [role(text("browsergym_id_1"))], "description": text("browsergym_id_2 d")}),
                json!({"properties": [], "description": text("d"), "browsergym_id": "1"}),
            ),
            (json!({"description": text("")}), json!({})),
            (json!({"description": text("browsergym_id_ x")}), json!({"description": text("browsergym_id_ x")})),
            (json!({"description": {"type": "x"}}), json!({"description": {"type": "x"}})),
        ] {
            assert_eq!(merge(vec![tree("F", &json!([node]), &[])]), json!({ "nodes": [expected] }));
        }
    }

    #[test]
    fn the_root_of_a_content_frame_becomes_the_last_child_and_equal_ids_change() {
        let main = json!([
            {"nodeId": "1", "role": {"value": "RootWebArea"}, "childIds": ["2", "5"]},
            {"nodeId": "2", "role": {"value": "Iframe"}, "backendDOMNodeId": 7, "childIds": ["9"]},
            {"nodeId": "5", "role": {"value": "Iframe"}, "backendDOMNodeId": 8},
        ]);
        let inner = json!([
            {"nodeId": "1", "role": {"value": "RootWebArea"}, "childIds": ["3"]},
            {"nodeId": "3", "parentId": "1", "childIds": ["77"]},
        ]);
        let merged = merge(vec![
            tree("M", &main, &[(7, "I"), (8, "gone")]),
            tree("empty", &json!([]), &[]),
            tree("I", &inner, &[]),
        ]);
        assert_eq!(
            merged,
            json!({"nodes": [
                {"nodeId": "1", "role": {"value": "RootWebArea"}, "childIds": ["2", "5"]},
                {"nodeId": "2", "role": {"value": "Iframe"}, "backendDOMNodeId": 7, "childIds": ["9", "3"]},
                {"nodeId": "5", "role": {"value": "Iframe"}, "backendDOMNodeId": 8},
                {"nodeId": "3", "role": {"value": "RootWebArea"}, "childIds": ["4"]},
                {"nodeId": "4", "parentId": "3", "childIds": ["77"]},
            ]})
        );
    }
}
