//! Waits until a program that was started is healthy.

use std::time::Duration;

use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};

use super::{Endpoint, Health, connect_socket, listener};
use crate::http;

/// Pauses between questions.
const SHORTEST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_millis(250);
/// Time for one answer.
const ANSWER: Duration = Duration::from_secs(5);
/// How long a program that is asked nothing must run to count as healthy.
const RUNS: Duration = Duration::from_millis(200);
/// How long a program must live on when somebody else seems to answer in its place.
const SETTLED: Duration = Duration::from_secs(1);

/// Returns when the program is healthy.
pub(crate) async fn wait(endpoint: Option<&Endpoint>, health: &Health, pid: u32) {
    let Some(endpoint) = endpoint.filter(|_| *health != Health::Runs) else { return sleep(RUNS).await };
    let mut pause = SHORTEST;
    while !matches!(timeout(ANSWER, answers(endpoint, health)).await, Ok(true)) {
        sleep(pause).await;
        pause = (pause * 3 / 2).min(LONGEST);
    }
    if let Endpoint::Port(port) = *endpoint
        && tokio::task::spawn_blocking(move || listener::is_foreign(port, pid)).await.unwrap_or(false)
    {
        // A program whose port was taken in the last moment ends now.
        sleep(SETTLED).await;
    }
}

async fn answers(endpoint: &Endpoint, health: &Health) -> bool {
    match (health, endpoint) {
        (Health::Http(path), _) => http::status(endpoint, path).await.is_ok_and(|status| status < 500),
        (Health::Accepts, Endpoint::Port(port)) => TcpStream::connect(("127.0.0.1", *port)).await.is_ok(),
        (Health::Accepts, Endpoint::Socket(path)) => connect_socket(path).await.is_ok(),
        (Health::Runs, _) => true,
    }
}

impl Health {
    /// What is waited for, for people.
    pub(crate) fn awaited(&self, endpoint: Option<&Endpoint>) -> String {
        match (self, endpoint) {
            (Self::Accepts, Some(endpoint)) => format!("it accepted connections at {endpoint}"),
            (Self::Http(path), Some(endpoint)) => format!("it answered {path} at {endpoint}"),
            _ => "it was healthy".to_owned(),
        }
    }
}
