//! What the server of a sandbox writes: files there, which are read as they are, or followed by a program there.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use gloveport_provider::{LogOptions, LogStream, ProviderError, SandboxId, SandboxState};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep, timeout},
};

use crate::{inner::Inner, launch::script, wire::Piece};

/// Largest piece of a log.
const PIECE: usize = 64 * 1024;
/// Longest event of the service: it cuts what programs write into smaller ones.
const EVENT: usize = 8 * 1024 * 1024;
/// Most lines that can be asked for; more is all.
const LINES: usize = 1_000_000_000;
/// How long a log is followed.
const FOLLOWED: Duration = Duration::from_hours(24);
/// How long the end of the program that reads may take.
const END: Duration = Duration::from_secs(10);
/// Pause before a stream that was cut off is opened again.
const AGAIN: Duration = Duration::from_secs(1);
/// What is done, for messages.
const ACTION: &str = "read the log of a sandbox";

/// The last lines (`$2`) of the newer file of a directory (`$1`), and all that comes until what writes to it ends.
const FOLLOW: &str = r#"exec tail -n "$2" -F --pid="$(cat "$1/pid")" "$1/log" 2>/dev/null"#;

impl Inner {
    pub(crate) async fn logs(
        self: &Arc<Self>,
        id: &SandboxId,
        options: LogOptions,
    ) -> Result<LogStream, ProviderError> {
        let (devbox, labelled) = self.existing(id).await?;
        if devbox.status != "running" {
            let state = SandboxState::Paused;
            return Err(ProviderError::State { action: "read the log of", id: id.clone(), state });
        }
        let directory = &labelled.record.directory;
        let lines = options.tail.map(|lines| lines.min(LINES));
        if !options.follow {
            let mut whole = Vec::new();
            for name in ["log.1", "log"] {
                whole.extend(self.control.file(id, &format!("{directory}/{name}")).await?.unwrap_or_default());
            }
            let begin = lines.map_or(0, |lines| last(&whole, lines));
            let pieces: Vec<_> = whole[begin..].chunks(PIECE).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
            return Ok(stream::iter(pieces).boxed());
        }
        // From the first line on, if nobody says how many.
        let lines = lines.map_or_else(|| "+1".to_owned(), |lines| lines.to_string());
        let started = self.control.start(ACTION, id, &script(FOLLOW, &[directory, &lines])).await?;
        let execution = started.ok_or_else(|| ProviderError::NotFound(id.clone()))?;
        let reader = Reader {
            inner: Arc::clone(self),
            id: id.clone(),
            execution: Some(execution),
            stream: None,
            offset: 0,
            buffer: Vec::new(),
            waiting: VecDeque::new(),
            until: Instant::now() + FOLLOWED,
        };
        let pieces = stream::unfold(reader, |mut reader| async move {
            let piece = reader.next().await?;
            Some((piece, reader))
        });
        Ok(pieces.boxed())
    }
}

/// Where the last lines of a text begin.
fn last(text: &[u8], lines: usize) -> usize {
    let end = text.len() - usize::from(text.ends_with(b"\n"));
    if lines == 0 {
        return text.len();
    }
    let mut ends = text[..end].iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    ends.nth(lines - 1).map_or(0, |(at, _)| at + 1)
}

/// A program that follows a log in a sandbox, and is ended when nobody listens any more.
struct Reader {
    inner: Arc<Inner>,
    id: SandboxId,
    /// None once it has ended.
    execution: Option<String>,
    stream: Option<reqwest::Response>,
    /// Where to go on.
    offset: u64,
    /// What has come of an event.
    buffer: Vec<u8>,
    /// What has come and is not yet passed on.
    waiting: VecDeque<Bytes>,
    until: Instant,
}

