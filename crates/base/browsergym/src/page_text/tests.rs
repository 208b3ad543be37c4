//! What no recorded page shows: frames, texts that look like tags, hostile snapshots.

use serde_json::{Value, json};

use super::*;

/// A snapshot of documents, each a list of parent, name and value; names of elements begin with a letter or a colon.
fn snapshot(documents: &[&[(i64, &str, &str)]], frames: &[(usize, usize, usize)]) -> Snapshot {
    let mut strings: Vec<String> = Vec::new();
    let documents: Vec<Value> = documents
        .iter()
        .enumerate()
        .map(|(at, nodes)| {
            let mut position = |text: &str| {
                strings.push(text.to_owned());
                strings.len() - 1
            };
            let names: Vec<usize> = nodes.iter().map(|(_, name, _)| position(name)).collect();
            let values: Vec<usize> = nodes.iter().map(|(_, _, value)| position(value)).collect();
            let kind = |name: &str| match name {
                "#text" => 3,
                "#document" => 9,
                "#fragment" => 11,
                _ => 1,
            };
            let own = || frames.iter().filter(|(document, ..)| *document == at);
            json!({"nodes": {
                "parentIndex": nodes.iter().map(|(parent, ..)| parent).collect::<Vec<_>>(),
                "nodeType": nodes.iter().map(|(_, name, _)| kind(name)).collect::<Vec<_>>(),
                "nodeName": names,
                "nodeValue": values,
                "contentDocumentIndex": {
                    "index": own().map(|(_, element, _)| element).collect::<Vec<_>>(),
                    "value": own().map(|(.., document)| document).collect::<Vec<_>>(),
                },
            }})
        })
        .collect();
    serde_json::from_value(json!({"documents": documents, "strings": strings})).unwrap()
}

#[test]
fn documents_of_frames_stand_in_their_element_without_their_head() {
    let main = [(-1, "#document", ""), (0, "BODY", ""), (1, "IFRAME", ""), (1, "P", ""), (3, "#text", "after")];
    let inner = [
        (-1, "#document", ""),
        (0, "HTML", ""),
        (1, "HEAD", ""),
        (2, "TITLE", ""),
        (3, "#text", "title"),
        (1, "BODY", ""),
        (5, "H1", ""),
        (6, "#text", "inner"),
        (5, "IFRAME", ""),
    ];
    // The inner frame shows the main document: a loop.
    let text = page_text(&snapshot(&[&main, &inner], &[(0, 2, 1), (1, 8, 0)]));
    assert_eq!(text, "#  inner \n\nafter \n");
}

#[test]
fn pseudo_elements_and_texts_of_fragments_are_no_part_of_the_page() {
    let nodes = [
        (-1, "#document", ""),
        (0, "BODY", ""),
        (1, "::marker", ""),
        (2, "#text", "1."),
        (1, "#fragment", ""),
        (4, "#text", "dropped"),
        (4, "B", ""),
        (6, "#text", "kept"),
    ];
    assert_eq!(page_text(&snapshot(&[&nodes], &[])), "**kept**\n");
}

#[test]
fn texts_that_look_like_tags_stay_texts() {
    let nodes = [(-1, "BODY", ""), (0, "P", ""), (1, "#text", "use <script> & <b>x</b>"), (0, "#text", "after")];
    assert_eq!(page_text(&snapshot(&[&nodes], &[])), "use <script> & <b>x</b>\n\nafter \n");
}

#[test]
fn deep_documents_have_a_text() {
    for name in ["DIV", "UL", "LI", "BLOCKQUOTE", "B", "A", "TABLE", "PRE", "ABBR", "SPAN", "CUSTOM-X"] {
        let mut nodes = vec![(-1, "#document", "")];
        nodes.extend((0..20_000).map(|parent| (parent, name, "")));
        nodes.push((20_000, "#text", "bottom"));
        let text = page_text(&snapshot(&[&nodes], &[]));
        assert!(text.contains("bottom"), "{name}");
        assert!(text.len() <= LONGEST + 100_000, "{name}: {}", text.len());
    }
}

#[test]
fn the_text_of_a_page_has_a_bound() {
    let quotes = (0..4_000).map(|parent| (parent, "BLOCKQUOTE", ""));
    let mut nodes = vec![(-1, "#document", "")];
    nodes.extend(quotes);
    nodes.extend((0..20_000).flat_map(|at| [(4_000, "P", ""), (4_001 + 2 * at, "#text", "x")]));
    let text = page_text(&snapshot(&[&nodes], &[]));
    assert!(text.len() > LONGEST && text.len() < LONGEST + 100_000, "{}", text.len());
}

#[test]
fn lines_far_inside_of_quotations_have_a_bound() {
    let lines = "x\n".repeat(100_000);
    let mut nodes = vec![(-1, "#document", "")];
    nodes.extend((0..4_000).map(|parent| (parent, "BLOCKQUOTE", "")));
    nodes.extend([(4_000, "PRE", ""), (4_001, "#text", lines.as_str())]);
    let text = page_text(&snapshot(&[&nodes], &[]));
    assert!(text.len() > LONGEST && text.len() < LONGEST + 100_000, "{}", text.len());
}

#[test]
fn a_string_that_a_page_has_a_thousand_times_is_not_read_each_time() {
    let long = "word ".repeat(200_000);
    let mut nodes = vec![(-1, "DIV", ""), (0, "STYLE", "")];
    nodes.extend((0..1_000).map(|_| (1, "#text", "")));
    nodes.extend([(0, "P", ""), (1_002, "#text", "not reached")]);
    let mut snapshot = snapshot(&[&nodes], &[]);
    let position = i64::try_from(snapshot.strings.len()).unwrap();
    snapshot.strings.push(long);
    snapshot.documents[0].nodes.node_value[2..1_002].fill(position);
    assert_eq!(page_text(&snapshot), "\n");
}

#[test]
fn what_is_no_snapshot_has_no_text() {
    let broken = json!({
        "documents": [{"nodes": {
            "parentIndex": [-1, 5, 1, 1, 0], "nodeType": [1, 1, 3], "nodeName": [0, 99, -7], "nodeValue": [],
            "attributes": [[0], [0, 1, 2]], "contentDocumentIndex": {"index": [0, 0, 4], "value": [7, -1]},
        }}],
        "strings": ["A", "B"],
    });
    for (given, expected) in [(broken, "\n"), (json!({}), "\n"), (json!({"documents": [{}]}), "\n")] {
        let snapshot: Snapshot = serde_json::from_value(given).unwrap();
        assert_eq!(page_text(&snapshot), expected);
    }
}
