//! The store that the configuration asks for.

use std::{collections::BTreeMap, path::PathBuf};

use bytes::Bytes;
use gloveport_event_stream::{
    StoreError,
    store::{StoreOptions, open_store},
};
use gloveport_protocol::Secret;

use crate::stores::{
    server::{BUCKET, Service},
    signature,
    webhook::Hook,
    within,
};

fn nothing(_: &str) -> Option<String> {
    None
}

fn options<'a>(kind: &str, path: Option<&str>, environment: &'a dyn Fn(&str) -> Option<String>) -> StoreOptions<'a> {
    StoreOptions {
        kind: kind.to_owned(),
        path: path.map(String::from),
        web_hook_url: None,
        web_hook_headers: None,
        web_hook_batch: false,
        home: None,
        environment,
    }
}

fn refused(options: StoreOptions<'_>) -> String {
    open_store(options).map(|_| ()).unwrap_err().to_string()
}

#[tokio::test]
async fn a_local_store_is_a_directory_below_home() {
    let home = tempfile::tempdir().unwrap();
    let mut options = options("local", Some("~/store"), &nothing);
    options.home = Some(home.path().to_owned());
    let store = open_store(options).unwrap();
    within(store.write("a/b", Bytes::from("x"))).await.unwrap();
    assert_eq!(std::fs::read(home.path().join("store/a/b")).unwrap(), b"x");
    assert_eq!(store.directory().map(PathBuf::from), Some(home.path().join("store")));
}

#[tokio::test]
async fn any_other_kind_is_memory() {
    for kind in ["memory", "", "S3", "whatever"] {
        let store = open_store(options(kind, Some("~/.openhands"), &nothing)).unwrap();
        within(store.write("a", Bytes::from("x"))).await.unwrap();
        assert_eq!(within(store.read("a")).await.unwrap(), "x");
        assert_eq!(store.directory(), None);
    }
}

#[test]
fn what_is_missing_or_wrong_is_said_before_anything_is_sent() {
    let half = |name: &str| (name == "AWS_ACCESS_KEY_ID").then(|| "k".to_owned());
    let no_file = |name: &str| (name == "GOOGLE_APPLICATION_CREDENTIALS").then(|| "/no/such/file".to_owned());
    let rows: [(StoreOptions<'_>, &str); 6] = [
        (options("local", None, &nothing), "file_store_path is required for local file store"),
        (options("local", Some(""), &nothing), "file_store_path is required for local file store"),
        (
            options("s3", None, &nothing),
            "'' is not a valid name for a bucket for file_store s3: set file_store_path to the name, or leave it out and set AWS_S3_BUCKET",
        ),
        (
            options("google_cloud", Some("~/.openhands"), &nothing),
            "'~/.openhands' is not a valid name for a bucket for file_store google_cloud: set file_store_path to the name, or leave it out and set GOOGLE_CLOUD_BUCKET_NAME",
        ),
        (options("s3", Some("b"), &half), "file_store s3 cannot be used as it is configured: "),
        (options("google_cloud", Some("b"), &no_file), "file_store google_cloud cannot be used as it is configured: "),
    ];
    for (options, text) in rows {
        let error = refused(options);
        assert!(error.starts_with(text), "{error}");
    }
}

#[test]
fn a_web_hook_that_cannot_be_used_is_refused() {
    let with = |url: &str, headers: Option<BTreeMap<String, Secret>>| StoreOptions {
        web_hook_url: Some(url.to_owned()),
        web_hook_headers: headers,
        ..options("memory", None, &nothing)
    };
    assert_eq!(
        refused(with("ftp://x/", None)),
        "file_store_web_hook_url cannot be used: it must begin with http:// or https://"
    );
    assert!(refused(with("x", None)).starts_with("file_store_web_hook_url cannot be used: it is not a URL"));
    let headers = BTreeMap::from([("X-Key".to_owned(), Secret::from("se\ncret"))]);
    assert_eq!(
        refused(with("http://x/", Some(headers))),
        "file_store_web_hook_headers cannot be used: 'X-Key' has a name or a value that cannot be sent"
    );
}

#[tokio::test]
async fn buckets_may_be_named_by_the_environment() {
    for (kind, service, variable) in
        [("s3", Service::S3, "AWS_S3_BUCKET"), ("google_cloud", Service::Gcs, "GOOGLE_CLOUD_BUCKET_NAME")]
    {
        let server = service.start().await;
        let environment = |name: &str| match name {
            name if name == variable => Some(BUCKET.to_owned()),
            "AWS_S3_ENDPOINT" | "STORAGE_EMULATOR_HOST" => Some(server.url().to_owned()),
            "AWS_S3_SECURE" => Some("false".to_owned()),
            "AWS_ACCESS_KEY_ID" => Some(signature::ACCESS_KEY.to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some(signature::SECRET_KEY.to_owned()),
            _ => None,
        };
        let store = open_store(options(kind, None, &environment)).unwrap();
        within(store.write("a/b", Bytes::from("x"))).await.unwrap();
        assert_eq!(server.keys(), ["a/b"]);
        let missing = within(store.read("a")).await;
        assert!(matches!(missing, Err(StoreError::NotFound { .. })));
    }
}

#[tokio::test]
async fn a_web_hook_has_the_headers_of_the_configuration_or_the_key_of_the_session() {
    let environment = |name: &str| (name == "SESSION_API_KEY").then(|| "the-key".to_owned());
    let own = BTreeMap::from([("X-Own".to_owned(), Secret::from("own"))]);
    let rows = [
        (None, &environment as &dyn Fn(&str) -> Option<String>, [Some("the-key"), None]),
        (None, &nothing, [None, None]),
        (Some(own), &environment, [None, Some("own")]),
        (Some(BTreeMap::new()), &environment, [None, None]),
    ];
    for (headers, environment, expected) in rows {
        for web_hook_batch in [false, true] {
            let hook = Hook::start().await;
            let store = open_store(StoreOptions {
                web_hook_url: Some(hook.url()),
                web_hook_headers: headers.clone(),
                web_hook_batch,
                ..options("memory", None, environment)
            })
            .unwrap();
            within(store.write("a", Bytes::from("x"))).await.unwrap();
            within(store.flush()).await;
            let requests = hook.requests();
            let [request] = requests.as_slice() else { panic!("{requests:?}") };
            let sent = ["x-session-api-key", "x-own"].map(|name| request.header(name));
            assert_eq!(sent, expected.map(|value| value.map(String::from)));
            assert_eq!(request.path, if web_hook_batch { "/hook/" } else { "/hook/a" });
        }
    }
}
