//! The files of sandboxes as images, and forks, on a real engine.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{collections::BTreeSet, fs, io::Read as _, path::Path, process::Command};

use crate::docker::{DEBIAN, Engine, Place, run, start};
use gloveport_protocol::Secret;
use gloveport_provider::{GcOptions, NetworkPolicy, Progress, ProviderError, ResourceLimits, SandboxSpec};
use serde_json::{Value, json};

/// An image that ends with the test.
struct Image<'a>(&'a Engine, String);

impl Drop for Image<'_> {
    fn drop(&mut self) {
        self.0.try_docker(["rmi", "--force", &self.1]);
    }
}

/// Images that were made of the sandboxes of a place, with and without a name.
fn images(place: &Place) -> Vec<String> {
    let label = "{{index .Config.Labels \"gloveport.snapshot.session\"}} {{.ID}} {{.RepoTags}}";
    let ids = place.engine.docker(["images", "--all", "--quiet", "--filter", "label=gloveport.snapshot"]);
    // One of another test may be gone by now.
    let looks = ids.lines().map(|id| place.engine.command(["inspect", "--format", label, id]).output().unwrap());
    let all = looks.filter(|look| look.status.success());
    let all = all.map(|look| String::from_utf8(look.stdout).unwrap().trim().to_owned());
    all.filter(|image| image.starts_with(&place.prefix)).collect()
}

/// Whether anything in a tree has this text.
fn tree_has(directory: &Path, text: &str) -> bool {
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            if tree_has(&path, text) {
                return true;
            }
        } else {
            let mut content = Vec::new();
            fs::File::open(&path).unwrap().read_to_end(&mut content).unwrap();
            if content.windows(text.len()).any(|window| window == text.as_bytes()) {
                return true;
            }
        }
    }
    false
}

