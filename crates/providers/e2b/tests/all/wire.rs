//! The requests of a life, member by member (`hosted-apis` 2.6).

use std::collections::BTreeSet;

use gloveport_hosted_checks::{
    Service as _,
    steps::{Act, confined, create, kept, spec},
    wire::{self, Members, query, without_query},
};
use gloveport_provider::{NetworkPolicy, Provider as _, SandboxSpec};
use gloveport_provider_e2b::Traffic;
use gloveport_stand_ins::Seen;
use http::Method;
use serde_json::{Value, json};

use crate::support::Place;

/// What our requests have beside or instead of the SDK's: the end of the path, the member, and why.
const OURS: [(&str, &str, &str); 8] = [
    ("", "body.autoResume", "false where nothing is said"),
    ("", "body.envVars", "variables are those of the server alone; the SDK sends none, too"),
    ("", "body.memory", "the program is started again, and needs no memory"),
    ("", "header.connect-timeout-ms", "the time limit is kept on this side"),
    ("", "header.idempotency-key", "a wish whose answer was lost is no second one; the SDK sends what it is given"),
    ("/Start", "body.tag", "the server is found by it"),
    ("/List", "header.authorization", "the user is told with every call"),
    ("/SendSignal", "header.authorization", "the user is told with every call"),
];

/// Names of variables and labels are not the service's.
const MEMBERS: Members<'static> = Members { texts: &["envs", "metadata"], nulls: false };

/// Method and path without ids and names.
fn kind(method: &str, path: &str) -> String {
    let mut words: Vec<&str> = without_query(path).split('/').collect();
    let after = words.iter().position(|word| ["sandboxes", "templates"].contains(word));
    if let Some(id) = after.and_then(|at| words.get_mut(at + 1)) {
        *id = "ID";
    }
    format!("{method} {}", words.join("/"))
}

