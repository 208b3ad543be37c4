//! What every store must do (event-stream 5).

use std::sync::Arc;

use bytes::Bytes;
use gloveport_event_stream::{
    FileStore, LocalStore, StoreError,
    store::{Delivery, MemoryStore, WebhookOptions, WebhookStore},
};

use crate::stores::{server::Service, webhook, within};

/// What a store says about the list of a directory that is not there.
#[derive(Clone, Copy)]
enum MissingDirectory {
    IsEmpty,
    IsNotFound,
}

async fn write(store: &dyn FileStore, path: &str, content: &'static str) {
    store.write(path, Bytes::from(content)).await.unwrap();
}

async fn contract(store: &dyn FileStore, missing_directory: MissingDirectory) {
    // The examples that the reference pins.
    write(store, "foo/bar/baz.txt", "x").await;
    assert_eq!(store.list("").await.unwrap(), ["foo/"]);
    assert_eq!(store.list("foo").await.unwrap(), ["foo/bar/"]);
    assert_eq!(store.list("foo/bar").await.unwrap(), ["foo/bar/baz.txt"]);
    write(store, "foo/other.txt", "y").await;
    store.delete("foo/bar").await.unwrap();
    assert_eq!(store.list("foo").await.unwrap(), ["foo/other.txt"]);
    store.delete("foo").await.unwrap();
    assert_eq!(store.list("").await.unwrap(), Vec::<String>::new());

    // Contents are replaced, and are any bytes.
    let bytes: Bytes = (0..=u8::MAX).collect();
    write(store, "a/b", "first, and longer than the second").await;
    store.write("a/b", bytes.clone()).await.unwrap();
    assert_eq!(store.read("a/b").await.unwrap(), bytes);
    write(store, "a/empty", "").await;
    assert_eq!(store.read("a/empty").await.unwrap(), "");

    // Slashes at the ends and in a row mean nothing; the list has what was asked for before each name.
    assert_eq!(store.read("/a//b").await.unwrap(), bytes);
    assert_eq!(store.list("a/").await.unwrap(), ["a/b", "a/empty"]);
    assert_eq!(store.list("/a").await.unwrap(), ["/a/b", "/a/empty"]);

    // A path is not the beginning of a name.
    write(store, "ab/c", "1").await;
    write(store, "a-b", "2").await;
    assert_eq!(store.list("").await.unwrap(), ["a-b", "a/", "ab/"]);
    store.delete("a").await.unwrap();
    assert_eq!(store.list("").await.unwrap(), ["a-b", "ab/"]);
    store.delete("a-b").await.unwrap();
    store.delete("ab/c").await.unwrap();

    // Names that mean something elsewhere.
    for name in ["é €😀", "a b", "%41+&=", "?q#f", "'\"\\", "<x>&amp;", "~{}^`[]|*", ".hidden"] {
        let path = format!("names/{name}");
        store.write(&path, Bytes::from(name.to_owned())).await.unwrap();
        assert_eq!(store.read(&path).await.unwrap(), name);
        assert_eq!(store.list("names").await.unwrap(), [path.as_str()]);
        store.delete(&path).await.unwrap();
    }

    // What is missing.
    for path in ["no", "no/such", "ab/c"] {
        let error = store.read(path).await.unwrap_err();
        assert!(matches!(&error, StoreError::NotFound { path: named, .. } if named == path), "{error:?}");
        store.delete(path).await.unwrap();
    }
    let listed = store.list("no").await;
    match missing_directory {
        MissingDirectory::IsEmpty => assert_eq!(listed.unwrap(), Vec::<String>::new()),
        MissingDirectory::IsNotFound => assert!(matches!(listed, Err(StoreError::NotFound { .. })), "{listed:?}"),
    }

    // What is no path.
    for path in ["..", "a/../b", "../a"] {
        for result in [
            store.write(path, Bytes::new()).await,
            store.read(path).await.map(drop),
            store.list(path).await.map(drop),
            store.delete(path).await,
        ] {
            assert!(matches!(result, Err(StoreError::Path { .. })), "{path}: {result:?}");
        }
    }
    for path in ["", "/", "a\0b"] {
        assert!(matches!(store.write(path, Bytes::new()).await, Err(StoreError::Path { .. })), "{path}");
        assert!(matches!(store.read(path).await, Err(StoreError::Path { .. })), "{path}");
    }
    store.flush().await;
}

#[tokio::test]
async fn memory_keeps_the_contract() {
    within(contract(&MemoryStore::default(), MissingDirectory::IsEmpty)).await;
}

#[tokio::test]
async fn a_directory_keeps_the_contract() {
    let directory = std::env::temp_dir().join(format!("gloveport-stores-{}", std::process::id()));
    let store = LocalStore::new(&directory, None).unwrap();
    within(contract(&store, MissingDirectory::IsNotFound)).await;
    drop(store);
    std::fs::remove_dir_all(directory).unwrap();
}

#[tokio::test]
async fn a_bucket_of_s3_keeps_the_contract() {
    let server = Service::S3.start().await;
    within(contract(&server.s3(), MissingDirectory::IsEmpty)).await;
}

#[tokio::test]
async fn a_bucket_of_google_cloud_keeps_the_contract() {
    let server = Service::Gcs.start().await;
    within(contract(&server.gcs(), MissingDirectory::IsEmpty)).await;
}

#[tokio::test]
async fn a_store_with_a_web_hook_keeps_the_contract() {
    for delivery in [Delivery::Each, Delivery::Batched] {
        let hook = webhook::Hook::start().await;
        let options = WebhookOptions { delivery, ..WebhookOptions::new(hook.url()) };
        let store = WebhookStore::new(Arc::new(MemoryStore::default()), options).unwrap();
        within(contract(&store, MissingDirectory::IsEmpty)).await;
        assert!(!hook.requests().is_empty());
    }
}
