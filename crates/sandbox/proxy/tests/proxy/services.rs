//! A listener of its own for a real service that is started when it is used.

use std::{collections::BTreeMap, ffi::OsString, net::Ipv4Addr, sync::Arc, time::Duration};

use gloveport_plugin::{Health, Listens, PluginHost, PluginState, Service, ServiceSpec};
use gloveport_proxy::{Admission, Mount, ProxyLimits, ServiceProxy, serve};
use gloveport_sys::Surroundings;
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::support::{LONG, read_all, read_to, until};

const TOKEN: &str = "0b5c1f8e-2d4a-4c57-9f0e-6a1f3b2c4d5e";

/// Says who it is, speaks without an end, or echoes after an upgrade.
const SERVICE: &str = r#"
import http.server, os, sys

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.do_GET()

    def do_GET(self):
        once, _, marker = self.path.partition("?")
        if once == "/once" and not os.path.exists(marker):
            open(marker, "w").close()
            os.kill(os.getpid(), 9)
        upgrade = self.headers.get("Upgrade")
        self.send_response(101 if upgrade else 200)
        if upgrade:
            self.send_header("Connection", "Upgrade")
            self.send_header("Upgrade", upgrade)
        elif self.path != "/endless":
            text = str(os.getpid()).encode()
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if upgrade:
            self.close_connection = True
            while data := self.rfile.read1():
                self.wfile.write(data)
        elif self.path == "/endless":
            while True:
                self.wfile.write(b"x" * 65536)
        else:
            self.wfile.write(text)

class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128

Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

/// A listener, the service behind it, and the cookie that lets in.
struct Place {
    port: u16,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    service: Arc<Service>,
    cookie: String,
}

impl Place {
    async fn start(limits: ProxyLimits, idle_stop: Option<Duration>) -> Self {
        let spec = ServiceSpec {
            name: "small".to_owned(),
            set_up: None,
            set_up_limit: LONG,
            command: ["python3", "-c", SERVICE, "{port}"].map(OsString::from).to_vec(),
            environment: BTreeMap::new(),
            listens: Listens::AnyPort,
            health: Health::Accepts,
            start_limit: LONG,
            idle_stop,
            end_grace: ServiceSpec::END_GRACE,
            eager: false,
        };
        let host = PluginHost { surroundings: Surroundings::inherited("/tmp".into()), workspace: "/tmp".into() };
        let service = Service::new(spec, host);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (port, stop) = (listener.local_addr().unwrap().port(), CancellationToken::new());
        let proxy = ServiceProxy {
            name: "small".to_owned(),
            service: Arc::clone(&service),
            mount: Mount::new("", ""),
            admission: Admission::new("small", Some(TOKEN.to_owned())),
            limits,
            stop: stop.clone(),
        };
        let serving = tokio::spawn(serve(listener, Arc::new(proxy)));
        let mut place = Self { port, stop, serving, service, cookie: String::new() };
        let welcome = place.ask(&format!("/?tkn={TOKEN}")).await;
        let cookie = welcome.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        cookie.split(';').next().unwrap().clone_into(&mut place.cookie);
        place
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.unwrap()
    }

