//! Real sockets for the tests: a name server, servers to reach, and clients that send what they like.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::allow_attributes,
    reason = "helpers of tests, of which each file uses its own part"
)]

pub mod tls;

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use gloveport_allow_list::Rules;
use gloveport_egress::{Egress, EgressLimits, EgressOptions, Forward, Policy, ProxyOptions};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream, UdpSocket},
    sync::mpsc,
    task::{JoinHandle, JoinSet},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// No test waits longer for anything.
pub const LIMIT: Duration = Duration::from_secs(20);
pub const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(LIMIT, future).await.unwrap_or_else(|_| panic!("{what}: nothing came in {LIMIT:?}"))
}

/// A name server on loopback that knows these names, and tells which it was asked for.
pub struct Dns {
    pub address: SocketAddr,
    pub asked: mpsc::UnboundedReceiver<String>,
    _task: Owned,
}

/// A task that ends with the test.
pub struct Owned(JoinHandle<()>);

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Dns {
    pub async fn start(names: &[(&str, &str)]) -> Self {
        let socket = UdpSocket::bind((LOOPBACK, 0)).await.unwrap();
        let address = socket.local_addr().unwrap();
        let names: HashMap<String, IpAddr> =
            names.iter().map(|(name, address)| ((*name).to_owned(), address.parse().unwrap())).collect();
        let (tell, asked) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            let mut packet = [0_u8; 1500];
            while let Ok((length, peer)) = socket.recv_from(&mut packet).await {
                let (name, reply) = answer(&packet[..length], &names);
                tell.send(name).ok();
                socket.send_to(&reply, peer).await.unwrap();
            }
        });
        Self { address, asked, _task: Owned(task) }
    }
}

/// The answer to a query of one question (RFC 1035, 4.1).
fn answer(query: &[u8], names: &HashMap<String, IpAddr>) -> (String, Vec<u8>) {
    let mut labels = Vec::new();
    let mut at = 12;
    while query[at] != 0 {
        let length = usize::from(query[at]);
        labels.push(String::from_utf8_lossy(&query[at + 1..=at + length]).to_lowercase());
        at += length + 1;
    }
    let (name, end) = (labels.join("."), at + 5);
    let kind = u16::from_be_bytes([query[at + 1], query[at + 2]]);
    let data = match (names.get(&name), kind) {
        (Some(IpAddr::V4(address)), 1) => Some(address.octets().to_vec()),
        (Some(IpAddr::V6(address)), 28) => Some(address.octets().to_vec()),
        _ => None,
    };
    let mut reply = query[..2].to_vec();
    // A response, recursion available; no such name if it is unknown.
    reply.extend([0x81, if names.contains_key(&name) { 0x80 } else { 0x83 }, 0, 1, 0, u8::from(data.is_some())]);
    reply.extend([0, 0, 0, 0]);
    reply.extend(&query[12..end]);
    if let Some(data) = data {
        reply.extend([0xc0, 12]);
        reply.extend(kind.to_be_bytes());
        reply.extend([0, 1, 0, 0, 0, 60]);
        reply.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
        reply.extend(data);
    }
    (name, reply)
}

/// A gate that ends with the test.
pub struct Running {
    pub proxy: Option<SocketAddr>,
    pub forwards: Vec<SocketAddr>,
    pub stop: CancellationToken,
    pub task: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub fn options() -> EgressOptions {
    EgressOptions {
        address: LOOPBACK,
        forwards: Vec::new(),
        proxy: None,
        sandbox: None,
        dns: None,
        limits: EgressLimits::default(),
    }
}

pub async fn run(options: EgressOptions) -> Running {
    let gate = Egress::open(options).await.unwrap();
    let stop = CancellationToken::new();
    let (proxy, forwards) = (gate.proxy(), gate.forwards());
    Running { proxy, forwards, stop: stop.clone(), task: tokio::spawn(gate.serve(stop)) }
}

/// A proxy with these rules.
pub async fn proxy(rules: &[&str], dns: &Dns, limits: EgressLimits) -> Running {
    proxy_of(Policy::new(Rules::parse(rules).unwrap()), dns, limits).await
}

pub async fn proxy_of(policy: Policy, dns: &Dns, limits: EgressLimits) -> Running {
    let proxy = ProxyOptions { listen: (LOOPBACK, 0).into(), policy, edge: None, lost: Rules::default() };
    run(EgressOptions { proxy: Some(proxy), dns: Some(dns.address), limits, ..options() }).await
}

/// A forward to this.
pub async fn forward(to: &str, limits: EgressLimits) -> Running {
    let forward: Forward = format!("0={to}").parse().unwrap();
    run(EgressOptions { forwards: vec![forward], limits, ..options() }).await
}

/// An HTTP server that answers every request with what it got; one connection, one request.
pub struct Origin {
    pub address: SocketAddr,
    _task: Owned,
}

impl Origin {
    pub async fn start(address: IpAddr) -> Self {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(echo(stream));
            }
        });
        Self { address, _task: Owned(task) }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }
}

/// Answers with the head of the request and its body.
async fn echo(stream: TcpStream) {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.unwrap();
    let text = format!("{head}{}", String::from_utf8_lossy(&body));
    let extra = "Connection: close, X-Secret\r\nX-Secret: 1\r\nKeep-Alive: timeout=5\r\nX-Kept: 1";
    let reply = format!("HTTP/1.1 200 OK\r\n{extra}\r\nContent-Length: {}\r\n\r\n{text}", text.len());
    stream.write_all(reply.as_bytes()).await.ok();
}

/// Sends a text as it is and ends; the answer is all that comes.
pub async fn send(to: SocketAddr, text: &str) -> String {
    let mut stream = TcpStream::connect(to).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream.shutdown().await.ok();
    let mut answer = Vec::new();
    let read = soon("the answer", stream.read_to_end(&mut answer)).await;
    assert!(read.is_ok() || !answer.is_empty(), "{read:?}");
    String::from_utf8_lossy(&answer).into_owned()
}

/// The number in the first line of an answer.
pub fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or(answer)
}

/// Opens a tunnel; the stream is behind the head of the answer.
pub async fn tunnel(proxy: SocketAddr, target: &str) -> Result<TcpStream, String> {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    stream.write_all(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(soon("the head", stream.read_u8()).await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    if status(&head) == "200" { Ok(stream) } else { Err(head) }
}

/// An address of this machine that is not loopback; rules for names do not lead to loopback.
pub fn own_address() -> Option<IpAddr> {
    let table = std::fs::read_to_string("/proc/net/fib_trie").unwrap();
    let lines: Vec<_> = table.lines().collect();
    let of_host = lines.windows(2).filter(|pair| pair[1].contains("/32 host LOCAL"));
    let addresses = of_host.filter_map(|pair| pair[0].rsplit(' ').next()?.parse::<Ipv4Addr>().ok());
    let found = addresses.map(IpAddr::V4).find(|address| !address.is_loopback());
    if found.is_none() {
        eprintln!("skipped: this machine has no address but loopback");
    }
    found
}
