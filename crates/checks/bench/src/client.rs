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

/// Bytes of a large body that are sent or read at once.
const PIECE: usize = 256 * 1024;

/// A kept-alive connection.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    /// What stands before all paths.
    prefix: String,
    /// Headers of all requests, each with the end of its line.
    headers: String,
}

impl Client {
    pub(crate) fn connect(port: u16) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        let stream = BufReader::with_capacity(64 * 1024, stream);
        Ok(Self { stream, prefix: String::new(), headers: String::new() })
    }

    /// The same connection for requests below this path, with this header.
    pub(crate) fn below(self, prefix: &str, (name, value): (&str, &str)) -> Self {
        Self { prefix: prefix.to_owned(), headers: format!("{name}: {value}\r\n"), ..self }
    }

    /// Sends one request and reads the whole answer: status and body.
    pub(crate) fn request(&mut self, method: &str, path: &str, body: &[u8]) -> anyhow::Result<(u16, Vec<u8>)> {
        let mut request = self.head(method, path, body.len() as u64);
        request.extend_from_slice(body);
        self.stream.get_mut().write_all(&request)?;
        let (status, length) = self.answer_head()?;
        let mut answer = vec![0; usize::try_from(length)?];
        self.stream.read_exact(&mut answer)?;
        Ok((status, answer))
    }

    /// Sends a body of this length, which is `piece` again and again.
    pub(crate) fn upload(&mut self, path: &str, piece: &[u8], length: u64) -> anyhow::Result<()> {
        let head = self.head("PUT", path, length);
        let stream = self.stream.get_mut();
        stream.write_all(&head)?;
        let mut left = length;
        while left > 0 {
            let part = piece.get(..usize::try_from(left)?).unwrap_or(piece);
            stream.write_all(part)?;
            left -= part.len() as u64;
        }
        let (status, length) = self.answer_head()?;
        let mut answer = vec![0; usize::try_from(length)?];
        self.stream.read_exact(&mut answer)?;
        anyhow::ensure!(status == 200, "status {status}: {}", String::from_utf8_lossy(&answer));
        Ok(())
    }

    /// Reads a body of any length piece by piece; gives its length.
    pub(crate) fn download(&mut self, path: &str, mut each: impl FnMut(&[u8])) -> anyhow::Result<u64> {
        let head = self.head("GET", path, 0);
        self.stream.get_mut().write_all(&head)?;
        let (status, length) = self.answer_head()?;
        anyhow::ensure!(status == 200, "status {status} for {path}");
        let mut piece = vec![0; PIECE];
        let mut left = length;
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            let read = self.stream.read(&mut piece[..wanted])?;
            anyhow::ensure!(read > 0, "the answer ended {left} bytes too early");
            each(&piece[..read]);
            left -= read as u64;
        }
        Ok(length)
    }

    fn head(&self, method: &str, path: &str, length: u64) -> Vec<u8> {
        let Self { prefix, headers, .. } = self;
        format!(
            "{method} {prefix}{path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-type: application/json\r\n\
             content-length: {length}\r\n\r\n"
        )
        .into_bytes()
    }

    /// Status and length of an answer.
    fn answer_head(&mut self) -> anyhow::Result<(u16, u64)> {
        let mut line = String::new();
        anyhow::ensure!(self.stream.read_line(&mut line)? > 0, "the server has closed the connection");
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).context("no status line")?;
        let mut length = 0;
        loop {
            line.clear();
            anyhow::ensure!(self.stream.read_line(&mut line)? > 0, "the answer ended in its head");
            let header = line.trim_end();
            if header.is_empty() {
                return Ok((status, length));
            }
            if let Some((_, value)) =
                header.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            {
                length = value.trim().parse().context("a content-length that is no number")?;
            }
        }
    }

    /// Runs a command and returns the observation.
    pub(crate) fn run(&mut self, command: &str) -> anyhow::Result<Value> {
        self.execute(&run_body(command)).with_context(|| command.to_owned())
    }

    /// Runs a command and makes sure that the work was done.
    pub(crate) fn expect(&mut self, command: &str, content: &str) -> anyhow::Result<()> {
        let observation = self.run(command)?;
        let found = observation.get("content").and_then(Value::as_str);
        anyhow::ensure!(found == Some(content), "{command}: {observation}");
        Ok(())
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
