//! The requests of a life, member by member (`hosted-apis` 3.2, 3.3).

use std::time::Duration;

use gloveport_hosted_checks::{
    steps::{confined, create, kept, running, spec},
    wire,
};
use gloveport_provider::{NetworkPolicy, Provider as _, ProviderError, ResourceLimits, SandboxSpec};
use gloveport_provider_daytona::Traffic;
use gloveport_stand_ins::Seen;
use http::Method;
use serde_json::{Value, json};

use crate::support::{KEY, Place};

/// What the service's own SDK sends for the same (`tests/hosted/run --record`).
fn recorded(method: &Method, end: &str) -> Value {
    let all = wire::recorded("hosted/recorded/daytona.json");
    let is_it = |one: &Value| one["method"] == method.as_str() && one["path"].as_str().unwrap().ends_with(end);
    all.iter().find(|one| is_it(one)).unwrap()["body"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_requests_are_those_of_the_services_own_sdk() {
    let place = Place::new().await;
    let backend = place.backend_with(|options| options.target = Some("us".to_owned()));
    let made = create(&backend, &SandboxSpec { network: NetworkPolicy::None, ..kept("s1") }).await.unwrap();
    let made = running(&backend, &made).await;
    let seen = place.service.seen();
    let only = |method: Method, part: &str| -> Seen {
        let mut found = seen.iter().filter(|seen| seen.method == method && seen.path.contains(part));
        found.next().unwrap_or_else(|| panic!("{part}")).clone()
    };
    let wish = only(Method::POST, "/api/sandbox");
    let mut body = wish.body.clone();
    let labels = body.as_object_mut().unwrap().remove("labels").unwrap();
    let expected = json!({
        "name": "s1", "public": false, "target": "us", "autoStopInterval": 15, "autoDeleteInterval": -1,
        "networkBlockAll": true,
    });
    assert_eq!(body, expected);
    assert_eq!((&labels["gloveport.daytona.session"], &labels["gloveport.runtime"]), (&json!("s1"), &json!("daytona")));
    let key = made.session_key.as_ref().unwrap().expose();
    assert!(!labels.to_string().contains(key) && !labels.to_string().contains(KEY), "{labels}");
    for (method, path) in [(Method::POST, "/api/sandbox"), (Method::POST, "/process/session")] {
        let mut sent_by_sdk = recorded(&method, path);
        if let Some(members) = sent_by_sdk.as_object_mut() {
            // The SDK sends what is empty, and our labels are more than one.
            for name in ["env", "volumes", "labels"] {
                members.remove(name);
            }
        }
        let mut ours = only(method, path).body;
        ours.as_object_mut().unwrap().remove("labels");
        assert_eq!(ours, sent_by_sdk, "{path}");
    }
    // Commands are other ones.
    for (path, name) in
        [("/process/execute", "cwd"), ("/process/execute", "timeout"), ("/gloveport-server/exec", "runAsync")]
    {
        assert_eq!(only(Method::POST, path).body[name], recorded(&Method::POST, path)[name], "{path}");
    }
    let upload = only(Method::POST, "/files/upload-v2?path=%2F");
    assert_eq!(upload.header("content-type"), "application/octet-stream");
    assert_eq!(only(Method::POST, "/process/session").body, json!({"sessionId": "gloveport-server"}));
    let started = only(Method::POST, "/process/session/gloveport-server/exec");
    assert_eq!(started.body["runAsync"], true);
    // The key of a session is in no command and no variable that the service is told.
    assert!(seen.iter().all(|seen| !format!("{:?}{}", seen.body, seen.path).contains(key)));
    for request in [&wish, &upload, &started] {
        assert_eq!(request.header("authorization"), format!("Bearer {KEY}"));
        assert_eq!(request.header("x-daytona-sdk-version"), "0.226.1");
    }
    // The key of the account is for the service alone.
    let headers = format!("{:?}", made.headers);
    assert!(
        !headers.contains(KEY) && made.headers.keys().eq(["x-daytona-preview-token", "x-daytona-skip-preview-warning"])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_built_from_and_has_a_size_and_a_snapshot_has_its_own() {
    let place = Place::new().await;
    let limits = ResourceLimits { cpus: Some(2.0), memory: Some(4 << 30), ..ResourceLimits::default() };
    let error = create(&place.backend(), &SandboxSpec { limits: limits.clone(), ..spec("s") }).await.unwrap_err();
    assert!(matches!(error, ProviderError::Unsupported { .. }), "{error}");
    let backend = place.backend_with(|options| options.image = Some("debian:12".to_owned()));
    create(&backend, &SandboxSpec { limits: limits.clone(), ..spec("default") }).await.unwrap();
    let image = SandboxSpec { image: Some("debian:13".to_owned()), ..spec("image") };
    create(&backend, &image).await.unwrap();
    let seen = place.service.seen();
    let wishes: Vec<_> = seen.iter().filter(|seen| seen.path == "/api/sandbox").map(|seen| &seen.body).collect();
    assert_eq!(wishes[0]["buildInfo"], json!({"dockerfileContent": "FROM debian:12\n"}));
    assert_eq!((&wishes[0]["cpu"], &wishes[0]["memory"], wishes[0].get("disk")), (&json!(2), &json!(4), None));
    assert_eq!(wishes[1]["buildInfo"], json!({"dockerfileContent": "FROM debian:13\n"}));
    let snapshots = [("debian:13".to_owned(), "daytonaio/sandbox".to_owned())].into();
    let named = place.backend_with(|options| {
        options.snapshots = snapshots;
        options.image = Some("debian:12".to_owned());
    });
    let sized = SandboxSpec { image: image.image.clone(), limits, ..spec("sized") };
    let error = create(&named, &sized).await.unwrap_err();
    assert!(matches!(&error, ProviderError::Spec { field, .. } if field == "limits"), "{error}");
    create(&named, &SandboxSpec { image: image.image.clone(), ..spec("named") }).await.unwrap();
    let seen = place.service.seen();
    let wish = seen.iter().find(|seen| seen.path == "/api/sandbox").unwrap();
    assert_eq!((&wish.body["snapshot"], wish.body.get("buildInfo")), (&json!("daytonaio/sandbox"), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_have_urls_without_a_token_where_everybody_may_reach_them() {
    let place = Place::new().await;
    let open = place.backend_with(|options| options.traffic = Traffic::Public);
    assert!(open.capabilities().ports && !place.backend().capabilities().ports);
    let made = create(&open, &kept("s")).await.unwrap();
    let made = running(&open, &made).await;
    assert_eq!(made.urls["work-1"], format!("{}/preview/{}/12000", place.service.url, made.id));
    assert!(made.headers.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_time_and_network_are_asked_for_as_the_service_writes_them() {
    let place = Place::new().await;
    let backend = place.backend_with(|options| options.auto_stop = false);
    let time_to_live = Some(Duration::from_secs(90));
    let made = create(&backend, &SandboxSpec { time_to_live, ..confined(kept("s")) }).await.unwrap();
    let seen = place.service.seen();
    let wish = seen.iter().find(|seen| seen.path == "/api/sandbox").unwrap();
    assert_eq!(
        (&wish.body["networkAllowList"], &wish.body["domainAllowList"]),
        (&json!("10.0.0.0/8"), &json!("pypi.org"))
    );
    assert_eq!((&wish.body["ttlMinutes"], &wish.body["autoStopInterval"]), (&json!(3), &json!(0)));
    assert!(made.expires.is_some());
}
