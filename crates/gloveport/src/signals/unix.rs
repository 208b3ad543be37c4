//! What every Unix has.

use std::io;

use tokio::signal::unix::{self, SignalKind};

use super::Kind;

#[derive(Debug)]
pub(super) struct Signal(unix::Signal);

impl Signal {
    pub(super) fn listen(kind: Kind) -> io::Result<Self> {
        let kind = match kind {
            Kind::Interrupt => SignalKind::interrupt(),
            Kind::HangUp => SignalKind::hangup(),
            Kind::Quit => SignalKind::quit(),
            Kind::Terminate => SignalKind::terminate(),
            Kind::Resized => SignalKind::window_change(),
            Kind::GoOn => SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()),
        };
        unix::signal(kind).map(Self)
    }

    pub(super) async fn recv(&mut self) {
        // There is always a next one.
        let _next = self.0.recv().await;
    }
}
