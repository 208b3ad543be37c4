//! Images that a gateway builds for its tenants, as our client of a build service asks for them.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first broken assumption")]

use std::{fs, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD as STANDARD};
use flate2::{Compression, write::GzEncoder};
use gloveport_docker_engine::{Endpoint, Engine as DockerEngine};
use gloveport_gateway::{Gateway, GatewayOptions, ImageService};
use gloveport_gateway_store::{Limits, Location, Store};
use gloveport_image::{BuildRequest, ImageBuilder as _, ImageError, Lookup, Progress, RemoteBuilder, RemoteTimes};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::docker::{BUSYBOX, LIMIT, Place};

/// A gateway over Docker that builds, with a database.
pub(crate) struct Running {
    pub(crate) place: Place,
    pub(crate) store: Store,
    prefix: String,
    folders: TempDir,
    pub(crate) address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl Running {
    pub(crate) async fn start() -> Self {
        let _installed_before = rustls::crypto::ring::default_provider().install_default();
        let place = Place::new();
        let store = Store::open(&Location::File(place.path().join("gateway.db"))).await.unwrap();
        let (prefix, folders) = (format!("gloveport-test/{}", place.prefix), tempfile::tempdir().unwrap());
        let engine = Arc::new(DockerEngine::new(Endpoint::at(&place.engine.0, "the test").unwrap()));
        let directory = folders.path().to_owned();
        let images = Some(ImageService { engine, prefix: prefix.clone(), at_once: 1, directory });
        let options = GatewayOptions { images, ..GatewayOptions::with_database(store.clone()) };
        let gateway = Gateway::new(place.backend(), options).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
        let serving = tokio::spawn({
            let stop = stop.clone();
            async move { gateway.serve(listener, stop).await }
        });
        Self { place, store, prefix, folders, address, stop, serving }
    }

    /// Another gateway over the same engine and database, which compares them when it begins. It ends by its token.
    pub(crate) async fn beside(&self) -> (CancellationToken, JoinHandle<()>) {
        let gateway = Gateway::new(self.place.backend(), GatewayOptions::with_database(self.store.clone())).unwrap();
        let (listener, stop) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), CancellationToken::new());
        let until = stop.clone();
        (stop, tokio::spawn(async move { gateway.serve(listener, until).await }))
    }

    /// A tenant, with a key.
    pub(crate) async fn tenant(&self, name: &str, limits: Limits) -> Tenant<'_> {
        self.store.add_tenant(name, &limits).await.unwrap();
        let key = self.store.add_key(name, "", None).await.unwrap().key.expose().to_owned();
        Tenant { of: self, key }
    }

    pub(crate) async fn end(self) {
        self.stop.cancel();
        self.serving.await.unwrap();
        self.store.close().await;
        assert_eq!(fs::read_dir(self.folders.path()).unwrap().count(), 0, "build folders are left");
        let listed = self.place.engine.docker(["images", "--format", "{{.Repository}}:{{.Tag}}"]);
        let own: Vec<&str> = listed.lines().filter(|name| name.contains(&self.prefix)).collect();
        if !own.is_empty() {
            self.place.engine.docker(["rmi", "--force"].into_iter().chain(own));
        }
        self.place.nothing_left_soon().await;
    }
}

pub(crate) struct Tenant<'a> {
    of: &'a Running,
    pub(crate) key: String,
}

impl Tenant<'_> {
    fn builder(&self) -> RemoteBuilder {
        let times = RemoteTimes { poll: Duration::from_millis(100), build: LIMIT, ..RemoteTimes::default() };
        let http = reqwest::Client::builder().tls_certs_only([]).no_proxy().build().unwrap();
        RemoteBuilder::new(http, &format!("http://{}", self.of.address), &self.key, times).unwrap()
    }

    async fn build(&self, folder: &Path, names: &[String]) -> Result<String, ImageError> {
        let request = BuildRequest { folder, names, platforms: &[], extra_arguments: &[] };
        self.builder().build(&request, &Progress::silent()).await
    }

    /// Sends a build folder; the id of the build.
    async fn send(&self, folder: &Path, name: &str) -> String {
        let mut archive = GzEncoder::new(Vec::new(), Compression::fast());
        gloveport_archive::tar::pack(folder, &mut archive).unwrap();
        let text = STANDARD.encode(archive.finish().unwrap());
        let part =
            |about: &str, text: &str| format!("--x\r\nContent-Disposition: form-data; {about}\r\n\r\n{text}\r\n");
        let body = format!(
            "{}{}--x--\r\n",
            part("name=\"target_image\"", name),
            part("name=\"context\"; filename=\"context.tar.gz\"", &text)
        );
        let client = reqwest::Client::builder().tls_certs_only([]).no_proxy().build().unwrap();
        let request = client.post(format!("http://{}/build", self.of.address)).header("X-API-Key", &self.key);
        let answer = request.header("content-type", "multipart/form-data; boundary=x").body(body).send().await.unwrap();
        let told: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        told["build_id"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned()
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let client = reqwest::Client::builder().tls_certs_only([]).no_proxy().build().unwrap();
        let url = format!("http://{}{path}", self.of.address);
        let mut request = client.request(method.parse().unwrap(), url).header("X-API-Key", &self.key);
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let answer = request.send().await.unwrap();
        let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }
}

fn folder(lines: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("Dockerfile"), format!("FROM {BUSYBOX}\n{lines}\n")).unwrap();
    fs::create_dir(folder.path().join("code")).unwrap();
    fs::write(folder.path().join("code/here"), "a file").unwrap();
    folder
}

