//! Trees, texts and properties are those that BrowserGym extracts (tests/record_observations.py).
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::collections::HashMap;

use gloveport_browsergym::Snapshot;
use gloveport_browsergym::axtree::{FrameTree, flatten, merge};
use gloveport_browsergym::properties::{ExtraProperties, PlacedSnapshot, extra_properties};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Recorded {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    trees: Vec<Tree>,
    snapshot: Snapshot,
    merged: Value,
    properties: Value,
    text: String,
}

#[derive(Deserialize)]
struct Tree {
    frame: String,
    nodes: Vec<Value>,
    content_frames: HashMap<String, String>,
}

impl Case {
    fn merge(&self) -> Value {
        let frame = |tree: &Tree| FrameTree {
            frame: tree.frame.clone(),
            nodes: tree.nodes.clone(),
            content_frames: tree
                .content_frames
                .iter()
                .map(|(id, frame)| (id.parse().unwrap(), frame.clone()))
                .collect(),
        };
        merge(self.trees.iter().map(frame).collect())
    }

    fn properties(&self) -> ExtraProperties {
        extra_properties(&[PlacedSnapshot { snapshot: &self.snapshot, x: 0.0, y: 0.0 }])
    }
}

fn cases() -> Vec<Case> {
    let recorded: Recorded = serde_json::from_str(include_str!("fixtures/observations.json")).unwrap();
    assert!(recorded.cases.len() > 15);
    recorded.cases
}

#[test]
fn merged_trees_are_those_of_the_reference() {
    for case in cases() {
        assert_eq!(case.merge(), case.merged, "{}", case.name);
    }
}

#[test]
fn properties_are_those_of_the_reference_to_the_last_digit() {
    for case in cases() {
        // Text, so that whole numbers count as such and order counts.
        let properties = serde_json::to_string(&case.properties()).unwrap();
        assert_eq!(properties, serde_json::to_string(&case.properties).unwrap(), "{}", case.name);
    }
}

#[test]
fn texts_of_trees_are_those_of_the_reference() {
    for case in cases() {
        assert_eq!(flatten(&case.merge(), &case.properties()).as_deref(), Ok(case.text.as_str()), "{}", case.name);
    }
}
