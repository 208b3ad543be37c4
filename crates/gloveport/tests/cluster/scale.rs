//! Many sandboxes of one backend, and what of a start is our own.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first broken assumption")]
#![expect(clippy::print_stdout, reason = "they are measurements, too")]

use std::{
    fs,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, stream};
use gloveport_provider::{ListFilter, Progress, Provider, SandboxSpec, SandboxState, SessionId};
use gloveport_testing::pace;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    task::JoinHandle,
};

use crate::{
    cluster::{BUSYBOX, LIMIT, Place, new_nodes, run, script, start},
    proxy::Plain,
};

/// How many sandboxes are made where nobody says so.
const COUNT: usize = 300;
/// The wish for another number.
const COUNT_VARIABLE: &str = "GLOVEPORT_TEST_SCALE";
/// Sandboxes that are made at a time.
const AT_ONCE: usize = 64;
/// Resident memory that a backend may take, in MiB.
const MEMORY: usize = 100;

/// Our own share of a cold start, at the most.
const SHARE: Duration = Duration::from_millis(100);
/// Cold starts, one after the other.
const ROUNDS: usize = 5;
/// How often a share that is too large is measured, at the most.
const TRIES: usize = 3;

/// The resident memory of this process without the pages of its program, in MiB: those of a test are large, and of others.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() / 1024
}

/// Watches over the pods of a namespace that the API server has open; its own components watch those of the cluster.
fn watches() -> usize {
    let metrics = Place::kubectl(["get", "--raw", "/metrics"]);
    let ours = |line: &&str| {
        line.starts_with("apiserver_longrunning_")
            && ["resource=\"pods\"", "scope=\"namespace\"", "verb=\"WATCH\""].iter().all(|part| line.contains(part))
    };
    metrics.lines().filter(ours).map(|line| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap()).sum()
}

