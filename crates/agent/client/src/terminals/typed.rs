//! What was typed and is not known to have arrived.

use gloveport_protocol::terminals::FromTerminal;

/// Bytes that may be on their way; more is typed only when the server told that some arrived.
pub(super) const WINDOW: usize = 64 * 1024;

/// Input in the order in which it was typed. The server counts it, so what it has can be told from what got lost.
#[derive(Debug, Default)]
pub(super) struct Typed {
    /// Bytes that arrived.
    arrived: u64,
    /// What was typed behind them.
    open: Vec<u8>,
}

/// The server does not know this client any more, so it is not known whether the last input arrived.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Forgotten;

impl Typed {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.open.extend_from_slice(bytes);
    }

    pub(super) fn has_room(&self) -> bool {
        self.open.len() < WINDOW
    }

    /// What has to be sent again over a new connection.
    pub(super) fn open(&self) -> &[u8] {
        &self.open
    }

    /// The server has everything up to this offset.
    pub(super) fn arrived(&mut self, offset: u64) -> Result<(), Forgotten> {
        let count = offset.checked_sub(self.arrived).and_then(|count| usize::try_from(count).ok());
        self.arrived = offset;
        match count.filter(|count| *count <= self.open.len()) {
            Some(count) => {
                self.open.drain(..count);
                Ok(())
            }
            None if self.open.is_empty() => Ok(()),
            None => {
                // Typing it again could do twice what must be done once.
                self.open.clear();
                Err(Forgotten)
            }
        }
    }

    /// Notes what a message tells about input.
    pub(super) fn note(&mut self, message: &FromTerminal) -> Result<(), Forgotten> {
        match message {
            FromTerminal::Start { input, .. } => self.arrived(*input),
            FromTerminal::Input { offset } => self.arrived(*offset),
            FromTerminal::Gap { .. } | FromTerminal::Error { .. } | FromTerminal::Exit(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_arrive_is_kept_and_what_is_doubtful_is_not_typed_again() {
        let mut typed = Typed::default();
        typed.push(b"hello");
        assert_eq!((typed.arrived(2), typed.open()), (Ok(()), &b"llo"[..]));
        typed.push(b"!");
        assert_eq!((typed.arrived(2), typed.open()), (Ok(()), &b"llo!"[..]));
        assert_eq!((typed.arrived(6), typed.open()), (Ok(()), &b""[..]));
        // A server that begins to count anew, with nothing and with something on its way.
        assert_eq!(typed.arrived(0), Ok(()));
        typed.push(b"abc");
        assert_eq!((typed.arrived(3), typed.open()), (Ok(()), &b""[..]));
        typed.push(b"d");
        assert_eq!((typed.arrived(0), typed.open()), (Err(Forgotten), &b""[..]));
        typed.push(b"e");
        assert_eq!((typed.arrived(9), typed.open()), (Err(Forgotten), &b""[..]));
    }
}
