//! A gateway with a database: tenants that do not know each other, their quotas, and what the database has to say.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{sync::Arc, time::Duration};

use gloveport_client::{Certificates, Pool};
use gloveport_gateway::{Gateway, GatewayOptions};
use gloveport_gateway_store::{
    AuditFilter, AuditLine, Limits, Location, Place as Reservation, Reserved, SessionState, Store, Wants,
};
use gloveport_protocol::Secret;
use gloveport_provider::{ListFilter, Provider};
use gloveport_testing::Postgres;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{net::TcpListener, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    gateway::{Program, Running},
    sandboxes::{LIMIT, Place},
    support::gloveport,
};

/// The key of the file.
pub(crate) const FILE: &str = "the key of a file, long enough";

/// A gateway over SQLite, or another database, with the tenants `one` and `two`.
pub(crate) struct Tenants {
    pub(crate) running: Running,
    pub(crate) store: Store,
    pub(crate) keys: [String; 2],
    directory: TempDir,
}

impl Tenants {
    pub(crate) async fn start(limits: Limits) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let location = Location::File(directory.path().join("gateway.db"));
        Self::start_over(directory, &location, limits).await
    }

    /// The same with other options.
    pub(crate) async fn start_with(limits: Limits, change: impl FnOnce(&mut GatewayOptions)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let location = Location::File(directory.path().join("gateway.db"));
        Self::start_changed(None, (directory, &location), limits, change).await
    }

    async fn start_over(directory: TempDir, location: &Location, limits: Limits) -> Self {
        Self::start_on(None, directory, location, limits).await
    }

    /// Over this engine, or one of its own.
    async fn start_on(
        engine: Option<Arc<dyn Provider>>,
        directory: TempDir,
        location: &Location,
        limits: Limits,
    ) -> Self {
        Self::start_changed(engine, (directory, location), limits, |_| {}).await
    }

    async fn start_changed(
        engine: Option<Arc<dyn Provider>>,
        (directory, location): (TempDir, &Location),
        limits: Limits,
        change: impl FnOnce(&mut GatewayOptions),
    ) -> Self {
        let store = Store::open(location).await.unwrap();
        store.add_tenant("default", &Limits::default()).await.unwrap();
        store.add_tenant("one", &limits).await.unwrap();
        store.add_tenant("two", &Limits::default()).await.unwrap();
        let mut keys = Vec::new();
        for tenant in ["one", "two"] {
            keys.push(store.add_key(tenant, "", None).await.unwrap().key.expose().to_owned());
        }
        let mut options = options(&store);
        change(&mut options);
        let running = match engine {
            Some(engine) => Running::start_on(Place::new(), engine, options).await,
            None => Running::start_with(options).await,
        };
        Self { running, store, keys: keys.try_into().unwrap(), directory }
    }

    pub(crate) async fn ask(&self, key: &str, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        self.running.ask(method, path, Some(key), body).await
    }

    pub(crate) async fn post(&self, key: &str, path: &str, body: Value) -> (u16, Value) {
        self.ask(key, "POST", path, Some(body)).await
    }

    /// The sandbox of a session that is started.
    async fn start_session(&self, key: &str, session: &str) -> String {
        let (status, told) = self.post(key, "/start", json!({"session_id": session})).await;
        assert_eq!(status, 200, "{told}");
        assert_eq!(told["session_id"], session);
        told["runtime_id"].as_str().unwrap().to_owned()
    }

    /// When it is worth trying a start again.
    async fn retry_after(&self, key: &str, body: &Value) -> (u16, u64) {
        let pool = Pool::new(Certificates::Checked).unwrap();
        let url = format!("{}/start", self.running.url());
        let answer = pool.http().post(url).header("X-API-Key", key).json(body).send().await.unwrap();
        let after = answer.headers().get("retry-after").map(|value| value.to_str().unwrap().parse().unwrap());
        (answer.status().as_u16(), after.unwrap_or_default())
    }

    /// Lines of the audit log that there must be, as they are written a little later.
    pub(crate) async fn audit(&self, most: usize, filter: AuditFilter) -> Vec<AuditLine> {
        let written = async {
            loop {
                let lines = self.store.audit(&filter).await.unwrap();
                if lines.len() >= most {
                    break lines;
                }
            }
        };
        timeout(LIMIT, written).await.unwrap()
    }
}