#[tokio::test]
async fn a_snapshot_has_the_files_of_a_sandbox_and_none_of_its_secrets() {
    let place = Place::new();
    let backend = place.backend();
    let key = "the-key-of-this-very-sandbox";
    let secret = "a-secret-that-nobody-may-see";
    let spec = SandboxSpec {
        session_key: Some(Secret::new(key)),
        secrets: [("TOKEN".to_owned(), Secret::new(secret))].into(),
        environment: [("PLAIN".to_owned(), "of this sandbox".to_owned())].into(),
        network: NetworkPolicy::None,
        keep_alive: true,
        ..place.spec("origin", DEBIAN)
    };
    let sandbox = start(&*backend, &spec).await;
    // What it has written is in the image, and a program that has a secret in its memory only is not.
    let said = run(&sandbox, "echo kept > /workspace/file; rm /etc/motd; test -n \"$TOKEN\" && echo has it").await;
    assert_eq!(said, "has it");
    let name = format!("{}-one", place.prefix);
    let image = backend.snapshot(&sandbox.id, &name).await.unwrap();
    assert_eq!(image, format!("gloveport-snapshot:{name}"));
    let image = Image(&place.engine, image);
    // It goes on as before.
    assert_eq!(run(&sandbox, "cat /workspace/file").await, "kept");

    let config: Value = serde_json::from_str(&place.engine.docker(["inspect", &image.1])).unwrap();
    let original: Value = serde_json::from_str(&place.engine.docker(["inspect", DEBIAN])).unwrap();
    for part in ["Cmd", "Entrypoint", "User", "WorkingDir"] {
        // These say what is so anyway.
        let said = |value: &Value| ![json!([]), json!(""), json!("/")].contains(value);
        let of = |image: &Value| Some(image[0]["Config"][part].clone()).filter(said).unwrap_or_default();
        assert_eq!(of(&config), of(&original), "{part}");
    }
    // Podman cannot take out what a container was configured with; it is empty there.
    let texts = |image: &Value| -> BTreeSet<String> {
        let all = image[0]["Config"]["Env"].as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned());
        let of_engine = |one: &String| one.starts_with("TERM=") || one.starts_with("container=");
        all.filter(|one| !one.ends_with('=') && !of_engine(one)).collect()
    };
    assert_eq!(texts(&config), texts(&original));
    let labels = config[0]["Config"]["Labels"].as_object().unwrap();
    let ours = labels.iter().filter(|(name, value)| name.starts_with("gloveport.") && *value != "");
    let ours: BTreeSet<_> = ours.map(|(name, _)| name.as_str()).collect();
    assert_eq!(ours, ["gloveport.snapshot", "gloveport.snapshot.created", "gloveport.snapshot.session"].into());

    // All that goes over when it is pushed or saved.
    let saved = place.directory("saved");
    let archive = saved.join("image.tar");
    place.engine.docker(["save", "--output", archive.to_str().unwrap(), &image.1]);
    let unpacked = Command::new("tar").arg("xf").arg(&archive).arg("-C").arg(&saved).status().unwrap();
    assert!(unpacked.success());
    fs::remove_file(&archive).unwrap();
    assert!(tree_has(&saved, "gloveport.snapshot"), "the search finds what is there");
    for text in [key, secret] {
        assert!(!tree_has(&saved, text), "{text}");
    }

    // A sandbox from it is no part of the closed network of the first one.
    let spec = place.spec("from", &image.1);
    let from = start(&*backend, &spec).await;
    let said = run(&from, "cat /workspace/file; test -e /etc/motd || echo removed; echo $PLAIN$TOKEN").await;
    assert_eq!(said, "kept\nremoved");
    assert!(backend.delete(&from.id).await.unwrap());
    let error = backend.snapshot(&sandbox.id, &name).await.unwrap_err();
    assert!(error.to_string().contains("already"), "{error}");
    backend.collect_garbage(&GcOptions::default()).await.unwrap();
    place.engine.docker(["inspect", &image.1]);
    // It is listed, and a sandbox that uses it keeps it.
    let listed = backend.snapshots().await.unwrap();
    let told = listed.iter().find(|it| it.image == image.1).unwrap();
    assert_eq!((told.name.as_str(), told.session.as_deref()), (name.as_str(), Some(sandbox.session_id.as_str())));
    assert!(told.created.is_some());
    let user = start(&*backend, &SandboxSpec { image: Some(image.1.clone()), ..place.spec("user", DEBIAN) }).await;
    assert!(backend.delete_snapshot(&image.1).await.unwrap_err().to_string().contains(&image.1));
    assert!(backend.delete(&user.id).await.unwrap());
    let forked = backend.fork(&sandbox.id, &place.session("of-it"), &Progress::silent()).await.unwrap();
    assert!(backend.snapshots().await.unwrap().iter().all(|it| !it.name.starts_with("fork-")));
    assert!(backend.delete(&forked.id).await.unwrap());
    // Other images are no snapshots.
    for other in [DEBIAN, "gloveport-snapshot", "nothing", ""] {
        assert!(!backend.delete_snapshot(other).await.unwrap(), "{other}");
    }
    place.engine.docker(["inspect", DEBIAN]);
    assert!(backend.delete_snapshot(&image.1).await.unwrap());
    assert!(!backend.delete_snapshot(&image.1).await.unwrap());
    assert!(backend.delete(&sandbox.id).await.unwrap());
    drop(image);
    place.assert_nothing_left();
    backend.close().await;
}

#[tokio::test]
async fn snapshots_that_podman_keeps_are_listed_and_deleted() {
    let Some(podman) = Engine::podman() else { return };
    let place = Place::on(&podman);
    let backend = place.backend();
    let spec = SandboxSpec { network: NetworkPolicy::None, ..place.spec("origin", DEBIAN) };
    let sandbox = start(&*backend, &spec).await;
    run(&sandbox, "echo kept > /workspace/file").await;
    let name = format!("{}-podman", place.prefix);
    let image = Image(&place.engine, backend.snapshot(&sandbox.id, &name).await.unwrap());
    assert_eq!(image.1, format!("gloveport-snapshot:{name}"));

    let listed = backend.snapshots().await.unwrap();
    let told: Vec<_> = listed.iter().filter(|it| it.name == name).collect();
    assert_eq!(told.len(), 1, "{listed:?}");
    assert_eq!((&told[0].image, told[0].session.as_deref()), (&image.1, Some(sandbox.session_id.as_str())));
    let from = start(&*backend, &SandboxSpec { network: NetworkPolicy::None, ..place.spec("from", &image.1) }).await;
    assert_eq!(run(&from, "cat /workspace/file").await, "kept");
    assert!(backend.delete(&from.id).await.unwrap());
    // A fork is made through a snapshot that is none of those that were asked for, and goes with it.
    let forked = backend.fork(&sandbox.id, &place.session("of-it"), &Progress::silent()).await.unwrap();
    assert!(backend.snapshots().await.unwrap().iter().all(|it| !it.name.starts_with("fork-")));
    assert!(backend.delete(&forked.id).await.unwrap());

    assert!(backend.delete_snapshot(&image.1).await.unwrap());
    assert!(!backend.delete_snapshot(&image.1).await.unwrap());
    assert!(backend.snapshots().await.unwrap().iter().all(|it| it.name != name));
    assert!(backend.delete(&sandbox.id).await.unwrap());
    assert_eq!(images(&place), Vec::<String>::new());
    drop(image);
    place.assert_nothing_left();
    backend.close().await;
}

