//! Any bytes as the form of an upload, however they are cut: the answer is one of the known ones, a stored file lies in
//! the destination, and a failed upload leaves nothing.
#![no_main]

use std::{
    convert::Infallible,
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use axum::{Router, body::Body, http::Request};
use futures_util::stream;
use gloveport_executor::{Executor, ExecutorOptions};
use gloveport_server::{ServerOptions, router};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt as _;

struct World {
    runtime: Runtime,
    router: Router,
    root: TempDir,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let root = tempfile::tempdir().expect("a directory for the fuzzer");
    fs::create_dir(root.path().join("work")).expect("a working directory");
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let options = ExecutorOptions::inherited(root.path().join("work"));
    let executor = runtime.block_on(Executor::start(options)).expect("an executor");
    let mut options = ServerOptions::default();
    options.limits.archive.bytes = 64 * 1024;
    options.limits.archive.files = 20;
    World { runtime, router: router(executor, options), root }
});

fuzz_target!(|data: &[u8]| {
    let world = &*WORLD;
    let inside = world.root.path().join("inside");
    let _nothing_there = fs::remove_dir_all(&inside);
    fs::create_dir(&inside).expect("the destination");
    let step = usize::from(data.first().copied().unwrap_or(0)) + 1;
    let pieces: Vec<Result<Vec<u8>, Infallible>> = data.chunks(step).map(|piece| Ok(piece.to_vec())).collect();
    let request = Request::post(format!("/upload_file?destination={}", inside.display()))
        .header("content-type", "multipart/form-data; boundary=b")
        .body(Body::from_stream(stream::iter(pieces)))
        .expect("a request");
    let response = world.runtime.block_on(world.router.clone().oneshot(request)).expect("an answer");
    let status = response.status().as_u16();
    assert!([200, 400, 422, 500].contains(&status), "{status}");
    let stored = names(&inside);
    if status == 400 || status == 422 {
        assert!(stored.is_empty(), "{status} {stored:?}");
    }
    assert!(!stored.iter().any(|name| name.to_string_lossy().contains(".gloveport-")), "{stored:?}");
    // The working directory, and the destination.
    assert_eq!(fs::read_dir(world.root.path()).expect("it is there").count(), 2);
});

fn names(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path()).collect()
}
