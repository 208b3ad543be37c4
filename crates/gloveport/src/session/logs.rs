//! `gloveport session logs`.

use std::{io::IsTerminal as _, process::ExitCode};

use anyhow::Context as _;
use futures_util::StreamExt as _;
use gloveport_provider::LogOptions;
use serde_json::json;

use super::{arguments::LogsArgs, runtimes::Runtimes};
use crate::{
    follow::{Wanted, write},
    output::WRITING,
    visible,
};

/// Most bytes of a line that has no end; the rest is a line of its own.
const LONGEST_LINE: usize = 64 * 1024;

pub(super) async fn logs(runtimes: &Runtimes, arguments: &LogsArgs) -> anyhow::Result<ExitCode> {
    let found = runtimes.find(&arguments.id).await?;
    let options = LogOptions { follow: arguments.follow, tail: arguments.tail };
    let mut pieces = found.provider.logs(&found.sandbox.id, options).await?;
    if arguments.json {
        let mut lines = Lines::default();
        while let Some(piece) = pieces.next().await {
            if write(lines.add(&piece?).as_bytes())? == Wanted::NoMore {
                return Ok(ExitCode::SUCCESS);
            }
        }
        write(lines.end().as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let output = std::io::stdout();
    if output.is_terminal() {
        let mut shown = visible::Stream::new(output);
        while let Some(piece) = pieces.next().await {
            shown.write(&piece?).context(WRITING)?;
        }
        shown.end().context(WRITING)?;
        return Ok(ExitCode::SUCCESS);
    }
    while let Some(piece) = pieces.next().await {
        if write(&piece?)? == Wanted::NoMore {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes an object of each line.
#[derive(Debug, Default)]
struct Lines {
    /// The beginning of a line whose end did not come yet.
    begun: Vec<u8>,
}

impl Lines {
    /// The objects of the lines that end in a piece.
    fn add(&mut self, piece: &[u8]) -> String {
        let mut text = String::new();
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            for part in part.chunks(LONGEST_LINE) {
                self.begun.extend_from_slice(part);
                if self.begun.ends_with(b"\n") || self.begun.len() >= LONGEST_LINE {
                    text.push_str(&self.end());
                }
            }
        }
        text
    }

    /// The object of what is left.
    fn end(&mut self) -> String {
        if self.begun.is_empty() {
            return String::new();
        }
        let line = self.begun.strip_suffix(b"\n").unwrap_or(&self.begun);
        let text = format!("{}\n", json!({"line": String::from_utf8_lossy(line)}));
        self.begun.clear();
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_an_object_however_it_comes() {
        let mut lines = Lines::default();
        assert_eq!(lines.add(b"a \"b\"\n\nc"), "{\"line\":\"a \\\"b\\\"\"}\n{\"line\":\"\"}\n");
        assert_eq!(lines.add(b"d\xff\n"), "{\"line\":\"cd\u{fffd}\"}\n");
        assert_eq!(
            (lines.add(b"e"), lines.end(), lines.end()),
            (String::new(), "{\"line\":\"e\"}\n".into(), String::new())
        );
        let long = vec![b'x'; LONGEST_LINE + 1];
        assert_eq!(lines.add(&long).lines().count(), 1);
        assert!(lines.begun.len() <= LONGEST_LINE);
    }
}
