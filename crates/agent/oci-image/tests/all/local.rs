//! Images of layouts and archives of this machine.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Mutex,
};

use gloveport_oci_image::{Config, ImageError, Progress, Pull};
use serde_json::json;

use crate::support::{
    Place, blob_path, directory, entry, file, gzip, hard, image, link, made, names, own_architecture, quiet, tar, text,
    zstd,
};

#[tokio::test]
async fn an_image_of_a_layout_is_unpacked_with_all_that_it_says() {
    let place = Place::new();
    let first = vec![
        directory("./").mode(0o755),
        directory("bin").mode(0o755),
        file("bin/tool", "#!/bin/sh\n").mode(0o4755),
        directory("tmp").mode(0o1777),
        directory("closed").mode(0o000),
        file("closed/secret", "s").mode(0o000),
        link("usr", "/bin"),
        hard("bin/again", "bin/tool"),
        entry(b'6', "fifo", "", b""),
        entry(b'3', "null", "", b""),
        file("a".repeat(120), "long"),
    ];
    let second = vec![file("usr/other", "through a link"), file(".wh.fifo", ""), directory("etc")];
    let told = Mutex::new(Vec::new());
    image(&[first, second]).write(&place.path("layout"));
    let tell = |progress| told.lock().unwrap().push(progress);
    let got = place.store.get(&format!("{}:1", place.layout()), Pull::Missing, &tell).await.unwrap();
    assert_eq!(
        *told.lock().unwrap(),
        [
            Progress::Resolving,
            Progress::Unpacking { layer: 1, of: 2 },
            Progress::Unpacking { layer: 2, of: 2 },
            Progress::Done
        ]
    );
    let expected = Config {
        environment: vec![("PATH".into(), "/usr/bin:/bin".into()), ("A".into(), "b=c".into())],
        working_directory: Some("/work".into()),
        user: Some("1000:1000".into()),
        entrypoint: vec!["/bin/sh".into(), "-c".into()],
        command: vec!["true".into()],
        architecture: own_architecture().into(),
    };
    assert_eq!(got.config, expected);
    assert_eq!(got.left_out, 1);
    let root = &got.root;
    let long = "a".repeat(120);
    assert_eq!(names(root), [&long, "bin", "closed", "etc", "tmp", "usr"]);
    assert_eq!(names(&root.join("bin")), ["again", "other", "tool"]);
    assert_eq!(fs::read_link(root.join("usr")).unwrap(), Path::new("/bin"));
    assert_eq!(text(root.join(long)), "long");
    let of = |name: &str| fs::symlink_metadata(root.join(name)).unwrap();
    for (name, mode) in
        [("bin/tool", 0o755), ("tmp", 0o1777), ("closed", 0o700), ("closed/secret", 0o400), ("bin", 0o755)]
    {
        assert_eq!(of(name).mode() & 0o7777, mode, "{name}");
    }
    assert_eq!(of("bin/tool").ino(), of("bin/again").ino());
    for name in ["bin/tool", "bin", "usr", "tmp", "."] {
        assert_eq!(of(name).mtime(), 1_000_000_000, "{name}");
    }
    assert_eq!(fs::metadata(place.path("store")).unwrap().mode() & 0o777, 0o700);
    // The lock of who pulled it, and nothing else.
    assert_eq!(names(&place.path("store/work")), Vec::<String>::new());
}

#[tokio::test]
async fn owners_are_kept_by_root_and_refused_beyond_what_is_supported() {
    let place = Place::new();
    let layer = vec![file("a", "").owner(1000, 65_535), link("b", "a").owner(7, 8), directory("c").owner(9, 10)];
    let got = place.unpacked(&[layer]).await.unwrap();
    if rustix::process::geteuid().is_root() {
        for (name, expected) in [("a", (1000, 65_535)), ("b", (7, 8)), ("c", (9, 10))] {
            let found = fs::symlink_metadata(got.root.join(name)).unwrap();
            assert_eq!((found.uid(), found.gid()), expected, "{name}");
        }
    }
    let error = place.unpacked(&[vec![file("a", "").owner(65_536, 0)]]).await.unwrap_err().to_string();
    assert!(error.contains("at `a`: it belongs to 65536:0"), "{error}");
}

