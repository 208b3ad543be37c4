//! Requests through a real router and a real connection to a real service.

use std::{collections::BTreeMap, ffi::OsString, net::Ipv4Addr, sync::Arc, time::Duration};

use axum::{Router, extract::Path, routing::any};
use gloveport_plugin::{Health, Listens, PluginError, PluginHost, PluginState, Service, ServiceSpec};
use gloveport_protocol::BoxFuture;
use gloveport_sys::Surroundings;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::timeout,
};

use super::*;
use crate::{
    options::ServerLimits,
    plugins::{PATHS, owns},
    serve::converse,
};

const LONG: Duration = Duration::from_secs(30);
const TOKEN: &str = "0b5c1f8e-2d4a-4c57-9f0e-6a1f3b2c4d5e";

/// A small server: shows the request, or echoes bytes after an upgrade.
const SERVICE: &str = r#"
import http.server, sys

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do(self):
        if self.headers.get("Upgrade"):
            self.send_response(101)
            self.send_header("Connection", "Upgrade")
            self.send_header("Upgrade", self.headers["Upgrade"])
            self.end_headers()
            self.close_connection = True
            while data := self.rfile.read1():
                self.wfile.write(data.upper())
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        names = ["Cookie", "X-Session-API-Key", "X-Forwarded-Prefix"]
        shown = [f"{self.command} {self.path}", *(f"{name}: {self.headers.get(name)}" for name in names), body]
        text = "\n".join(shown).encode()
        self.send_response(302 if self.path.startswith("/away") else 200)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_PROPFIND = do

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

/// A plugin with a service, and one without.
#[derive(Debug)]
struct Small {
    service: Option<Arc<Service>>,
    token: Option<String>,
    state: watch::Sender<PluginState>,
}

impl Small {
    fn new(command: Option<&[&str]>, token: Option<&str>, state: PluginState) -> Self {
        let host = PluginHost { surroundings: Surroundings::inherited("/tmp".into()), workspace: "/tmp".into() };
        let service = command.map(|words| {
            let spec = ServiceSpec {
                name: "small".to_owned(),
                set_up: None,
                set_up_limit: LONG,
                command: words.iter().map(OsString::from).collect(),
                environment: BTreeMap::new(),
                listens: Listens::AnyPort,
                health: Health::Accepts,
                start_limit: LONG,
                idle_stop: None,
                end_grace: ServiceSpec::END_GRACE,
                eager: false,
            };
            Service::new(spec, host)
        });
        Self { service, token: token.map(str::to_owned), state: watch::Sender::new(state) }
    }
}

impl Plugin for Small {
    fn name(&self) -> &'static str {
        "small"
    }

    fn initialize<'a>(&'a self, _host: &'a PluginHost) -> BoxFuture<'a, Result<(), PluginError>> {
        Box::pin(async { Ok(()) })
    }

    fn state(&self) -> watch::Receiver<PluginState> {
        self.state.subscribe()
    }

    fn service(&self) -> Option<Arc<Service>> {
        self.service.clone()
    }

    fn token(&self) -> Option<String> {
        self.token.clone()
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(service) = &self.service {
                service.stop().await;
            }
        })
    }
}

/// A server with these plugins: `small` with a service, `tokenless` with one and no token, `bare` without one, `broken` that failed, `ill` that dies.
struct Server {
    port: u16,
    stop: CancellationToken,
    plugins: Arc<BTreeMap<&'static str, Small>>,
    passage: Arc<Passage>,
}