impl Reader {
    /// The next piece; none at the end of the log.
    async fn next(&mut self) -> Option<Result<Bytes, ProviderError>> {
        loop {
            if let Some(mut first) = self.waiting.pop_front() {
                if first.len() > PIECE {
                    let rest = first.split_off(PIECE);
                    self.waiting.push_front(rest);
                }
                return Some(Ok(first));
            }
            self.execution.as_ref()?;
            let closing = self.inner.backend.closing.clone();
            let until = self.until;
            let more = tokio::select! {
                more = self.more() => more,
                () = tokio::time::sleep_until(until) => return None,
                () = closing.cancelled() => return None,
            };
            if let Err(error) = more {
                self.execution = None;
                return self.cut_off(error).await.map(Err);
            }
        }
    }

    /// Reads on. At the end of the program there is none to read from any more.
    async fn more(&mut self) -> Result<(), ProviderError> {
        let Some(execution) = self.execution.clone() else { return Ok(()) };
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => self.stream.insert(self.inner.control.updates(ACTION, &self.id, &execution, self.offset).await?),
        };
        match stream.chunk().await {
            Ok(Some(chunk)) => {
                self.buffer.extend_from_slice(&chunk);
                return self.events();
            }
            // Streams are cut off after a while.
            Ok(None) | Err(_) => self.stream = None,
        }
        self.buffer.clear();
        match self.inner.control.runs(&self.id, &execution).await? {
            Some(true) => sleep(AGAIN).await,
            Some(false) | None => self.execution = None,
        }
        Ok(())
    }

    /// Takes whole events out of what has come.
    fn events(&mut self) -> Result<(), ProviderError> {
        while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.buffer.drain(..=end).collect();
            let Some(data) = line.strip_prefix(b"data:") else { continue };
            let failed = |error| self.inner.control.service.failed(ACTION, error);
            let piece: Piece = serde_json::from_slice(data).map_err(failed)?;
            let length = u64::try_from(piece.output.len()).unwrap_or_default();
            self.offset = piece.offset.unwrap_or(self.offset + length);
            if !piece.output.is_empty() {
                self.waiting.push_back(piece.output.into());
            }
        }
        if self.buffer.len() > EVENT {
            let reason = format!("an event has more than {EVENT} bytes");
            return Err(self.inner.control.service.failed(ACTION, reason));
        }
        Ok(())
    }

    /// A log ends with its sandbox, and is cut off otherwise.
    async fn cut_off(&self, error: ProviderError) -> Option<ProviderError> {
        match self.inner.find(&self.id).await {
            Ok(Some(found)) if matches!(found.state, SandboxState::Running | SandboxState::Unknown(_)) => Some(error),
            Ok(_) => None,
            Err(error) => Some(error),
        }
    }
}

impl Drop for Reader {
    /// The service lets programs go on to whose output nobody listens.
    fn drop(&mut self) {
        let (Some(execution), Ok(handle)) = (self.execution.take(), Handle::try_current()) else { return };
        let (inner, id) = (Arc::clone(&self.inner), self.id.clone());
        let tasks = self.inner.backend.tasks.clone();
        tasks.spawn_on(
            async move {
                match timeout(END, inner.control.kill(&id, &execution)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => tracing::debug!(%id, %error, "a reader of a log was not ended"),
                    Err(_) => tracing::debug!(%id, "a reader of a log was not ended in time"),
                }
            },
            &handle,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_found_with_and_without_an_end() {
        for (text, lines, expected) in [
            ("a\nb\nc\n", 1, "c\n"),
            ("a\nb\nc", 1, "c"),
            ("a\nb\nc\n", 2, "b\nc\n"),
            ("a\nb\nc\n", 3, "a\nb\nc\n"),
            ("a\nb\nc\n", 9, "a\nb\nc\n"),
            ("a\nb\nc\n", 0, ""),
            ("", 1, ""),
            ("\n\n", 1, "\n"),
        ] {
            assert_eq!(&text[last(text.as_bytes(), lines)..], expected, "{text:?} {lines}");
        }
    }
}
