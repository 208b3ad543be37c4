//! Measures terminals of a server: the round trip of a key through `cat`, and the output of `yes`.
//!
//! `cargo run --release -p gloveport-client --example terminals -- http://127.0.0.1:8000 [SESSION KEY]`
#![expect(clippy::print_stdout, reason = "it prints numbers")]

use std::time::{Duration, Instant};

use gloveport_client::{ActionExecutionClient, AttachOptions, AttachedTerminal, ClientOptions, TerminalEvent};
use gloveport_protocol::terminals::TerminalRequest;

const KEYS: usize = 5000;
const WARM_UP: usize = 200;
const FLOOD: u64 = 500_000_000;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("the URL of a server is missing")?;
    let client = ActionExecutionClient::new(&ClientOptions::new(url).with_key(arguments.next().as_deref()))?;
    round_trips(&client).await?;
    for _round in 0..3 {
        flood(&client).await?;
    }
    Ok(())
}

async fn start(client: &ActionExecutionClient, script: &str) -> Outcome<AttachedTerminal> {
    let argv = Some(["sh", "-c", script].map(str::to_owned).to_vec());
    let status = client.terminals().start(TerminalRequest { argv, ..TerminalRequest::default() }).await?;
    let mut terminal = client.terminals().attach(&status.id, AttachOptions::default()).await?;
    let mut seen = Vec::new();
    while !seen.ends_with(b"ready") {
        seen.extend(output(&mut terminal).await?);
    }
    Ok(terminal)
}

async fn output(terminal: &mut AttachedTerminal) -> Outcome<bytes::Bytes> {
    match terminal.next().await? {
        Some(TerminalEvent::Output { bytes, .. }) => Ok(bytes),
        other => Err(format!("{other:?} instead of output").into()),
    }
}

async fn round_trips(client: &ActionExecutionClient) -> Outcome<()> {
    let mut terminal = start(client, "stty raw -echo; printf ready; exec cat").await?;
    let input = terminal.input();
    let mut times = Vec::with_capacity(KEYS);
    for number in 0..WARM_UP + KEYS {
        let began = Instant::now();
        input.send("x").await;
        output(&mut terminal).await?;
        if number >= WARM_UP {
            times.push(began.elapsed());
        }
    }
    times.sort_unstable();
    let at = |part: usize| times.get(times.len() * part / 1000).copied().unwrap_or(Duration::ZERO);
    println!("key through cat: p50 {:?}, p99 {:?}, most {:?} ({KEYS} keys)", at(500), at(990), at(999));
    client.terminals().remove(terminal.id()).await?;
    Ok(())
}

async fn flood(client: &ActionExecutionClient) -> Outcome<()> {
    let mut terminal = start(client, "stty raw -echo; printf ready; read x; exec yes").await?;
    terminal.input().send("\n").await;
    let (began, mut seen, mut lost) = (Instant::now(), 0, 0);
    while seen < FLOOD {
        match terminal.next().await? {
            Some(TerminalEvent::Output { bytes, .. }) => seen += bytes.len() as u64,
            Some(TerminalEvent::Gap { from, to }) => lost += to - from,
            other => return Err(format!("{other:?} instead of output").into()),
        }
    }
    let took = began.elapsed();
    let rate = Duration::from_secs(1).as_micros() * u128::from(seen) / took.as_micros().max(1) / 1_000_000;
    println!("yes: {rate} MB/s ({seen} bytes in {took:?}, {lost} bytes came faster than they were taken)");
    client.terminals().remove(terminal.id()).await?;
    Ok(())
}
