//! The provider `local` where the root directory of a sandbox is made from an image, without an engine.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use gloveport_provider::{Confinement, Level, Progress, Provider as _, ProviderError, Sandbox, SandboxSpec, Workspace};
use gloveport_provider_local::Local;
use serde_json::{Value, json};

use crate::sandboxes::{Place, alive_in, has_containers, run, spec};

/// Programs of this machine that are in the image.
const PROGRAMS: [&str; 14] =
    ["bash", "cat", "chmod", "chown", "env", "id", "ls", "mkdir", "mv", "rm", "sleep", "stat", "touch", "true"];

fn output(command: &mut Command) -> String {
    let done = command.output().unwrap();
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// The root directory of a small system with programs of this machine.
fn system(root: &Path) {
    for directory in ["dev", "etc", "proc", "root", "run", "sys", "tmp", "usr/bin", "var"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    symlink("usr/bin", root.join("bin")).unwrap();
    symlink("bash", root.join("usr/bin/sh")).unwrap();
    for program in PROGRAMS.map(|name| Path::new("/bin").join(name)) {
        fs::copy(&program, root.join("usr/bin").join(program.file_name().unwrap())).unwrap();
        let loaded = output(Command::new("ldd").arg(&program));
        for library in loaded.split_whitespace().filter(|word| word.starts_with('/')) {
            let inside = root.join(library.trim_start_matches('/'));
            fs::create_dir_all(inside.parent().unwrap()).unwrap();
            fs::copy(library, inside).unwrap();
        }
    }
    fs::write(root.join("etc/of-image"), "the image's\n").unwrap();
    // What a hostile image has in the way of what is put into it.
    symlink("/etc/of-image", root.join("etc/resolv.conf")).unwrap();
}

/// Makes an image of a directory, in the layout of OCI.
fn image(directory: &Path, root: &Path) -> String {
    let blobs = directory.join("blobs/sha256");
    fs::create_dir_all(&blobs).unwrap();
    let blob = |kind: &str, content: &[u8]| {
        let file = blobs.join("new");
        fs::write(&file, content).unwrap();
        let digest = output(Command::new("sha256sum").arg(&file)).split_whitespace().next().unwrap().to_owned();
        fs::rename(file, blobs.join(&digest)).unwrap();
        json!({
            "mediaType": format!("application/vnd.oci.image.{kind}"), "digest": format!("sha256:{digest}"),
            "size": content.len(),
        })
    };
    let file = directory.join("layer.tar");
    output(Command::new("tar").args(["--owner=0", "--group=0", "-cf"]).arg(&file).arg("-C").arg(root).arg("."));
    let layer = blob("layer.v1.tar", &fs::read(file).unwrap());
    let architecture = if cfg!(target_arch = "x86_64") { "amd64" } else { "arm64" };
    let config = json!({
        "architecture": architecture, "os": "linux",
        "config": {"Env": ["PATH=/usr/bin", "OF_IMAGE=yes", "HTTP_PROXY=http://of-image"]},
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    });
    let config = blob("config.v1+json", config.to_string().as_bytes());
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let manifest: Value = json!({"schemaVersion": 2, "mediaType": kind, "config": config, "layers": [layer]});
    let manifest = blob("manifest.v1+json", manifest.to_string().as_bytes());
    fs::write(directory.join("oci-layout"), "{\"imageLayoutVersion\": \"1.0.0\"}").unwrap();
    fs::write(directory.join("index.json"), json!({"schemaVersion": 2, "manifests": [manifest]}).to_string()).unwrap();
    format!("oci:{}", directory.display())
}

/// An image in a place, after its system was changed.
fn made(place: &Place, name: &str, change: impl FnOnce(&Path)) -> String {
    let directory: PathBuf = place.path().join(name);
    let root = directory.join("root");
    system(&root);
    change(&root);
    image(&directory.join("layout"), &root)
}

fn of_image(name: &str, image: &str) -> SandboxSpec {
    let confinement = Confinement { level: Level::Container, ..Confinement::default() };
    SandboxSpec { confinement: Some(confinement), image: Some(image.to_owned()), ..spec(name) }
}

async fn create(local: &Local, spec: &SandboxSpec) -> Result<Sandbox, ProviderError> {
    local.create(spec, &Progress::silent()).await
}

#[tokio::test]
async fn a_sandbox_of_an_image_has_its_system_and_changes_it_for_itself_alone() {
    if !has_containers() {
        return;
    }
    let place = Place::new();
    let reference = made(&place, "image", |_| ());
    let work = place.path().join("work");
    let local = place.backend();
    let one = create(&local, &of_image("one", &reference)).await.unwrap();
    assert_eq!(one.labels.get("gloveport.image"), Some(&reference));
    let told = run(&one, "pwd; id -u; echo $OF_IMAGE; cat /etc/of-image; echo ~; ls -d /home /opt /lost+found").await;
    assert!(told.starts_with("/workspace\n0\nyes\nthe image's\n/root\n"), "{told}");
    assert_eq!(told.matches("cannot access").count(), 3, "{told}");
    // Its own.
    let told = run(
        &one,
        "echo other > /etc/of-image && rm /usr/bin/touch && mkdir /new && chmod 000 /new && ls /usr/bin/touch",
    )
    .await;
    assert!(told.contains("cannot access"), "{told}");
    let told = run(&one, "cat /etc/of-image; echo x > /tmp/x && cat /tmp/x; echo > /dev/null; touch /dev/x").await;
    assert!(told.starts_with("other\nx\n"), "{told}");
    // That of another one is as it was, and has the workspace that it was given.
    let wanted = SandboxSpec { workspace: Workspace::Directory(work.clone()), ..of_image("two", &reference) };
    let two = create(&local, &wanted).await.unwrap();
    let told = run(&two, &format!("cat /etc/of-image; touch of-two; ls /new; ls {}", work.display())).await;
    assert!(told.starts_with("the image's\n") && told.contains("of-two") && told.contains("cannot access"), "{told}");
    assert!(work.join("of-two").exists());
    for sandbox in [&one, &two] {
        assert!(local.delete(&sandbox.id).await.unwrap());
    }
    local.close().await;
    assert_eq!((alive_in(&place), place.left()), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn what_is_in_an_image_leads_nowhere_when_places_are_put_into_it() {
    if !has_containers() {
        return;
    }
    let place = Place::new();
    let (secret, work) = (place.path().join("secret"), place.path().join("work"));
    fs::create_dir(&secret).unwrap();
    fs::create_dir(&work).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o777)).unwrap();
    let local = place.backend();
    // Names that lead to this machine's directories lead to those of the image.
    let reference = made(&place, "links", |root| {
        fs::remove_dir(root.join("run")).unwrap();
        for name in ["run", "workspace"] {
            symlink(&secret, root.join(name)).unwrap();
        }
        // A part of the name of the workspace.
        let parent = root.join(work.parent().unwrap().strip_prefix("/").unwrap());
        fs::create_dir_all(parent.parent().unwrap()).unwrap();
        symlink(&secret, parent).unwrap();
    });
    for (name, workspace) in [("one", Workspace::Temporary), ("two", Workspace::Directory(work.clone()))] {
        let outcome = create(&local, &SandboxSpec { workspace, ..of_image(name, &reference) }).await;
        if let Ok(sandbox) = outcome {
            run(&sandbox, "touch here /tmp/here /run/here").await;
        }
        let found: Vec<_> = fs::read_dir(&secret).unwrap().collect();
        assert!(found.is_empty(), "{name}: {found:?}");
    }
    // The system's own directories are directories.
    for name in ["proc", "dev", "sys"] {
        let reference = made(&place, name, |root| {
            fs::remove_dir(root.join(name)).unwrap();
            symlink("/etc", root.join(name)).unwrap();
        });
        let error = create(&local, &of_image(name, &reference)).await.unwrap_err().to_string();
        assert!(error.contains(&format!("/{name}: it is no directory in the root of the image")), "{error}");
    }
    local.close().await;
    assert_eq!((alive_in(&place), place.left()), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn an_image_is_for_containers_and_one_that_cannot_be_had_is_told() {
    let place = Place::new();
    let local = place.backend();
    let weak = Confinement { level: Level::Files, ..Confinement::default() };
    for (name, wanted, word) in [
        ("weak", SandboxSpec { confinement: Some(weak), ..of_image("weak", "debian:12") }, "--isolation container"),
        ("none", SandboxSpec { confinement: None, ..of_image("none", "debian:12") }, "--isolation container"),
        ("bad", of_image("bad", "not a name"), "not a name"),
        ("missing", of_image("missing", "oci:/no/such/directory"), "/no/such/directory"),
        ("nobody", of_image("nobody", "127.0.0.1:1/a:b"), "127.0.0.1:1"),
    ] {
        let error = create(&local, &wanted).await.unwrap_err().to_string();
        assert!(error.contains(word), "{name}: {error}");
    }
    local.close().await;
    assert_eq!((alive_in(&place), place.left()), (Vec::new(), Vec::new()));
}
