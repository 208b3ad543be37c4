//! The ways into a gateway: hosts of sandboxes, HTTP/2, TLS, proxies before it, and sandboxes that are woken.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fs,
    io::{Read as _, Write as _},
    net::SocketAddr,
    path::Path,
    process::Command,
    sync::Arc,
};

use gloveport_client::{Certificates, Pool};
use gloveport_gateway::TlsFiles;
use gloveport_provider::{Progress, Provider as _, SandboxState};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::{Request, body::Bytes, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustix::process::{Pid, Signal, kill_process};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::{
    gateway::{KEY, Program, Running},
    gateway_wire::{connect, echoing, made, request},
    sandboxes::{LIMIT, run, spec},
    support::{gloveport, text},
};

#[tokio::test(flavor = "multi_thread")]
async fn sandboxes_have_hosts_of_their_own_and_no_host_is_another_sandbox() {
    let running = Running::with(|options| options.domain = Some("Example.org".to_owned())).await;
    let (address, port) = (running.address, running.address.port());
    echoing(&running, "a").await;
    made(&running, "b").await;
    let (_, told) = running.ask("GET", "/sessions/a", Some(KEY), None).await;
    assert_eq!(told["url"], format!("http://a.example.org:{port}"));
    let hosts = told["work_hosts"].as_object().unwrap();
    assert!(hosts.contains_key(&format!("http://work-1-a.example.org:{port}")), "{told}");
    assert!(hosts.contains_key(&format!("http://work-2-a.example.org:{port}")), "{told}");

    let get = async |host: &str, path: &str| request(address, &format!("GET {path}"), &[("Host", host)]).await;
    for (host, path, status) in [
        ("a.example.org", "/alive", 200),
        ("A.Example.ORG.:80", "/alive", 200),
        ("b.example.org", "/alive", 200),
        ("work-1-a.example.org", "/alive", 200),
        // Nobody listens there.
        ("work-2-b.example.org", "/", 502),
        ("c.example.org", "/alive", 404),
        ("vscode-c.example.org", "/", 404),
        ("a.b.example.org", "/alive", 404),
        ("work-1-work-1-a.example.org", "/", 404),
        (&format!("{}.example.org", "a".repeat(200)), "/alive", 404),
        ("a.example.org", "/../b/alive", 400),
        ("a.example.org", "/%2e%2e/b/alive", 400),
        ("me@a.example.org", "/alive", 400),
        ("a.example.org/b", "/alive", 400),
        // The path form stays, at hosts that are nobody's.
        ("example.org", "/a/alive", 200),
        ("127.0.0.1", "/a/alive", 200),
        ("badexample.org", "/a/alive", 200),
        // What is the gateway's elsewhere is the sandbox's here.
        ("a.example.org", "/b/alive", 403),
        ("a.example.org", "/healthz", 403),
        ("work-1-a.example.org", "/list", 200),
    ] {
        let answer = get(host, path).await;
        assert_eq!(answer.status, status, "{host}{path}: {answer:?}");
    }
    for headers in [
        &[("Host", "a.example.org"), ("Host", "b.example.org")][..],
        &[("Host", "a.example.org"), ("Host", "a.example.org")],
    ] {
        assert_eq!(request(address, "GET /alive", headers).await.status, 400);
    }
    let two = request(address, "GET http://a.example.org/alive", &[("Host", "b.example.org")]).await;
    assert_eq!(two.status, 400);
    let one = request(address, "GET http://work-1-a.example.org/x", &[("Host", "work-1-a.example.org")]).await;
    assert_eq!((one.status, one.json()["path"].as_str()), (200, Some("/x")));

    // At a host of its own, a sandbox keeps its paths, and sets no cookies for the hosts beside it.
    let told = get("work-1-a.example.org:99", "/x?y=1").await;
    assert_eq!(told.all("set-cookie"), ["a=b; path=/", "c=d"]);
    assert_eq!(told.json()["path"], "/x?y=1");
    let headers = &told.json()["headers"];
    assert_eq!(headers["x-forwarded-host"], "work-1-a.example.org:99");
    assert_eq!(headers.get("x-forwarded-prefix"), None);
    assert_eq!(get("work-1-a.example.org", "/here").await.all("location"), ["/login"]);
    running.end().await;
}

/// A certificate for `localhost`, and its key.
pub(crate) fn certificate(directory: &Path, days: &str) -> TlsFiles {
    let files = TlsFiles { certificate: directory.join("cert.pem"), key: directory.join("key.pem") };
    fs::write(directory.join("names"), "subjectAltName=DNS:localhost").unwrap();
    let openssl = |arguments: &str| {
        let output = Command::new("openssl").args(arguments.split(' ')).current_dir(directory).output().unwrap();
        assert!(output.status.success(), "{arguments}: {}", text(&output.stderr));
    };
    openssl("ecparam -name prime256v1 -genkey -noout -out new.pem");
    openssl("pkcs8 -topk8 -nocrypt -in new.pem -out key.pem");
    openssl("req -new -key key.pem -subj /CN=localhost -out request.pem");
    openssl(&format!("x509 -req -in request.pem -signkey key.pem -days {days} -extfile names -out cert.pem"));
    files
}

async fn over_tls(address: SocketAddr, files: &TlsFiles, protocol: &str) -> Result<TlsStream<TcpStream>, String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&files.certificate).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connected = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    connected.map_err(|error| error.to_string())
}

