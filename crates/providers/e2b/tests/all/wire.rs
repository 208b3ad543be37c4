//! The requests of a life, member by member (`hosted-apis` 2.6).

use gloveport_provider::{NetworkPolicy, Provider as _, SandboxSpec};
use gloveport_provider_e2b::{E2b, E2bOptions, Traffic};
use http::Method;
use serde_json::json;

use crate::support::{Place, create, kept, spec};

#[tokio::test(flavor = "multi_thread")]
async fn the_requests_are_those_of_the_services_own_sdk() {
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
    let header = |seen: &crate::standin::Seen, name: &str| {
        seen.headers.get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
    };
    assert_eq!(header(&wish, "idempotency-key"), metadata["gloveport.e2b.wish"].as_str().unwrap());
    assert_eq!(
        (header(&wish, "x-api-key"), header(&wish, "content-type")),
        (crate::standin::KEY.into(), "application/json".into())
    );

    let upload = only(Method::POST, "/files?");
    assert!(upload.path.starts_with("/files?username=root&path=%2F"), "{}", upload.path);
    assert_eq!(header(&upload, "content-type"), "application/octet-stream");
    let launch = seen.iter().find(|seen| seen.body.get("tag").is_some()).unwrap();
    assert_eq!(launch.path, "/process.Process/Start");
    assert_eq!((&launch.body["stdin"], &launch.body["process"]["cmd"]), (&json!(false), &json!("/bin/sh")));
    assert_eq!(launch.body["process"]["envs"]["SESSION_API_KEY"], key);
    for request in [&upload, launch] {
        assert_eq!(header(request, "x-access-token"), format!("agent-{}", made.id));
        assert_eq!(header(request, "e2b-sandbox-id"), made.id.as_str());
        assert_eq!(header(request, "e2b-sandbox-port"), "49983");
        // The key of the account is for the control plane alone.
        assert_eq!(header(request, "x-api-key"), "");
    }
    for (name, value) in [
        ("authorization", "Basic cm9vdDo="),
        ("content-type", "application/connect+json"),
        ("connect-protocol-version", "1"),
        // That would be the time of the process.
        ("connect-timeout-ms", ""),
    ] {
        assert_eq!(header(launch, name), value, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_have_names_of_hosts_where_the_service_has_them() {
    let place = Place::new().await;
    let made = create(&place.backend(), &kept("s")).await.unwrap();
    // One address for all sandboxes has no URLs of ports.
    assert!(made.urls.is_empty() && made.ports["work-1"] == 12_000, "{made:?}");
    let far = E2b::new(E2bOptions { sandbox_url: None, traffic: Traffic::Public, ..place.options() });
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
    let network = NetworkPolicy::Only(vec!["pypi.org".to_owned(), "10.0.0.0/8".to_owned()]);
    create(&backend, &SandboxSpec { network, ..spec("s") }).await.unwrap();
    let seen = place.service.seen();
    let wish = seen.iter().find(|seen| seen.path == "/v2/sandboxes").unwrap();
    let expected =
        json!({"allowPublicTraffic": false, "allowOut": ["pypi.org", "10.0.0.0/8"], "denyOut": ["0.0.0.0/0"]});
    assert_eq!(wish.body["network"], expected);
    assert_eq!((&wish.body["autoPause"], wish.body.get("allow_internet_access")), (&json!(false), None));
}