impl Server {
    async fn start(key: Option<&str>) -> Self {
        let failed = PluginState::Failed { reason: "it has no legs".to_owned(), remedy: "give it some".to_owned() };
        let python = ["python3", "-c", SERVICE, "{port}"];
        let plugins = Arc::new(BTreeMap::from([
            ("small", Small::new(Some(&python), Some(TOKEN), PluginState::Idle)),
            ("tokenless", Small::new(Some(&python), None, PluginState::Idle)),
            ("bare", Small::new(None, None, PluginState::Ready)),
            ("broken", Small::new(None, None, failed)),
            ("ill", Small::new(Some(&["false"]), None, PluginState::Idle)),
        ]));
        let stop = CancellationToken::new();
        let options = ServerOptions { session_key: key.map(SessionKey::new), ..ServerOptions::default() };
        let (known, handed_stop) = (Arc::clone(&plugins), stop.clone());
        let passage = Arc::new(Passage::new());
        let handed_passage = Arc::clone(&passage);
        let handler = async move |Path(parameters): Path<BTreeMap<String, String>>, request: Request| {
            let name = parameters["name"].as_str();
            let plugin = known.get(name).map(|plugin| plugin as &dyn Plugin);
            handed_passage.pass(plugin, name, &options, &handed_stop, request).await
        };
        let router = PATHS.into_iter().fold(Router::new(), |router, path| router.route(path, any(handler.clone())));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (port, handed_stop) = (listener.local_addr().unwrap().port(), stop.clone());
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let limits = Arc::new(ServerLimits::default());
                tokio::spawn(converse(stream, router.clone(), limits, Arc::default(), handed_stop.clone()));
            }
        });
        Self { port, stop, plugins, passage }
    }

    async fn send(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    /// Asks, and gives status and body.
    async fn ask(&self, line: &str, headers: &str, body: &str) -> (u16, String) {
        let length = body.len();
        let request = format!(
            "{line} HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}",
            self.port
        );
        let mut stream = self.send(&request).await;
        let mut answer = String::new();
        timeout(LONG, stream.read_to_string(&mut answer)).await.expect("no end").unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let location = head.lines().find_map(|line| line.strip_prefix("location: ")).unwrap_or_default();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, if location.is_empty() { body.to_owned() } else { format!("-> {location}\n{body}") })
    }

    async fn stop(&self) {
        self.stop.cancel();
        for plugin in self.plugins.values() {
            plugin.stop().await;
        }
    }
}

