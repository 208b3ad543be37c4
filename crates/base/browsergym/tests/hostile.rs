//! Whatever Chromium and pages send, there is an answer.

use gloveport_browsergym::axtree::{FrameTree, flatten, merge};
use gloveport_browsergym::overlay::{Rgb, decode_png, draw};
use gloveport_browsergym::properties::{ElementProperties, ExtraProperties, PlacedSnapshot, extra_properties};
use gloveport_browsergym::{Snapshot, page_text};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

const NAMES: [&str; 24] = [
    "A",
    "P",
    "UL",
    "OL",
    "LI",
    "PRE",
    "TABLE",
    "TD",
    "BLOCKQUOTE",
    "NOSCRIPT",
    "B",
    "ABBR",
    "H2",
    "SCRIPT",
    "IFRAME",
    "bid",
    "browsergym_visibility_ratio",
    "1e999",
    "href",
    "start",
    "title",
    "99999999999999999999",
    "<a href='x'>&#x110000;<!-- <script>\u{a0}- 1. \\* </a",
    "",
];

/// A position that is mostly one of a string or node.
fn position() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 0_i64..24, 1 => -2_i64..40]
}

fn document() -> impl Strategy<Value = Value> {
    let node = (-1_i64..12, prop_oneof![4 => Just(1_i64), 3 => Just(3), 1 => 0_i64..13], position(), position());
    let rare = || vec((0_usize..20, -1_i64..4), 0..4);
    let layout = vec((0_usize..20, vec(any::<f64>().prop_filter("JSON", |n| n.is_finite()), 0..6)), 0..9);
    (vec(node, 0..20), vec(vec(position(), 0..7), 0..20), rare(), rare(), layout).prop_map(
        |(nodes, attributes, frames, clickable, layout)| {
            let column = |of: fn(&(i64, i64, i64, i64)) -> i64| nodes.iter().map(of).collect::<Vec<_>>();
            let (elements, documents): (Vec<_>, Vec<_>) = frames.into_iter().unzip();
            let (laid_out, bounds): (Vec<_>, Vec<_>) = layout.into_iter().unzip();
            json!({
                "scrollOffsetX": -1e300, "scrollOffsetY": 1e300,
                "nodes": {
                    "parentIndex": column(|node| node.0), "nodeType": column(|node| node.1),
                    "nodeName": column(|node| node.2), "nodeValue": column(|node| node.3),
                    "attributes": attributes,
                    "contentDocumentIndex": {"index": elements, "value": documents},
                    "isClickable": {"index": clickable.into_iter().map(|(node, _)| node).collect::<Vec<_>>()},
                },
                "layout": {"nodeIndex": laid_out, "bounds": bounds, "clientRects": bounds},
            })
        },
    )
}

fn snapshot() -> impl Strategy<Value = Snapshot> {
    vec(document(), 0..4).prop_filter_map("it is a snapshot", |documents| {
        serde_json::from_value(json!({"documents": documents, "strings": NAMES})).ok()
    })
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "browsergym_id_[a-z0-9]{0,3} ?.{0,3}".prop_map(Value::from),
        prop::sample::select(vec!["Iframe", "StaticText", "generic", "LineBreak"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            inner.prop_map(|value| json!({"value": value, "name": "roledescription"})),
        ]
    })
}

fn node() -> impl Strategy<Value = Value> {
    let text = || prop_oneof![6 => value().prop_map(|value| json!({"value": value})), 1 => value()];
    let ids = || (0_u8..9).prop_map(|id| id.to_string());
    let properties = vec(
        (any::<String>(), value()).prop_map(|(name, value)| json!({"name": name, "value": {"value": value}})),
        0..3,
    );
    (ids(), text(), text(), text(), text(), vec(ids(), 0..5), properties, 0_i64..5).prop_map(
        |(id, role, name, value, description, children, properties, element)| {
            json!({
                "nodeId": id, "role": role, "name": name, "value": value, "description": description,
                "childIds": children, "properties": properties, "backendDOMNodeId": element,
            })
        },
    )
}

proptest! {
    #[test]
    fn every_snapshot_has_a_text_and_properties(snapshot in snapshot(), x in any::<f64>()) {
        let text = page_text(&snapshot);
        prop_assert!(text.is_empty() || text.ends_with('\n'));
        let properties = extra_properties(&[PlacedSnapshot { snapshot: &snapshot, x, y: 0.0 }]);
        for (bid, known) in properties.iter() {
            prop_assert!(!bid.is_empty() && known.visibility.is_finite());
        }
        prop_assert!(serde_json::to_string(&properties).is_ok());
    }

    #[test]
    fn every_tree_has_a_text_or_an_error(frames in vec(vec(node(), 0..8), 0..3), whole in value()) {
        let content = |frame: usize| [(1, (frame + 1).to_string()), (2, "0".to_owned())].into();
        let frames: Vec<FrameTree> = frames
            .into_iter()
            .enumerate()
            .map(|(at, nodes)| FrameTree { frame: at.to_string(), nodes, content_frames: content(at) })
            .collect();
        let count: usize = frames.iter().map(|frame| frame.nodes.len()).sum();
        let merged = merge(frames);
        prop_assert_eq!(merged["nodes"].as_array().map(Vec::len), Some(count));
        if let Ok(text) = flatten(&merged, &ExtraProperties::default()) {
            prop_assert!(text.lines().count() <= count.max(1));
        }
        let _ = flatten(&whole, &ExtraProperties::default());
        let _ = flatten(&json!({ "nodes": whole }), &ExtraProperties::default());
    }

    #[test]
    fn marks_are_drawn_wherever_they_are(bid in any::<String>(), bbox in any::<[f64; 4]>(), near in any::<[i8; 4]>()) {
        let mut properties = ExtraProperties::default();
        for (at, bbox) in [bbox, near.map(f64::from)].into_iter().enumerate() {
            let element = ElementProperties { bbox: Some(bbox), set_of_marks: true, ..ElementProperties::default() };
            properties.insert(format!("{bid}{at}"), element);
        }
        let mut picture = Rgb::new(30, 20, vec![9; 1800]).expect("so many bytes");
        draw(&mut picture, &properties);
        prop_assert_eq!(picture.pixels().len(), 1800);
    }

    #[test]
    fn what_is_no_png_is_an_error(data in vec(any::<u8>(), 0..200)) {
        prop_assert!(decode_png(&data).is_err());
    }
}
