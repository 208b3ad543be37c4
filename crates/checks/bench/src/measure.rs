//! The measurements, the same for every server.

use std::{fs, process::Command, time::Duration};

use serde::Serialize;

use crate::{
    browser::BrowserAmount,
    cells::{self, CellAmount, CellNumbers},
    client::{Client, run_body},
    containers::ContainerAmount,
    files::{self, FileAmount, FileNumbers},
    gateway::GatewayAmount,
    history::HistoryAmount,
    mcp::McpAmount,
    sample::{Sample, repeat},
    sandboxes::SandboxAmount,
    server::{Program, Server},
};

/// How often each thing is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Amount {
    echo: usize,
    pub(crate) spawn: usize,
    sleep: usize,
    output: usize,
    starts: usize,
    pub(crate) sandboxes: SandboxAmount,
    pub(crate) containers: ContainerAmount,
    files: FileAmount,
    pub(crate) history: HistoryAmount,
    pub(crate) mcp: McpAmount,
    cells: CellAmount,
    pub(crate) browser: BrowserAmount,
    pub(crate) gateway: GatewayAmount,
}

impl Amount {
    pub(crate) const FULL: Self = Self {
        echo: 5000,
        spawn: 500,
        sleep: 50,
        output: 7,
        starts: 9,
        sandboxes: SandboxAmount { starts: 50, at_once: 50, crowd: 200 },
        containers: ContainerAmount { starts: 20, at_once: 20 },
        files: FileAmount { small: 5000, edits: 500, wrk_seconds: 5, beside_command: true },
        history: HistoryAmount { appended: 4000, long: 100_000 },
        mcp: McpAmount { starts: 20, calls: 2000 },
        cells: CellAmount { starts: 5, cells: 500 },
        browser: BrowserAmount { starts: 5, steps: 40 },
        gateway: GatewayAmount { echo: 5000, body: 1_000_000_000, bodies: 5, sockets: 2000, crowd: 500, claims: 50 },
    };
    pub(crate) const SMOKE: Self = Self {
        echo: 200,
        spawn: 20,
        sleep: 3,
        output: 2,
        starts: 2,
        sandboxes: SandboxAmount { starts: 3, at_once: 5, crowd: 5 },
        containers: ContainerAmount { starts: 2, at_once: 2 },
        files: FileAmount { small: 200, edits: 20, wrk_seconds: 1, beside_command: true },
        history: HistoryAmount { appended: 400, long: 2000 },
        mcp: McpAmount { starts: 2, calls: 50 },
        cells: CellAmount { starts: 1, cells: 20 },
        browser: BrowserAmount { starts: 1, steps: 3 },
        gateway: GatewayAmount { echo: 200, body: 16_000_000, bodies: 2, sockets: 100, crowd: 10, claims: 3 },
    };

    /// The reference needs more than half a second for each command.
    pub(crate) const REFERENCE: Self = Self {
        echo: 15,
        spawn: 8,
        sleep: 8,
        output: 2,
        starts: 1,
        sandboxes: SandboxAmount { starts: 0, at_once: 0, crowd: 0 },
        containers: ContainerAmount { starts: 0, at_once: 0 },
        files: FileAmount { small: 500, edits: 100, wrk_seconds: 5, beside_command: false },
        history: HistoryAmount { appended: 0, long: 0 },
        mcp: McpAmount { starts: 0, calls: 0 },
        cells: CellAmount { starts: 1, cells: 200 },
        browser: BrowserAmount { starts: 0, steps: 0 },
        gateway: GatewayAmount { echo: 0, body: 0, bodies: 0, sockets: 0, crowd: 0, claims: 0 },
    };
}

/// All numbers of one server.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Numbers {
    /// A request that the server answers at once.
    pub(crate) alive: Sample,
    /// An action that no shell is needed for: nothing runs whose output could be fetched.
    pub(crate) nothing: Sample,
    pub(crate) echo: Sample,
    pub(crate) true_command: Sample,
    /// A bare `/bin/true`, started by this program, in the same run.
    pub(crate) bare_spawn: Sample,
    /// From the end of `sleep 0.05` to the answer.
    pub(crate) sleep_noticed: Sample,
    pub(crate) output_10mb: Sample,
    /// Growth of the server's resident memory by 10 MB of output, in bytes.
    pub(crate) output_growth: u64,
    pub(crate) files: FileNumbers,
    pub(crate) start: Sample,
    pub(crate) idle_memory: u64,
    pub(crate) idle_whole_memory: u64,
    pub(crate) stop: Sample,
    pub(crate) left_behind: usize,
    /// `None` where there is no notebook.
    pub(crate) cells: Option<CellNumbers>,
}

pub(crate) fn measure(program: &Program, amount: &Amount) -> anyhow::Result<Numbers> {
    let (mut starts, mut stops, mut left_behind) = (Vec::new(), Vec::new(), 0);
    for _start in 1..amount.starts {
        let (server, took) = Server::start(program)?;
        starts.push(took);
        let (stopped, left) = server.stop()?;
        stops.push(stopped);
        left_behind += left;
    }
    let (server, took) = Server::start(program)?;
    starts.push(took);
    std::thread::sleep(Duration::from_millis(300));
    let (idle_memory, idle_whole_memory) = (server.resident(), server.whole_memory());

    let mut client = Client::connect(server.port)?;
    // The first commands of the reference may carry the result of one before.
    for _warm in 0..3 {
        client.run("echo hi")?;
    }
    let alive = repeat(amount.echo, || client.request("GET", "/alive", b"").map(drop))?;
    let nothing = repeat(amount.echo, || client.run("").map(drop))?;
    let echo = repeat(amount.echo, || client.expect("echo hi", "hi"))?;
    let true_command = repeat(amount.spawn, || client.expect("/bin/true", ""))?;
    let bare_spawn = repeat(amount.spawn, || Command::new("/bin/true").status().map(|_| ()).map_err(Into::into))?;
    let sleep_noticed = sleep(&mut client, amount.sleep)?;

    let big = server.working_directory().join("big");
    fs::write(&big, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n".repeat(163_840))?;
    let before = server.resident();
    let command = format!("cat {}", big.display());
    let output_10mb = repeat(amount.output, || client.run(&command).map(drop))?;
    let output_growth = server.resident().saturating_sub(before);
    drop(client);
    let files = files::measure(&server, amount.files)?;

    let (stopped, left) = server.stop()?;
    stops.push(stopped);
    Ok(Numbers {
        alive,
        nothing,
        echo,
        true_command,
        bare_spawn,
        sleep_noticed,
        output_10mb,
        output_growth,
        files,
        start: Sample::new(starts),
        idle_memory,
        idle_whole_memory,
        stop: Sample::new(stops),
        left_behind: left_behind + left,
        cells: cells::measure(program, amount.cells)?,
    })
}

/// The command tells when its sleep ended; the answer says when that was noticed.
fn sleep(client: &mut Client, count: usize) -> anyhow::Result<Sample> {
    let mut times = Vec::new();
    let body = run_body("sleep 0.05; echo $EPOCHREALTIME");
    for _round in 0..count {
        let (_, answer) = client.request("POST", "/execute_action", &body)?;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        let observation: serde_json::Value = serde_json::from_slice(&answer)?;
        let content = observation.get("content").and_then(serde_json::Value::as_str).unwrap_or_default();
        let ended: f64 = content.trim().parse()?;
        times.push(Duration::from_secs_f64((now.as_secs_f64() - ended).max(0.0)));
    }
    Ok(Sample::new(times))
}
