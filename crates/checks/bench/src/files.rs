//! Measurements of the file actions.

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::Context as _;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    client::{Client, action_body},
    sample::{Sample, repeat},
    server::Server,
};

/// How often each thing is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileAmount {
    pub(crate) small: usize,
    pub(crate) edits: usize,
    /// Seconds that eight clients read.
    pub(crate) wrk_seconds: u32,
    /// Whether reads are measured while a command runs; the reference would wait for the command.
    pub(crate) beside_command: bool,
}

/// Numbers of the file actions of one server.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct FileNumbers {
    /// `read` of 1 KiB.
    pub(crate) read: Sample,
    /// `write` of 1 KiB into an existing file.
    pub(crate) write: Sample,
    /// `str_replace` of one line in a file of 1 MB and 20,000 lines.
    pub(crate) str_replace: Sample,
    /// `read` of 1 KiB by eight clients at once, a second; `None` where `wrk` is not installed.
    pub(crate) reads_per_second: Option<f64>,
    /// `read` of 1 KiB while a command runs.
    pub(crate) read_beside_command: Option<Sample>,
}

pub(crate) fn measure(server: &Server, amount: FileAmount) -> anyhow::Result<FileNumbers> {
    let directory = server.working_directory();
    let mut client = Client::connect(server.port)?;
    let small = directory.join("small.txt");
    let text = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n".repeat(16);
    fs::write(&small, &text)?;
    let read_body = action_body("read", &json!({"path": small}));
    let read = repeat(amount.small, || execute(&mut client, &read_body, &text))?;

    let target = directory.join("target.txt");
    fs::write(&target, "old\n")?;
    let write_body = action_body("write", &json!({"path": target, "content": text.trim_end()}));
    let write = repeat(amount.small, || execute(&mut client, &write_body, ""))?;
    anyhow::ensure!(fs::read_to_string(&target)? == text, "the file was not written");

    let reads_per_second = wrk(server.port, &directory, &read_body, amount.wrk_seconds)?;
    // A server may have closed the connection that was idle meanwhile.
    let mut client = Client::connect(server.port)?;
    let read_beside_command = if amount.beside_command {
        Some(beside_command(server, &mut client, &read_body, &text, amount.small)?)
    } else {
        None
    };
    Ok(FileNumbers {
        read,
        write,
        str_replace: str_replace(&mut client, &directory, amount.edits)?,
        reads_per_second,
        read_beside_command,
    })
}

/// Executes an action and makes sure that its observation has the content.
fn execute(client: &mut Client, body: &[u8], content: &str) -> anyhow::Result<()> {
    let observation = client.execute(body)?;
    anyhow::ensure!(observation.get("content").and_then(Value::as_str) == Some(content), "{observation}");
    Ok(())
}

/// Changes one line in the middle of a large file to and fro.
fn str_replace(client: &mut Client, directory: &Path, count: usize) -> anyhow::Result<Sample> {
    let path = directory.join("large.txt");
    let lines: Vec<String> =
        (0..20_000).map(|n| format!("line {n:05} has some text in it, as a line of code has\n")).collect();
    fs::write(&path, lines.concat())?;
    let (old, new) = ("line 10000 has some text", "line 10000 has other text");
    let body = |from: &str, to: &str| {
        action_body("edit", &json!({"path": path, "command": "str_replace", "old_str": from, "new_str": to}))
    };
    let (there, back) = (body(old, new), body(new, old));
    let mut is_there = false;
    let sample = repeat(count, || {
        let observation = client.execute(if is_there { &back } else { &there })?;
        is_there = !is_there;
        let content = observation.get("content").and_then(Value::as_str).unwrap_or_default();
        anyhow::ensure!(content.contains("has been edited"), "{observation}");
        Ok(())
    })?;
    let expected = if is_there { lines.concat().replace(old, new) } else { lines.concat() };
    anyhow::ensure!(fs::read_to_string(&path)? == expected, "the file was not edited");
    Ok(sample)
}

/// Reads of eight clients, by `wrk`.
fn wrk(port: u16, directory: &Path, body: &[u8], seconds: u32) -> anyhow::Result<Option<f64>> {
    let script = directory.join("wrk.lua");
    let mut file = fs::File::create(&script)?;
    write!(file, "wrk.method = \"POST\"\nwrk.headers[\"content-type\"] = \"application/json\"\nwrk.body = [==[")?;
    file.write_all(body)?;
    file.write_all(b"]==]\n")?;
    drop(file);
    let output = Command::new("wrk")
        .args(["-t1", "-c8", &format!("-d{seconds}s"), "-s"])
        .arg(&script)
        .arg(format!("http://127.0.0.1:{port}/execute_action"))
        .stdin(Stdio::null())
        .output();
    let output = match output {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        other => other.context("cannot run wrk")?,
    };
    let text = String::from_utf8_lossy(&output.stdout);
    anyhow::ensure!(output.status.success() && !text.contains("Non-2xx"), "wrk: {text}");
    let rate = text.lines().find_map(|line| line.trim().strip_prefix("Requests/sec:")).context("no rate from wrk")?;
    Ok(Some(rate.trim().parse()?))
}

fn beside_command(
    server: &Server,
    client: &mut Client,
    body: &[u8],
    content: &str,
    count: usize,
) -> anyhow::Result<Sample> {
    let mut other = Client::connect(server.port)?;
    let started = server.working_directory().join("started");
    let command = format!("touch {}; while [ -e {0} ]; do sleep 0.05; done", started.display());
    let running = thread::spawn(move || other.run(&command).map(drop));
    while !started.exists() {
        thread::sleep(Duration::from_millis(1));
    }
    let sample = repeat(count, || execute(client, body, content));
    let was_running = !running.is_finished();
    fs::remove_file(&started)?;
    running.join().map_err(|_| anyhow::anyhow!("the command's thread failed"))??;
    anyhow::ensure!(was_running, "the command ended too early");
    sample
}
