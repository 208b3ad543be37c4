//! What buckets do beyond the contract.

use std::{error::Error as _, time::Duration};

use bytes::Bytes;
use gloveport_event_stream::{
    FileStore as _, StoreError,
    store::{GcsAccess, GcsOptions, S3Options},
};

use crate::stores::{
    SHORT,
    server::{BUCKET, Fault, Service},
    signature, within,
};

#[tokio::test]
async fn lists_go_on_after_the_first_page() {
    for service in [Service::S3, Service::Gcs] {
        let server = service.start_with_pages_of(3).await;
        for number in 0..10 {
            server.put(&format!("events/{number}.json"));
            server.put(&format!("pages/{number}/x"));
        }
        let store = server.store();
        within(async {
            let expected: Vec<String> = (0..10).map(|number| format!("events/{number}.json")).collect();
            assert_eq!(store.list("events").await.unwrap(), expected);
            assert_eq!(server.requests().len(), 4);
            let expected: Vec<String> = (0..10).map(|number| format!("pages/{number}/")).collect();
            assert_eq!(store.list("pages/").await.unwrap(), expected);
            store.delete("pages").await.unwrap();
            assert_eq!(store.list("").await.unwrap(), ["events/"]);
        })
        .await;
    }
}

#[tokio::test]
async fn more_than_a_thousand_objects_are_listed_and_deleted_together() {
    let server = Service::S3.start().await;
    (0..2500).for_each(|number| server.put(&format!("events/{number}.json")));
    server.put("events2/0.json");
    let store = server.s3();
    within(async {
        assert_eq!(store.list("events").await.unwrap().len(), 2500);
        server.requests();
        store.delete("events").await.unwrap();
        assert_eq!(server.keys(), ["events2/0.json"]);
        let posts = server.requests().iter().filter(|request| request.starts_with("POST")).count();
        assert_eq!(posts, 3);
    })
    .await;
}

#[tokio::test]
async fn an_object_that_marks_a_directory_is_not_in_it() {
    let server = Service::S3.start().await;
    server.put("foo/");
    server.put("foo/a");
    let store = server.s3();
    assert_eq!(within(store.list("foo")).await.unwrap(), ["foo/a"]);
    assert_eq!(within(store.list("")).await.unwrap(), ["foo/"]);
}

#[tokio::test]
async fn a_bucket_is_not_emptied() {
    let server = Service::S3.start().await;
    server.put("foo");
    for path in ["", "/"] {
        let error = within(server.s3().delete(path)).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("'{path}' cannot be a path in the file store: it names the store itself")
        );
    }
    assert_eq!(server.keys(), ["foo"]);
}

