//! Texts of pages are those that the reference gives (tests/record_page_text.py).

use gloveport_browsergym::{Snapshot, page_text};
use serde::Deserialize;

#[derive(Deserialize)]
struct Recorded {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    snapshot: Snapshot,
    text: String,
}

#[test]
fn pages_have_the_text_that_the_reference_gives() {
    let recorded: Recorded = serde_json::from_str(include_str!("fixtures/page_text.json")).unwrap();
    assert!(recorded.cases.len() > 60);
    let wrong: Vec<String> = recorded
        .cases
        .iter()
        .filter_map(|case| {
            let text = page_text(&case.snapshot);
            (text != case.text).then(|| format!("{}\n  reference {:?}\n  here      {:?}", case.name, case.text, text))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