    async fn send(&self, path: &str, headers: &str) -> TcpStream {
        let mut stream = self.connect().await;
        let cookie = &self.cookie;
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    async fn ask(&self, path: &str) -> String {
        read_all(&mut self.send(path, "Connection: close\r\n").await).await
    }

    /// A connection that was upgraded.
    async fn upgrade(&self) -> TcpStream {
        let mut stream = self.send("/x", "Connection: upgrade\r\nUpgrade: echo\r\n").await;
        let head = read_to(&mut stream, "\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        stream
    }

    fn state(&self) -> PluginState {
        self.service.state().borrow().clone()
    }

    async fn end(self) {
        self.stop.cancel();
        timeout(LONG, self.serving).await.expect("the listener does not end").unwrap();
        self.service.stop().await;
        drop(std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_request_starts_the_service_and_many_start_it_once() {
    let place = Arc::new(Place::start(ProxyLimits::default(), None).await);
    assert_eq!(place.state(), PluginState::Idle);
    let asked: Vec<_> = (0..50)
        .map(|_| {
            let place = Arc::clone(&place);
            tokio::spawn(async move { place.ask("/").await.split_once("\r\n\r\n").unwrap().1.to_owned() })
        })
        .collect();
    let mut pids = Vec::new();
    for asked in asked {
        pids.push(asked.await.unwrap());
    }
    pids.dedup();
    assert_eq!(pids.len(), 1, "{pids:?}");
    assert_eq!(place.state(), PluginState::Ready);
    Arc::into_inner(place).unwrap().end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgraded_connection_is_a_use_until_it_ends() {
    let place = Place::start(ProxyLimits::default(), Some(Duration::from_millis(300))).await;
    let mut stream = place.upgrade().await;
    // Three times as long as the service lives without a use.
    tokio::time::sleep(Duration::from_millis(900)).await;
    stream.write_all(b"still there").await.unwrap();
    assert_eq!(read_to(&mut stream, "still there").await, "still there");
    assert_eq!(place.state(), PluginState::Ready);
    drop(stream);
    until(|| place.state() == PluginState::Idle).await;
    assert!(place.ask("/").await.starts_with("HTTP/1.1 200 "), "the next use starts it again");
    place.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_right_after_the_service_was_killed_is_answered_by_the_next_one() {
    let place = Place::start(ProxyLimits::default(), None).await;
    let pid = async || {
        let answer = place.ask("/").await;
        answer.split_once("\r\n\r\n").unwrap().1.parse::<i32>().unwrap_or_else(|_| panic!("{answer}"))
    };
    let mut before = pid().await;
    for _ in 0..3 {
        kill_process(Pid::from_raw(before).unwrap(), Signal::KILL).unwrap();
        until(|| gloveport_sys::process::stat(u32::try_from(before).unwrap()).is_none_or(|stat| stat.state == 'Z'))
            .await;
        let now = pid().await;
        assert_ne!(now, before);
        before = now;
    }
    place.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_dies_of_a_request_gets_it_again_once_and_only_if_it_changes_nothing() {
    let place = Place::start(ProxyLimits::default(), None).await;
    let directory = tempfile::tempdir().unwrap();
    let marker = |name: &str| directory.path().join(name).display().to_string();
    assert!(place.ask(&format!("/once?{}", marker("get"))).await.starts_with("HTTP/1.1 200 "));
    let cookie = &place.cookie;
    let request = format!(
        "POST /once?{} HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        marker("post")
    );
    let mut stream = place.connect().await;
    stream.write_all(request.as_bytes()).await.unwrap();
    assert!(read_all(&mut stream).await.starts_with("HTTP/1.1 502 "));
    place.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_the_session_is_not_known_to_a_listener_of_its_own() {
    let place = Place::start(ProxyLimits::default(), None).await;
    let mut stream = place.connect().await;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Session-API-Key: x\r\n\r\n").await.unwrap();
    assert!(read_all(&mut stream).await.starts_with("HTTP/1.1 403 "));
    assert_eq!(place.state(), PluginState::Idle);
    place.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_beyond_the_bound_wait_for_a_place_also_for_that_of_an_upgraded_one() {
    let place = Place::start(ProxyLimits { connections: 2, ..ProxyLimits::default() }, None).await;
    let (idle, upgraded) = (place.connect().await, place.upgrade().await);
    let mut third = place.send("/", "Connection: close\r\n").await;
    let mut early = [0; 1];
    assert!(timeout(Duration::from_millis(300), third.read(&mut early)).await.is_err(), "there was a third place");
    drop(upgraded);
    assert!(read_all(&mut third).await.starts_with("HTTP/1.1 200 "));
    drop(idle);
    place.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_say_or_take_nothing_are_left() {
    let limits =
        ProxyLimits { idle: Duration::from_millis(300), write: Duration::from_millis(500), ..ProxyLimits::default() };
    let place = Place::start(limits, Some(Duration::from_millis(300))).await;
    for said in ["", "GET / HT"] {
        let mut stream = place.connect().await;
        stream.write_all(said.as_bytes()).await.unwrap();
        let begun = Instant::now();
        let mut rest = Vec::new();
        timeout(LONG, stream.read_to_end(&mut rest)).await.expect("it is waited for without an end").unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(250), "{said:?} {:?}", begun.elapsed());
    }
    let greedy = place.send("/endless", "").await;
    until(|| place.state() == PluginState::Ready).await;
    // It is used only as long as its answer is; and then it stops for want of use.
    until(|| place.state() == PluginState::Idle).await;
    drop(greedy);
    place.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_listener_ends_its_connections() {
    let place = Place::start(ProxyLimits { drain: Duration::from_millis(200), ..ProxyLimits::default() }, None).await;
    let (mut idle, mut upgraded) = (place.connect().await, place.upgrade().await);
    let mut endless = place.send("/endless", "").await;
    read_to(&mut endless, "xxxx").await;
    let begun = Instant::now();
    place.end().await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    for stream in [&mut idle, &mut upgraded] {
        assert_eq!(read_all(stream).await, "");
    }
    let mut waste = Vec::new();
    // Its end comes, whether as one or as an error.
    let _ended = timeout(LONG, endless.read_to_end(&mut waste)).await.expect("it does not end");
}