#[tokio::test]
async fn failures_have_the_texts_of_the_reference() {
    let server = Service::S3.start().await;
    let store = server.s3();
    within(async {
        let error = store.read("a/b").await.unwrap_err();
        let text = format!("Error: The object key 'a/b' does not exist in bucket '{BUCKET}'.");
        assert!(
            matches!(&error, StoreError::NotFound { path, detail: Some(detail) } if path == "a/b" && *detail == text)
        );
        assert!(error.to_string().ends_with(&text), "{error}");

        let denied = format!("Error: Access denied to bucket '{BUCKET}'.");
        let no_bucket = format!("Error: The bucket '{BUCKET}' does not exist.");
        for (fault, text) in [
            (Fault::Status(403, "AccessDenied"), &denied),
            (Fault::Status(401, "ExpiredToken"), &denied),
            (Fault::Status(404, "NoSuchBucket"), &no_bucket),
        ] {
            server.fail([fault]);
            assert_eq!(store.read("a").await.unwrap_err().to_string(), *text);
            server.fail([fault]);
            assert_eq!(store.write("a", Bytes::new()).await.unwrap_err().to_string(), *text);
            server.fail([fault]);
            assert_eq!(store.list("a").await.unwrap_err().to_string(), *text);
            server.fail([fault]);
            assert_eq!(store.delete("a").await.unwrap_err().to_string(), *text);
        }
        for (operation, result) in [
            ("read", {
                server.fail([Fault::Status(400, "Odd")]);
                store.read("a").await.map(drop)
            }),
            ("write", {
                server.fail([Fault::Status(400, "Odd")]);
                store.write("a", Bytes::new()).await
            }),
            ("list", {
                server.fail([Fault::Status(400, "Odd")]);
                store.list("a").await.map(drop)
            }),
            ("delete", {
                server.fail([Fault::Status(400, "Odd")]);
                store.delete("a").await
            }),
        ] {
            let text = result.unwrap_err().to_string();
            assert!(text.starts_with(&format!("Error: Failed to {operation} 'a' in bucket '{BUCKET}': ")), "{text}");
            assert!(text.contains("Odd"), "{text}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_wrong_key_is_denied_and_not_shown() {
    let server = Service::S3.start().await;
    let store = server.s3_as("AKIDOTHER", SHORT);
    let error = within(store.read("a")).await.unwrap_err();
    let all = format!("{error} {error:?} {:?} {store:?}", error.source());
    assert!(matches!(error, StoreError::AccessDenied { .. }), "{error:?}");
    assert!(!all.contains(signature::SECRET_KEY), "{all}");
}

#[tokio::test]
async fn what_may_pass_is_tried_again() {
    for service in [Service::S3, Service::Gcs] {
        let server = service.start().await;
        let store = server.store();
        within(async {
            server.fail([Fault::Status(500, "InternalError"), Fault::Status(503, "SlowDown")]);
            store.write("a", Bytes::from("x")).await.unwrap();
            assert_eq!(server.requests().len(), 3, "{service:?}");
            server.fail([Fault::Silence]);
            assert_eq!(store.read("a").await.unwrap(), "x");
            assert_eq!(server.requests().len(), 2, "{service:?}");
        })
        .await;
    }
}

#[tokio::test]
async fn what_does_not_pass_is_a_failure_and_not_missing() {
    let server = Service::S3.start().await;
    let store = server.s3();
    within(async {
        server.fail([Fault::Status(500, "InternalError"); 5]);
        let error = store.read("a").await.unwrap_err();
        assert!(matches!(error, StoreError::Bucket { operation: "read", .. }), "{error:?}");
        assert_eq!(server.requests().len(), 5);
        server.fail([Fault::Silence; 5]);
        let error = store.list("a").await.unwrap_err();
        assert!(matches!(error, StoreError::Bucket { operation: "list", .. }), "{error:?}");
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_failure() {
    let environment = |name: &str| match name {
        "AWS_S3_ENDPOINT" => Some("http://127.0.0.1:1".to_owned()),
        "AWS_S3_SECURE" => Some("False".to_owned()),
        "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => Some("k".to_owned()),
        _ => None,
    };
    let mut options = S3Options::from_environment(Some(BUCKET.to_owned()), &environment).unwrap();
    options.limits.all_attempts = Duration::from_secs(1);
    let error = within(options.open().unwrap().read("a")).await.unwrap_err();
    assert!(error.to_string().starts_with("Error: Failed to read 'a' in bucket 'the-bucket': "), "{error}");
}

#[test]
fn the_endpoint_has_the_scheme_that_is_configured() {
    let rows = [
        ("minio:9000", None, "https://minio:9000"),
        ("http://minio:9000", None, "https://minio:9000"),
        ("https://minio", Some("true"), "https://minio"),
        ("https://minio", Some("false"), "http://minio"),
        ("minio", Some("FALSE"), "http://minio"),
    ];
    for (endpoint, secure, url) in rows {
        let environment = |name: &str| match name {
            "AWS_S3_ENDPOINT" => Some(endpoint.to_owned()),
            "AWS_S3_SECURE" => secure.map(String::from),
            _ => None,
        };
        let options = S3Options::from_environment(Some("b".to_owned()), &environment).unwrap();
        assert_eq!(options.endpoint.as_deref(), Some(url));
    }
}

#[tokio::test]
async fn a_service_account_signs_its_own_tokens() {
    let server = Service::Gcs.start_strict().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("account.json");
    std::fs::write(&file, signature::account_file()).unwrap();
    let environment =
        |name: &str| (name == "GOOGLE_APPLICATION_CREDENTIALS").then(|| file.to_str().unwrap().to_owned());
    let mut options = GcsOptions::from_environment(Some(BUCKET.to_owned()), None, &environment).unwrap();
    assert_eq!(options.access, GcsAccess::Credentials);
    options.endpoint = Some(format!("{}/", server.url()));
    let store = options.open().unwrap();
    within(store.write("a/b", Bytes::from("x"))).await.unwrap();
    assert_eq!(within(store.list("a")).await.unwrap(), ["a/b"]);
    assert_eq!(server.keys(), ["a/b"]);
    let denied = within(server.gcs().read("a/b")).await;
    assert!(matches!(denied, Err(StoreError::AccessDenied { .. })), "{denied:?}");
}
