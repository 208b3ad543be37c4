//! One HTTP connection with as little around it as possible, so that the server is measured and not the client.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use anyhow::Context as _;
use serde_json::{Value, json};

/// Longest wait for an answer.
const LIMIT: Duration = Duration::from_secs(150);

/// A kept-alive connection.
#[derive(Debug)]
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn connect(port: u16) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LIMIT))?;
        Ok(Self { stream: BufReader::with_capacity(64 * 1024, stream) })
    }

    /// Sends one request and reads the whole answer: status and body.
    pub(crate) fn request(&mut self, method: &str, path: &str, body: &[u8]) -> anyhow::Result<(u16, Vec<u8>)> {
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(body);
        self.stream.get_mut().write_all(&request)?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).context("no status line")?;
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let header = line.trim_end();
            if header.is_empty() {
                break;
            }
            if let Some((_, value)) =
                header.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            {
                length = value.trim().parse().context("a content-length that is no number")?;
            }
        }
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer)?;
        Ok((status, answer))
    }

    /// Runs a command and returns the observation.
    pub(crate) fn run(&mut self, command: &str) -> anyhow::Result<Value> {
        self.execute(&run_body(command)).with_context(|| command.to_owned())
    }

    /// Executes an action and returns the observation.
    pub(crate) fn execute(&mut self, body: &[u8]) -> anyhow::Result<Value> {
        let (status, answer) = self.request("POST", "/execute_action", body)?;
        anyhow::ensure!(status == 200, "status {status}: {}", String::from_utf8_lossy(&answer));
        Ok(serde_json::from_slice(&answer)?)
    }
}

/// The request body of an action.
pub(crate) fn action_body(action: &str, args: &Value) -> Vec<u8> {
    json!({"action": {"action": action, "timeout": 120.0, "args": args}}).to_string().into_bytes()
}

/// The request body of a command, with the time limit and the flags that OpenHands sends.
pub(crate) fn run_body(command: &str) -> Vec<u8> {
    json!({"action": {"action": "run", "timeout": 120.0, "args": {
        "command": command, "is_input": false, "thought": "", "blocking": false, "is_static": false, "cwd": null,
        "hidden": true, "confirmation_state": "confirmed", "security_risk": -1}}})
    .to_string()
    .into_bytes()
}
