//! Sandboxes that a gateway has started ahead.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use serde::Serialize;
use serde_json::Value;

use super::program::{Engine, Gateway, start, stop};
use crate::{client::Client, sample::Sample};

/// Sandboxes that wait.
const WAITING: &str = "2";
/// Longest wait for them.
const LIMIT: Duration = Duration::from_mins(2);

/// Numbers of sandboxes that were started ahead.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct WarmNumbers {
    /// From the request for a sandbox to a server that answers.
    pub(crate) claim: Sample,
}

/// Measures; `None` where the program starts no sandboxes ahead. Adds what is left of it.
pub(super) fn measure(
    binary: &Path,
    engine: &Engine,
    claims: usize,
    left: &mut usize,
) -> anyhow::Result<Option<WarmNumbers>> {
    if !Gateway::has_flag(binary, "--warm")? {
        return Ok(None);
    }
    let gateway = Gateway::start(binary, engine, &["--warm", WAITING])?;
    let mut client = gateway.client()?;
    let mut times = Vec::with_capacity(claims);
    for number in 0..claims {
        wait(&mut client)?;
        let began = Instant::now();
        let sandbox = start(&mut client, &format!("bench-warm-{}-{number}", std::process::id()))?;
        times.push(began.elapsed());
        stop(&mut client, &sandbox.id)?;
    }
    *left += gateway.end()?;
    Ok(Some(WarmNumbers { claim: Sample::new(times) }))
}

/// Waits until as many wait as shall.
fn wait(client: &mut Client) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        let (status, answer) = client.request("GET", "/api/warm-runtime-configs", b"")?;
        let answer: Value = serde_json::from_slice(&answer).with_context(|| format!("pools: status {status}"))?;
        let waiting = answer.pointer("/configs/0/waiting").and_then(Value::as_u64);
        if waiting.is_some_and(|waiting| waiting.to_string() == WAITING) {
            return Ok(());
        }
        anyhow::ensure!(began.elapsed() < LIMIT, "no sandboxes wait after {LIMIT:?}: {answer}");
        thread::sleep(Duration::from_millis(5));
    }
}
