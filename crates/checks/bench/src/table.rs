//! The bounds, the ratios, and how they are printed.

use serde::Serialize;

use crate::{
    browser::BrowserNumbers, cells::CellNumbers, commands::CommandNumbers, containers::ContainerNumbers,
    gateway::GatewayNumbers, history::HistoryNumbers, measure::Numbers, sample::Sample, sandboxes::SandboxNumbers,
};

/// The part of the direct rate that large bodies must have through a gateway.
const SHARE: f64 = 0.8;

/// One line of the table.
#[derive(Debug, Serialize)]
struct Row {
    what: &'static str,
    unit: &'static str,
    ours: f64,
    /// `None` where the reference was not measured.
    reference: Option<f64>,
    /// Largest allowed value.
    bound: Option<f64>,
    /// Smallest allowed ratio of the reference's value to ours.
    bound_ratio: Option<f64>,
}

impl Row {
    fn ratio(&self) -> Option<f64> {
        self.reference.map(|reference| reference / self.ours.max(f64::MIN_POSITIVE))
    }

    fn holds(&self) -> bool {
        let ratio = self.ratio().zip(self.bound_ratio).is_none_or(|(ratio, bound)| ratio >= bound);
        ratio && self.bound.is_none_or(|bound| self.ours <= bound)
    }
}

/// All results.
#[derive(Debug, Serialize)]
pub(crate) struct Table {
    rows: Vec<Row>,
    ours: Numbers,
    reference: Option<Numbers>,
    history: HistoryNumbers,
    sandboxes: SandboxNumbers,
    containers: Option<ContainerNumbers>,
    commands: CommandNumbers,
    browser: Option<BrowserNumbers>,
    gateway: Option<GatewayNumbers>,
}

/// Sizes of our programs, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// Of the one with everything.
    pub(crate) whole: u64,
    /// Of the one for sandboxes.
    pub(crate) sandbox: u64,
}

