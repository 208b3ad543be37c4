//! Snapshots of workspaces and forks.
//!
//! No storage driver with snapshots can be had here, so a stand-in does what the API of snapshots asks of one: it copies
//! the directory of a volume, says that the copy is ready, and makes volumes that begin with it.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use gloveport_protocol::Secret;
use gloveport_provider::{GcOptions, Progress, Provider, Sandbox, SandboxSpec, SessionId};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cluster::{BUSYBOX, Place, alive, run, start, try_kubectl, until};

const DEFINITION: &str = "volumesnapshots.snapshot.storage.k8s.io";

/// Tells the cluster of the API, as long as this is there.
struct Api;

impl Api {
    async fn new() -> Self {
        let object = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": DEFINITION, "annotations": {"api-approved.kubernetes.io": "unapproved, of a test"}},
            "spec": {"group": "snapshot.storage.k8s.io", "scope": "Namespaced",
                "names": {"kind": "VolumeSnapshot", "plural": "volumesnapshots", "singular": "volumesnapshot"},
                "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": object, "status": object}}}}]}});
        let (success, text) = try_kubectl(["apply", "--filename", "-"], &definition.to_string());
        assert!(success, "{text}");
        let api = Self;
        until("the API is served", || try_kubectl(["get", DEFINITION], "").0).await;
        api
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        try_kubectl(["delete", "crd", DEFINITION, "--ignore-not-found"], "");
    }
}

/// The stand-in for a storage driver of one namespace.
struct Driver {
    over: Arc<AtomicBool>,
    working: Option<JoinHandle<()>>,
}

impl Driver {
    fn new(place: &Place) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (stop, namespace) = (Arc::clone(&over), place.namespace.clone());
        let working = std::thread::spawn(move || {
            let work = Work { namespace, copies: tempfile::tempdir().unwrap() };
            while !stop.load(Ordering::Relaxed) {
                work.look();
                std::thread::sleep(Duration::from_millis(200));
            }
            work.clear();
        });
        Self { over, working: Some(working) }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let worked = self.working.take().unwrap().join();
        assert!(worked.is_ok() || std::thread::panicking(), "the stand-in for a driver failed");
    }
}

struct Work {
    namespace: String,
    copies: TempDir,
}

impl Work {
    fn items(&self, kind: &str) -> Vec<Value> {
        let (success, text) = try_kubectl(["get", kind, "--namespace", &self.namespace, "--output", "json"], "");
        if !success {
            return Vec::new();
        }
        let mut list: Value = serde_json::from_str(&text).unwrap();
        serde_json::from_value(list["items"].take()).unwrap()
    }

    fn look(&self) {
        let claims = self.items("persistentvolumeclaims");
        for mut snapshot in self.items(DEFINITION) {
            let name = snapshot["metadata"]["name"].as_str().unwrap().to_owned();
            if snapshot.get("status").is_some() || name.ends_with("never") {
                continue;
            }
            let status = if name.ends_with("faulty") {
                json!({"readyToUse": false, "error": {"message": "there is no room for it"}})
            } else {
                let wanted = &snapshot["spec"]["source"]["persistentVolumeClaimName"];
                // A driver waits for a claim that is not there.
                let Some(claim) = claims.iter().find(|claim| claim["metadata"]["name"] == *wanted) else { continue };
                copy(&directory(claim), &self.of_snapshot(&name));
                json!({"readyToUse": true, "restoreSize": "3Gi"})
            };
            snapshot["status"] = status;
            let group = "apis/snapshot.storage.k8s.io/v1";
            let path = format!("/{group}/namespaces/{}/volumesnapshots/{name}/status", self.namespace);
            try_kubectl(["replace", "--raw", &path, "--filename", "-"], &snapshot.to_string());
        }
        for claim in claims {
            if claim["spec"].get("volumeName").is_none() {
                self.volume(&claim);
            }
        }
    }

