//! `container-health`: whether the server in this container answers, for the engine.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    process::ExitCode,
    time::Duration,
};

use anyhow::Context as _;
use clap::Args;
use gloveport_contract::container::PORT;

/// Limit of each step.
const LIMIT: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub struct HealthArgs {
    /// Port of the server.
    #[arg(long, default_value_t = PORT)]
    port: u16,
}

pub(crate) fn check(arguments: &HealthArgs) -> anyhow::Result<ExitCode> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.port));
    let mut stream = TcpStream::connect_timeout(&address, LIMIT).context("the server cannot be connected to")?;
    stream.set_read_timeout(Some(LIMIT)).and_then(|()| stream.set_write_timeout(Some(LIMIT)))?;
    write!(stream, "GET /alive HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut status = [0; 12];
    stream.read_exact(&mut status).context("the server does not answer")?;
    anyhow::ensure!(status.ends_with(b" 200"), "the server answers `{}`", String::from_utf8_lossy(&status));
    Ok(ExitCode::SUCCESS)
}
