//! The measurements of the browser, beside Chromium alone and the reference.

mod chromium;
mod site;

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use gloveport_sys::process;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    client::{Client, action_body},
    sample::{Sample, repeat},
    server::{Program, Server},
};
use chromium::Chromium;
use site::Site;

/// Where Chromium is.
const CHROMIUM: &str = "/usr/bin/chromium";

/// How often each thing is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BrowserAmount {
    pub(crate) starts: usize,
    pub(crate) steps: usize,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct BrowserNumbers {
    /// From the start of the server to what it says of the first page.
    pub(crate) first: Sample,
    /// A click on a page that has loaded, to what is to be seen then.
    pub(crate) click: Sample,
    /// To a page without scripts, to what is to be seen there.
    pub(crate) goto: Sample,
    /// What the page says of its own load, in the browser of the sandbox.
    pub(crate) load: Sample,
    /// The same in Chromium alone.
    pub(crate) chromium_load: Sample,
    /// Memory of all processes of the sandbox that are not Chromium's, what is shared divided, in bytes.
    pub(crate) beside: u64,
    /// That of Chromium's.
    pub(crate) chromium: u64,
    /// `None` where it was not measured.
    pub(crate) reference: Option<ReferenceNumbers>,
}

/// What `tests/browsergym/times.py --json` says of the reference: seconds and MB.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ReferenceNumbers {
    pub(crate) start: f64,
    pub(crate) click: f64,
    /// To the page without scripts.
    pub(crate) plain: f64,
    /// Processes that are not Chromium's.
    pub(crate) others: f64,
}

/// Measures; `None` where there is no Chromium. The reference is measured where its Python and the script are given.
pub(crate) fn measure(
    binary: &Path,
    reference: Option<(&Path, &Path)>,
    amount: BrowserAmount,
) -> anyhow::Result<Option<BrowserNumbers>> {
    if !Path::new(CHROMIUM).exists() {
        return Ok(None);
    }
    let site = Site::start()?;
    let chromium_load = {
        let mut chromium = Chromium::start(CHROMIUM)?;
        let mut loads = Vec::new();
        for _load in 0..amount.steps {
            loads.push(milliseconds(&chromium.title(&site.url("/timed"), site::LOADED)?)?);
        }
        Sample::new(loads)
    };
    let program = Program::Gloveport(binary.to_owned());
    let mut first = Vec::new();
    for _start in 1..amount.starts {
        let (server, took) = started(&program, &site)?;
        first.push(took);
        server.stop()?;
    }
    let (server, took) = started(&program, &site)?;
    first.push(took);
    let mut client = Client::connect(server.port)?;
    let goto = repeat(amount.steps, || perform(&mut client, &format!("goto('{}')", site.url("/plain"))).map(drop))?;
    let mut loads = Vec::new();
    for _load in 0..amount.steps {
        let said = perform(&mut client, &format!("goto('{}')", site.url("/timed")))?;
        let title = said.split(site::LOADED).nth(1).and_then(|rest| rest.split('\'').next());
        loads.push(milliseconds(title.context("the page does not say how long it took")?)?);
    }
    perform(&mut client, &format!("goto('{}')", site.url("/buttons")))?;
    let click = repeat(amount.steps, || perform(&mut client, "click('5')").map(drop))?;
    let (chromium, beside) = memory(server.pid());
    server.stop()?;
    let reference = reference.map(|(python, script)| of_reference(python, script, amount)).transpose()?;
    let load = Sample::new(loads);
    Ok(Some(BrowserNumbers {
        first: Sample::new(first),
        click,
        goto,
        load,
        chromium_load,
        beside,
        chromium,
        reference,
    }))
}

/// A server, and the time until it told of the first page.
fn started(program: &Program, site: &Site) -> anyhow::Result<(Server, Duration)> {
    let began = Instant::now();
    let (server, _) = Server::start_with(program, &["--enable-browser"], &[], |port| {
        // The first page is asked for as soon as anybody listens.
        Client::connect(port).ok().map(|_| Ok(()))
    })?;
    perform(&mut Client::connect(server.port)?, &format!("goto('{}')", site.url("/plain")))?;
    Ok((server, began.elapsed()))
}

/// Performs actions, and answers with what is to be seen then.
fn perform(client: &mut Client, actions: &str) -> anyhow::Result<String> {
    let body = action_body("browse_interactive", &json!({ "browser_actions": actions, "return_axtree": false }));
    let observation = client.execute(&body)?;
    let content = observation.get("content").and_then(Value::as_str).unwrap_or_default();
    let failed = observation.pointer("/extras/last_browser_action_error").and_then(Value::as_str) != Some("");
    anyhow::ensure!(!failed && content.contains("RootWebArea"), "{actions}: {content}");
    Ok(content.to_owned())
}

fn milliseconds(text: &str) -> anyhow::Result<Duration> {
    let number: f64 = text.trim().parse().with_context(|| format!("{text} is no number"))?;
    Ok(Duration::try_from_secs_f64(number / 1000.0)?)
}

/// Memory of Chromium's processes below this one, and of the others.
fn memory(server: u32) -> (u64, u64) {
    let is_chromium = |pid: &u32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.split(|byte| *byte == 0).next().is_some_and(|name| String::from_utf8_lossy(name).contains("chrom"))
    };
    let all = process::descendants(server).into_iter().chain([server]);
    let (chromium, others): (Vec<u32>, Vec<u32>) = all.partition(is_chromium);
    let sum = |pids: Vec<u32>| pids.into_iter().filter_map(process::proportional).sum();
    (sum(chromium), sum(others))
}

fn of_reference(python: &Path, script: &Path, amount: BrowserAmount) -> anyhow::Result<ReferenceNumbers> {
    let count = amount.steps.min(10).to_string();
    let asked = Command::new(python).arg(script).args(["--json", "--count", &count]).output();
    let said = asked.with_context(|| format!("cannot start {}", python.display()))?;
    let complaint = String::from_utf8_lossy(&said.stderr);
    anyhow::ensure!(said.status.success(), "{} ended with {}: {complaint}", script.display(), said.status);
    let text = String::from_utf8_lossy(&said.stdout);
    let line = text.lines().last().unwrap_or_default();
    serde_json::from_str(line).with_context(|| format!("{} says {line}", script.display()))
}