    fn of_snapshot(&self, name: &str) -> PathBuf {
        self.copies.path().join("snapshots").join(name)
    }

    /// Makes the volume of a claim, which may begin with a snapshot.
    fn volume(&self, claim: &Value) {
        let meta = &claim["metadata"];
        let directory = self.copies.path().join("volumes").join(meta["uid"].as_str().unwrap());
        let size = &claim["spec"]["resources"]["requests"]["storage"];
        if claim["spec"]["dataSource"]["kind"] == "VolumeSnapshot" {
            copy(&self.of_snapshot(claim["spec"]["dataSource"]["name"].as_str().unwrap()), &directory);
            assert_eq!(size, "3Gi", "no smaller than the snapshot");
        } else {
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o777)).unwrap();
        }
        let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": format!("copy-{}", meta["uid"].as_str().unwrap()),
                "labels": {"gloveport-test/of": self.namespace}},
            "spec": {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain", "storageClassName": claim["spec"]["storageClassName"],
                "hostPath": {"path": directory},
                "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": self.namespace,
                    "name": meta["name"], "uid": meta["uid"]}}});
        let (success, text) = try_kubectl(["apply", "--filename", "-"], &volume.to_string());
        assert!(success, "{text}");
    }

    fn clear(&self) {
        let of_this = format!("gloveport-test/of={}", self.namespace);
        try_kubectl(["delete", "pv", "--selector", &of_this, "--wait=false"], "");
    }
}

/// Where the files of a claim are.
fn directory(claim: &Value) -> PathBuf {
    let volume = claim["spec"]["volumeName"].as_str().unwrap();
    let (_, text) = try_kubectl(["get", "pv", volume, "--output", "jsonpath={.spec.hostPath.path}"], "");
    PathBuf::from(text.trim())
}

fn copy(from: &Path, to: &Path) {
    if to.exists() {
        return;
    }
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    let copied = Command::new("cp").arg("-a").args([from, to]).output().unwrap();
    assert!(copied.status.success(), "{copied:?}");
}

/// The names of all snapshots of a place.
fn snapshots(place: &Place) -> Vec<String> {
    place.here(["get", DEFINITION, "--output", "name"]).lines().map(str::to_owned).collect()
}

async fn forked(backend: &dyn Provider, of: &Sandbox, session: &str) -> Sandbox {
    let session = SessionId::new(session).unwrap();
    let made = backend.fork(&of.id, &session, &Progress::silent()).await.unwrap();
    alive(backend, made).await
}

