//! Trajectories in files.

use std::{fs, os::unix::fs::PermissionsExt as _};

use gloveport_event_stream::{
    EventStore, Search,
    trajectory::{self, Replay, Screenshots},
};
use gloveport_protocol::EventSource;
use serde_json::Value;

use crate::behaviour::{
    common::{local, open, within},
    listen::message,
};

/// A conversation of the messages 0, 1, 2, ...
async fn conversation(count: usize) -> (tempfile::TempDir, EventStore) {
    let root = tempfile::tempdir().unwrap();
    let stream = open(root.path()).await;
    let adds = (0..count).map(|at| stream.add(message(at.to_string()), EventSource::User));
    for added in within(futures_util::future::join_all(adds)).await {
        added.unwrap();
    }
    within(stream.close()).await;
    let store = EventStore::new(local(root.path()), "s", None);
    (root, store)
}

#[tokio::test]
async fn a_trajectory_is_saved_where_it_is_wanted_and_can_be_played() {
    let (root, store) = conversation(40).await;
    let directory = root.path().join("saved");
    let file = directory.join("deep/t.json");
    let save = async |path: &std::path::Path| {
        trajectory::save(path, "s", &mut store.search(Search::default()), Screenshots::Drop).await.unwrap()
    };
    assert_eq!(save(&file).await, file);
    assert_eq!(save(&directory).await, directory.join("s.json"));
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(fs::read_to_string(directory.join("s.json")).unwrap(), text);
    // Like any other file that the user makes.
    let plain = directory.join("plain");
    fs::write(&plain, "").unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&file), mode(&plain));
    // What a link leads to is written.
    std::os::unix::fs::symlink(&plain, directory.join("link")).unwrap();
    assert_eq!(save(&directory.join("link")).await, plain);
    assert_eq!(fs::read_to_string(&plain).unwrap(), text);
    assert_eq!(save(std::path::Path::new("/dev/null")).await, std::path::Path::new("/dev/null"));
    let mut names: Vec<_> =
        fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["deep", "link", "plain", "s.json"]);

    let values: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(values.len(), 40);
    let loaded = trajectory::load(&file).await.unwrap();
    assert_eq!(loaded.task.action.message(), "0");
    let mut replay = Replay::new(loaded.events);
    for at in 1..40 {
        assert!(replay.should_replay());
        assert_eq!(replay.step().unwrap().action.message(), at.to_string());
    }
    assert!(!replay.should_replay());
}

#[tokio::test]
async fn an_empty_history_is_an_empty_list() {
    let (root, store) = conversation(0).await;
    let path = root.path().join("t.json");
    trajectory::save(&path, "s", &mut store.search(Search::default()), Screenshots::Keep).await.unwrap();
    assert_eq!(fs::read_to_string(path).unwrap(), "[]");
}

#[tokio::test]
async fn a_trajectory_that_cannot_be_saved_says_where() {
    let (root, store) = conversation(1).await;
    fs::write(root.path().join("file"), "").unwrap();
    let path = root.path().join("file/t.json");
    let error =
        trajectory::save(&path, "s", &mut store.search(Search::default()), Screenshots::Drop).await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot create '{}': File exists (os error 17)", path.display()));
}
