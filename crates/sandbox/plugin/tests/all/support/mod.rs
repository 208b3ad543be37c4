//! A workspace for services, and questions about them.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use gloveport_plugin::{Endpoint, Health, Listens, Manifest, ManifestPlugin, Plugin, PluginHost, ServiceSpec};
use gloveport_sys::{Surroundings, process};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpStream, UnixStream},
};

/// Longest wait for anything.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// A server in Python at a port or a socket. It adds `x` to the file `starts` at each start and serves its directory;
/// `/die` ends it without an answer, `/third` fails until it is asked three times. It has no single quotes.
pub(crate) const SERVER: &str = r#"
import http.server, os, socket, socketserver, sys
with open("starts", "a") as starts:
    starts.write("x")
class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/die":
            os._exit(7)
        if self.path == "/third":
            with open("asked", "a") as asked:
                asked.write("x")
            with open("asked") as asked:
                if len(asked.read()) < 3:
                    return self.send_error(503)
        super().do_GET()
    def do_POST(self):
        import json, time
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        code = body["args"].get("code", "")
        if code == "slow":
            time.sleep(60)
        if code == "refuse":
            return self.send_error(503)
        answer = json.dumps({"observation": "run_ipython", "content": self.path + " " + code.upper(), "extras": {"code": code}})
        if code == "text":
            answer = "hello"
        if code == "long":
            answer = "x" * 20000000
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer.encode())
    def address_string(self):
        return "-"
at = sys.argv[1]
if at.isdigit():
    http.server.ThreadingHTTPServer(("127.0.0.1", int(at)), Handler).serve_forever()
else:
    socketserver.ThreadingUnixStreamServer(at, Handler).serve_forever()
"#;

/// Words that let a shell run a script.
pub(crate) fn sh(script: &str) -> [&str; 3] {
    ["sh", "-c", script]
}

/// Words that let Python run a script.
pub(crate) fn python(script: &str) -> Vec<OsString> {
    ["python3", "-c", script].map(OsString::from).to_vec()
}

/// A workspace of its own.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn host(&self) -> PluginHost {
        let surroundings = Surroundings::inherited(self.path().to_owned());
        PluginHost { surroundings, workspace: self.path().to_owned() }
    }

    /// A file of the workspace; empty if there is none.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }

    /// How often the program was started.
    pub(crate) fn starts(&self) -> usize {
        self.read("starts").matches('x').count()
    }

    /// The process ids in the file `pids`.
    pub(crate) fn pids(&self) -> Vec<u32> {
        self.read("pids").lines().filter_map(|line| line.parse().ok()).collect()
    }
}

/// A service at a free port that accepts connections when it is healthy.
pub(crate) fn spec(name: &str, command: &[&str]) -> ServiceSpec {
    ServiceSpec {
        name: name.to_owned(),
        set_up: None,
        set_up_limit: LIMIT,
        command: command.iter().map(Into::into).collect(),
        environment: BTreeMap::new(),
        listens: Listens::AnyPort,
        health: Health::Accepts,
        start_limit: LIMIT,
        idle_stop: None,
        end_grace: ServiceSpec::END_GRACE,
        eager: false,
    }
}

/// Whether a process runs; one that only waits to be reaped does not.
pub(crate) fn is_alive(pid: u32) -> bool {
    process::stat(pid).is_some_and(|stat| !"ZX".contains(stat.state))
}

/// Waits until something is so.
pub(crate) async fn within(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < deadline, "it took more than {LIMIT:?} until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// All that is answered to a request; empty if there is none.
pub(crate) async fn get(endpoint: &Endpoint, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.0\r\n\r\n");
    let mut answer = Vec::new();
    match endpoint {
        Endpoint::Port(port) => {
            let mut stream = TcpStream::connect(("127.0.0.1", *port)).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let _broken = stream.read_to_end(&mut answer).await;
        }
        Endpoint::Socket(path) => {
            let mut stream = UnixStream::connect(path).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let _broken = stream.read_to_end(&mut answer).await;
        }
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// A plugin with this manifest in this folder.
pub(crate) fn plugin(folder: &Path, text: &str) -> Arc<dyn Plugin> {
    let manifest = Manifest::parse(&folder.join("plugin.toml"), text).unwrap();
    Arc::new(ManifestPlugin::new(manifest))
}