impl Table {
    pub(crate) fn new(
        ours: &Numbers,
        reference: Option<&Numbers>,
        sandboxes: &SandboxNumbers,
        containers: Option<&ContainerNumbers>,
        commands: &CommandNumbers,
        history: &HistoryNumbers,
        sizes: Sizes,
    ) -> Self {
        let row = |what, unit, value: &dyn Fn(&Numbers) -> f64, bound: Option<f64>, bound_ratio| Row {
            what,
            unit,
            ours: value(ours),
            reference: reference.map(value),
            bound,
            bound_ratio,
        };
        let single =
            |what, unit, ours, bound| Row { what, unit, ours, reference: None, bound: Some(bound), bound_ratio: None };
        let per_read = |n: &Numbers| n.files.reads_per_second.map_or(f64::NAN, |rate| 1000.0 / rate);
        let beside = ours.files.read_beside_command.as_ref();
        let mut rows = vec![
            row("echo hi, p50", "ms", &|n| n.echo.p50_ms, Some(0.5), Some(1000.0)),
            row("echo hi, p99", "ms", &|n| n.echo.p99_ms, Some(5.0), None),
            row("GET /alive, p50", "ms", &|n| n.alive.p50_ms, None, None),
            row("action without a shell, p50", "ms", &|n| n.nothing.p50_ms, None, None),
            row("/bin/true, p50", "ms", &|n| n.true_command.p50_ms, Some(ours.bare_spawn.p50_ms * 1.5), None),
            row("bare spawn of /bin/true, p50", "ms", &|n| n.bare_spawn.p50_ms, None, None),
            row("sleep 0.05 noticed after, p50", "ms", &|n| n.sleep_noticed.p50_ms, Some(1.0), None),
            row("10 MB of output, p50", "ms", &|n| n.output_10mb.p50_ms, Some(150.0), None),
            row("memory growth by 10 MB of output", "MiB", &|n| mib(n.output_growth), Some(32.0), None),
            row("read of 1 KiB, p50", "ms", &|n| n.files.read.p50_ms, Some(0.3), None),
            row("write of 1 KiB, p50", "ms", &|n| n.files.write.p50_ms, Some(0.3), None),
            row("str_replace in 1 MB, p50", "ms", &|n| n.files.str_replace.p50_ms, Some(4.0), None),
            row("str_replace in 1 MB, p99", "ms", &|n| n.files.str_replace.p99_ms, Some(8.0), None),
            row("8 clients read 1 KiB, time a read", "ms", &per_read, None, Some(10.0)),
            single("read beside a command, p99", "ms", beside.map_or(f64::NAN, |sample| sample.p99_ms), 5.0),
            row("start to first action, p50", "ms", &|n| n.start.p50_ms, Some(40.0), Some(200.0)),
            row("resident memory of an idle server", "MiB", &|n| mib(n.idle_memory), None, None),
            row("idle memory with all processes", "MiB", &|n| mib(n.idle_whole_memory), None, None),
            row("stop, p50", "ms", &|n| n.stop.p50_ms, Some(50.0), None),
            row("processes left behind", "", &|n| count(n.left_behind), Some(0.0), None),
            row("1+1 in the notebook, p50", "ms", &|n| cells(n, |cells| cells.cell.p50_ms), Some(5.0), Some(8.0)),
            row("1+1 in the notebook, p99", "ms", &|n| cells(n, |cells| cells.cell.p99_ms), None, None),
            row("start to first cell, p50", "ms", &|n| cells(n, |cells| cells.first.p50_ms), Some(1000.0), None),
            row("memory growth by the notebook", "MiB", &|n| cells(n, |cells| mib(cells.growth)), Some(5.0), None),
            single("binary", "MB", megabytes(sizes.whole), 45.0),
            single("binary for sandboxes", "MB", megabytes(sizes.sandbox), 14.0),
            single("run --runtime cli true, p50", "ms", commands.cli.p50_ms, 3.0 * commands.bash.p50_ms),
            single("mcp, start to first call, p50", "ms", commands.mcp.first.p50_ms, 100.0),
            single("mcp, shell echo hi, p50", "ms", commands.mcp.shell.p50_ms, 1.0),
            single("mcp, read_file, p50", "ms", commands.mcp.read.p50_ms, 1.0),
            single("durable event, one writer", "ms", 1000.0 / history.appended_by_one, 1.0),
            single("durable event, eight writers", "ms", 1000.0 / history.appended_by_many, 1.0),
            single("open a long conversation", "ms", history.open_ms, 1000.0),
            single("memory growth by reading it", "MiB", mib(history.read_growth), 16.0),
        ];
        rows.extend(sandbox_rows(sandboxes));
        if let Some(containers) = containers {
            rows.extend([
                single("container, start to action, p50", "ms", containers.start.p50_ms, 400.0),
                single("container, without the engine, p50", "ms", containers.share.p50_ms, 60.0),
                single("container deleted, p50", "ms", containers.delete.p50_ms, 1000.0),
                single("containers at once, all in use", "ms", containers.at_once.p50_ms, 20_000.0),
                single("containers: left at the end", "", count(containers.left), 0.0),
            ]);
        }
        Self {
            rows,
            ours: ours.clone(),
            reference: reference.cloned(),
            history: history.clone(),
            sandboxes: sandboxes.clone(),
            containers: containers.cloned(),
            commands: commands.clone(),
            browser: None,
            gateway: None,
        }
    }

    /// Adds what was measured of the browser.
    pub(crate) fn add_browser(&mut self, browser: Option<BrowserNumbers>) {
        if let Some(numbers) = &browser {
            let reference = numbers.reference.as_ref();
            let row = |what, unit, ours, reference, bound, bound_ratio| Row {
                what,
                unit,
                ours,
                reference,
                bound,
                bound_ratio,
            };
            let milliseconds = |seconds: f64| seconds * 1000.0;
            let (first, click, goto) = (
                reference.map(|numbers| milliseconds(numbers.start)),
                reference.map(|numbers| milliseconds(numbers.click)),
                reference.map(|numbers| milliseconds(numbers.plain)),
            );
            let chromium = numbers.chromium_load.p50_ms;
            self.rows.extend([
                row("browser, start to first page, p50", "ms", numbers.first.p50_ms, first, None, None),
                row("browser, click and look, p50", "ms", numbers.click.p50_ms, click, None, Some(3.0)),
                row("browser, goto and look, p50", "ms", numbers.goto.p50_ms, goto, None, None),
                row("browser, load of the page, p50", "ms", numbers.load.p50_ms, None, Some(1.2 * chromium), None),
                row("Chromium alone, load of the page, p50", "ms", chromium, None, None, None),
                row(
                    "memory beside Chromium",
                    "MB",
                    megabytes(numbers.beside),
                    reference.map(|numbers| numbers.others),
                    Some(20.0),
                    None,
                ),
            ]);
        }
        self.browser = browser;
    }

