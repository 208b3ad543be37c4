//! A way to the API server on which answers are replaced: what a busy, forbidding or dying server says.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use crate::cluster::Place;

/// What becomes of a request.
pub(crate) enum Verdict {
    /// The API server answers it.
    Pass,
    /// This status is the answer.
    Answer(u16, &'static str, &'static str),
    /// The connection breaks before the request is passed on.
    Break,
    /// The API server does it, and the answer is lost.
    Lose,
}

type Judge = Box<dyn FnMut(&str, &str) -> Verdict + Send>;

/// Passes requests on, after somebody has judged their method and path.
pub(crate) struct Proxy {
    judge: Arc<Mutex<Judge>>,
    _kubectl: Plain,
    serving: JoinHandle<()>,
}

impl Proxy {
    /// The backends of this place go this way from now on.
    pub(crate) async fn before(place: &mut Place) -> Self {
        let kubectl = Plain::new();
        let upstream = kubectl.address.clone();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let file: PathBuf = place.path().join("kubeconfig");
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": {"server": server}}],
            "users": [{"name": "proxy", "user": {}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
        });
        fs::write(&file, config.to_string()).unwrap();
        place.kubeconfig = file;
        let pass: Judge = Box::new(|_, _| Verdict::Pass);
        let judge = Arc::new(Mutex::new(pass));
        let serving = tokio::spawn(serve(listener, upstream, Arc::clone(&judge)));
        Self { judge, _kubectl: kubectl, serving }
    }

    /// Judges all requests from now on by method and path.
    pub(crate) fn judge(&self, judge: impl FnMut(&str, &str) -> Verdict + Send + 'static) {
        *self.judge.lock().unwrap() = Box::new(judge);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A way to the API server without a login and without TLS.
pub(crate) struct Plain {
    kubectl: Child,
    pub(crate) address: String,
}

impl Plain {
    pub(crate) fn new() -> Self {
        let script = std::env::var("GLOVEPORT_TEST_CLUSTER_SCRIPT").unwrap();
        let mut kubectl = Command::new(script)
            .args(["kubectl", "proxy", "--port=0", "--reject-paths=^$"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // `Starting to serve on 127.0.0.1:36227`
        let mut line = String::new();
        BufReader::new(kubectl.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit(' ').next().unwrap().to_owned();
        Self { kubectl, address }
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        self.kubectl.kill().unwrap();
        self.kubectl.wait().unwrap();
    }
}

async fn serve(listener: TcpListener, upstream: String, judge: Arc<Mutex<Judge>>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (upstream, judge) = (upstream.clone(), Arc::clone(&judge));
        tokio::spawn(async move {
            // A connection that breaks is what some tests are about.
            let _broken = pass(stream, &upstream, &judge).await;
        });
    }
}

/// One request, as all others come by connections of their own.
async fn pass(mut stream: TcpStream, upstream: &str, judge: &Mutex<Judge>) -> std::io::Result<()> {
    let mut head = Vec::new();
    let end = loop {
        if let Some(end) = head.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    };
    let text = String::from_utf8_lossy(&head[..end]).into_owned();
    let mut words = text.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let verdict = judge.lock().unwrap()(method, path);
    let lost = match verdict {
        Verdict::Break => return Ok(()),
        Verdict::Answer(code, reason, message) => {
            let body =
                json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
                "message": message, "details": {"retryAfterSeconds": u32::from(code == 429)}})
                .to_string();
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {code} x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            return stream.write_all(answer.as_bytes()).await;
        }
        Verdict::Lose => true,
        Verdict::Pass => false,
    };
    let mut server = TcpStream::connect(upstream).await?;
    let upgrades = text.to_ascii_lowercase().contains("\r\nupgrade:");
    let mut lines: Vec<&str> = text.split("\r\n").collect();
    if !upgrades {
        lines.retain(|line| !line.to_ascii_lowercase().starts_with("connection:"));
        lines.push("connection: close");
    }
    server.write_all(format!("{}\r\n\r\n", lines.join("\r\n")).as_bytes()).await?;
    server.write_all(&head[end + 4..]).await?;
    if lost {
        // The rest of the request, and the beginning of an answer that nobody gets.
        let mut first = [0; 1];
        let (mut from, mut to) = stream.split();
        tokio::select! {
            copied = tokio::io::copy(&mut from, &mut server) => drop(copied?),
            () = tokio::time::sleep(std::time::Duration::from_secs(1)) => {}
        }
        let _ = (&mut to, server.read(&mut first).await?);
        return Ok(());
    }
    copy_bidirectional(&mut stream, &mut server).await.map(drop)
}
