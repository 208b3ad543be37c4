//! `gloveport audit`: what was recorded of sandboxes, and whether it is still what was written.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use gloveport_audit::{Event, Hash, Reader, Record, Text};
use serde::Serialize;

use crate::{
    output::{print, print_json, print_painted},
    visible,
};

/// Most characters of a text in a line for people.
const LONGEST: usize = 200;

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    command: AuditCommand,
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    /// Print what was recorded, a line for each event. It ends where the log was changed.
    Show(ShowArgs),
    /// Check that no record was changed, removed, inserted or moved.
    ///
    /// Records that are missing at the end are seen with --head alone: keep the hash that it prints elsewhere, and give it the next
    /// time.
    Verify(VerifyArgs),
}

#[derive(Debug, Args)]
struct ShowArgs {
    /// The log, as `--audit` named it.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print only what happened in the sandbox of this session.
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Print each record as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct VerifyArgs {
    /// The log, as `--audit` named it.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A hash that was printed earlier; the record that it is of must still be there.
    #[arg(long, value_name = "HASH")]
    head: Option<Hash>,
    /// Print what was found as JSON.
    #[arg(long)]
    json: bool,
}

/// What a log holds.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Found {
    records: u64,
    sessions: BTreeSet<String>,
    /// Those whose last record is not that they have ended.
    open: BTreeSet<String>,
    first: Option<String>,
    last: Option<String>,
    head: String,
}

pub(crate) fn audit(arguments: AuditArgs) -> anyhow::Result<ExitCode> {
    match arguments.command {
        AuditCommand::Show(arguments) => show(&arguments),
        AuditCommand::Verify(arguments) => verify(&arguments),
    }
    .map(|()| ExitCode::SUCCESS)
}

fn show(ShowArgs { file, session, json }: &ShowArgs) -> anyhow::Result<()> {
    for record in open(file)? {
        let record = record.with_context(|| changed(file))?;
        if session.as_ref().is_some_and(|session| *session != record.session) {
            continue;
        }
        if *json {
            print(&(serde_json::to_string(&record)? + "\n"))?;
        } else {
            print_painted(&line(&record))?;
        }
    }
    Ok(())
}

fn verify(VerifyArgs { file, head, json }: &VerifyArgs) -> anyhow::Result<()> {
    let mut found = Found::default();
    let mut has_head = head.is_none();
    let mut reader = open(file)?;
    for record in reader.by_ref() {
        let record = record.with_context(|| changed(file))?;
        has_head |= *head == Some(record.hash);
        found.add(record);
    }
    found.head = reader.head().to_string();
    anyhow::ensure!(
        has_head,
        "{}: no record has the hash {}: the log was cut off or written anew",
        file.display(),
        head.unwrap_or_default()
    );
    if *json { print_json(&found) } else { print(&found.text()) }
}

fn open(file: &Path) -> anyhow::Result<Reader> {
    Reader::open(file).with_context(|| format!("cannot read the audit log {}", file.display()))
}

fn changed(file: &Path) -> String {
    format!("{} is not as it was written", file.display())
}

impl Found {
    fn add(&mut self, record: Record) {
        self.records += 1;
        let time = record.time.to_string();
        self.first.get_or_insert_with(|| time.clone());
        self.last = Some(time);
        if matches!(record.event, Event::Ended { .. }) {
            self.open.remove(&record.session);
        } else {
            self.open.insert(record.session.clone());
        }
        self.sessions.insert(record.session);
    }

    fn text(&self) -> String {
        let Self { records, sessions, open, first, last, head } = self;
        let (Some(first), Some(last)) = (first, last) else { return "nothing is recorded\n".to_owned() };
        let names: Vec<_> = open.iter().map(String::as_str).collect();
        let open = match &*names {
            [] => String::new(),
            names => format!("no end    {}: running, killed, or cut off\n", names.join(", ")),
        };
        let of = counted(sessions.len());
        format!("whole     {records} records of {of}, {first} to {last}\n{open}head      {head}\n")
    }
}

fn counted(sessions: usize) -> String {
    if sessions == 1 { "1 session".to_owned() } else { format!("{sessions} sessions") }
}

/// A record as people read it. What a sandbox has written cannot move the cursor.
pub(crate) fn line(record: &Record) -> String {
    let time = record.time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ");
    format!("{time}  {}  {}\n", visible::one_line(&record.session), visible::short(&told(&record.event), LONGEST))
}

fn told(event: &Event) -> String {
    let list = |texts: &[String]| texts.join(", ");
    match event {
        Event::Started { isolation, version, workspace, network, secrets } => {
            let secrets = if secrets.is_empty() { "none".to_owned() } else { list(secrets) };
            let (network, workspace) = (list(network), workspace.as_str());
            format!(
                "started: isolation {isolation}, network {network}, secrets {secrets}, workspace {workspace}, version {version}"
            )
        }
        Event::Command { command, text } => format!("command {command}: {}", text.as_str()),
        Event::CommandEnded { command, status } => format!("command {command} ended with {status}"),
        Event::Cell { text } => format!("cell: {}", text.as_str()),
        Event::Program { program, arguments, directory } => {
            let arguments: Vec<&str> = arguments.iter().skip(1).map(Text::as_str).collect();
            let place = directory.as_ref().map_or(String::new(), |place| format!(" in {}", place.as_str()));
            format!("program: {} {}{place}", program.as_str(), arguments.join(" "))
        }
        Event::Wrote { path, bytes } => format!("wrote {} ({bytes} bytes)", path.as_str()),
        Event::Unpacked { path } => format!("unpacked an archive in {}", path.as_str()),
        Event::MadeDirectory { path } => format!("made the directory {}", path.as_str()),
        Event::Removed { path } => format!("removed {}", path.as_str()),
        Event::Moved { from, to } => format!("moved {} to {}", from.as_str(), to.as_str()),
        Event::Connection { target, allowed } => format!("{} {target}", if *allowed { "reached" } else { "refused" }),
        Event::Network { allow, deny } => format!("network: allow {}; deny {}", list(allow), list(deny)),
        Event::Secret { name, target, method } => format!("secret {name} went to {target} ({method})"),
        Event::Ended { reason } => format!("ended: {}", reason.as_str()),
        Event::Unknown => "recorded by a newer version".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sandbox_wrote_stays_on_its_line() {
        let event = Event::Command { command: 7, text: Text::new("echo a\necho \x1b[2J") };
        assert_eq!(visible::short(&told(&event), LONGEST), "command 7: echo a?echo ?[2J");
    }

    #[test]
    fn a_log_of_nothing_is_whole() {
        assert_eq!(Found::default().text(), "nothing is recorded\n");
    }
}
