//! Compares whole values with what the reference makes of the same input; `golden/generate.py` writes the files.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "functions that tests share stop at the first broken assumption, too"
)]

use gloveport_protocol::http::McpServerEntry;
use gloveport_protocol::{ActionEvent, CommandMetadata, ObservationEvent, RunObservation, python};
use serde_json::Value;

macro_rules! golden {
    ($name:literal) => {
        serde_json::from_str::<Value>(include_str!(concat!("../golden/", $name, ".json")))
            .expect("a golden file is JSON")
    };
}

fn cases(file: &Value) -> &[Value] {
    let cases = file.as_array().expect("a golden file is a list");
    assert!(!cases.is_empty());
    cases
}

fn text<'a>(case: &'a Value, key: &str) -> &'a str {
    case[key].as_str().unwrap_or_else(|| panic!("{key} of {case} is no text"))
}

#[test]
fn every_action_serialises_as_the_reference_does() {
    for case in cases(&golden!("actions")) {
        let event = ActionEvent::from_value(case["input"].clone()).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(event.to_value(), case["output"], "{}", case["name"]);
        let again = ActionEvent::from_value(case["output"].clone()).expect("the reference's output is read");
        assert_eq!(again.to_value(), case["output"], "{}", case["name"]);
    }
}

#[test]
fn every_refused_action_gets_the_text_of_the_reference() {
    for case in cases(&golden!("action_errors")) {
        let error = ActionEvent::from_value(case["input"].clone()).expect_err("the reference refuses it");
        assert_eq!(error.to_string(), text(case, "error"), "{}", case["name"]);
    }
}

#[test]
fn every_observation_serialises_as_the_reference_does() {
    for case in cases(&golden!("observations")) {
        let event =
            ObservationEvent::from_value(case["input"].clone()).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(event.to_value(), case["output"], "{}", case["name"]);
        let again = ObservationEvent::from_value(case["output"].clone()).expect("the reference's output is read");
        assert_eq!(again, event, "{}", case["name"]);
    }
}

#[test]
fn every_refused_observation_names_what_the_reference_names() {
    for case in cases(&golden!("observation_errors")) {
        let error = ObservationEvent::from_value(case["input"].clone()).expect_err("the reference refuses it");
        assert!(error.to_string().ends_with(text(case, "error")), "{}: {error}", case["name"]);
    }
}

#[test]
fn the_text_for_the_model_is_that_of_the_reference() {
    for case in cases(&golden!("texts_for_the_model")) {
        let metadata: CommandMetadata = serde_json::from_value(case["metadata"].clone()).expect("metadata is read");
        assert_eq!(RunObservation::new("c", "out", false, metadata).text_for_model(), text(case, "text"));
    }
}

#[test]
fn values_are_printed_as_python_prints_them() {
    for case in cases(&golden!("python_repr")) {
        assert_eq!(python::repr(&case["value"]), text(case, "repr"));
    }
}

#[test]
fn the_content_of_a_run_is_truncated_as_the_reference_does() {
    for case in cases(&golden!("truncations")) {
        let count = usize::try_from(case["count"].as_u64().expect("a count")).expect("a small count");
        let hidden = case["hidden"].as_bool().expect("a flag");
        let content = text(case, "unit").repeat(count);
        let observation = RunObservation::new("c", content, hidden, CommandMetadata::default());
        let bracket = observation.content.chars().position(|c| c == '[').map_or(-1, |at| i64::try_from(at).unwrap());
        assert_eq!(Value::from(observation.content.chars().count()), case["length"], "{case}");
        assert_eq!(Value::from(bracket), case["bracket_at"], "{case}");
    }
}

#[test]
fn mcp_servers_are_accepted_and_normalised_as_the_reference_does() {
    for case in cases(&golden!("mcp_entries")) {
        match McpServerEntry::from_value(&case["input"]) {
            Ok(entry) => assert_eq!(serde_json::json!(entry), case["output"], "{case}"),
            Err(error) => assert_eq!(case["output"], Value::Null, "{case}: {error}"),
        }
    }
}
