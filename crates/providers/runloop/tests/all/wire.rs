//! The requests of a life, member by member, beside those that the service's own SDK sends for the same
//! (`tests/hosted/recorded`).

use std::collections::BTreeSet;

use futures_util::StreamExt as _;
use gloveport_hosted_checks::{
    steps::{Act, confined, create, kept},
    wire::{self, Members, query, without_query},
};
use gloveport_provider::{LogOptions, Provider as _};
use gloveport_stand_ins::{Face as _, Seen, runloop};
use gloveport_testing::within;
use serde_json::{Value, json};

use crate::support::Place;

/// What our requests have beside or instead of the SDK's, and why.
const OURS: [(&str, &str); 3] = [
    ("ttl_ms", "the program of an older build is not to stay for ever"),
    ("optimistic_timeout", "the service's own limit, told"),
    ("offset", "where to go on; the SDK tells it only when a stream was cut off"),
];

/// A request as a kind: its method and its path without ids.
fn kind(method: &str, path: &str) -> String {
    let words = without_query(path).split('/').map(|word| {
        let is_id = word.starts_with('{') || (word.contains('_') && word.chars().any(|it| it.is_ascii_digit()));
        if is_id { "ID" } else { word }
    });
    format!("{method} {}", words.collect::<Vec<_>>().join("/"))
}

/// Names of variables and labels are not the service's.
const MEMBERS: Members<'static> = Members { texts: &["environment_variables", "metadata"], nulls: true };

/// The members of a body and the names of a query, but for those that are ours.
fn shape(path: &str, body: &Value) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    if *body != Value::Null && *body != json!({}) {
        MEMBERS.of("", body, &mut all);
    }
    all.extend(query(path).map(|name| format!("?{name}")));
    all.retain(|member| !OURS.iter().any(|(name, _)| member.contains(name)));
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn the_requests_are_those_of_the_services_own_sdk() {
    let recorded = wire::recorded("hosted/recorded/runloop.json");
    let place = Place::new().await;
    let backend = place.backend();
    let made = create(&backend, &confined(kept("s1"))).await.unwrap();
    Act::all_on(&[Act::Hold, Act::Logs], &backend, &made.id).await;
    let mut followed = backend.logs(&made.id, LogOptions { follow: true, tail: None }).await.unwrap();
    within(followed.next()).await.unwrap().unwrap();
    drop(followed);
    backend.check().await;
    Act::all_on(&[Act::Snapshot, Act::Pause, Act::Resume, Act::Garbage, Act::Delete], &backend, &made.id).await;
    // Whoever leaves a log ends its reader a moment later.
    backend.close().await;
    let mut seen = place.service.seen();
    seen.retain(|seen| seen.path.starts_with("/v1/"));
    let of_ours = |ours: &Seen| shape(&ours.path, &ours.body);
    let of_theirs = |theirs: &Value| shape(theirs["path"].as_str().unwrap(), &theirs["body"]);
    wire::are_those_of_the_sdk(&seen, &recorded, kind, of_ours, of_theirs, 18);
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