    /// Adds what was measured of the gateway.
    pub(crate) fn add_gateway(&mut self, numbers: GatewayNumbers) {
        self.rows.extend(gateway_rows(&numbers));
        self.gateway = Some(numbers);
    }

    pub(crate) fn text(&self) -> String {
        let mut lines = lines(&self.rows);
        lines.push(format!("many sandboxes: {} of them", self.sandboxes.crowd));
        match &self.containers {
            Some(containers) => lines.push(format!("containers at once: {} of them", containers.count)),
            None => lines.push("containers were not measured; set GLOVEPORT_TEST_DOCKER (see scripts/docker)".into()),
        }
        lines.extend(self.gateway.iter().flat_map(about_gateway));
        if self.browser.is_none() {
            lines.push("the browser was not measured: there is no Chromium".into());
        }
        if self.reference.is_none() {
            lines.push("the reference was not measured; scripts/setup --reference installs it".into());
        }
        lines.join("\n")
    }

    pub(crate) fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }
}

/// The rows of sandboxes of this machine.
fn sandbox_rows(sandboxes: &SandboxNumbers) -> Vec<Row> {
    let single =
        |what, unit, ours, bound| Row { what, unit, ours, reference: None, bound: Some(bound), bound_ratio: None };
    #[expect(clippy::cast_precision_loss, reason = "there are few sandboxes")]
    let each = mib(sandboxes.crowd_memory) / sandboxes.crowd.max(1) as f64;
    let mut rows = vec![
        single("sandbox, cold start to action, p50", "ms", sandboxes.cold.p50_ms, 40.0),
        single("sandbox, warm claim to action, p50", "ms", sandboxes.warm.p50_ms, 5.0),
        single("sandbox deleted, p50", "ms", sandboxes.delete.p50_ms, 50.0),
        single("sandboxes at once, all in use", "ms", sandboxes.at_once.p50_ms, 2000.0),
        single("idle memory of one of many sandboxes", "MiB", each, 3.5),
        single("private memory of one sandbox", "MiB", mib(sandboxes.private_memory), 3.5),
        single("many sandboxes: memory in all", "MiB", mib(sandboxes.crowd_memory), 2048.0),
        single("many sandboxes: echo hi, p99", "ms", sandboxes.crowd_echo.p99_ms, 20.0),
        single("sandboxes: left at the end", "", count(sandboxes.left), 0.0),
    ];
    if let Some(apart) = &sandboxes.cold_apart {
        let most = sandboxes.cold.p50_ms + 3.0;
        rows.push(single("sandbox that is kept apart, cold start to action, p50", "ms", apart.p50_ms, most));
    }
    if let Some(inside) = &sandboxes.cold_inside {
        let most = sandboxes.cold.p50_ms + 12.0;
        rows.push(single("sandbox in a container of its own, cold start to action, p50", "ms", inside.p50_ms, most));
    }
    if let Some(memory) = sandboxes.crowd_inside_memory {
        rows.push(single("many containers of the machine's own: memory in all", "MiB", mib(memory), 1144.0));
    }
    if let Some(kernel) = &sandboxes.cold_kernel {
        rows.push(single("sandbox on a kernel of its own, cold start to action, p50", "ms", kernel.p50_ms, 500.0));
    }
    rows
}

/// What was measured of sandboxes, where that is all.
pub(crate) fn sandboxes_alone(numbers: &SandboxNumbers) -> String {
    let about = format!("many sandboxes: {} of them", numbers.crowd);
    lines(&sandbox_rows(numbers)).into_iter().chain([about]).collect::<Vec<_>>().join("\n")
}