/// The namespaces, nodes and API server are real, and only the nodes' work is not.
#[tokio::test]
async fn timed_one_backend_holds_many_sandboxes_with_one_watch_and_little_memory() {
    let count = std::env::var(COUNT_VARIABLE).map_or(COUNT, |text| text.parse().unwrap());
    let mut place = Place::new();
    new_nodes(count.div_ceil(900));
    place.extend(
        &json!({"storage": "empty-dir", "start_within": 600, "program_in_image": true, "access": "cluster-ip",
        "node_selector": {"gloveport-test/node": "simulated"},
        "tolerations": [{"key": "gloveport-test/simulated", "operator": "Exists"}]}),
    );
    let backend = place.backend();
    let before = watches();
    let (over, most_watches, most_memory) =
        (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = (Arc::clone(&over), Arc::clone(&most_watches), Arc::clone(&most_memory));
    let sampling = tokio::task::spawn_blocking(move || {
        let (over, most_watches, most_memory) = seen;
        while !over.load(Ordering::Relaxed) {
            most_watches.fetch_max(watches().saturating_sub(before), Ordering::Relaxed);
            most_memory.fetch_max(resident(), Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(500));
        }
    });
    let began = Instant::now();
    let silent = Progress::silent();
    let making = (0..count).map(|number| {
        let (backend, silent) = (&backend, &silent);
        async move { backend.create(&Place::spec(&format!("many-{number}")), silent).await }
    });
    let made: Vec<_> = stream::iter(making).buffer_unordered(AT_ONCE).collect().await;
    let took = began.elapsed();
    let failed: Vec<String> = made.iter().filter_map(|made| made.as_ref().err().map(ToString::to_string)).collect();
    assert_eq!(failed, Vec::<String>::new());
    let making_took = most_memory.load(Ordering::Relaxed);
    let began = Instant::now();
    let listed = backend.list(&ListFilter::default()).await.unwrap();
    let listing = began.elapsed();
    most_memory.fetch_max(resident(), Ordering::Relaxed);
    over.store(true, Ordering::Relaxed);
    sampling.await.unwrap();
    let (most_watches, most_memory) = (most_watches.load(Ordering::Relaxed), most_memory.load(Ordering::Relaxed));
    println!(
        "{count} sandboxes: made in {took:?}, listed in {listing:?}; at most {most_watches} watches, {most_memory} MiB resident, {making_took} MiB \
         while they were made"
    );
    assert_eq!(listed.len(), count);
    assert!(listed.iter().all(|sandbox| sandbox.state == SandboxState::Running));
    // One, if there was time to see it.
    assert_eq!(most_watches, 1);
    assert!(most_memory <= MEMORY, "{most_memory} MiB");
    backend.close().await;
    if count <= COUNT {
        place.nothing_left_soon().await;
    }
    script(&["nodes", "0"]);
}

/// An image with our program in it, in the engine of the node, as long as this is there.
struct Image(String);

impl Image {
    fn new(place: &Place) -> Self {
        let name = format!("gloveport-test/share-{}:1", std::process::id());
        let mut command = place.gloveport();
        command.args(["image", "build", "--plain", "--base-image", BUSYBOX, "--tag", &name, "--quiet"]);
        command.env("DOCKER_HOST", engine());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        Self(name)
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // All names of it: the one that was asked for, and the one that it has by itself.
        let docker =
            |arguments: &[&str]| Command::new("docker").args(["--host", &engine()]).args(arguments).output().unwrap();
        let names = docker(&["image", "inspect", "--format", "{{range .RepoTags}}{{.}} {{end}}", &self.0]);
        let names = String::from_utf8_lossy(&names.stdout).into_owned();
        // Pods that end may still use it; what has no name any more the engine removes when it is told to.
        docker(&["image", "rm", "--force"].into_iter().chain(names.split_whitespace()).collect::<Vec<_>>());
    }
}

fn engine() -> String {
    std::env::var("GLOVEPORT_TEST_CLUSTER_DOCKER").unwrap()
}

/// Watches a pod that is to come: when the cluster has it, and when it says that its container runs.
async fn moments(address: &str, namespace: &str, pod: &str) -> JoinHandle<(Instant, Instant)> {
    let mut watch = TcpStream::connect(address).await.unwrap();
    let pods = format!("/api/v1/namespaces/{namespace}/pods?watch=true&fieldSelector=metadata.name%3D{pod}");
    watch.write_all(format!("GET {pods} HTTP/1.0\r\nhost: localhost\r\n\r\n").as_bytes()).await.unwrap();
    tokio::spawn(async move {
        let mut lines = BufReader::new(watch).lines();
        let mut there = None;
        while let Some(line) = lines.next_line().await.unwrap() {
            let Ok(event) = serde_json::from_str::<Value>(&line) else { continue };
            let there = *there.get_or_insert_with(Instant::now);
            if !event["object"]["status"]["containerStatuses"][0]["state"]["running"].is_null() {
                return (there, Instant::now());
            }
        }
        panic!("the watch ended");
    })
}

/// Cold starts; what of one is not the cluster's, in the middle of all: the time until the cluster has the pod, and from when it says
/// that the container runs until an action is done.
async fn measure(place: &Place, backend: &dyn Provider, address: &str, spec: &SandboxSpec) -> Duration {
    let mut shares = Vec::new();
    let name = &spec.session_id;
    for number in 0..=ROUNDS {
        let spec = SandboxSpec { session_id: SessionId::new(format!("{name}-{number}")).unwrap(), ..spec.clone() };
        let pod = format!("openhands-runtime-{}", spec.session_id);
        let moments = moments(address, &place.namespace, &pod).await;
        let began = Instant::now();
        let sandbox = start(backend, &spec).await;
        assert_eq!(run(&sandbox, "echo here").await, "here");
        let done = Instant::now();
        assert_eq!(sandbox.id.as_str(), pod);
        let (there, runs) = tokio::time::timeout(LIMIT, moments).await.unwrap().unwrap();
        let (before, after) = (there - began, done.saturating_duration_since(runs));
        println!("{pod}: {:?} to the first action, of which ours {before:?} and {after:?}", done - began);
        // All stay to the end: the end of a pod is work for its node. The first one opens connections, and reads files from the
        // disk.
        if number > 0 {
            shares.push(before + after);
        }
    }
    shares.sort();
    println!("{name}: our shares {shares:?}");
    shares[ROUNDS / 2]
}

#[tokio::test]
async fn timed_our_own_share_of_a_cold_start_is_no_more_than_100_milliseconds() {
    let mut place = Place::new();
    let image = Image::new(&place);
    let api = Plain::new();
    let bound = SHARE.mul_f64(pace());
    let mut shares = Vec::new();
    let in_image = image.0.as_str();
    for (name, image, keys) in [
        ("in-image", in_image, json!({"storage": "empty-dir", "program_in_image": true})),
        (
            "in-image-by-address",
            in_image,
            json!({"storage": "empty-dir", "program_in_image": true, "access": "cluster-ip"}),
        ),
        ("sent", BUSYBOX, json!({"storage": "empty-dir"})),
    ] {
        place.extend(&keys);
        let backend = place.backend();
        let spec = SandboxSpec { image: Some(image.to_owned()), ..Place::spec(name) };
        shares.push(measure(&place, &*backend, &api.address, &spec).await);
        // The node may have had other work.
        for again in 1..TRIES {
            if name == "in-image" && shares[0] > bound {
                let spec =
                    SandboxSpec { session_id: SessionId::new(format!("{name}-{again}")).unwrap(), ..spec.clone() };
                shares[0] = measure(&place, &*backend, &api.address, &spec).await;
            }
        }
        backend.close().await;
    }
    place.nothing_left_soon().await;
    // Others have no bound: the cluster opens addresses in steps of its own, and a program that is sent takes the time that its
    // length takes.
    assert!(shares[0] <= bound, "{shares:?}, {bound:?}");
}