#[tokio::test]
async fn a_fork_begins_with_the_files_and_settings_and_goes_its_own_way() {
    let place = Place::new();
    let backend = place.backend();
    let spec = SandboxSpec {
        environment: [("PLAIN".to_owned(), "same".to_owned())].into(),
        labels: [("team".to_owned(), "infra".to_owned())].into(),
        limits: ResourceLimits { memory: Some(300 << 20), ..ResourceLimits::default() },
        network: NetworkPolicy::Only(vec!["a.test".to_owned()]),
        ..place.spec("origin", DEBIAN)
    };
    let origin = start(&*backend, &spec).await;
    run(&origin, "echo one > /workspace/file").await;
    let made = backend.fork(&origin.id, &place.session("fork"), &Progress::silent()).await.unwrap();
    let fork = crate::docker::alive(&*backend, made).await;
    assert_eq!(run(&fork, "cat /workspace/file; echo $PLAIN").await, "one\nsame");
    assert_eq!(fork.labels, origin.labels);
    assert_eq!(images(&place).len(), 1);
    assert_ne!(fork.session_key.as_ref().unwrap().expose(), origin.session_key.as_ref().unwrap().expose());
    let memory = place.engine.docker(["inspect", "--format", "{{.HostConfig.Memory}}", fork.id.as_str()]);
    assert_eq!(memory, (300 << 20).to_string());
    // It is closed as well, by a gate of its own.
    assert!(run(&fork, "echo $http_proxy").await.starts_with("http://10.213."));
    assert_ne!(run(&fork, "echo $http_proxy").await, run(&origin, "echo $http_proxy").await);
    run(&fork, "echo two > /workspace/file").await;
    assert_eq!(run(&origin, "cat /workspace/file").await, "one");

    let second = backend.fork(&fork.id, &place.session("second"), &Progress::silent()).await.unwrap();
    let second = crate::docker::alive(&*backend, second).await;
    assert!(backend.delete(&fork.id).await.unwrap());
    assert!(backend.delete(&origin.id).await.unwrap());
    assert_eq!(run(&second, "cat /workspace/file").await, "two");
    assert!(backend.delete(&second.id).await.unwrap());
    backend.close().await;
    place.assert_nothing_left();
    assert_eq!(images(&place), Vec::<String>::new());
}

#[tokio::test]
async fn what_cannot_be_kept_is_refused() {
    let mut place = Place::new();
    place.extend(&json!({"read_only": true}));
    let backend = place.backend();
    let sandbox = start(&*backend, &place.spec("refused", DEBIAN)).await;
    let error = backend.snapshot(&sandbox.id, "name").await.unwrap_err();
    assert!(matches!(&error, ProviderError::Unsupported { what, .. } if what.contains("read-only")), "{error}");
    for name in ["", "a:b", "-x"] {
        let error = backend.snapshot(&sandbox.id, name).await.unwrap_err();
        assert!(matches!(&error, ProviderError::Spec { .. }), "{error}");
    }
    let gone = gloveport_provider::SandboxId::new("openhands-runtime-gone").unwrap();
    let error = backend.fork(&gone, &place.session("fork"), &Progress::silent()).await.unwrap_err();
    assert!(matches!(&error, ProviderError::NotFound(_)), "{error}");
    backend.close().await;
    place.assert_nothing_left();
}
