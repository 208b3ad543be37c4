//! Sandboxes that a gateway has started ahead.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{collections::BTreeSet, fs, path::Path, sync::Arc, time::Duration};

use gloveport_gateway::{GatewayOptions, WarmPool};
use gloveport_gateway_store::Limits;
use gloveport_protocol::Secret;
use gloveport_provider::Provider;
use gloveport_sys::process;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{
    gateway::{KEY, Program, Running},
    gateway_tenants::{FILE, Tenants},
    gateway_wire::request,
    sandboxes::{LIMIT, Place, client, run},
    support::{self, gloveport, text},
};

/// A pool with these bounds.
fn pool(floor: usize, ceiling: usize) -> Vec<WarmPool> {
    vec![WarmPool { name: "p".to_owned(), ceiling, ..WarmPool::fixed(floor) }]
}

/// A number of the metrics.
async fn metric(running: &Running, key: &str, name: &str) -> u64 {
    let text = request(running.address, "GET /metrics", &[("Host", "a"), ("X-API-Key", key)]).await.body;
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("gloveport_gateway_{name} ")));
    line.map_or(0, |value| value.parse().unwrap())
}

/// Waits until so many sandboxes wait.
async fn filled(running: &Running, key: &str, count: u64) {
    let full = async {
        while metric(running, key, "warm_waiting{pool=\"p\"}").await < count {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LIMIT, full).await.unwrap();
}

const HITS: &str = "warm_start_duration_seconds_count{pool=\"p\",result=\"hit\"}";
const MISSES: &str = "warm_start_duration_seconds_count{pool=\"p\",result=\"miss\"}";

async fn start(running: &Running, key: &str, body: Value) -> Value {
    let (status, told) = running.ask("POST", "/start", Some(key), Some(body)).await;
    assert_eq!(status, 200, "{told}");
    told
}

/// The servers that wait, by their process ids.
fn waiting(place: &Path) -> Vec<u32> {
    let (own, root) = (std::process::id(), format!("{}/new/", place.join("state").display()));
    let waits = |pid: &u32| {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut held = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
        held.any(|target| target.to_string_lossy().starts_with(&root))
    };
    let is_child = |pid: &u32| process::stat(*pid).is_some_and(|stat| stat.parent == own);
    process::descendants(own).into_iter().filter(is_child).filter(waits).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_nobodys_until_it_is_claimed_and_then_it_is_the_sessions_own() {
    let tenants = Tenants::start_with(Limits { running: Some(1), ..Limits::default() }, |options| {
        options.warm = pool(2, 2);
    })
    .await;
    let (running, [one, two], file) = (&tenants.running, &tenants.keys, FILE);
    filled(running, file, 2).await;
    // Nobody sees it, and it takes no place in a quota.
    for key in [one, two] {
        assert_eq!(running.ask("GET", "/list", Some(key), None).await.1, json!({"runtimes": []}));
    }
    assert_eq!(tenants.store.usage("one").await.unwrap().running, 0);
    let (_, configs) = running.ask("GET", "/api/warm-runtime-configs", Some(one), None).await;
    let config = &configs["configs"][0];
    assert_eq!((&config["name"], &config["image"], &config["waiting"]), (&json!("p"), &Value::Null, &json!(2)));
    let body = json!({"session_id": "a", "environment": {"GREETING": "hello"}, "session_api_key": "its own key"});
    let told = start(running, one, body).await;
    assert_eq!((&told["created"], &told["session_api_key"]), (&json!(true), &json!("its own key")));
    assert_eq!(metric(running, file, HITS).await, 1);
    let sandbox = running.engine.list(&gloveport_provider::ListFilter::default()).await.unwrap().remove(0);
    assert_eq!(run(&sandbox, "echo $GREETING").await, "hello");
    assert_eq!(run(&sandbox, "pwd -P").await, sandbox.workspace.clone().unwrap());
    let stranger = gloveport_provider::Sandbox { session_key: Some(Secret::new("another key")), ..sandbox.clone() };
    assert!(client(&stranger).probe().await.is_err() || crate::sandboxes::try_run(&stranger, "echo in").await.is_err());
    // It counts for its tenant from now on, and another one takes its place in the pool.
    assert_eq!(tenants.store.usage("one").await.unwrap().running, 1);
    let (status, _) = running.ask("POST", "/start", Some(one), Some(json!({"session_id": "b"}))).await;
    assert_eq!(status, 429);
    filled(running, file, 2).await;
    // A command of its own, and a sandbox of another kind, are made as ever.
    tenants.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_clients_of_two_gateways_get_a_sandbox_each() {
    const CLIENTS: usize = 24;
    let one = Running::with(|options| options.warm = pool(4, 8)).await;
    let engine: Arc<dyn Provider> = Arc::new(one.place.backend());
    let options = GatewayOptions { warm: pool(4, 8), ..GatewayOptions::new(Secret::new(KEY)) };
    let two = Running::start_on(Place::new(), Arc::clone(&engine), options).await;
    for running in [&one, &two] {
        filled(running, KEY, 4).await;
    }
    let asked = (0..CLIENTS).map(|number| {
        let running = if number.is_multiple_of(2) { &one } else { &two };
        async move {
            let told = start(running, KEY, json!({"session_id": format!("s{number}")})).await;
            assert_eq!(told["created"], true);
            told["session_api_key"].as_str().unwrap().to_owned()
        }
    });
    let keys: BTreeSet<String> = futures_util::future::join_all(asked).await.into_iter().collect();
    assert_eq!(keys.len(), CLIENTS);
    let all = engine.list(&gloveport_provider::ListFilter::default()).await.unwrap();
    let urls: BTreeSet<&String> = all.iter().filter_map(|sandbox| sandbox.url.as_ref()).collect();
    assert_eq!((all.len(), urls.len()), (CLIENTS, CLIENTS));
    for sandbox in &all {
        // The server is that of this session: it knows the key, and works in the directory that the engine tells.
        assert_eq!(Some(run(sandbox, "pwd -P").await), sandbox.workspace);
    }
    let (mut hits, mut misses) = (0, 0);
    for running in [&one, &two] {
        hits += metric(running, KEY, HITS).await;
        misses += metric(running, KEY, MISSES).await;
        // So many were asked for at once that as many wait now as may.
        filled(running, KEY, 8).await;
        assert_eq!(metric(running, KEY, "warm_target{pool=\"p\"}").await, 8);
    }
    assert!(hits >= 8 && hits + misses == 24, "{hits} {misses}");
    two.leave().await;
    one.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_and_is_not_well_reaches_nobody_and_is_replaced() {
    let running = Running::with(|options| options.warm = pool(3, 3)).await;
    filled(&running, KEY, 3).await;
    let servers = waiting(running.place.path());
    assert_eq!(servers.len(), 3);
    let signal = |pid: u32, signal| kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
    signal(servers[0], Signal::KILL);
    signal(servers[1], Signal::STOP);
    signal(servers[2], Signal::STOP);
    for name in ["a", "b"] {
        start(&running, KEY, json!({"session_id": name})).await;
    }
    for sandbox in running.engine.list(&gloveport_provider::ListFilter::default()).await.unwrap() {
        assert_eq!(run(&sandbox, "echo well").await, "well");
    }
    let replaced = async {
        while waiting(running.place.path()).iter().filter(|pid| !servers.contains(pid)).count() < 3 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LIMIT, replaced).await.unwrap();
    running.end().await;
}

#[test]
fn what_waits_ends_with_its_gateway_however_that_ends() {
    for is_killed in [true, false] {
        let home = tempfile::tempdir().unwrap();
        let key = home.path().join("key");
        fs::write(&key, KEY).unwrap();
        let mut command = gloveport(home.path());
        command.env("XDG_STATE_HOME", home.path()).env_remove("XDG_RUNTIME_DIR");
        command.args(["gateway", "--port", "0", "--warm", "2", "--key-file"]).arg(&key);
        let mut gateway = Program::start(command);
        let (new, pid) = (home.path().join("gloveport/local/new"), gateway.child.id());
        let count = || fs::read_dir(&new).into_iter().flatten().count();
        support::until("two wait", || count() == 2 && process::children(pid).len() >= 2);
        let servers = process::descendants(pid);
        if is_killed {
            gateway.child.kill().unwrap();
            gateway.child.wait().unwrap();
        } else {
            gateway.end();
        }
        support::until("nothing of it lives", || !servers.iter().any(|pid| support::alive(*pid)));
        support::until("nothing of it is left", || count() == 0);
    }
}

#[test]
fn pools_that_cannot_be_are_refused_before_anything_is_started() {
    let home = tempfile::tempdir().unwrap();
    let (key, file) = (home.path().join("key"), home.path().join("gateway.toml"));
    fs::write(&key, KEY).unwrap();
    for (pools, expected) in [
        ("[[warm]]\nimage = \"debian:13\"\nfloor = 1\n", "names an image, and the runtime local has none"),
        ("[[warm]]\nfloor = 2\nceiling = 1\n", "lower ceiling"),
        ("[[warm]]\nfloor = 1\n[[warm]]\nfloor = 1\n", "same kind"),
        ("[[warm]]\nfloor = 1\nroof = 1\n", "unknown field `roof`"),
    ] {
        fs::write(&file, format!("[gateway]\nkey_file = \"key\"\n{pools}")).unwrap();
        let output = gloveport(home.path()).args(["gateway", "--port", "0", "--config"]).arg(&file).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{pools}");
        assert!(text(&output.stderr).contains(expected), "{pools}: {}", text(&output.stderr));
    }
}
