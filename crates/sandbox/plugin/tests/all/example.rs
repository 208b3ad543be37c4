//! The worked example of `docs/plugins.md`, as it is written.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::support::{Place, get};
use gloveport_plugin::{PluginState, Registry, registry::Source};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

#[tokio::test]
async fn the_worked_example_serves_the_workspace() {
    let place = Place::new();
    fs::write(place.path().join("hello.txt"), "hello from the workspace\n").unwrap();
    let mut registry = Registry::new(Vec::new());
    registry.add_folder(&root().join("examples/plugins"));
    assert_eq!(registry.warnings(), Vec::<String>::new());
    let [files] = registry.select(&["files".to_owned()]).unwrap().try_into().unwrap();
    files.initialize(&place.host()).await.unwrap();
    assert_eq!(*files.state().borrow(), PluginState::Idle);
    let service = files.service().unwrap();
    let lease = service.lease().await.unwrap();
    assert!(get(lease.endpoint(), "/").await.contains("hello.txt"));
    assert!(get(lease.endpoint(), "/hello.txt").await.ends_with("\r\n\r\nhello from the workspace\n"));
    assert_eq!(files.environment(place.path()), [("FILES_PATH".to_owned(), "/plugins/files/".to_owned())]);
    files.stop().await;
}

#[test]
fn the_documentation_shows_the_example_and_names_every_field() {
    let documentation = fs::read_to_string(root().join("docs/plugins.md")).unwrap();
    let example = fs::read_to_string(root().join("examples/plugins/files/plugin.toml")).unwrap();
    assert!(documentation.contains(&format!("```toml\n{example}```\n")), "the example is not as it is written");
    let fields = gloveport_plugin::manifest::field_names();
    assert!(fields.len() > 12, "{fields:?}");
    let missing: Vec<&String> =
        fields.iter().filter(|field| !documentation.contains(&format!("\n| `{field}` | "))).collect();
    assert_eq!(missing, Vec::<&String>::new());
    let mut registry = Registry::new(Vec::new());
    registry.add_folder(&root().join("examples/plugins"));
    assert!(registry.entries().iter().any(|entry| matches!(entry.source, Source::Manifest(_))));
}