#[tokio::test]
async fn a_tenant_gets_an_image_built_and_sandboxes_of_it_and_others_do_not() {
    let running = Running::start().await;
    let nothing = Limits { images: Some(Vec::new()), ..Limits::default() };
    let (one, other) = (running.tenant("one", nothing).await, running.tenant("other", Limits::default()).await);
    let prefix = format!("{}/one", running.prefix);
    let names = [format!("{prefix}/runtime:1"), format!("{prefix}/runtime:latest")];
    assert_eq!(one.ask("GET", "/registry_prefix", None).await, (200, json!({"registry_prefix": prefix})));
    assert!(!one.builder().image_exists(&names[0], Lookup::Here, &Progress::silent()).await.unwrap());

    assert_eq!(one.build(folder("COPY code/here /here").path(), &names).await.unwrap(), names[0]);
    for name in &names {
        assert!(one.builder().image_exists(name, Lookup::Here, &Progress::silent()).await.unwrap(), "{name}");
        // Nobody learns of what others have.
        for hidden in [name.clone(), format!("docker.io/{name}")] {
            let (status, told) = other.ask("GET", &format!("/image_exists?image={hidden}"), None).await;
            assert_eq!((status, told), (200, json!({"exists": false})), "{hidden}");
        }
    }
    let (_, told) = one.ask("GET", &format!("/image_exists?image={}", names[0]), None).await;
    assert!(told["image"]["image_size_bytes"].as_i64().unwrap() > 0, "{told}");
    assert!(!told["image"]["upload_time"].as_str().unwrap().is_empty(), "{told}");

    // Its own images a tenant may always use, and nobody else may.
    let start = |image: &str| Some(json!({"session_id": running.place.session("built"), "image": image}));
    for image in [names[0].clone(), format!("docker.io/{}", names[0])] {
        let (status, told) = other.ask("POST", "/start", start(&image)).await;
        assert!(status == 403 && told["detail"].as_str().unwrap().contains("another tenant's"), "{status} {told}");
    }
    assert_eq!(one.ask("POST", "/start", start(BUSYBOX)).await.0, 403);
    let (status, told) = one.ask("POST", "/start", start(&names[0])).await;
    assert_eq!(status, 200, "{told}");
    let (id, key) = (told["runtime_id"].as_str().unwrap(), told["session_api_key"].as_str().unwrap());
    let url = format!("http://{}/{id}/execute_action", running.address);
    let client = reqwest::Client::builder().tls_certs_only([]).no_proxy().build().unwrap();
    let action = json!({"action": {"action": "run", "args": {"command": "cat /here"}}}).to_string();
    let began = std::time::Instant::now();
    let text = loop {
        let asked = client.post(&url).header("X-Session-API-Key", key).header("content-type", "application/json");
        let answer = asked.body(action.clone()).send().await.unwrap();
        if answer.status() == 200 || began.elapsed() > LIMIT {
            break answer.text().await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert!(text.contains("a file"), "{text}");
    assert_eq!(one.ask("POST", "/stop", Some(json!({"runtime_id": id}))).await.0, 200);
    running.end().await;
}

#[tokio::test]
async fn what_cannot_be_built_is_told_with_its_log_and_a_build_can_be_cancelled() {
    let running = Running::start().await;
    let (one, other) =
        (running.tenant("one", Limits::default()).await, running.tenant("other", Limits::default()).await);
    let name = [format!("{}/one/x:1", running.prefix)];
    let error = one.build(folder("RUN echo some words && exit 7").path(), &name).await.unwrap_err().to_string();
    assert!(error.contains("some words") && error.contains('7'), "{error}");
    // Names of others, and what is no name.
    for foreign in [format!("{}/other/x:1", running.prefix), BUSYBOX.to_owned(), format!("{}/one:1", running.prefix)] {
        let error = one.build(folder("").path(), std::slice::from_ref(&foreign)).await.unwrap_err().to_string();
        assert!(error.contains("must begin with"), "{foreign}: {error}");
    }
    let empty = tempfile::tempdir().unwrap();
    let error = one.build(empty.path(), &name).await.unwrap_err().to_string();
    assert!(error.contains("no Dockerfile"), "{error}");

    let slow = folder("RUN echo begun && sleep 600");
    let id = one.send(slow.path(), &name[0]).await;
    let query = format!("build_id={id}");
    for (method, path, body) in [
        ("GET", format!("/build_status?{query}"), None),
        ("GET", format!("/build_log?{query}"), None),
        ("POST", "/build_cancel".to_owned(), Some(json!({"build_id": id}))),
    ] {
        assert_eq!(other.ask(method, &path, body).await.0, 404, "{path}");
    }
    let log = format!("/build_log?{query}");
    let began = std::time::Instant::now();
    while !one.ask("GET", &log, None).await.1.to_string().contains("begun") {
        assert!(began.elapsed() < LIMIT, "{:?}", one.ask("GET", &log, None).await);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let status = format!("/build_status?{query}");
    assert_eq!(one.ask("GET", &status, None).await, (200, json!({"status": "WORKING"})));
    assert_eq!(one.ask("POST", "/build_cancel", Some(json!({"build_id": id}))).await.0, 200);
    while one.ask("GET", &status, None).await.1["status"] != "CANCELLED" {
        assert!(began.elapsed() < LIMIT);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    running.end().await;
}