#[tokio::test]
async fn every_compression_is_known_by_its_first_bytes() {
    let place = Place::new();
    let layers = [("a", 0), ("b", 1), ("c", 2), ("d", 3)].map(|(name, how)| {
        let unpacked = tar(&[file(name, name.repeat(100_000))]);
        let packed = match how {
            0 => unpacked.clone(),
            1 => zstd(&unpacked),
            2 => gzip(&unpacked),
            // Two parts.
            _ => [gzip(&unpacked[..700]), gzip(&unpacked[700..])].concat(),
        };
        (unpacked, packed)
    });
    made(&layers).write(&place.path("layout"));
    let got = place.get(&place.layout()).await.unwrap();
    for name in ["a", "b", "c", "d"] {
        assert_eq!(text(got.root.join(name)), name.repeat(100_000));
    }
}

#[tokio::test]
async fn archives_of_both_kinds_are_the_same_image_as_their_layout() {
    let place = Place::new();
    let layer = tar(&[file("a", "1")]);
    let made = made(&[(layer.clone(), layer.clone())]);
    made.write(&place.path("layout"));
    let of_layout = place.get(&place.layout()).await.unwrap();
    let blob = |bytes: &[u8]| blob_path(Path::new(""), bytes).display().to_string();
    let parts = [file("./index.json", made.index(None).to_string()), file("oci-layout", "{}")];
    let blobs = made.blobs().into_iter().map(|part| file(blob(&part.bytes), &part.bytes));
    fs::write(place.path("oci.tar"), tar(&parts.into_iter().chain(blobs).collect::<Vec<_>>())).unwrap();
    let saved = json!([{"Config": "c.json", "RepoTags": ["lib/x:1"], "Layers": ["two/layer.tar"]}]);
    let docker = [
        file("one/layer.tar", &layer),
        link("two/layer.tar", "../one/layer.tar"),
        file("c.json", &made.config.bytes),
        file("manifest.json", saved.to_string()),
    ];
    fs::write(place.path("docker.tar"), tar(&docker)).unwrap();
    for (prefix, name, tag) in [
        ("oci-archive", "oci.tar", ""),
        ("docker-archive", "docker.tar", ""),
        ("docker-archive", "docker.tar", ":lib/x:1"),
        ("docker-archive", "docker.tar", ":1"),
    ] {
        let got = place.get(&format!("{prefix}:{}{tag}", place.path(name).display())).await.unwrap();
        assert_eq!((&got.digest, &got.root), (&of_layout.digest, &of_layout.root));
    }
    let list = place.store.list().unwrap();
    assert_eq!((list.len(), list[0].references.len(), list[0].in_use, list[0].bytes), (1, 5, true, 1));
    // The archive without its layers is none.
    fs::write(place.path("damaged.tar"), tar(&docker[2..])).unwrap();
    let error = place.get(&format!("docker-archive:{}", place.path("damaged.tar").display())).await.unwrap_err();
    assert!(error.to_string().contains("has no file `two/layer.tar`"), "{error}");
    fs::write(place.path("gz.tar"), gzip(&tar(&docker))).unwrap();
    let error = place.get(&format!("docker-archive:{}", place.path("gz.tar").display())).await.unwrap_err();
    assert!(error.to_string().contains("compressed as a whole; decompress it first"), "{error}");
}

#[tokio::test]
async fn an_image_is_unpacked_once_and_again_when_its_files_have_changed() {
    let place = Place::new();
    let first = place.unpacked(&[vec![file("a", "1")]]).await.unwrap();
    let told = Mutex::new(Vec::new());
    let tell = |progress| told.lock().unwrap().push(progress);
    for pull in [Pull::Missing, Pull::Always, Pull::Never] {
        assert_eq!(place.store.get(&place.layout(), pull, &tell).await.unwrap().root, first.root);
    }
    assert_eq!(*told.lock().unwrap(), [Progress::Done; 3]);
    let second = place.unpacked(&[vec![file("a", "2"), file("b", "")]]).await.unwrap();
    assert_ne!(second.digest, first.digest);
    assert_eq!((text(first.root.join("a")), text(second.root.join("a"))), ("1".into(), "2".into()));
    // A layout that is gone was no change.
    fs::remove_dir_all(place.path("layout")).unwrap();
    assert_eq!(place.get(&place.layout()).await.unwrap().digest, second.digest);
    let error = place.store.get("oci:/nowhere", Pull::Never, &quiet).await.unwrap_err();
    assert!(matches!(error, ImageError::NotHere { .. }));
    let error = place.get("oci:/nowhere").await.unwrap_err().to_string();
    assert!(error.contains("`/nowhere` has no file `index.json`"), "{error}");
}

