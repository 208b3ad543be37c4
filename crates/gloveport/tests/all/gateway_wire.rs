//! Bytes to a gateway as they stand in a test, and a program in a sandbox that says what has come of them.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fmt::Write as _,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
};

use gloveport_hosting::WaitOptions;
use gloveport_provider::{Progress, Provider as _, Sandbox};
use serde_json::Value;
use tokio::time::timeout;

use crate::{
    gateway::Running,
    sandboxes::{LIMIT, run, spec},
};

/// A server that tells what it was asked, as JSON.
const ECHO: &str = r#"
import json, os, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
LOG, GO = [], threading.Event()
class Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def body(self):
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        whole = b""
        while size := int(self.rfile.readline() or b"0", 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole
    def tell(self, status, text, headers=()):
        self.send_response(status)
        for name, value in headers: self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def do_GET(self):
        path = self.path
        LOG.append(path)
        if path == "/log": return self.tell(200, json.dumps(LOG).encode())
        if path == "/away": return self.tell(302, b"", [("Location", "http://elsewhere.example/a")])
        if path == "/here": return self.tell(302, b"", [("Location", "/login")])
        if path == "/slow": time.sleep(2); return self.tell(200, b"{}")
        if path == "/go": GO.set(); return self.tell(200, b"{}")
        if path == "/events":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            for number in range(2):
                self.wfile.write(b"data: %d\n\n" % number)
                self.wfile.flush()
                GO.wait(20)
            self.close_connection = True
            return
        if path == "/socket":
            self.send_response(101)
            self.send_header("Connection", "Upgrade")
            self.send_header("Upgrade", "websocket")
            self.end_headers()
            while part := self.connection.recv(4096): self.connection.sendall(part)
            self.close_connection = True
            return
        told = {"path": path, "body": self.body().decode(), "headers": {k.lower(): v for k, v in self.headers.items()}}
        cookies = [("Set-Cookie", "a=b; Path=/; Domain=example.org"), ("Set-Cookie", "c=d")]
        self.tell(200, json.dumps(told).encode(), cookies)
    do_POST = do_PUT = do_GET
ThreadingHTTPServer(("127.0.0.1", int(os.environ["WORK_PORT_1"])), Echo).serve_forever()
"#;

/// A sandbox with that server at its first port for programs.
pub(crate) async fn echoing(running: &Running, name: &str) -> Sandbox {
    let sandbox = made(running, name).await;
    let id = &sandbox.id;
    let command = format!("cat > echo.py <<'END'{ECHO}END\npython3 echo.py > /dev/null 2> echo.log < /dev/null & true");
    run(&sandbox, &command).await;
    let path = format!("/{id}/work-1/");
    let up = async { while running.ask("GET", &path, None, None).await.0 != 200 {} };
    timeout(LIMIT, up).await.unwrap();
    sandbox
}

/// A sandbox of the gateway, as its engine knows it.
pub(crate) async fn made(running: &Running, name: &str) -> Sandbox {
    let made = running.backend().create(&spec(name), &Progress::silent()).await.unwrap();
    let (options, engine) = (WaitOptions { limit: LIMIT, ..WaitOptions::default() }, &*running.engine);
    let found = engine.find(&made.id).await.unwrap().unwrap();
    gloveport_hosting::wait_until_alive(engine, found, &options, &Progress::silent()).await.unwrap()
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    fn of(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        Self { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The values of a header.
    pub(crate) fn all(&self, name: &str) -> Vec<String> {
        let values = self.head.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        values.map(str::to_owned).collect()
    }
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream
}

/// All that comes back for these bytes until the connection ends.
pub(crate) async fn exchange(address: SocketAddr, bytes: impl Into<Vec<u8>>) -> Vec<u8> {
    let bytes = bytes.into();
    let asked = tokio::task::spawn_blocking(move || {
        let mut stream = connect(address);
        // The gateway may end it before all is written.
        let _cut_off = stream.write_all(&bytes);
        let mut answer = Vec::new();
        let _cut_off = stream.read_to_end(&mut answer);
        answer
    });
    asked.await.unwrap()
}

/// The answer to a request, which is the only one on its connection.
pub(crate) async fn request(address: SocketAddr, line: &str, headers: &[(&str, &str)]) -> Answer {
    let mut bytes = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
    for (name, value) in headers {
        write!(bytes, "{name}: {value}\r\n").unwrap();
    }
    bytes.push_str("\r\n");
    Answer::of(&String::from_utf8_lossy(&exchange(address, bytes).await))
}