fn detail(text: &str) -> String {
    format!("{{\"detail\":\"{text}\"}}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_gets_every_method_with_its_path_and_body_and_no_secrets() {
    let server = Server::start(Some("k")).await;
    let key = "X-Session-API-Key: k\r\nCookie: a=b; gloveport-small-1=x\r\n";
    for (line, seen) in [
        ("GET /plugins/small/", "GET /"),
        ("POST /plugins/small/x%2Fy?a=b", "POST /x%2Fy?a=b"),
        ("PUT /plugins/small/x//../y", "PUT /x//../y"),
        ("PROPFIND /plugins/small/dav", "PROPFIND /dav"),
    ] {
        let body = format!(
            "-> /plugins/small/elsewhere\n{seen}\nCookie: a=b\nX-Session-API-Key: None\nX-Forwarded-Prefix: /plugins/small\nhello"
        );
        assert_eq!(server.ask(line, key, "hello").await, (200, body), "{line}");
    }
    let (status, body) = server.ask("GET /plugins/small?x=1", key, "").await;
    assert_eq!((status, body.as_str()), (308, "-> ./small/?x=1\n"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_or_the_token_lets_in_and_a_stranger_learns_nothing() {
    let server = Server::start(Some("k")).await;
    let welcome = server.ask(&format!("GET /plugins/small/?tkn={TOKEN}&x"), "", "").await;
    assert_eq!(welcome, (303, "-> ./?x\n".to_owned()));
    for (line, headers, status) in [
        ("GET /plugins/small/", "", 403),
        ("GET /plugins/small/", "X-Session-API-Key: x\r\n", 403),
        ("GET /plugins/small/?tkn=k", "", 403),
        ("GET /plugins/bare/", "", 403),
        ("GET /plugins/none/", "", 403),
        ("GET /plugins/small/", "X-Session-API-Key: k\r\n", 200),
    ] {
        assert_eq!(server.ask(line, headers, "").await.0, status, "{line} {headers}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_without_a_token_gets_one_that_opens_it_to_a_browser() {
    let server = Server::start(Some("k")).await;
    let token = server.passage.token_of(&server.plugins["tokenless"]).unwrap();
    assert_eq!(server.passage.token_of(&server.plugins["small"]).as_deref(), Some(TOKEN));
    assert_eq!(server.passage.token_of(&server.plugins["bare"]), None);
    let request = format!("GET /plugins/tokenless/?tkn={token} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let mut stream = server.send(&request).await;
    let mut welcome = String::new();
    stream.read_to_string(&mut welcome).await.unwrap();
    let cookie = welcome.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let (cookie, _) = cookie.split_once(';').unwrap();
    for (cookie, status) in [(cookie, 200), ("gloveport-tokenless-00000000=k", 403)] {
        let (found, _) = server.ask("GET /plugins/tokenless/", &format!("Cookie: {cookie}\r\n"), "").await;
        assert_eq!(found, status, "{cookie}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_a_key_is_closed_to_pages_and_foreign_names() {
    let server = Server::start(None).await;
    let opened = "Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\n";
    for (headers, status) in [
        (String::new(), 200),
        (opened.to_owned(), 200),
        (format!("Origin: http://localhost:{}\r\n", server.port), 403),
        ("Sec-Fetch-Site: same-origin\r\n".to_owned(), 403),
        ("Origin: http://evil.example\r\n".to_owned(), 403),
        ("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n".to_owned(), 403),
    ] {
        assert_eq!(server.ask("GET /plugins/small/", &headers, "").await.0, status, "{headers}");
    }
    for (path, host, headers, status) in [
        ("small", "evil.example", "", 403),
        ("none", "evil.example", "", 403),
        ("none", "localhost", "Sec-Fetch-Site: same-origin\r\n", 403),
        ("none", "localhost", "", 404),
    ] {
        let request = format!("GET /plugins/{path}/ HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n");
        let mut answer = String::new();
        server.send(&request).await.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request} {answer}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_a_person_has_opened_goes_on_with_its_cookie() {
    let server = Server::start(None).await;
    let opens = format!(
        "GET /plugins/small/ HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\nSec-Fetch-Site: none\r\n\r\n",
        server.port
    );
    let mut opened = String::new();
    server.send(&opens).await.read_to_string(&mut opened).await.unwrap();
    let cookie = opened.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.ends_with("; Path=/plugins/small/; HttpOnly; SameSite=Lax"), "{cookie}");
    let (cookie, _) = cookie.split_once(';').unwrap();
    let page = format!("Sec-Fetch-Site: same-origin\r\nCookie: {cookie}\r\n");
    assert_eq!(server.ask("GET /plugins/small/x.js", &page, "").await.0, 200);
    // It is good for that plugin alone.
    assert_eq!(server.ask("GET /plugins/tokenless/", &page, "").await.0, 403);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_opened_says_why() {
    let server = Server::start(None).await;
    for (line, status, text) in [
        ("GET /plugins/none/", 404, "There is no plugin none here; start the sandbox with --plugins none"),
        ("GET /plugins/bare/", 404, "The plugin bare has no service that could be opened here"),
        ("GET /plugins/broken/", 404, "The plugin broken is not usable: it has no legs; give it some"),
    ] {
        assert_eq!(server.ask(line, "", "").await, (status, detail(text)), "{line}");
    }
    let (status, body) = server.ask("GET /plugins/ill/", "", "").await;
    assert!(status == 503 && body.contains("ill cannot be started: "), "{status} {body}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgraded_connection_lasts_and_ends_with_the_server() {
    let server = Server::start(Some("k")).await;
    let request = "GET /plugins/small/x HTTP/1.1\r\nHost: a\r\nX-Session-API-Key: k\r\nConnection: upgrade\r\nUpgrade: loud\r\n\r\n";
    let mut stream = server.send(request).await;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(timeout(LONG, stream.read_u8()).await.expect("no answer").unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    assert!(head.starts_with("HTTP/1.1 101 ") && head.contains("upgrade: loud\r\n"), "{head}");
    for _ in 0..3 {
        stream.write_all(b"quiet").await.unwrap();
        let mut echo = [0; 5];
        timeout(LONG, stream.read_exact(&mut echo)).await.expect("no echo").unwrap();
        assert_eq!(&echo, b"QUIET");
    }
    server.stop().await;
    assert_eq!(timeout(LONG, stream.read(&mut [0])).await.expect("it does not end").unwrap_or(0), 0);
}

#[test]
fn only_paths_of_plugins_are_theirs() {
    for (path, expected) in [
        ("/plugins/a", true),
        ("/plugins/a/b", true),
        ("/plugins", false),
        ("/plugins/", false),
        ("/plugins//a", false),
        ("/pluginsx/a", false),
    ] {
        assert_eq!(owns(path), expected, "{path}");
    }
}
