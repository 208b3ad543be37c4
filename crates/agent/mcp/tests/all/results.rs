//! Results as the reference writes them (`results.json`, which `results.py` makes with the reference).

use gloveport_mcp_client::dump;
use gloveport_protocol::python::json;
use serde_json::Value;

#[test]
fn results_are_written_as_the_reference_writes_them() {
    let cases: Value = serde_json::from_str(include_str!("results.json")).unwrap();
    let cases = cases.as_array().unwrap();
    assert!(cases.len() >= 10);
    for case in cases {
        let result = serde_json::from_value(case["result"].clone()).unwrap();
        assert_eq!(json::line(&dump(&result)), case["written"].as_str().unwrap());
    }
}
