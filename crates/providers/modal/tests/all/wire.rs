//! The requests of a life, field by field, beside those that the service's own SDK sends for the same (`tests/hosted/recorded`).

use std::collections::BTreeSet;

use gloveport_hosted_checks::{
    steps::{Act, confined, create, end, kept, spec},
    wire,
};
use gloveport_provider::Provider as _;
use gloveport_stand_ins::{Face as _, modal};
use serde_json::{Value, json};

use crate::support::Place;

/// What our requests have that the SDK's do not, and why: the end of the method, the field, the reason.
const OURS: [(&str, &str, &str); 6] = [
    ("SandboxGetFromNameV2", ".4", "one that has ended is looked for, too, for why it has"),
    ("SandboxListV2", ".4", "and is listed"),
    ("AppFetchLogs", ".9", "by the sandbox: its task may not be told any more once it has ended"),
    ("SandboxGetTaskIdV2", ".2", "a task that does not come is not waited for without end"),
    ("SandboxListV2", ".1", "sandboxes of other apps are nobody's business here"),
    ("SandboxListV2", ".2", "where the next page begins"),
];

/// The metadata that only one of both sends, and why it makes no difference.
const METADATA: [(&str, &str); 12] = [
    ("x-modal-libmodal-version", "which client it is that speaks like the SDK"),
    ("x-modal-auth-token", "sent on every call, as the Go SDK does"),
    ("x-modal-sandbox-token", "not needed: it is for the client that made a sandbox"),
    ("x-modal-python-version", "statistics of the Python SDK"),
    ("x-modal-node", "statistics: the name of this machine, which is nobody's business"),
    ("x-modal-platform", "statistics"),
    ("x-modal-host", "statistics"),
    ("grpc-accept-encoding", "nothing is compressed"),
    ("grpc-timeout", "both sides have limits of their own"),
    ("user-agent", "the library of the SDK"),
    ("content-length", "the length of a body that is known"),
    ("x-retry-delay", "told on further tries alone"),
];

/// The fields of a message with what they are: `.5.1: text`.
fn fields(at: &str, value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(all) => {
            for (name, value) in all {
                fields(&format!("{at}.{name}"), value, into);
            }
        }
        Value::Array(all) => all.iter().for_each(|value| fields(at, value, into)),
        Value::String(text) if text != "number" => drop(into.insert(format!("{at}: text"))),
        _ => drop(into.insert(format!("{at}: number"))),
    }
}

fn all_fields(messages: &Value) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    fields("", messages, &mut all);
    all
}

fn names(body: &Value) -> BTreeSet<&str> {
    let names = body["metadata"].as_array().into_iter().flatten().filter_map(Value::as_str);
    names.filter(|name| !METADATA.iter().any(|(ours, _)| ours == name)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_requests_are_those_of_the_services_own_sdk() {
    let recorded = wire::recorded("hosted/recorded/modal.json");
    let place = Place::new().await;
    let backend = place.backend();
    let made = create(&backend, &confined(kept("s1"))).await.unwrap();
    Act::all_on(&[Act::Hold, Act::Logs, Act::Snapshot, Act::Garbage, Act::Delete], &backend, &made.id).await;
    backend.check().await;
    let ended = create(&backend, &spec("s2")).await.unwrap();
    end(&backend, &ended, "3").await;
    Act::all_on(&[Act::Logs, Act::Delete], &backend, &ended.id).await;
    let mut compared = BTreeSet::new();
    for ours in place.service.seen() {
        let Some(theirs) = recorded.iter().find(|theirs| theirs["path"] == ours.path.as_str()) else {
            panic!("{} is no request of the SDK", ours.path);
        };
        let known = all_fields(&theirs["body"]["messages"]);
        let mut found = all_fields(&ours.body["messages"]);
        found.retain(|field| {
            let is_ours = |(method, name, _): &(&str, &str, &str)| {
                ours.path.ends_with(method) && field.strip_prefix(name).is_some_and(|rest| rest.starts_with([':', '.']))
            };
            !OURS.iter().any(is_ours)
        });
        let more: Vec<&String> = found.difference(&known).collect();
        assert!(more.is_empty(), "{}: {more:?} are no fields of the SDK: {known:?}", ours.path);
        // The SDK has fewer where an answer comes in pieces.
        let missing: Vec<&str> = names(&theirs["body"]).difference(&names(&ours.body)).copied().collect();
        assert!(missing.is_empty(), "{}: {missing:?}", ours.path);
        compared.insert(ours.path);
    }
    assert!(compared.len() >= 18, "{compared:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_has_what_it_is_to_have_and_goes_with_the_token_to_the_service_alone() {
    let place = Place::new().await;
    let made = create(&place.backend(), &kept("s")).await.unwrap();
    let seen = place.service.seen();
    let wish = seen.iter().find(|seen| seen.path.ends_with("/SandboxCreateV2")).unwrap();
    assert_eq!(wish.header("x-modal-token-id"), modal::Modal::TOKEN_ID);
    assert_eq!(wish.header("x-modal-token-secret"), modal::Modal::KEY);
    assert_eq!(wish.header("x-idempotency-key").len(), 36);
    let definition = &wish.body["messages"][0]["2"];
    assert_eq!((&definition["30"], &definition["7"]), (&json!("s"), &json!(3600)));
    assert_eq!(definition["5"], json!({"2": 512, "3": 1000}));
    assert_eq!(definition["22"], json!({"1": 1}));
    let port = definition["38"]["1"].as_u64().unwrap();
    assert_eq!(definition["20"]["1"], json!([{"1": port}, {"1": 12000}, {"1": 12001}]));
    assert_eq!(made.url.unwrap(), format!("http://127.0.0.1:{port}"));
    assert_eq!((made.ports["work-1"], made.urls["work-1"].as_str()), (12000, "http://127.0.0.1:12000"));
    for seen in seen.iter().filter(|seen| seen.path.contains("TaskCommandRouter")) {
        assert_eq!(seen.header("x-modal-token-secret"), "", "{}", seen.path);
        assert!(seen.header("authorization").starts_with("Bearer "), "{}", seen.path);
    }
}
