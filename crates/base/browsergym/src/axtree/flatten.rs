//! The text of an accessibility tree (spec/browser.md §7.2).

use std::collections::HashMap;

use serde_json::Value;

use crate::properties::ExtraProperties;
use crate::repr::{push_repr, push_str_repr, strip};

/// The longest text; indentation alone can make that of a deep tree grow with the square of its nodes.
const LONGEST: usize = 16 << 20;

/// The last line of a text that would be longer.
const CUT: &str = "(the rest of the tree is left out: its text is too long)";

/// How many bytes of names are searched for repeated texts. Past them nothing counts as repeated.
const MOST_SEARCHED: usize = 1 << 30;

/// Properties that are never printed.
const IGNORED: [&str; 7] = ["editable", "readonly", "level", "settable", "multiline", "invalid", "focusable"];

/// Properties of which only the name is printed, if they are true.
const WORDS: [&str; 3] = ["required", "focused", "atomic"];

/// A node that is to be printed, and what it has to know of its parent.
struct Visit<'a> {
    node: usize,
    depth: usize,
    parent_name: &'a str,
}

/// The text of a merged tree: a line for each node, indented by its depth.
///
/// A node is printed once, so that a tree whose children lead back to it ends. Errors are the texts that the reference
/// puts behind `Error encountered when processing the accessibility tree:`, `'nodes'` for an object that is no tree.
pub fn flatten(axtree: &Value, properties: &ExtraProperties) -> Result<String, String> {
    let nodes = axtree.get("nodes").and_then(Value::as_array).ok_or("'nodes'")?;
    if nodes.is_empty() {
        return Err("list index out of range".to_owned());
    }
    let positions: HashMap<&str, usize> =
        nodes.iter().enumerate().filter_map(|(at, node)| Some((node.get("nodeId")?.as_str()?, at))).collect();
    let mut visited = vec![false; nodes.len()];
    let mut searched = 0_usize;
    let mut out = String::new();
    let mut pending = vec![Visit { node: 0, depth: 0, parent_name: "" }];
    while let Some(visit) = pending.pop() {
        let Some(first_time) = visited.get_mut(visit.node).filter(|visited| !**visited) else { continue };
        *first_time = true;
        let node = &nodes[visit.node];
        let role = node.get("role").and_then(|role| role.get("value")).and_then(Value::as_str).ok_or("'role'")?;
        let name = match node.get("name") {
            Some(name) if role != "LineBreak" => Some(name.get("value").ok_or("'value'")?.as_str().unwrap_or_default()),
            _ => None,
        };
        let printed = name.filter(|name| role != "StaticText" || !repeats(name, visit.parent_name, &mut searched));
        if let Some(name) = printed {
            if out.len().saturating_add(visit.depth) > LONGEST {
                out.push('\n');
                out.push_str(CUT);
                break;
            }
            if !out.is_empty() {
                out.push('\n');
            }
            out.extend(std::iter::repeat_n('\t', visit.depth));
            push_line(&mut out, node, role, name, properties);
        }
        let depth = visit.depth + usize::from(printed.is_some());
        let children = node.get("childIds").and_then(Value::as_array).into_iter().flatten();
        let children = children.rev().filter_map(|id| positions.get(id.as_str()?).copied());
        let unseen = children.filter(|&child| !visited.get(child).is_some_and(|&seen| seen));
        let parent_name = name.unwrap_or_default();
        pending.extend(unseen.map(|node| Visit { node, depth, parent_name }));
    }
    Ok(out)
}

/// Whether a text is in the name of its parent.
fn repeats(text: &str, parent_name: &str, searched: &mut usize) -> bool {
    if text.is_empty() {
        return true;
    }
    if text.len() > parent_name.len() || *searched > MOST_SEARCHED {
        return false;
    }
    *searched = searched.saturating_add(parent_name.len());
    parent_name.contains(text)
}

fn push_line(out: &mut String, node: &Value, role: &str, name: &str, properties: &ExtraProperties) {
    let bid = node.get("browsergym_id").and_then(Value::as_str);
    if let Some(bid) = bid {
        out.push('[');
        out.push_str(bid);
        out.push_str("] ");
    }
    out.push_str(role);
    if role != "generic" || !name.is_empty() {
        out.push(' ');
        push_str_repr(out, strip(name));
    }
    if let Some(value) = value_in(node) {
        out.push_str(" value=");
        push_repr(out, value);
    }
    let clickable = bid.and_then(|bid| properties.get(bid)).is_some_and(|known| known.clickable);
    if clickable && role != "StaticText" {
        out.push_str(", clickable");
    }
    for property in node.get("properties").and_then(Value::as_array).into_iter().flatten() {
        push_property(out, property);
    }
}

