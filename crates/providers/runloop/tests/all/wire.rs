//! The requests of a life, member by member, beside those that the service's own SDK sends for the same
//! (`tests/hosted/recorded`).

use std::{collections::BTreeSet, fs, path::Path};

use futures_util::StreamExt as _;
use gloveport_provider::{LogOptions, NetworkPolicy, Provider as _, SandboxSpec};
use gloveport_stand_ins::{Face as _, runloop};
use serde_json::{Value, json};

use crate::support::{Place, create, kept, within};

/// What our requests have beside or instead of the SDK's, and why.
const OURS: [(&str, &str); 3] = [
    ("ttl_ms", "the program of an older build is not to stay for ever"),
    ("optimistic_timeout", "the service's own limit, told"),
    ("offset", "where to go on; the SDK tells it only when a stream was cut off"),
];

/// A request as a kind: its method and its path without ids.
fn kind(method: &str, path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let words = path.split('/').map(|word| {
        let is_id = word.starts_with('{') || (word.contains('_') && word.chars().any(|it| it.is_ascii_digit()));
        if is_id { "ID" } else { word }
    });
    format!("{method} {}", words.collect::<Vec<_>>().join("/"))
}

/// The members of a body with what they are: `a.b: text`.
fn members(at: &str, value: &Value, into: &mut BTreeSet<String>) {
    let word = match value {
        // Names of variables and labels are not the service's.
        Value::Object(_) if at.ends_with("environment_variables") || at.ends_with("metadata") => "texts",
        Value::Object(all) => {
            for (name, value) in all {
                members(&format!("{at}.{name}"), value, into);
            }
            return;
        }
        Value::Array(all) => {
            for value in all {
                members(&format!("{at}[]"), value, into);
            }
            return;
        }
        Value::Null => "none",
        Value::Bool(_) => "flag",
        Value::Number(_) => "number",
        Value::String(_) => "text",
    };
    into.insert(format!("{at}: {word}"));
}

/// The members of a body and the names of a query, but for those that are ours.
fn shape(path: &str, body: &Value) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    if *body != Value::Null && *body != json!({}) {
        members("", body, &mut all);
    }
    let query = path.split_once('?').map(|(_, query)| query).unwrap_or_default();
    let names = query.split('&').filter(|pair| !pair.is_empty()).filter_map(|pair| pair.split('=').next());
    all.extend(names.map(|name| format!("?{name}")));
    all.retain(|member| !OURS.iter().any(|(name, _)| member.contains(name)));
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn the_requests_are_those_of_the_services_own_sdk() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/hosted/recorded/runloop.json");
    let recorded: Vec<Value> = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let place = Place::new().await;
    let backend = place.backend();
    let network = NetworkPolicy::Only(vec!["pypi.org".to_owned(), "10.0.0.0/8".to_owned()]);
    let made = create(&backend, &SandboxSpec { network, ..kept("s1") }).await.unwrap();
    backend.hold(&made.id).await.unwrap();
    within(backend.logs(&made.id, LogOptions::default()).await.unwrap().collect::<Vec<_>>()).await;
    let mut followed = backend.logs(&made.id, LogOptions { follow: true, tail: None }).await.unwrap();
    within(followed.next()).await.unwrap().unwrap();
    drop(followed);
    backend.snapshot(&made.id, "n").await.unwrap();
    backend.pause(&made.id).await.unwrap();
    backend.resume(&made.id).await.unwrap();
    backend.check().await;
    backend.collect_garbage(&gloveport_provider::GcOptions::default()).await.unwrap();
    backend.delete(&made.id).await.unwrap();
    // Whoever leaves a log ends its reader a moment later.
    backend.close().await;
    let seen = place.service.seen();
    let mut compared = BTreeSet::new();
    for ours in seen.iter().filter(|seen| seen.path.starts_with("/v1/")) {
        let kind_of_ours = kind(ours.method.as_str(), &ours.path);
        let same = |theirs: &&Value| {
            kind(theirs["method"].as_str().unwrap(), theirs["path"].as_str().unwrap()) == kind_of_ours
        };
        let theirs: Vec<BTreeSet<String>> = recorded
            .iter()
            .filter(same)
            .map(|theirs| shape(theirs["path"].as_str().unwrap(), &theirs["body"]))
            .collect();
        assert!(!theirs.is_empty(), "{kind_of_ours} is no request of the SDK");
        let found = shape(&ours.path, &ours.body);
        assert!(theirs.contains(&found), "{kind_of_ours}: {found:#?} {theirs:#?}");
        compared.insert(kind_of_ours);
    }
    assert!(compared.len() >= 18, "{compared:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_has_what_it_is_to_have_and_goes_with_the_key_to_the_service_alone() {
    let place = Place::new().await;
    let made = create(&place.backend(), &kept("s")).await.unwrap();
    let seen = place.service.seen();
    let wish = seen.iter().find(|seen| seen.method == http::Method::POST && seen.path == "/v1/devboxes").unwrap();
    assert_eq!(wish.header("authorization"), format!("Bearer {}", runloop::Runloop::KEY));
    assert_eq!(wish.header("x-request-id"), wish.body["metadata"]["gloveport.runloop.wish"].as_str().unwrap());
    assert_eq!(
        wish.body["tunnel"],
        json!({"auth_mode": "authenticated", "http_keep_alive": false, "wake_on_http": false})
    );
    let parameters = &wish.body["launch_parameters"];
    assert_eq!(parameters["lifecycle"], json!({"after_idle": {"idle_time_seconds": 900, "on_idle": "suspend"}}));
    assert_eq!((&wish.body["name"], &parameters["resource_size_request"]), (&json!("s"), &json!("SMALL")));
    assert_eq!(wish.body["environment_variables"]["SESSION_API_KEY"], made.session_key.unwrap().expose());
    for seen in seen.iter().filter(|seen| !seen.path.starts_with("/v1/")) {
        assert_eq!(seen.header("authorization"), "", "{}", seen.path);
    }
    let url = made.url.unwrap();
    assert!(url.starts_with(&format!("{}/tunnels/tk", place.service.url)), "{url}");
}
