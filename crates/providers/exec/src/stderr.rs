//! What the program writes for people: line by line into our logs, the last of it into errors, secrets never.

use std::collections::VecDeque;

use gloveport_protocol::Secret;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Most bytes of a line; the rest of it is left out.
const LINE: usize = 4 * 1024;
/// Most lines of one call that are logged.
const LINES: usize = 10_000;
/// Lines that an error shows.
const SHOWN: usize = 10;
/// What stands in the place of a secret.
const MASK: &str = "**********";

/// Takes the values out of texts that a program must not repeat.
#[derive(Clone, Default)]
pub(crate) struct Mask(Vec<Secret>);

impl Mask {
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut secrets: Vec<Secret> = secrets.into_iter().filter(|secret| !secret.is_empty()).cloned().collect();
        // A secret may be part of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        Self(secrets)
    }

    pub(crate) fn apply(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret.expose(), MASK))
    }
}

/// Reads the lines of one call.
pub(crate) struct Lines {
    provider: String,
    verb: &'static str,
    mask: Mask,
    last: VecDeque<String>,
    told: usize,
}

impl Lines {
    pub(crate) fn new(provider: &str, verb: &'static str, mask: Mask) -> Self {
        Self { provider: provider.to_owned(), verb, mask, last: VecDeque::new(), told: 0 }
    }

    /// Reads to the end.
    pub(crate) async fn read(&mut self, mut from: impl AsyncRead + Unpin) {
        let mut line = Vec::new();
        let mut buffer = [0; 4096];
        // What cannot be read any more is no reason to fail the call.
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            for byte in &buffer[..count] {
                if *byte == b'\n' {
                    self.tell(&line);
                    line.clear();
                } else if line.len() < LINE {
                    line.push(*byte);
                }
            }
        }
        if !line.is_empty() {
            self.tell(&line);
        }
    }

    fn tell(&mut self, line: &[u8]) {
        let line = self.mask.apply(String::from_utf8_lossy(line).trim_end());
        self.told += 1;
        match self.told {
            ..=LINES => tracing::info!(provider = self.provider, verb = self.verb, "{line}"),
            told if told == LINES + 1 => {
                tracing::warn!(provider = self.provider, verb = self.verb, "it writes too much; the rest is left out");
            }
            _ => {}
        }
        if self.last.len() == SHOWN {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }

    /// The last lines.
    pub(crate) fn tail(&self) -> String {
        self.last.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// The very last line.
    pub(crate) fn last(&self) -> Option<&str> {
        self.last.back().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_bounded_and_without_secrets() {
        let secrets = [Secret::new("hunter2"), Secret::new("hunter2-long"), Secret::new("")];
        let mut lines = Lines::new("x", "create", Mask::new(&secrets));
        let mut input = b"a hunter2-long b hunter2\n".to_vec();
        input.extend(vec![b'x'; 3 * LINE]);
        lines.read(&input[..]).await;
        let expected = format!("a {MASK} b {MASK}\n{}", "x".repeat(LINE));
        assert_eq!(lines.tail(), expected);
    }

    #[tokio::test]
    async fn an_error_shows_the_last_lines() {
        let mut lines = Lines::new("x", "create", Mask::default());
        let input: String = (0..50).flat_map(|number| [number.to_string(), "\n".to_owned()]).collect();
        lines.read(input.as_bytes()).await;
        assert_eq!(lines.tail(), (40..50).map(|number| number.to_string()).collect::<Vec<_>>().join("\n"));
        assert_eq!(lines.last(), Some("49"));
    }
}