/// The rows of a gateway.
fn gateway_rows(numbers: &GatewayNumbers) -> Vec<Row> {
    let row = |what, unit, ours, bound| Row { what, unit, ours, reference: None, bound, bound_ratio: None };
    let GatewayNumbers { echo, direct, bodies, sockets, crowd, warm, warm_containers, left } = numbers;
    let longer = |direct: &Sample| Some(direct.p50_ms / SHARE);
    let mut rows = vec![
        row("gateway, echo hi above direct, p50", "ms", echo.p50_ms - direct.p50_ms, Some(0.15)),
        row("gateway, echo hi, p50", "ms", echo.p50_ms, None),
        row("gateway, echo hi, p99", "ms", echo.p99_ms, None),
        row("the same sandbox directly, p50", "ms", direct.p50_ms, None),
        row("the same sandbox directly, p99", "ms", direct.p99_ms, None),
        row("gateway, large body up, p50", "ms", bodies.up.p50_ms, longer(&bodies.direct_up)),
        row("large body up directly, p50", "ms", bodies.direct_up.p50_ms, None),
        row("gateway, large body down, p50", "ms", bodies.down.p50_ms, longer(&bodies.direct_down)),
        row("large body down directly, p50", "ms", bodies.direct_down.p50_ms, None),
        row("gateway, memory growth by them", "MiB", mib(bodies.growth), Some(64.0)),
        row("gateway, memory of a WebSocket", "KiB", 1024.0 * mib(sockets.growth) / count(sockets.count), None),
        row("gateway, idle WebSockets lost", "", count(sockets.lost), Some(0.0)),
        row("gateway, echo hi beside them, p99", "ms", sockets.echo.p99_ms, None),
        row("gateway, start of many, p50", "ms", crowd.start.p50_ms, None),
        row("gateway, echo hi in many, p99", "ms", crowd.echo.p99_ms, Some(20.0)),
    ];
    for (what, numbers, bound) in
        [("gateway, /start of a warm one, p50", warm, 10.0), ("gateway, warm container, p50", warm_containers, 60.0)]
    {
        rows.extend(numbers.as_ref().map(|numbers| row(what, "ms", numbers.claim.p50_ms, Some(bound))));
    }
    rows.push(row("gateway: left at the end", "", count(*left), Some(0.0)));
    rows
}

/// What was measured of the gateway, where that is all.
pub(crate) fn gateway_alone(numbers: &GatewayNumbers) -> String {
    let lines = lines(&gateway_rows(numbers)).into_iter().chain(about_gateway(numbers));
    lines.collect::<Vec<_>>().join("\n")
}

/// A head, and a line for each row.
fn lines(rows: &[Row]) -> Vec<String> {
    let mut lines =
        vec![format!("{:<36} {:>12} {:>12} {:>9}  {:<22} {}", "", "gloveport", "reference", "ratio", "bound", "holds")];
    for row in rows {
        let number = |value: f64| format!("{value:.3} {}", row.unit).trim_end().to_owned();
        let ratio = row.ratio().map(|ratio| format!("{ratio:.1} x")).unwrap_or_default();
        let bounds = [
            row.bound.map(|bound| format!("<= {}", number(bound))),
            row.bound_ratio.filter(|_| row.reference.is_some()).map(|bound| format!(">= {bound} x")),
        ];
        let bound = bounds.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let holds = match (bound.is_empty(), row.holds()) {
            (true, _) => "",
            (false, true) => "yes",
            (false, false) => "NO",
        };
        let reference = row.reference.map(number).unwrap_or_default();
        lines.push(format!(
            "{:<36} {:>12} {reference:>12} {ratio:>9}  {bound:<22} {holds}",
            row.what,
            number(row.ours)
        ));
    }
    lines
}

/// How much of everything there was behind the gateway, and what was not measured.
fn about_gateway(numbers: &GatewayNumbers) -> Vec<String> {
    let GatewayNumbers { bodies, sockets, crowd, warm, warm_containers, .. } = numbers;
    let mut lines = vec![format!(
        "gateway: bodies of {} MB; {} WebSockets; {} sandboxes, {} of them asked at the same time",
        megabytes(bodies.size),
        sockets.count,
        crowd.count,
        crowd.at_once
    )];
    if warm.is_none() {
        lines.push("warm sandboxes of gateways were not measured: `gloveport gateway` has no --warm".into());
    } else if warm_containers.is_none() {
        lines.push("warm containers of gateways were not measured: no engine was named".into());
    }
    lines
}

/// A number of the notebook, where there is one.
fn cells(numbers: &Numbers, value: fn(&CellNumbers) -> f64) -> f64 {
    numbers.cells.as_ref().map_or(f64::NAN, value)
}

#[expect(clippy::cast_precision_loss, reason = "sizes far below 2^52")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "sizes far below 2^52")]
fn mib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0 / 1024.0
}

#[expect(clippy::cast_precision_loss, reason = "a small number")]
fn count(number: usize) -> f64 {
    number as f64
}