/// All that a request has, but for what is ours.
fn shape(path: &str, headers: Vec<(String, String)>, body: &Value) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    MEMBERS.of("body", body, &mut all);
    all.extend(query(path).map(|name| format!("query.{name}")));
    all.extend(headers.into_iter().map(|(name, value)| {
        // Keys, tokens and ids.
        let is_own = ["x-api-key", "x-access-token", "e2b-sandbox-id"].contains(&name.as_str());
        if is_own { format!("header.{name}") } else { format!("header.{name}: {value}") }
    }));
    let of = without_query(path);
    all.retain(|member| !OURS.iter().any(|(end, name, _)| of.ends_with(end) && member.starts_with(name)));
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn the_requests_are_those_of_the_services_own_sdk() {
    let recorded = wire::recorded("e2b/recorded.json");
    let compared_headers: BTreeSet<&str> = recorded
        .iter()
        .flat_map(|theirs| theirs["headers"].as_object().unwrap().keys().map(String::as_str))
        .chain(["idempotency-key", "connect-timeout-ms"])
        .collect();
    let place = Place::new().await;
    let backend = place.backend();
    let made = create(&backend, &SandboxSpec { network: NetworkPolicy::None, ..kept("s") }).await.unwrap();
    Act::all_on(&[Act::Hold, Act::Snapshot], &backend, &made.id).await;
    backend.find_session(&made.session_id).await.unwrap();
    Act::all_on(&[Act::Pause, Act::Resume, Act::Garbage, Act::Delete], &backend, &made.id).await;
    backend.close().await;
    let of_ours = |ours: &Seen| {
        let headers = ours.headers.iter().filter(|(name, _)| compared_headers.contains(name.as_str()));
        let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
        shape(&ours.path, headers.collect(), &ours.body)
    };
    let of_theirs = |theirs: &Value| {
        let headers = theirs["headers"].as_object().unwrap();
        let headers = headers.iter().map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()));
        shape(theirs["path"].as_str().unwrap(), headers.collect(), &theirs["body"])
    };
    wire::are_those_of_the_sdk(&place.service.seen(), &recorded, kind, of_ours, of_theirs, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_requests_of_a_life_are_those_of_the_specification() {
    let place = Place::new().await;
    let backend = place.backend();
    let made = create(&backend, &SandboxSpec { network: NetworkPolicy::None, ..kept("s") }).await.unwrap();
    let seen = place.service.seen();
    let only = |method: Method, part: &str| {
        let mut found = seen.iter().filter(|seen| seen.method == method && seen.path.contains(part));
        found.next().unwrap_or_else(|| panic!("{part}")).clone()
    };
    let wish = only(Method::POST, "/v2/sandboxes");
    let mut body = wish.body.clone();
    let metadata = body.as_object_mut().unwrap().remove("metadata").unwrap();
    let expected = json!({
        "templateID": "base", "timeout": 900, "autoPause": true, "allow_internet_access": false,
        "network": {"allowPublicTraffic": false},
    });
    assert_eq!(body, expected);
    assert_eq!(metadata["gloveport.e2b.session"], "s");
    let key = made.session_key.as_ref().unwrap().expose();
    assert!(!metadata.to_string().contains(key) && !metadata.to_string().contains(crate::standin::KEY), "{metadata}");
    assert_eq!(wish.header("idempotency-key"), metadata["gloveport.e2b.wish"].as_str().unwrap());
    assert_eq!(
        (wish.header("x-api-key"), wish.header("content-type")),
        (crate::standin::KEY.into(), "application/json".into())
    );

    let upload = only(Method::POST, "/files?");
    assert!(upload.path.starts_with("/files?username=root&path=%2F"), "{}", upload.path);
    assert_eq!(upload.header("content-type"), "application/octet-stream");
    let launch = seen.iter().find(|seen| seen.body.get("tag").is_some()).unwrap();
    assert_eq!(launch.path, "/process.Process/Start");
    assert_eq!((&launch.body["stdin"], &launch.body["process"]["cmd"]), (&json!(false), &json!("/bin/sh")));
    assert_eq!(launch.body["process"]["envs"]["SESSION_API_KEY"], key);
    for request in [&upload, launch] {
        assert_eq!(request.header("x-access-token"), format!("agent-{}", made.id));
        assert_eq!(request.header("e2b-sandbox-id"), made.id.as_str());
        assert_eq!(request.header("e2b-sandbox-port"), "49983");
        // The key of the account is for the control plane alone.
        assert_eq!(request.header("x-api-key"), "");
    }
    for (name, value) in [
        ("authorization", "Basic cm9vdDo="),
        ("content-type", "application/connect+json"),
        ("connect-protocol-version", "1"),
        // That would be the time of the process.
        ("connect-timeout-ms", ""),
    ] {
        assert_eq!(launch.header(name), value, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_have_names_of_hosts_where_the_service_has_them() {
    let place = Place::new().await;
    let made = create(&place.backend(), &kept("s")).await.unwrap();
    // One address for all sandboxes has no URLs of ports.
    assert!(made.urls.is_empty() && made.ports["work-1"] == 12_000, "{made:?}");
    let far = place.backend_with(|options| {
        options.sandbox_url = None;
        options.traffic = Traffic::Public;
    });
    assert!(far.capabilities().ports && !place.backend().capabilities().ports);
    place.service.seen();
    // It cannot be reached from here; what the service tells is enough for one that rests.
    place.backend().pause(&made.id).await.unwrap();
    let found = far.find(&made.id).await.unwrap().unwrap();
    assert_eq!(found.urls["work-1"], format!("https://12000-{}.sandboxes.test", made.id));
    let url = found.url.unwrap();
    assert!(url.starts_with("https://") && url.ends_with(&format!("-{}.sandboxes.test", made.id)), "{url}");
    assert!(found.headers.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_is_confined_is_asked_for_as_the_service_writes_it() {
    let place = Place::new().await;
    let backend = place.backend();
    create(&backend, &confined(spec("s"))).await.unwrap();
    let seen = place.service.seen();
    let wish = seen.iter().find(|seen| seen.path == "/v2/sandboxes").unwrap();
    let expected =
        json!({"allowPublicTraffic": false, "allowOut": ["pypi.org", "10.0.0.0/8"], "denyOut": ["0.0.0.0/0"]});
    assert_eq!(wish.body["network"], expected);
    assert_eq!((&wish.body["autoPause"], wish.body.get("allow_internet_access")), (&json!(false), None));
}