/// The value of a node, if it has one that is not null.
fn value_in(node: &Value) -> Option<&Value> {
    node.get("value")?.get("value").filter(|value| !value.is_null())
}

fn push_property(out: &mut String, property: &Value) {
    let Some(name) = property.get("name").and_then(Value::as_str) else { return };
    let Some(value) = property.get("value").and_then(|value| value.get("value")) else { return };
    if IGNORED.contains(&name) {
        return;
    }
    if WORDS.contains(&name) {
        if is_true(value) {
            out.push_str(", ");
            out.push_str(name);
        }
        return;
    }
    out.push_str(", ");
    out.push_str(name);
    out.push('=');
    push_repr(out, value);
}

/// What `if` of Python says of a value.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(answer) => *answer,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::properties::ElementProperties;

    fn clickable(bids: &[&str]) -> ExtraProperties {
        let mut properties = ExtraProperties::default();
        for bid in bids {
            properties.insert(*bid, ElementProperties { clickable: true, ..ElementProperties::default() });
        }
        properties
    }

    fn node(id: &str, role: &str, name: &str, children: &[&str]) -> Value {
        json!({"nodeId": id, "role": {"value": role}, "name": {"value": name}, "childIds": children})
    }

    #[test]
    fn each_rule_of_the_text_holds() {
        let property = |name: &str, value: Value| json!({"name": name, "value": {"value": value}});
        let mut field = node("3", "textbox", "  it's ", &["4", "5"]);
        field["browsergym_id"] = json!("6");
        field["value"] = json!({"value": "Hello\n"});
        field["properties"] = json!([
            property("required", json!(true)),
            property("focused", json!(false)),
            property("invalid", json!("false")),
            property("hasPopup", json!("menu")),
            property("expanded", json!(false)),
            property("valuemax", json!(10)),
            {"name": "labelledby", "value": {"type": "nodeList", "relatedNodes": []}},
            {"name": "nothing"},
        ]);
        let tree = json!({"nodes": [
            node("1", "RootWebArea", "Page", &["2", "1", "99", "3", "7"]),
            {"nodeId": "2", "role": {"value": "none"}, "ignored": true, "childIds": ["6"]},
            field,
            node("4", "StaticText", "it's", &[]),
            node("5", "StaticText", "Hello", &[]),
            node("6", "generic", "", &[]),
            node("7", "LineBreak", "x", &["8"]),
            node("8", "StaticText", "x", &[]),
        ]});
        let expected = "RootWebArea 'Page'\n\tgeneric\n\t[6] textbox \"it's\" value='Hello\\n', clickable, required, \
                        hasPopup='menu', expanded=False, valuemax=10\n\t\tStaticText 'Hello'\n\tStaticText 'x'";
        assert_eq!(flatten(&tree, &clickable(&["6"])), Ok(expected.to_owned()));
    }

    #[test]
    fn what_is_no_tree_is_the_error_of_the_reference() {
        for (tree, expected) in [
            (json!({}), "'nodes'"),
            (json!({"nodes": []}), "list index out of range"),
            (json!({"nodes": [{"nodeId": "1"}]}), "'role'"),
            (json!({"nodes": [{"nodeId": "1", "role": {"value": "x"}, "name": {}}]}), "'value'"),
        ] {
            assert_eq!(flatten(&tree, &ExtraProperties::default()), Err(expected.to_owned()));
        }
    }

    #[test]
    fn a_deep_tree_with_a_loop_ends_with_a_line_that_says_what_is_missing() {
        let mut nodes: Vec<Value> =
            (0..20_000).map(|at| node(&at.to_string(), "generic", "", &[&(at + 1).to_string()])).collect();
        nodes[19_999]["childIds"] = json!(["0", "5"]);
        let text = flatten(&json!({ "nodes": nodes }), &ExtraProperties::default()).unwrap();
        assert!(text.len() < LONGEST + 1000);
        assert_eq!(text.lines().last(), Some(CUT));
    }

    #[test]
    fn a_wide_tree_is_whole() {
        let ids: Vec<String> = (1..50_000).map(|at: u32| at.to_string()).collect();
        let all: Vec<&str> = ids.iter().map(String::as_str).collect();
        let mut nodes = vec![node("0", "RootWebArea", "", &all)];
        nodes.extend(all.iter().map(|id| node(id, "button", id, &["0"])));
        let text = flatten(&json!({ "nodes": nodes }), &ExtraProperties::default()).unwrap();
        assert_eq!(text.lines().count(), 50_000);
        assert_eq!(text.lines().last(), Some("\tbutton '49999'"));
    }
}
