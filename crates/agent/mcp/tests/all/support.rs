//! Servers for tests: those of MCP's authors, and some that behave badly.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first broken assumption")]

use std::{collections::BTreeMap, path::PathBuf, process::Stdio, sync::Arc};

use gloveport_mcp_client::{Client, HttpServer, Server, StdioServer};
use gloveport_protocol::Secret;
use gloveport_testing::{free_port, mcp_program, within};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    time::{Duration, sleep},
};

/// The script of the servers that behave badly.
fn script() -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/all/server.py").display().to_string()
}

/// A server that behaves badly, over its standard streams.
pub(crate) fn bad(mode: &str, argument: &str) -> StdioServer {
    let args = [script(), mode.to_owned(), argument.to_owned()].into();
    StdioServer { name: mode.to_owned(), command: "python3".to_owned(), args, env: BTreeMap::new() }
}

/// A program of MCP's authors; none where it is not installed.
pub(crate) fn good(program: &str, args: &[&str]) -> Option<StdioServer> {
    let command = mcp_program(program)?.display().to_string();
    let args = args.iter().map(|&argument| argument.to_owned()).collect();
    Some(StdioServer { name: program.to_owned(), command, args, env: BTreeMap::new() })
}

pub(crate) async fn connect(server: &Server) -> Arc<Client> {
    Arc::new(within(Client::connect(server)).await.unwrap())
}

pub(crate) async fn connect_to(server: &StdioServer) -> Arc<Client> {
    connect(&Server::Stdio(server.clone())).await
}

pub(crate) fn arguments(value: Value) -> JsonObject {
    serde_json::from_value(value).unwrap()
}

/// The text of a result that has one text and nothing else.
pub(crate) fn text(result: &CallToolResult) -> &str {
    match &result.content[..] {
        [ContentBlock::Text(text)] => &text.text,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn names(client: &Client) -> Vec<String> {
    within(client.tools()).await.unwrap().iter().map(|tool| tool.name.to_string()).collect()
}

/// A server over HTTP, which ends with this.
pub(crate) struct Listening {
    pub(crate) port: u16,
    child: Child,
}

impl Listening {
    /// A server that behaves badly, at `/sse`.
    pub(crate) async fn bad(mode: &str) -> Self {
        let mut child = Command::new("python3")
            .args([&script(), "http", mode])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        within(output.read_line(&mut line)).await.unwrap();
        Self { port: line.trim().parse().unwrap(), child }
    }

    /// The reference server of MCP in one of its modes, `sse` or `streamableHttp`; none where it is not installed.
    pub(crate) async fn everything(mode: &str) -> Option<Self> {
        let program = mcp_program("mcp-server-everything")?;
        let port = free_port();
        let child = Command::new(program)
            .arg(mode)
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        within(async {
            while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        Some(Self { port, child })
    }

    pub(crate) fn sse(&self) -> Server {
        Server::Sse(HttpServer::new(format!("http://127.0.0.1:{}/sse", self.port)))
    }

    pub(crate) fn streamable(&self) -> Server {
        Server::Http(HttpServer::new(format!("http://127.0.0.1:{}/mcp", self.port)))
    }

    pub(crate) async fn end(mut self) {
        self.child.kill().await.unwrap();
    }
}

/// What the reference server of MCP does, over every transport.
pub(crate) async fn try_everything(client: &Client) {
    let names = names(client).await;
    assert!(
        ["echo", "get-sum", "get-tiny-image"].iter().all(|name| names.iter().any(|tool| tool == name)),
        "{names:?}"
    );
    let called = within(client.call("echo", arguments(json!({"message": "é 漢 😀"})), None)).await.unwrap();
    assert_eq!(text(&called), "Echo: é 漢 😀");
    let sum = within(client.call("get-sum", arguments(json!({"a": 2, "b": 40})), None)).await.unwrap();
    assert_eq!(text(&sum), "The sum of 2 and 40 is 42.");
    let image = within(client.call("get-tiny-image", JsonObject::new(), None)).await.unwrap();
    let pictures = image.content.iter().filter(|block| matches!(block, ContentBlock::Image(_))).count();
    assert_eq!(pictures, 1);
    // A tool that refuses its arguments, and one that there is not.
    let refused = within(client.call("get-sum", arguments(json!({"a": "two"})), None)).await;
    assert!(refused.as_ref().map_or(true, |result| result.is_error == Some(true)), "{refused:?}");
    let unknown = within(client.call("no-such-tool", JsonObject::new(), None)).await;
    assert!(unknown.as_ref().map_or(true, |result| result.is_error == Some(true)), "{unknown:?}");
    // Twenty calls at once.
    let calls = (0..20).map(|number| {
        let arguments = arguments(json!({"message": number.to_string()}));
        async move { text(&client.call("echo", arguments, None).await.unwrap()).to_owned() }
    });
    let answers = within(futures_util::future::join_all(calls)).await;
    assert_eq!(answers, (0..20).map(|number| format!("Echo: {number}")).collect::<Vec<_>>());
}

pub(crate) fn secret(text: &str) -> Secret {
    Secret::new(text)
}
