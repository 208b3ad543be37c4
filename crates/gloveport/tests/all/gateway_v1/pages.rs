//! Lists in pages, and what is listed.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::gateway::Running;

/// The sessions of a page.
fn sessions(page: &Value) -> Vec<String> {
    let sandboxes = page["sandboxes"].as_array().unwrap_or_else(|| panic!("{page}"));
    sandboxes.iter().map(|sandbox| sandbox["session_id"].as_str().unwrap().to_owned()).collect()
}

async fn page(running: &Running, query: &str) -> (Vec<String>, Option<String>) {
    let (status, page) = running.v1("GET", &format!("/sandboxes?{query}"), None).await;
    assert_eq!(status, 200, "{page}");
    (sessions(&page), page["next_cursor"].as_str().map(str::to_owned))
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_have_each_sandbox_once_while_others_come_and_go() {
    let running = Running::start().await;
    let mut ids = Vec::new();
    for name in ["a", "b", "c", "d", "e"] {
        ids.push(running.create(json!({"session_id": name})).await);
    }
    let (first, cursor) = page(&running, "limit=2").await;
    assert_eq!(first, ["a", "b"]);
    // The last one of the page, and one that is to come.
    for gone in [&ids[1], &ids[2]] {
        assert_eq!(running.v1("DELETE", &format!("/sandboxes/{gone}"), None).await.0, 204);
    }
    running.create(json!({"session_id": "f"})).await;
    let (second, cursor) = page(&running, &format!("limit=2&cursor={}", cursor.unwrap())).await;
    assert_eq!(second, ["d", "e"]);
    let (third, end) = page(&running, &format!("limit=2&cursor={}", cursor.clone().unwrap())).await;
    assert_eq!((third, end), (vec!["f".to_owned()], None));
    // A cursor is that of its filters.
    let (status, told) = running.v1("GET", &format!("/sandboxes?state=paused&cursor={}", cursor.unwrap()), None).await;
    assert_eq!(status, 400, "{told}");
    assert!(told["error"]["message"].as_str().unwrap().contains("other filters"), "{told}");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_filtered_by_labels_states_sessions_and_times() {
    let running = Running::start().await;
    let a = running.create(json!({"session_id": "a", "labels": {"team": "infra", "of": "a=b"}})).await;
    running.create(json!({"session_id": "b", "labels": {"team": "web"}})).await;
    let c = running.create(json!({"session_id": "c"})).await;
    assert_eq!(running.v1("POST", &format!("/sandboxes/{c}/pause"), None).await.0, 200);
    let (_, told) = running.v1("GET", &format!("/sandboxes/{a}"), None).await;
    let made = told["created_at"].as_str().unwrap();
    for (query, expected) in [
        (String::new(), "abc"),
        ("label=team%3Dinfra".to_owned(), "a"),
        ("label=team".to_owned(), "ab"),
        ("label=team&label=of%3Da%3Db".to_owned(), "a"),
        ("label=team%3Dnobody".to_owned(), ""),
        ("state=paused".to_owned(), "c"),
        ("state=paused,running&session_id=a&session_id=c".to_owned(), "ac"),
        ("state=stopped".to_owned(), ""),
        (format!("created_after={made}"), "abc"),
        (format!("created_before={made}"), ""),
        ("created_after=2100-01-01T00:00:00Z".to_owned(), ""),
        ("created_before=2100-01-01T00:00:00%2B02:00&include_ended=true".to_owned(), "abc"),
    ] {
        let (listed, next) = page(&running, &query).await;
        assert_eq!((listed.concat(), next), (expected.to_owned(), None), "{query}");
    }
    // What the gateway and its runtime need labels for is their own affair.
    let (_, all) = running.v1("GET", "/sandboxes", None).await;
    let names: BTreeSet<&String> =
        all["sandboxes"].as_array().unwrap().iter().flat_map(|it| it["labels"].as_object().unwrap().keys()).collect();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["of", "team"]);
    running.end().await;
}
