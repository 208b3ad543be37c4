//! Measurements of `gloveport mcp` by a client on its standard input and output.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Instant,
};

use anyhow::Context as _;
use serde::Serialize;
use serde_json::{Value, json};

use crate::sample::{Sample, repeat};

/// How often each thing is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct McpAmount {
    pub(crate) starts: usize,
    pub(crate) calls: usize,
}

/// What was measured, with a sandbox of the runtime `local`.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct McpNumbers {
    /// From the start of the program to the answer of the first call.
    pub(crate) first: Sample,
    /// `shell` with `echo hi`.
    pub(crate) shell: Sample,
    /// `read_file` of a small file.
    pub(crate) read: Sample,
}

/// A client and the program it has started.
struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    asked: u64,
}

impl Client {
    fn start(binary: &Path, home: &Path) -> anyhow::Result<Self> {
        let mut command = Command::new(binary);
        command.arg("mcp").current_dir(home).env("HOME", home).env("TMPDIR", home);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let streams = child.stdin.take().zip(child.stdout.take());
        let (input, output) = streams.context("the program has no standard streams")?;
        let mut client = Self { child, input, output: BufReader::new(output), asked: 0 };
        let who = json!({"name": "bench", "version": "1"});
        client.ask("initialize", &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": who}))?;
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(client)
    }

    fn send(&mut self, message: &Value) -> anyhow::Result<()> {
        Ok(self.input.write_all(format!("{message}\n").as_bytes())?)
    }

    fn ask(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let mut line = String::new();
            anyhow::ensure!(self.output.read_line(&mut line)? > 0, "gloveport mcp has ended");
            let mut answer: Value = serde_json::from_str(&line)?;
            if answer.get("id") == Some(&id.into()) {
                return Ok(answer.get_mut("result").map(Value::take).unwrap_or_default());
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value, expected: &str) -> anyhow::Result<()> {
        let result = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        let text = result.pointer("/content/0/text").and_then(Value::as_str);
        anyhow::ensure!(text == Some(expected), "{tool}: {result}");
        Ok(())
    }

    fn echo(&mut self) -> anyhow::Result<()> {
        self.call("shell", &json!({"command": "echo hi"}), "hi\n[exit code 0]")
    }

    fn stop(self) -> anyhow::Result<()> {
        let Self { mut child, input, .. } = self;
        drop(input);
        let status = child.wait()?;
        anyhow::ensure!(status.success(), "gloveport mcp: {status}");
        Ok(())
    }
}

/// Measures with this binary.
pub(crate) fn measure(binary: &Path, amount: McpAmount) -> anyhow::Result<McpNumbers> {
    let home = tempfile::tempdir()?;
    let binary = binary.canonicalize()?;
    let mut first = Vec::new();
    for _start in 0..amount.starts {
        let began = Instant::now();
        let mut client = Client::start(&binary, home.path())?;
        client.echo()?;
        first.push(began.elapsed());
        client.stop()?;
    }
    let mut client = Client::start(&binary, home.path())?;
    let shell = repeat(amount.calls, || client.echo())?;
    let path = home.path().join("small.txt");
    std::fs::write(&path, "a line\n")?;
    let read = repeat(amount.calls, || client.call("read_file", &json!({"path": path}), "a line\n"))?;
    client.stop()?;
    Ok(McpNumbers { first: Sample::new(first), shell, read })
}