#[tokio::test]
async fn an_image_is_removed_when_nobody_uses_it() {
    let place = Place::new();
    let got = place.unpacked(&[vec![directory("deep/er").mode(0), file("deep/a", "12345")]]).await.unwrap();
    let (digest, root) = (got.digest.clone(), got.root.clone());
    assert!(matches!(place.store.remove(&digest).unwrap_err(), ImageError::InUse { .. }));
    let other = got.lease.try_clone().unwrap();
    drop(got);
    assert!(matches!(place.store.remove(&place.layout()).unwrap_err(), ImageError::InUse { .. }));
    drop(other);
    assert!(!place.store.list().unwrap()[0].in_use);
    assert_eq!(place.store.remove(&place.layout()).unwrap(), 5);
    assert!(!root.exists());
    place.assert_empty();
    assert_eq!(place.store.list().unwrap(), []);
    assert!(matches!(place.store.remove(&digest).unwrap_err(), ImageError::Unknown { .. }));
    assert!(matches!(place.store.remove(&place.layout()).unwrap_err(), ImageError::Unknown { .. }));
    // With two names, the first one removed frees nothing.
    let tagged = format!("{}:1", place.layout());
    drop((place.get(&place.layout()).await.unwrap(), place.get(&tagged).await.unwrap()));
    assert_eq!(place.store.remove(&tagged).unwrap(), 0);
    assert_eq!(place.store.list().unwrap()[0].references, [place.layout()]);
    assert_eq!(place.store.remove(&digest).unwrap(), 5);
}

#[tokio::test]
async fn what_is_damaged_leaves_nothing() {
    let layer = || tar(&[file("a", "content")]);
    let change = |path: PathBuf| {
        let mut bytes = fs::read(&path).unwrap();
        // In a tar archive, the contents of the first file.
        let at = 514.min(bytes.len() / 2);
        bytes[at] ^= 1;
        fs::write(path, bytes).unwrap();
    };
    for what in ["manifest", "config", "layer", "gzip", "unpacked", "missing", "longer"] {
        let place = Place::new();
        let packed = if what == "gzip" { gzip(&layer()) } else { layer() };
        let unpacked = if what == "unpacked" { tar(&[file("a", "other")]) } else { layer() };
        let made = made(&[(unpacked, packed)]);
        let layout = place.path("layout");
        made.write(&layout);
        let stored = blob_path(&layout, &made.layers[0].bytes);
        match what {
            "manifest" => change(blob_path(&layout, &made.manifest.bytes)),
            "config" => change(blob_path(&layout, &made.config.bytes)),
            "layer" | "gzip" => change(stored),
            "missing" => fs::remove_file(stored).unwrap(),
            "longer" => fs::write(&stored, [fs::read(&stored).unwrap(), vec![0]].concat()).unwrap(),
            _ => {}
        }
        let error = place.get(&place.layout()).await.unwrap_err();
        let expected = match what {
            "gzip" => matches!(error, ImageError::Digest { .. } | ImageError::Layer { .. }),
            "missing" | "longer" => matches!(error, ImageError::Invalid { .. }),
            _ => matches!(error, ImageError::Digest { .. }),
        };
        assert!(expected, "{what}: {error}");
        place.assert_empty();
    }
}

#[tokio::test]
async fn the_image_for_this_machine_is_taken_from_a_list() {
    let place = Place::new();
    let made = image(&[vec![file("a", "1")]]);
    made.write(&place.path("layout"));
    let with = |architecture: &str| {
        let mut descriptor = made.manifest.descriptor();
        descriptor["platform"] = json!({"os": "linux", "architecture": architecture});
        descriptor
    };
    let mut other = with("s390x");
    other["digest"] = format!("sha256:{}", "0".repeat(64)).into();
    let index = |list: serde_json::Value| {
        fs::write(place.path("layout/index.json"), json!({"schemaVersion": 2, "manifests": list}).to_string()).unwrap();
    };
    index(json!([other, with(own_architecture())]));
    assert_eq!(text(place.get(&place.layout()).await.unwrap().root.join("a")), "1");
    index(json!([other, with("riscv64")]));
    let error = place.get(&place.layout()).await.unwrap_err();
    assert!(error.to_string().contains("but only for linux/riscv64, linux/s390x"), "{error}");
    index(json!([]));
    assert!(matches!(place.get(&place.layout()).await.unwrap_err(), ImageError::Platform { .. }));
}
