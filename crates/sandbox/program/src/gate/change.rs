//! `gate-change`: tells the gate in whose network it is started of other rules, and prints what the gate answers.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixListener, UnixStream},
    },
    process::ExitCode,
    time::Duration,
};

use anyhow::Context as _;
use clap::Args;
use gloveport_contract::gate::{ABSTRACT, LONGEST};

/// Time for each of both sides.
const LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub struct ChangeArgs {
    /// What changes, as JSON.
    #[arg(value_name = "JSON")]
    change: String,
}

fn address() -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(ABSTRACT)
}

/// Where the gate of this network is told.
pub(super) fn listen() -> anyhow::Result<UnixListener> {
    let listening = address().and_then(|address| UnixListener::bind_addr(&address));
    listening.context("cannot wait for who changes the rules; another gate is in this network")
}

/// Prints a line of JSON.
pub(crate) fn change(arguments: &ChangeArgs) -> anyhow::Result<ExitCode> {
    let answer = ask(&arguments.change).context("cannot talk to the gate")?;
    io::stdout().write_all(&answer)?;
    Ok(ExitCode::SUCCESS)
}

fn ask(change: &str) -> io::Result<Vec<u8>> {
    let mut socket = UnixStream::connect_addr(&address()?)?;
    socket.set_write_timeout(Some(LIMIT))?;
    socket.set_read_timeout(Some(LIMIT))?;
    // JSON in one line has no line breaks of its own.
    socket.write_all(change.replace('\n', " ").as_bytes())?;
    socket.write_all(b"\n")?;
    let mut answer = Vec::new();
    BufReader::new(socket.take(LONGEST)).read_until(b'\n', &mut answer)?;
    Ok(answer)
}