/// Status and body of a request over HTTP/2.
async fn over_http_2(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, url: &str) -> (u16, String) {
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::get(url).header("x-api-key", KEY).body(Empty::<Bytes>::new()).unwrap();
    let answer = timeout(LIMIT, sender.send_request(request)).await.unwrap().unwrap();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    connection.abort();
    (status, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn http_1_and_http_2_share_a_listener_in_clear_and_over_tls() {
    let home = tempfile::tempdir().unwrap();
    let files = certificate(home.path(), "2");
    for tls in [None, Some(files.clone())] {
        let running = Running::with(|options| {
            options.tls.clone_from(&tls);
            options.domain = Some("example.org".to_owned());
        });
        let running = running.await;
        let address = running.address;
        let scheme = if tls.is_some() { "https" } else { "http" };
        // Our client does not know the certificate.
        let mut spec = spec("a");
        spec.labels.insert("gloveport-gateway".to_owned(), "default".to_owned());
        let sandbox = running.engine.create(&spec, &Progress::silent()).await.unwrap();
        run(&sandbox, "true").await;
        for (host, path, expected) in [
            ("localhost", "/healthz", "ok"),
            ("localhost", "/a/alive", "ok"),
            ("a.example.org", "/alive", "ok"),
            ("b.example.org", "/alive", "no such"),
            ("localhost", "/sessions/a", &format!("{scheme}://a.example.org\"")),
        ] {
            let url = format!("{scheme}://{host}{path}");
            let (status, body) = if tls.is_some() {
                over_http_2(over_tls(address, &files, "h2").await.unwrap(), &url).await
            } else {
                over_http_2(TcpStream::connect(address).await.unwrap(), &url).await
            };
            assert!(body.contains(expected), "{url}: {status} {body}");
        }
        if tls.is_some() {
            let stream = over_tls(address, &files, "http/1.1").await.unwrap();
            let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
            let connection = tokio::spawn(connection);
            let request = Request::get("/a/alive").header("host", "localhost").body(Full::new(Bytes::new())).unwrap();
            assert_eq!(sender.send_request(request).await.unwrap().status().as_u16(), 200);
            connection.abort();
        } else {
            assert_eq!(running.ask("GET", "/a/alive", None, None).await.0, 200);
        }
        running.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_certificate_is_used_for_new_connections_and_a_wrong_one_is_not() {
    let home = tempfile::tempdir().unwrap();
    let files = certificate(home.path(), "2");
    let running = Running::with(|options| options.tls = Some(files.clone())).await;
    let old = over_tls(running.address, &files, "h2").await.unwrap();
    let first = fs::read(&files.certificate).unwrap();

    // A key without its certificate yet.
    let elsewhere = tempfile::tempdir().unwrap();
    let new = certificate(elsewhere.path(), "2");
    fs::copy(&new.key, &files.key).unwrap();
    running.gateway.renew_certificate().await;
    drop(over_tls(running.address, &files, "h2").await.unwrap());
    fs::copy(&new.certificate, &files.certificate).unwrap();
    assert!(over_tls(running.address, &files, "h2").await.is_err());
    running.gateway.renew_certificate().await;
    drop(over_tls(running.address, &files, "h2").await.unwrap());
    fs::write(&files.certificate, first).unwrap();
    assert!(over_tls(running.address, &files, "h2").await.is_err());
    // What was connected before is as it was.
    let (status, _) = over_http_2(old, "https://localhost/healthz").await;
    assert_eq!(status, 200);
    running.end().await;
}

#[test]
fn a_certificate_that_clients_would_refuse_is_told_at_the_start() {
    let home = tempfile::tempdir().unwrap();
    let directory = |name: &str| {
        let directory = home.path().join(name);
        fs::create_dir(&directory).unwrap();
        directory
    };
    let (good, old, other) = (directory("good"), directory("old"), directory("other"));
    let (good, old, other) = (certificate(&good, "2"), certificate(&old, "-1"), certificate(&other, "2"));
    let key = home.path().join("key");
    fs::write(&key, KEY).unwrap();
    let nothing = home.path().join("nothing");
    for (certificate, private, code, expected) in [
        (&nothing, Some(&good.key), 1, "cannot read"),
        (&good.certificate, Some(&nothing), 1, "cannot read"),
        (&good.key, Some(&good.key), 1, "has no certificate in PEM form"),
        (&good.certificate, Some(&good.certificate), 1, "has no private key"),
        (&good.certificate, Some(&other.key), 1, "does not belong to"),
        (&old.certificate, Some(&old.key), 1, "has expired"),
        (&good.certificate, None, 2, "--tls-key"),
    ] {
        let mut command = gloveport(home.path());
        command.args(["gateway", "--port", "0", "--key-file"]).arg(&key).arg("--tls-cert").arg(certificate);
        if let Some(private) = private {
            command.arg("--tls-key").arg(private);
        }
        let output = command.output().unwrap();
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{errors}");
        assert!(errors.contains(expected), "{expected}: {errors}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_reads_its_certificate_again_when_a_terminal_would_be_gone() {
    let (home, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (files, new) = (certificate(home.path(), "2"), certificate(elsewhere.path(), "2"));
    let key = home.path().join("key");
    fs::write(&key, KEY).unwrap();
    let mut command = gloveport(home.path());
    command.args(["gateway", "--port", "0", "--key-file"]).arg(key);
    command.arg("--tls-cert").arg(&files.certificate).arg("--tls-key").arg(&files.key);
    let program = Program::start(command);
    let address = program.url.strip_prefix("https://").unwrap().parse().unwrap();
    let (status, _) = over_http_2(over_tls(address, &files, "h2").await.unwrap(), "https://localhost/healthz").await;
    assert_eq!(status, 200);
    assert!(over_tls(address, &new, "h2").await.is_err());
    fs::copy(&new.key, &files.key).unwrap();
    fs::copy(&new.certificate, &files.certificate).unwrap();
    kill_process(Pid::from_child(&program.child), Signal::HUP).unwrap();
    let renewed = async { while over_tls(address, &new, "h2").await.is_err() {} };
    timeout(LIMIT, renewed).await.unwrap();
    tokio::task::spawn_blocking(move || program.end()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_of_the_way_is_believed_of_trusted_proxies_alone() {
    let said = [
        ("Host", "inside:1"),
        ("X-Forwarded-For", "6.6.6.6, 192.0.2.1"),
        ("X-Forwarded-Host", "sandboxes.example.org"),
        ("X-Forwarded-Proto", "https"),
        ("X-Real-IP", "6.6.6.6"),
        ("X-Forwarded-Prefix", "/evil"),
        ("X-API-Key", KEY),
    ];
    for trusted in [true, false] {
        let running = Running::with(|options| {
            options.trusted_proxies = vec![if trusted { "127.0.0.0/8" } else { "10.0.0.0/8" }.parse().unwrap()];
        });
        let running = running.await;
        echoing(&running, "a").await;
        let (url, client) =
            if trusted { ("https://sandboxes.example.org", "192.0.2.1") } else { ("http://inside:1", "127.0.0.1") };
        let told = request(running.address, "GET /sessions/a", &said).await.json();
        assert_eq!(told["url"], format!("{url}/a"));
        let told = request(running.address, "GET /a/work-1/", &said).await.json();
        let (scheme, host) = url.split_once("://").unwrap();
        for (name, value) in [
            ("x-forwarded-for", Some(client)),
            ("x-forwarded-host", Some(host)),
            ("x-forwarded-proto", Some(scheme)),
            ("x-forwarded-prefix", Some("/a/work-1")),
            ("x-real-ip", None),
            ("x-api-key", None),
        ] {
            assert_eq!(told["headers"].get(name).and_then(|value| value.as_str()), value, "{name}: {told}");
        }
        running.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_wakes_a_paused_sandbox_once_however_many_come() {
    let running = Running::with(|options| options.wake = true).await;
    let sandbox = running.alive(&running.backend(), &spec("a")).await;
    assert_eq!(run(&sandbox, "x=5; echo $x").await, "5");
    running.backend().pause(&sandbox.id).await.unwrap();
    let pool = Pool::new(Certificates::Checked).unwrap();
    let url = format!("{}/a/alive", running.url());
    let asked = (0..20).map(|_| tokio::spawn(pool.http().get(&url).send()));
    for asked in asked.collect::<Vec<_>>() {
        let answer = timeout(LIMIT, asked).await.unwrap().unwrap().unwrap();
        assert_eq!(answer.status().as_u16(), 200);
    }
    assert_eq!(running.engine.find(&sandbox.id).await.unwrap().unwrap().state, SandboxState::Running);
    assert_eq!(run(&sandbox, "echo $x").await, "5");
    let metrics = request(running.address, "GET /metrics", &[("Host", "a"), ("X-API-Key", KEY)]).await.body;
    assert!(metrics.contains("gloveport_gateway_wakes_total 1\n"), "{metrics}");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_come_as_they_are_sent() {
    let running = Running::start().await;
    echoing(&running, "a").await;
    let address = running.address;
    let seen = tokio::task::spawn_blocking(move || {
        let mut events = connect(address);
        events.write_all(b"GET /a/work-1/events HTTP/1.1\r\nHost: gateway\r\n\r\n").unwrap();
        let (mut seen, mut part) = (String::new(), [0; 1024]);
        let mut until = |end: &str, events: &mut std::net::TcpStream| {
            while !seen.contains(end) {
                let count = events.read(&mut part).unwrap();
                assert_ne!(count, 0, "{seen}");
                seen.push_str(&String::from_utf8_lossy(&part[..count]));
            }
            seen.clone()
        };
        // The second event is sent when somebody has seen the first one.
        let first = until("data: 0\n\n", &mut events);
        assert!(!first.contains("data: 1"), "{first}");
        connect(address).write_all(b"GET /a/work-1/go HTTP/1.1\r\nHost: gateway\r\n\r\n").unwrap();
        until("data: 1\n\n", &mut events)
    });
    let seen = timeout(LIMIT, seen).await.unwrap().unwrap();
    assert!(seen.to_ascii_lowercase().contains("content-type: text/event-stream"), "{seen}");
    running.end().await;
}