#[tokio::test]
async fn a_workspace_is_kept_and_others_begin_with_it() {
    let mut place = Place::new();
    place.extend(&json!({"storage": "volume", "volume_snapshots": true, "access": "cluster-ip"}));
    // A class whose volumes nobody makes but the stand-in.
    place.config.kubernetes.pvc_storage_class = Some("stand-in".to_owned());
    let driver = Driver::new(&place);
    let backend = place.backend();
    assert!(backend.capabilities().snapshots);
    let secrets = [("GP_SECRET".to_owned(), Secret::new("hunter2"))].into();
    let environment = [("GP_PLAIN".to_owned(), "told".to_owned())].into();
    let origin = start(&*backend, &SandboxSpec { secrets, environment, ..Place::spec("origin") }).await;
    run(&origin, "echo first > file").await;

    let error = backend.snapshot(&origin.id, "early").await.unwrap_err().to_string();
    assert!(error.contains("snapshot.storage.k8s.io/v1") && error.contains("install"), "{error}");
    let api = Api::new().await;
    for name in ["", "Upper", "a/b", "a b"] {
        assert!(backend.snapshot(&origin.id, name).await.unwrap_err().to_string().contains("lower-case"), "{name}");
    }
    let (failing, id) = (Arc::clone(&backend), origin.id.clone());
    let failing = tokio::spawn(async move { failing.snapshot(&id, "faulty").await.unwrap_err().to_string() });

    let image = backend.snapshot(&origin.id, "one").await.unwrap();
    assert_eq!(image, "volume-snapshot://gloveport-snapshot-one");
    let error = backend.snapshot(&origin.id, "one").await.unwrap_err().to_string();
    assert!(error.contains("already"), "{error}");
    run(&origin, "echo second > file").await;

    let of_image = SandboxSpec { image: Some(image.clone()), ..Place::spec("of-image") };
    let copy = start(&*backend, &of_image).await;
    assert_eq!(run(&copy, "cat file; echo $GP_PLAIN").await, "first");
    assert_eq!(place.object("pod", copy.id.as_str())["spec"]["containers"][0]["image"], BUSYBOX);
    let fork = forked(&*backend, &origin, "fork").await;
    assert_eq!(run(&fork, "cat file; echo $GP_PLAIN $GP_SECRET").await, "second\ntold");
    run(&fork, "echo third > file").await;
    assert_eq!(run(&origin, "cat file").await, "second");
    // What was made for the fork alone is gone.
    assert!(snapshots(&place).iter().all(|name| !name.contains("fork")), "{:?}", snapshots(&place));

    // It outlives its sandbox.
    backend.delete(&origin.id).await.unwrap();
    let later = SandboxSpec { image: Some(image), ..Place::spec("later") };
    assert_eq!(run(&start(&*backend, &later).await, "cat file").await, "first");
    let missing = SandboxSpec { image: Some("volume-snapshot://nobody".to_owned()), ..Place::spec("missing") };
    let error = backend.create(&missing, &Progress::silent()).await.unwrap_err().to_string();
    assert!(error.contains("no snapshot `nobody`"), "{error}");

    // Nobody waits any more, or a backend has died.
    let given_up = tokio::time::timeout(Duration::from_secs(1), backend.snapshot(&fork.id, "never")).await;
    assert!(given_up.is_err());
    until("it is taken back", || snapshots(&place).iter().all(|name| !name.ends_with("never"))).await;
    place.apply(&json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
        "metadata": {"name": "gloveport-snapshot-fork-x", "annotations": {"gloveport/backend": "elsewhere/dead"},
            "labels": {"app": "openhands-runtime", "gloveport/role": "fork"}},
        "spec": {"source": {"persistentVolumeClaimName": "nobody"}}}));
    let report = backend.collect_garbage(&GcOptions::default()).await.unwrap();
    assert!(report.failed.is_empty() && report.removed.len() == 1, "{report:?}");
    assert!(report.removed[0].reason.contains("fork-x"), "{report:?}");

    let error = failing.await.unwrap();
    assert!(error.contains("there is no room for it"), "{error}");
    assert_eq!(
        snapshots(&place),
        [format!("{}/gloveport-snapshot-one", DEFINITION.replacen("snapshots", "snapshot", 1))]
    );
    // It is listed, and deleted; another one of the namespace is neither.
    place.apply(&json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
        "metadata": {"name": "theirs"}, "spec": {"source": {"persistentVolumeClaimName": "nobody"}}}));
    let listed = backend.snapshots().await.unwrap();
    let told: Vec<_> = listed.iter().map(|it| (it.image.as_str(), it.name.as_str(), it.session.as_deref())).collect();
    assert_eq!(told, [("volume-snapshot://gloveport-snapshot-one", "one", Some(origin.session_id.as_str()))]);
    assert!(listed[0].created.is_some());
    for other in ["volume-snapshot://theirs", "volume-snapshot://nobody", "volume-snapshot://A/b", BUSYBOX, ""] {
        assert!(!backend.delete_snapshot(other).await.unwrap(), "{other}");
    }
    assert!(backend.delete_snapshot(&listed[0].image).await.unwrap());
    assert!(!backend.delete_snapshot(&listed[0].image).await.unwrap());
    assert_eq!(snapshots(&place).len(), 1);
    backend.close().await;
    place.here(["delete", DEFINITION, "--all"]);
    place.nothing_left_soon().await;
    drop((driver, api));
}