pub(crate) fn options(store: &Store) -> GatewayOptions {
    GatewayOptions { key: Some(Secret::new(FILE)), wake: true, ..GatewayOptions::with_database(store.clone()) }
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_do_not_see_each_other_and_may_use_the_same_names() {
    let tenants = Tenants::start(Limits::default()).await;
    let [one, two] = &tenants.keys;
    let all = [one.as_str(), two.as_str(), FILE];
    let mut ids = Vec::new();
    for key in all {
        ids.push(tenants.start_session(key, "same").await);
    }
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2], "{ids:?}");
    for (key, own) in all.into_iter().zip(&ids) {
        // A second time it is the same one.
        assert_eq!(&tenants.start_session(key, "same").await, own);
        let (_, listed) = tenants.ask(key, "GET", "/list", None).await;
        let listed: Vec<&Value> = listed["runtimes"].as_array().unwrap().iter().collect();
        assert_eq!(listed.len(), 1);
        assert_eq!((&listed[0]["runtime_id"], &listed[0]["session_id"]), (&json!(own), &json!("same")));
        let (_, batch) = tenants.ask(key, "GET", "/sessions/batch?ids=same&ids=other", None).await;
        let (_, session) = tenants.ask(key, "GET", "/sessions/same", None).await;
        for told in [&batch[0], &session] {
            assert_eq!((&told["runtime_id"], &told["session_id"]), (&json!(own), &json!("same")), "{told}");
        }
        assert_eq!(batch.as_array().unwrap().len(), 1);
        for other in ids.iter().filter(|id| *id != own) {
            assert_eq!(tenants.ask(key, "GET", &format!("/runtime/{other}"), None).await.0, 404);
            for path in ["/stop", "/pause", "/resume"] {
                assert_eq!(tenants.post(key, path, json!({"runtime_id": other})).await.0, 404, "{path}");
            }
        }
    }
    // The engine's own names of sessions are nobody's to use.
    let engine = tenants.running.engine.list(&ListFilter::default()).await.unwrap();
    assert_eq!(engine.len(), 3);
    for sandbox in engine.iter().filter(|sandbox| sandbox.session_id.as_str() != "same") {
        for key in all {
            let (status, told) = tenants.ask(key, "GET", &format!("/sessions/{}", sandbox.session_id), None).await;
            assert_eq!(status, 404, "{told}");
        }
    }
    // One that ends disturbs no other.
    assert_eq!(
        tenants.post(one, "/stop", json!({"runtime_id": ids[0]})).await,
        (200, json!({"runtime_id": ids[0], "session_id": "same"}))
    );
    assert_eq!(tenants.ask(one, "GET", "/sessions/same", None).await.0, 404);
    assert_eq!(tenants.ask(two, "GET", "/sessions/same", None).await.1["runtime_id"], json!(ids[1]));
    let rows = tenants.store.history(None, None, 10).await.unwrap();
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| (row.state == SessionState::Ended) == (row.tenant == "one")), "{rows:?}");
    tenants.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_and_rules_hold_at_start_and_resume() {
    let limits = Limits {
        running: Some(1),
        images: Some(vec!["ghcr.io/x/*".to_owned()]),
        classes: Some(Vec::new()),
        largest_factor: Some(1),
        ..Limits::default()
    };
    let tenants = Tenants::start(limits).await;
    let [one, two] = &tenants.keys;
    for (wrong, words) in [
        (json!({"session_id": "a", "image": "evil.io/y"}), "image"),
        (json!({"session_id": "a", "image": "ghcr.io/x/y", "runtime_class": "sysbox-runc"}), "class"),
        (json!({"session_id": "a", "image": "ghcr.io/x/y", "resource_factor": 2}), "factor"),
    ] {
        let (status, told) = tenants.post(one, "/start", wrong).await;
        assert_eq!(status, 403, "{told}");
        assert!(told["detail"].as_str().unwrap().contains(words), "{told}");
    }
    let first = tenants.start_session(one, "a").await;
    let (status, told) = tenants.post(one, "/start", json!({"session_id": "b"})).await;
    assert_eq!((status, told["detail"].as_str().unwrap().contains("1 of 1 sandboxes")), (429, true), "{told}");
    let (status, after) = tenants.retry_after(one, &json!({"session_id": "b"})).await;
    assert!(status == 429 && (1..=60).contains(&after), "{status} {after}");
    // Others have quotas of their own, and the session that is there is no new one.
    tenants.start_session(two, "b").await;
    assert_eq!(tenants.start_session(one, "a").await, first);
    let named = |id: &str| json!({"runtime_id": id});
    assert_eq!(tenants.post(one, "/pause", named(&first)).await.0, 200);
    let second = tenants.start_session(one, "b").await;
    for (path, body) in [("/resume", named(&first)), ("/start", json!({"session_id": "a"}))] {
        let (status, told) = tenants.post(one, path, body).await;
        assert_eq!(status, 429, "{path} {told}");
    }
    assert_eq!(tenants.post(one, "/stop", named(&second)).await.0, 200);
    assert_eq!(tenants.post(one, "/resume", named(&first)).await.0, 200);
    assert_eq!(tenants.store.usage("one").await.unwrap().running, 1);
    // A start that fails leaves its place.
    assert_eq!(tenants.post(one, "/stop", named(&first)).await.0, 200);
    let failing = json!({"session_id": "c", "environment": {"A=B": "c"}});
    assert_eq!(tenants.post(one, "/start", failing).await.0, 400);
    let free = async { while tenants.store.usage("one").await.unwrap().running > 0 {} };
    timeout(LIMIT, free).await.unwrap();
    let many = Limits { starts_per_minute: Some(1), ..Limits::default() };
    tenants.store.set_tenant("one", &many, false).await.unwrap();
    let (status, after) = tenants.retry_after(one, &json!({"session_id": "d"})).await;
    assert!(status == 429 && (1..=61).contains(&after), "{status} {after}");
    tenants.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_wakes_a_sandbox_only_if_its_tenant_may_have_it_run() {
    let limits = Limits { running: Some(1), ..Limits::default() };
    let tenants = Tenants::start(limits.clone()).await;
    let one = &tenants.keys[0];
    let named = |id: &str| json!({"runtime_id": id});
    let alive = async |id: &str| tenants.running.ask("GET", &format!("/{id}/alive"), None, None).await.0;
    let usage = async || tenants.store.usage("one").await.unwrap();
    let first = tenants.start_session(one, "a").await;
    assert_eq!(tenants.post(one, "/pause", named(&first)).await.0, 200);
    let second = tenants.start_session(one, "b").await;
    assert_eq!(alive(&first).await, 503);
    assert_eq!((usage().await.running, usage().await.paused), (1, 1));
    assert_eq!(tenants.post(one, "/stop", named(&second)).await.0, 200);
    tenants.store.set_tenant("one", &limits, true).await.unwrap();
    assert_eq!(alive(&first).await, 503);
    tenants.store.set_tenant("one", &limits, false).await.unwrap();
    assert_eq!(alive(&first).await, 200);
    assert_eq!((usage().await.running, usage().await.paused), (1, 0));
    // Who asked is known by the address, and what came of it.
    let filter = AuditFilter { action: Some("wake".to_owned()), ..AuditFilter::default() };
    let lines = tenants.audit(3, filter).await;
    let told: Vec<_> =
        lines.iter().map(|it| (it.result.as_str(), it.tenant.as_deref(), it.address.as_deref())).collect();
    let [own, here] = [Some("one"), Some("127.0.0.1")];
    assert_eq!(told, [("done", own, here), ("503", own, here), ("503", own, here)]);
    assert!(lines.iter().all(|line| line.target.as_deref() == Some(first.as_str())), "{lines:?}");
    assert!(lines[2].detail.as_ref().is_some_and(|detail| detail.contains("1 of 1 sandboxes")), "{lines:?}");
    // What all tenants do is shown to none of them.
    let metrics = async |key: &str| tenants.ask(key, "GET", "/metrics", None).await.0;
    assert_eq!((metrics(one).await, metrics(FILE).await), (401, 200));
    tenants.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_are_no_longer_good_open_nothing_and_all_is_in_the_audit_log() {
    let tenants = Tenants::start(Limits::default()).await;
    let [one, two] = &tenants.keys;
    let list = async |key: &str| tenants.ask(key, "GET", "/list", None).await.0;
    let id = |key: &str| key.split('_').nth(1).unwrap().to_owned();
    assert_eq!((list(one).await, list(two).await, list(FILE).await), (200, 200, 200));
    let evil = "gp_' OR 1=1 --_x";
    for wrong in ["", "x", evil, &one[..one.len() - 1], &one.to_uppercase()] {
        assert_eq!(list(wrong).await, 401, "{wrong}");
    }
    let fresh = tenants.store.rotate_key(&id(one), Duration::ZERO).await.unwrap();
    assert_eq!((list(one).await, list(fresh.key.expose()).await), (401, 200));
    let short = tenants.store.add_key("one", "", Some(Duration::ZERO)).await.unwrap();
    assert_eq!(list(short.key.expose()).await, 401);
    tenants.store.set_tenant("two", &Limits::default(), true).await.unwrap();
    let (status, told) = tenants.ask(two, "GET", "/list", None).await;
    assert_eq!((status, told["detail"].as_str().unwrap().contains("disabled")), (403, true));
    tenants.store.set_tenant("two", &Limits::default(), false).await.unwrap();
    tenants.store.revoke_key(&id(two)).await.unwrap();
    assert_eq!(list(two).await, 401);
    // Nine were refused within moments: a line or a few.
    let refused = AuditFilter { action: Some("key refused".to_owned()), ..AuditFilter::default() };
    let lines = tenants.audit(1, refused).await;
    assert!(lines.len() < 9 && lines.iter().all(|line| line.address.as_deref() == Some("127.0.0.1")), "{lines:?}");

    let key = fresh.key.expose();
    let session = "s'; DROP TABLE audit; --";
    assert_eq!(tenants.post(key, "/start", json!({"session_id": session})).await.0, 400);
    let sandbox = tenants.start_session(key, "s").await;
    for path in ["/pause", "/resume", "/stop", "/stop"] {
        tenants.post(key, path, json!({"runtime_id": sandbox})).await;
    }
    let of_one = AuditFilter { tenant: Some("one".to_owned()), ..AuditFilter::default() };
    let lines = tenants.audit(6, of_one).await;
    let told: Vec<(&str, &str, &str)> = lines
        .iter()
        .rev()
        .map(|line| (line.action.as_str(), line.target.as_deref().unwrap(), line.result.as_str()))
        .collect();
    let id = sandbox.as_str();
    let expected = [
        ("start", session, "400"),
        ("start", "s", "done"),
        ("pause", id, "done"),
        ("resume", id, "done"),
        ("stop", id, "done"),
        ("stop", id, "404"),
    ];
    assert_eq!(told, expected);
    assert!(lines.iter().all(|line| line.key.as_ref() == Some(&fresh.id) && line.address.is_some()), "{lines:?}");
    tenants.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_away_costs_no_sandbox() {
    let Some(mut postgres) = Postgres::start() else { return };
    let location = Location::parse(&postgres.database("gateway")).unwrap();
    let tenants = Tenants::start_over(tempfile::tempdir().unwrap(), &location, Limits::default()).await;
    let [one, _] = &tenants.keys;
    let sandbox = tenants.start_session(one, "a").await;
    let alive = format!("/{sandbox}/alive");
    let answers = async { while tenants.running.ask("GET", &alive, None, None).await.0 != 200 {} };
    timeout(LIMIT, answers).await.unwrap();
    postgres.stop();
    for key in [one.as_str(), FILE] {
        let (status, after) = tenants.retry_after(key, &json!({"session_id": "b"})).await;
        assert!(status == 503 && after > 0, "{status} {after}");
    }
    let (status, told) = tenants.ask(one, "GET", "/list", None).await;
    assert_eq!(status, 503);
    assert!(!told.to_string().contains("127.0.0.1") && !told.to_string().contains(Postgres::password()), "{told}");
    assert_eq!(tenants.running.ask("GET", &alive, None, None).await.0, 200);
    postgres.go_on();
    let (_, session) = tenants.ask(one, "GET", "/sessions/a", None).await;
    assert_eq!(session["runtime_id"], json!(sandbox));
    assert_eq!(tenants.post(one, "/stop", json!({"runtime_id": sandbox})).await.0, 200);
    let lines = tenants.audit(2, AuditFilter { tenant: Some("one".to_owned()), ..AuditFilter::default() }).await;
    assert_eq!(lines.last().unwrap().action, "start");
    tenants.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_gateways_over_one_database_start_a_session_once() {
    let tenants = Tenants::start(Limits { running: Some(1), ..Limits::default() }).await;
    // Another one over the same engine and database.
    let engine: Arc<dyn Provider> = Arc::new(tenants.running.place.backend());
    let other = Gateway::new(Arc::clone(&engine), options(&tenants.store)).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
    let serving = tokio::spawn({
        let stop = stop.clone();
        async move { other.serve(listener, stop).await }
    });
    let start = |number: usize| {
        let url = if number.is_multiple_of(2) { tenants.running.url() } else { format!("http://{address}") };
        let key = tenants.keys[0].clone();
        tokio::spawn(async move {
            let pool = Pool::new(Certificates::Checked).unwrap();
            let sent = pool.http().post(format!("{url}/start")).header("X-API-Key", key);
            let answer = sent.json(&json!({"session_id": "a"})).send().await.unwrap();
            let status = answer.status().as_u16();
            (status, serde_json::from_slice::<Value>(&answer.bytes().await.unwrap()).unwrap())
        })
    };
    let mut told = Vec::new();
    for started in (0..20).map(start).collect::<Vec<_>>() {
        let (status, body) = timeout(LIMIT, started).await.unwrap().unwrap();
        assert_eq!(status, 200, "{body}");
        told.push(body);
    }
    assert!(told.iter().all(|it| it["runtime_id"] == told[0]["runtime_id"]), "{told:?}");
    assert_eq!(told.iter().filter(|it| it["created"] == true).count(), 1);
    assert_eq!(tenants.running.engine.list(&ListFilter::default()).await.unwrap().len(), 1);
    assert_eq!(tenants.store.history(Some("one"), None, 10).await.unwrap().len(), 1);
    stop.cancel();
    timeout(LIMIT, serving).await.unwrap().unwrap();
    engine.close().await;
    tenants.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_are_kept_apart_over_a_runtime_without_labels() {
    let inner = Running::start().await;
    let engine: Arc<dyn Provider> = Arc::new(inner.backend());
    let directory = tempfile::tempdir().unwrap();
    let location = Location::File(directory.path().join("gateway.db"));
    let tenants = Tenants::start_on(Some(engine), directory, &location, Limits::default()).await;
    let [one, two] = &tenants.keys;
    let all = [one.as_str(), two.as_str(), FILE];
    let mut ids = Vec::new();
    for key in all {
        ids.push(tenants.start_session(key, "same").await);
        assert_eq!(tenants.start_session(key, "same").await, ids[ids.len() - 1]);
    }
    for (key, own) in all.into_iter().zip(&ids) {
        let (_, listed) = tenants.ask(key, "GET", "/list", None).await;
        let listed = listed["runtimes"].as_array().unwrap();
        assert_eq!(listed.len(), 1, "{listed:?}");
        assert_eq!((&listed[0]["runtime_id"], &listed[0]["session_id"]), (&json!(own), &json!("same")));
        for id in &ids {
            let status = if id == own { 200 } else { 404 };
            assert_eq!(tenants.ask(key, "GET", &format!("/runtime/{id}"), None).await.0, status);
        }
    }
    for (key, own) in all.into_iter().zip(&ids) {
        assert_eq!(tenants.post(key, "/stop", json!({"runtime_id": own})).await.0, 200);
    }
    tenants.running.leave().await;
    inner.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_gateway_has_left_is_found_again() {
    let tenants = Tenants::start(Limits::default()).await;
    let [one, _] = &tenants.keys;
    let kept = tenants.start_session(one, "kept").await;
    let lost = tenants.start_session(one, "lost").await;
    let place = tenants.running.leave().await;
    // What was waiting for the audit log is in it.
    let lines = tenants.store.audit(&AuditFilter { tenant: Some("one".to_owned()), ..AuditFilter::default() }).await;
    assert_eq!(lines.unwrap().len(), 2);
    // A sandbox that ended meanwhile, a place without a sandbox, and one whose sandbox is there.
    let engine = place.backend();
    assert!(engine.delete(&gloveport_provider::SandboxId::new(lost.as_str()).unwrap()).await.unwrap());
    engine.close().await;
    let fresh = Store::open(&Location::File(tenants.directory.path().join("fresh.db"))).await.unwrap();
    fresh.add_tenant("one", &Limits::default()).await.unwrap();
    let wants = |session: &'static str| Wants { session, image: None, cpu_millis: 1, memory_bytes: 1 };
    for store in [&tenants.store, &fresh] {
        let reserved = store.reserve("one", &wants("never"), "dead", Duration::ZERO).await.unwrap();
        assert!(matches!(reserved, Reserved::Made(Reservation(_))));
    }
    let live = async |store: &Store| {
        let mut live: Vec<(String, Option<String>)> =
            store.live(Some("one"), "").await.unwrap().into_iter().map(|it| (it.session, it.runtime)).collect();
        live.sort();
        live
    };
    let expected = vec![("kept".to_owned(), Some(kept.clone()))];
    let running = Running::start_at(place, options(&tenants.store)).await;
    let settled = async { while live(&tenants.store).await != expected {} };
    timeout(LIMIT, settled).await.unwrap();
    let history = tenants.store.history(Some("one"), None, 10).await.unwrap();
    let reason = |session: &str| history.iter().find(|it| it.session == session).unwrap().reason.clone().unwrap();
    assert_eq!((reason("lost").as_str(), reason("never").as_str()), ("the sandbox is gone", "its gateway has died"));
    // A database that knows nothing, as after a backup from before, learns it from the engine.
    let place = running.leave().await;
    let reserved = fresh.reserve("one", &wants("kept"), "dead", Duration::ZERO).await.unwrap();
    let Reserved::Made(Reservation(id)) = reserved else { panic!("{reserved:?}") };
    let running = Running::start_at(place, options(&fresh)).await;
    let settled = async { while live(&fresh).await != expected {} };
    timeout(LIMIT, settled).await.unwrap();
    assert_eq!(fresh.of_runtime(&kept).await.unwrap().unwrap().id, id);
    // It is found and goes on under the name that its tenant knows.
    let key = fresh.add_key("one", "", None).await.unwrap();
    let key = key.key.expose();
    let (_, found) = running.ask("GET", "/sessions/kept", Some(key), None).await;
    let (_, started) = running.ask("POST", "/start", Some(key), Some(json!({"session_id": "kept"}))).await;
    for told in [found, started] {
        assert_eq!((&told["runtime_id"], &told["session_id"]), (&json!(kept), &json!("kept")), "{told}");
    }
    running.end().await;
}

/// Starts a session at one of these gateways, again and again until one of them has answered that it is there.
async fn acknowledged(urls: [String; 2], key: String, session: String, first: usize) -> String {
    let pool = Pool::new(Certificates::Checked).unwrap();
    for number in first.. {
        let url = format!("{}/start", urls[number % 2]);
        let sent = pool.http().post(url).header("X-API-Key", &key).json(&json!({"session_id": session}));
        let Ok(answer) = sent.send().await else { continue };
        if answer.status().as_u16() == 200
            && let Ok(body) = answer.bytes().await
            && let Ok(told) = serde_json::from_slice::<Value>(&body)
        {
            return told["runtime_id"].as_str().unwrap().to_owned();
        }
    }
    String::new()
}

#[tokio::test(flavor = "multi_thread")]
async fn gateways_that_are_killed_lose_no_session_and_make_none_twice() {
    const SESSIONS: usize = 8;
    let home = tempfile::tempdir().unwrap();
    let postgres = Postgres::start();
    let database = match &postgres {
        Some(postgres) => postgres.database("gateway"),
        None => home.path().join("gateway.db").display().to_string(),
    };
    let store = Store::open(&Location::parse(&database).unwrap()).await.unwrap();
    let limits = Limits { running: Some(SESSIONS as u64), ..Limits::default() };
    store.add_tenant("one", &limits).await.unwrap();
    let key = store.add_key("one", "", None).await.unwrap().key.expose().to_owned();
    let ports = [gloveport_testing::free_port(), gloveport_testing::free_port()];
    let start = |which: usize| {
        let mut command = gloveport(home.path());
        command
            .env("XDG_STATE_HOME", home.path())
            .env_remove("XDG_RUNTIME_DIR")
            .env("GLOVEPORT_GATEWAY_DATABASE", &database);
        command.args(["gateway", "--port", &ports[which].to_string()]);
        Program::start(command)
    };
    let mut gateways = [start(0), start(1)];
    let urls = [gateways[0].url.clone(), gateways[1].url.clone()];
    let asked: Vec<_> = (0..2 * SESSIONS)
        .map(|number| {
            let session = format!("s{}", number % SESSIONS);
            tokio::spawn(acknowledged(urls.clone(), key.clone(), session, number / SESSIONS))
        })
        .collect();
    for round in 0..4 {
        // Killed with whatever is under way.
        let most = u64::try_from(round).unwrap() + 1;
        let begun = async { while store.usage("one").await.unwrap().running < most {} };
        timeout(LIMIT, begun).await.unwrap();
        let which = round % 2;
        gateways[which].child.kill().unwrap();
        gateways[which].child.wait().unwrap();
        gateways[which] = start(which);
    }
    let mut ids = Vec::new();
    for asked in asked {
        ids.push(timeout(2 * LIMIT, asked).await.unwrap().unwrap());
    }
    // Whoever asked for one session has got one sandbox, and there are no others.
    let mut once: Vec<&String> = ids[..SESSIONS].iter().collect();
    assert_eq!(ids[..SESSIONS], ids[SESSIONS..]);
    once.sort();
    once.dedup();
    assert_eq!(once.len(), SESSIONS);
    let pool = Pool::new(Certificates::Checked).unwrap();
    let listed = pool.http().get(format!("{}/list", urls[0])).header("X-API-Key", &key).send().await.unwrap();
    let listed: Value = serde_json::from_slice(&listed.bytes().await.unwrap()).unwrap();
    assert_eq!(listed["runtimes"].as_array().unwrap().len(), SESSIONS, "{listed}");
    let more = pool.http().post(format!("{}/start", urls[0])).header("X-API-Key", &key);
    let more = more.json(&json!({"session_id": "more"})).send().await.unwrap();
    assert_eq!(more.status().as_u16(), 429);
    for id in once {
        let stopped = pool.http().post(format!("{}/stop", urls[1])).header("X-API-Key", &key);
        let stopped = stopped.json(&json!({"runtime_id": id})).send().await.unwrap();
        assert_eq!(stopped.status().as_u16(), 200);
    }
    assert_eq!(store.usage("one").await.unwrap().running, 0);
    drop(gateways);
    store.close().await;
    let sandboxes = home.path().join("gloveport/local/sandboxes");
    assert_eq!(std::fs::read_dir(sandboxes).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sandboxes_of_a_tenant_that_is_deleted_by_force_end() {
    let tenants = Tenants::start(Limits::default()).await;
    let [one, two] = &tenants.keys;
    tenants.start_session(one, "a").await;
    let paused = tenants.start_session(one, "b").await;
    assert_eq!(tenants.post(one, "/pause", json!({"runtime_id": paused})).await.0, 200);
    let other = tenants.start_session(two, "a").await;
    let database = tenants.directory.path().join("gateway.db").display().to_string();
    let place = tenants.running.leave().await;
    let deleted = |more: &[&str]| {
        let mut command = gloveport(tenants.directory.path());
        command.args(["gateway", "tenant", "delete", "one", "--json", "--database", &database]).args(more);
        command.output().unwrap()
    };
    assert!(!deleted(&[]).status.success());
    let told = deleted(&["--force"]);
    let told: Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!(told["sandboxes"].as_array().unwrap().len(), 2, "{told}");
    let running = Running::start_at(place, options(&tenants.store)).await;
    let ended = async {
        while running.engine.list(&ListFilter { ended: true, ..ListFilter::default() }).await.unwrap().len() > 1 {}
    };
    timeout(LIMIT, ended).await.unwrap();
    let (status, _) = running.ask("GET", &format!("/runtime/{other}"), Some(two), None).await;
    assert_eq!(status, 200);
    let history = async {
        let is_told = |reason: &Option<String>| reason.as_deref() == Some("its tenant was deleted");
        while !tenants.store.history(Some("one"), None, 10).await.unwrap().iter().all(|it| is_told(&it.reason)) {}
    };
    timeout(LIMIT, history).await.unwrap();
    running.end().await;
}
