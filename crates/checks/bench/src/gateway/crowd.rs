//! Many sandboxes behind one gateway, each with a client of its own.

use std::{
    thread,
    time::{Duration, Instant},
};

use serde::Serialize;

use super::program::{AT_ONCE, Gateway, in_parallel, join, start};
use crate::{client::Client, sample::Sample};

/// How often each sandbox is asked.
const ROUNDS: usize = 5;

/// Numbers of many sandboxes.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CrowdNumbers {
    /// From the request to a server that answers, several at the same time.
    pub(crate) start: Sample,
    /// `echo hi` in all of them, several at the same time.
    pub(crate) echo: Sample,
    /// How many sandboxes there are.
    pub(crate) count: usize,
    /// How many requests there are at the same time.
    pub(crate) at_once: usize,
}

/// Starts so many sandboxes, and asks all of them several times.
pub(super) fn measure(gateway: &Gateway, count: usize) -> anyhow::Result<CrowdNumbers> {
    let started = in_parallel(gateway, count, |client, number| {
        let began = Instant::now();
        let sandbox = start(client, &format!("crowd-{number}"))?;
        let took = began.elapsed();
        let mut client = gateway.client_of(&sandbox)?;
        // The first command of a shell is slower.
        client.expect("echo hi", "hi")?;
        Ok((client, took))
    })?;
    let (mut clients, starts): (Vec<_>, Vec<_>) = started.into_iter().unzip();
    let echo = thread::scope(|scope| {
        let shares = clients.chunks_mut(count.div_ceil(AT_ONCE).max(1));
        let threads: Vec<_> = shares.map(|share| scope.spawn(|| ask(share))).collect();
        join(threads)
    })?;
    Ok(CrowdNumbers { start: Sample::new(starts), echo: Sample::new(echo.concat()), count, at_once: AT_ONCE })
}

/// Times of `echo hi`, in one sandbox after the other.
fn ask(clients: &mut [Client]) -> anyhow::Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(clients.len() * ROUNDS);
    for _round in 0..ROUNDS {
        for client in &mut *clients {
            let began = Instant::now();
            client.expect("echo hi", "hi")?;
            times.push(began.elapsed());
        }
    }
    Ok(times)
}
