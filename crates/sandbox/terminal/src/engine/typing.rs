//! What is on its way to the shell and its programs.

use std::io;

use crate::instance::{Instance, Queue};

/// Bytes that are still to be typed.
#[derive(Debug, Default)]
pub(super) struct Typing {
    /// For the terminal.
    outgoing: Vec<u8>,
    /// Commands for a shell that reads them from a pipe.
    queued: Vec<u8>,
}

impl Typing {
    /// Whether the terminal took all that was typed.
    pub(super) fn is_typed(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// Whether the pipe took all commands.
    pub(super) fn is_queued(&self) -> bool {
        self.queued.is_empty()
    }

    /// Puts bytes behind what is to be typed.
    pub(super) fn add(&mut self, bytes: impl IntoIterator<Item = u8>) {
        self.outgoing.extend(bytes);
    }

    /// Puts commands behind those for the pipe.
    pub(super) fn add_commands(&mut self, text: &str) {
        self.queued.extend_from_slice(text.as_bytes());
    }

    /// Throws away what was not typed yet.
    pub(super) fn clear(&mut self) {
        self.outgoing.clear();
        self.queued.clear();
    }

    /// Types what the terminal takes at once.
    pub(super) fn write(&mut self, instance: &Instance) {
        let written = instance
            .master
            .try_io(tokio::io::Interest::WRITABLE, |master| Ok(rustix::io::write(master, &self.outgoing)?));
        after(&mut self.outgoing, written, "typing failed");
    }

    /// Hands over the commands that the pipe takes at once.
    pub(super) fn write_commands(&mut self, queue: &Queue) {
        let written = queue.write(&self.queued);
        after(&mut self.queued, written, "a command can not be handed to the shell");
    }
}

/// Takes away what was written, or everything if nothing can be.
fn after(bytes: &mut Vec<u8>, written: io::Result<usize>, failure: &str) {
    match written {
        Ok(count) => {
            bytes.drain(..count.min(bytes.len()));
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        Err(error) => {
            tracing::warn!(%error, "{failure}");
            bytes.clear();
        }
    }
}
