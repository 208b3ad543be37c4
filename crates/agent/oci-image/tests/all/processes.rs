//! Several processes and one store; processes that are killed; disks that are full.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::fd::OwnedFd,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::Mutex,
    time::{Duration, Instant},
};

use gloveport_oci_image::{ImageError, Limits, Options, Progress, Pull, Store};

use crate::{
    registry::noise,
    server::{Fault, Server},
    support::{Place, file, gzip, image, made, names, quiet, tar},
};

/// A process that gets an image, and holds it.
struct Process(Child);

impl Process {
    fn start(place: &Place, reference: &str) -> Self {
        let tests = std::env::current_exe().unwrap();
        let program: PathBuf = tests.parent().unwrap().parent().unwrap().join("examples/oci_get");
        let mut command = Command::new(&program);
        command.arg(place.path("store")).arg(reference).stdin(Stdio::piped()).stdout(Stdio::piped());
        Self(command.spawn().unwrap_or_else(|error| panic!("{}: {error}; `cargo test` builds it", program.display())))
    }

    /// What it says, until a line has this.
    fn until(&mut self, part: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for line in BufReader::new(self.0.stdout.as_mut().unwrap()).lines() {
            lines.push(line.unwrap());
            if lines.last().unwrap().contains(part) {
                return lines;
            }
        }
        panic!("it ended without `{part}`: {lines:?}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

async fn until(what: &str, mut is: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn one_file() -> crate::support::Made {
    let layer = tar(&[file("a", noise(100_000))]);
    made(&[(layer.clone(), layer)])
}

#[tokio::test(flavor = "multi_thread")]
async fn one_process_pulls_and_the_others_wait() {
    let (place, server) = (Place::new(), Server::new(one_file()).await);
    server.layer_faults([Fault::Late(Duration::from_millis(500))]);
    let mut processes: Vec<Process> = (0..3).map(|_| Process::start(&place, &server.reference())).collect();
    let said: Vec<Vec<String>> = processes.iter_mut().map(|process| process.until("sha256:")).collect();
    assert_eq!(server.layers().len(), 1, "{said:?}");
    assert!(said.iter().all(|lines| lines.last() == said[0].last()));
    assert_eq!(said.iter().filter(|lines| lines.contains(&"Waiting".to_owned())).count(), 2, "{said:?}");
    let digest = said[0].last().unwrap();
    // Each of them uses it.
    while let Some(process) = processes.pop() {
        assert!(matches!(place.store.remove(digest).unwrap_err(), ImageError::InUse { .. }));
        drop(process);
    }
    assert_eq!(place.store.remove(digest).unwrap(), 100_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_process_left_is_removed_and_another_one_begins_at_once() {
    let (place, server) = (Place::new(), Server::new(one_file()).await);
    server.layer_faults([Fault::Silence(1000)]);
    let mut process = Process::start(&place, &server.reference());
    process.until("Resolving");
    until("a download", || server.layers().len() == 1).await;
    let work = place.path("store/work");
    until("a file", || names(&work).first().is_some_and(|name| work.join(name).join("layer-1").exists())).await;
    // As long as it lives, others wait for it, for a time.
    let limits = Limits { wait: Duration::from_millis(100), ..Limits::default() };
    let other = Store::open_with(&place.path("store"), Options { limits, ..Options::default() }).unwrap();
    let told = Mutex::new(Vec::new());
    let tell = |progress| told.lock().unwrap().push(progress);
    let error = other.get(&server.reference(), Pull::Missing, &tell).await.unwrap_err();
    assert!(matches!(error, ImageError::TimedOut { .. }), "{error}");
    assert_eq!(*told.lock().unwrap(), [Progress::Resolving, Progress::Waiting]);
    assert_eq!(names(&work).len(), 1);
    drop(process);
    assert_eq!(names(&work).len(), 1);
    let got = place.get(&server.reference()).await.unwrap();
    assert_eq!(fs::read(got.root.join("a")).unwrap(), noise(100_000));
    assert_eq!(names(&work), Vec::<String>::new());
}

#[tokio::test]
async fn a_killed_unpack_leaves_what_the_next_one_removes() {
    let place = Place::new();
    // Long enough to be met in the middle.
    let long = tar(&[file("0", ""), file("long", vec![0; 100 << 20])]);
    made(&[(long.clone(), gzip(&long))]).write(&place.path("layout"));
    let mut process = Process::start(&place, &place.layout());
    process.until("Unpacking");
    let work = place.path("store/work");
    let root = || Some(work.join(names(&work).first()?).join("image/root"));
    until("a file", || root().is_some_and(|root| root.join("0").exists())).await;
    drop(process);
    assert_eq!((names(&work).len(), names(&place.path("store/images")).len()), (1, 0));
    let got = place.get(&place.layout()).await.unwrap();
    assert_eq!(names(&got.root), ["0", "long"]);
    assert_eq!(names(&work), Vec::<String>::new());
}

#[tokio::test]
async fn tasks_of_one_process_get_the_same_image_together() {
    let (place, server) = (Place::new(), Server::new(one_file()).await);
    let reference = server.reference();
    let all = futures_util::future::join_all((0..5).map(|_| place.get(&reference))).await;
    let first = all[0].as_ref().unwrap();
    assert!(all.iter().all(|got| got.as_ref().unwrap().root == first.root));
    assert_eq!(server.layers().len(), 1);
}

#[tokio::test]
async fn a_process_that_inherits_a_lease_keeps_the_image() {
    let place = Place::new();
    let got = place.unpacked(&[vec![file("a", "1")]]).await.unwrap();
    let digest = got.digest.clone();
    let lease = Stdio::from(OwnedFd::from(got.lease));
    let mut child = Command::new("sleep").arg("1000").stdin(lease).spawn().unwrap();
    // The command has a copy of it until here.
    assert!(matches!(place.store.remove(&digest).unwrap_err(), ImageError::InUse { .. }));
    assert!(place.store.list().unwrap()[0].in_use);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(place.store.remove(&digest).unwrap(), 1);
}

/// A small disk.
struct Disk(tempfile::TempDir);

impl Disk {
    fn new(bytes: u64) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let options = std::ffi::CString::new(format!("size={bytes},mode=0700")).unwrap();
        let flags = rustix::mount::MountFlags::empty();
        rustix::mount::mount("tmpfs", directory.path(), "tmpfs", flags, Some(options.as_c_str())).ok()?;
        Some(Self(directory))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        rustix::mount::unmount(self.0.path(), rustix::mount::UnmountFlags::DETACH).unwrap();
    }
}

#[tokio::test]
async fn a_full_disk_is_said_and_nothing_is_left_on_it() {
    let Some(disk) = Disk::new(48 << 20) else {
        eprintln!("skipped: this process may mount nothing, so that there is no small disk");
        return;
    };
    let place = Place::new();
    let store = Store::open_with(&disk.0.path().join("store"), Options::default()).unwrap();
    let zeros = tar(&[file("a", vec![0; 80 << 20])]);
    let random = tar(&[file("a", noise(40 << 20))]);
    let many =
        tar(&[vec![file("small", "")], (0..10).map(|n| file(format!("{n}"), vec![1; 8 << 20])).collect()].concat());
    for (what, layer, packed, known_before) in [
        ("while it is unpacked", zeros.clone(), gzip(&zeros), false),
        ("in one of many files", many.clone(), gzip(&many), false),
        ("before it is unpacked", random.clone(), random, true),
    ] {
        made(&[(layer, packed)]).write(&place.path("layout"));
        let error = store.get(&place.layout(), Pull::Missing, &quiet).await.unwrap_err();
        assert!(
            matches!(&error, ImageError::Full { needed, .. } if needed.is_some() == known_before),
            "{what}: {error}"
        );
        assert!(error.to_string().starts_with("there is no room left where "), "{error}");
        for name in ["work", "images"] {
            assert_eq!(names(&disk.0.path().join("store").join(name)), Vec::<String>::new(), "{what}");
        }
    }
    image(&[vec![file("a", "fits")]]).write(&place.path("layout"));
    store.get(&place.layout(), Pull::Missing, &quiet).await.unwrap();
}
