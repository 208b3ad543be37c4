//! Windows: what its consoles tell. That one has another size is told to those who read its events; so it is looked at.

use std::{future::pending, io, time::Duration};

use gloveport_protocol::terminals::TerminalSize;
use tokio::{
    signal::windows::{CtrlBreak, CtrlC, CtrlClose, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown},
    time::sleep,
};

use super::Kind;
use crate::terminal;

/// How often the size of the console is looked at.
const LOOK: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(super) enum Signal {
    Interrupt(CtrlC),
    HangUp(CtrlClose),
    Quit(CtrlBreak),
    Terminate(CtrlShutdown),
    Resized(Option<TerminalSize>),
    GoOn,
}

impl Signal {
    pub(super) fn listen(kind: Kind) -> io::Result<Self> {
        Ok(match kind {
            Kind::Interrupt => Self::Interrupt(ctrl_c()?),
            Kind::HangUp => Self::HangUp(ctrl_close()?),
            Kind::Quit => Self::Quit(ctrl_break()?),
            Kind::Terminate => Self::Terminate(ctrl_shutdown()?),
            Kind::Resized => Self::Resized(terminal::size()),
            Kind::GoOn => Self::GoOn,
        })
    }

    pub(super) async fn recv(&mut self) {
        // There is always a next one.
        let _next = match self {
            Self::Interrupt(signal) => signal.recv().await,
            Self::HangUp(signal) => signal.recv().await,
            Self::Quit(signal) => signal.recv().await,
            Self::Terminate(signal) => signal.recv().await,
            Self::Resized(known) => loop {
                sleep(LOOK).await;
                let size = terminal::size();
                if size != *known {
                    *known = size;
                    return;
                }
            },
            Self::GoOn => pending().await,
        };
    }
}
