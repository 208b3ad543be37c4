//! Signals to this process, by what they ask for. How a system gives them is in a file for its family.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;

#[cfg(unix)]
use unix as family;
#[cfg(windows)]
use windows as family;

/// What a signal asks for, or tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// C-c.
    Interrupt,
    /// The terminal is gone; on Windows its window was closed.
    HangUp,
    /// C-\; on Windows C-Break.
    Quit,
    /// Somebody wants this process to end; on Windows the whole system ends.
    Terminate,
    /// The terminal has another size.
    Resized,
    /// This process goes on after it was stopped, which Windows does not do.
    GoOn,
}

/// A signal that no longer does anything by itself.
#[derive(Debug)]
pub(crate) struct Signal(family::Signal);

impl Signal {
    /// Listens from now on.
    pub(crate) fn listen(kind: Kind) -> anyhow::Result<Self> {
        family::Signal::listen(kind).map(Self).context("cannot listen for signals")
    }

    /// Waits for the next one. It can be given up at any time.
    pub(crate) async fn recv(&mut self) {
        self.0.recv().await;
    }
}

/// Every C-c from now on.
pub(crate) fn interrupts() -> anyhow::Result<Signal> {
    Signal::listen(Kind::Interrupt)
}

/// Signals that ask a process to end.
pub(crate) const ENDS: [Kind; 3] = [Kind::Terminate, Kind::Interrupt, Kind::HangUp];

/// Two tokens: one that is cancelled by the first signal that asks this process to end, and one by the second.
pub(crate) fn stop_in_two_steps(kinds: &[Kind]) -> anyhow::Result<[CancellationToken; 2]> {
    let (stop, at_once) = (CancellationToken::new(), CancellationToken::new());
    for kind in kinds {
        let mut signal = Signal::listen(*kind)?;
        let (stop, at_once) = (stop.clone(), at_once.clone());
        tokio::spawn(async move {
            loop {
                signal.recv().await;
                if stop.is_cancelled() {
                    at_once.cancel();
                }
                stop.cancel();
            }
        });
    }
    Ok([stop, at_once])
}

/// A token that is cancelled by the first signal that asks this process to end.
pub(crate) fn stop() -> anyhow::Result<CancellationToken> {
    let [stop, _at_once] = stop_in_two_steps(&ENDS)?;
    Ok(stop)
}
