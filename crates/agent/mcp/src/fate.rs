//! What is known about a connection that ends: how it ended, and what the server's program wrote for people before.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Most bytes that are kept of what a program writes to its standard error.
const KEPT: usize = 64 * 1024;
/// Most lines and bytes of it that an error shows.
const SHOWN_LINES: usize = 10;
const SHOWN_BYTES: usize = 2 * 1024;

/// Is told by the transport, and asked when there is an error to tell.
#[derive(Debug, Default)]
pub(crate) struct Fate(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    ended: Option<String>,
    lines: VecDeque<String>,
    bytes: usize,
}

impl Fate {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers how the connection ended; the first reason counts.
    pub(crate) fn end(&self, how: impl Into<String>) {
        self.known().ended.get_or_insert_with(|| how.into());
    }

    /// Keeps a line that the program wrote; the oldest ones make room.
    pub(crate) fn wrote(&self, line: String) {
        let mut known = self.known();
        known.bytes += line.len() + 1;
        known.lines.push_back(line);
        while known.bytes > KEPT {
            let Some(oldest) = known.lines.pop_front() else { break };
            known.bytes -= oldest.len() + 1;
        }
    }

    /// All that is kept of what the program wrote.
    pub(crate) fn written(&self) -> String {
        let known = self.known();
        known.lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }

    /// How it ended, as far as it is known, with the last lines that the program wrote.
    pub(crate) fn told(&self, otherwise: &str) -> String {
        let ended = self.known().ended.clone();
        format!("{}{}", ended.as_deref().unwrap_or(otherwise), self.last_words())
    }

    /// The last lines, for the end of a sentence.
    pub(crate) fn last_words(&self) -> String {
        let known = self.known();
        let mut room = SHOWN_BYTES;
        let fits = |line: &&String| {
            room = room.saturating_sub(line.len());
            room > 0
        };
        let mut last: Vec<&str> =
            known.lines.iter().rev().take(SHOWN_LINES).take_while(fits).map(String::as_str).collect();
        last.reverse();
        if last.is_empty() { String::new() } else { format!("; it wrote last:\n{}", last.join("\n")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_and_fewer_are_shown() {
        let fate = Fate::default();
        assert_eq!(fate.told("it is gone"), "it is gone");
        for number in 0..100_000 {
            fate.wrote(format!("line {number}"));
        }
        let written = fate.written();
        assert!(written.len() <= KEPT && written.ends_with("line 99998\nline 99999\n"));
        assert!(written.starts_with("line "), "only whole lines are kept");
        fate.end("its program ended");
        fate.end("and again");
        let lines: Vec<_> = (99_990..100_000).map(|number| format!("line {number}")).collect();
        assert_eq!(fate.told("it is gone"), format!("its program ended; it wrote last:\n{}", lines.join("\n")));
        fate.wrote("x".repeat(SHOWN_BYTES));
        assert_eq!(fate.last_words(), "");
    }
}
