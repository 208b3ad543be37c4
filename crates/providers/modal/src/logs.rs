//! What the server of a sandbox writes: the output of the sandbox while that runs, and what the service has kept of it afterwards.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt as _, stream};
use gloveport_provider::{LogOptions, LogStream, ProviderError, SandboxId};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::{
    grpc::Messages,
    inner::Inner,
    wire::{FetchLogs, Fetched, StdioPiece, Time},
};

/// Largest piece of a log.
const PIECE: usize = 64 * 1024;
/// Most bytes of what was written before that are looked through for the last lines; older ones are dropped.
const KEPT: usize = 16 * 1024 * 1024;
/// The service does not say where the end of the output is that there is so far. It is there when nothing has come for so long:
/// at first, and then.
const QUIET: (Duration, Duration) = (Duration::from_secs(3), Duration::from_millis(300));
/// How long what has been written is read before what comes is taken for new.
const READ: Duration = Duration::from_mins(1);
/// Most pieces of the service's own record that it tells.
const FETCHED: u32 = 10_000;
/// How far apart the clocks of the service and of this machine may be, in seconds.
const CLOCKS: i64 = 300;
/// Pause before a stream that was cut off is opened again, and how often that is done without anything coming.
const AGAIN: (Duration, u32) = (Duration::from_secs(1), 5);
/// How long a log is followed.
const FOLLOWED: Duration = Duration::from_hours(24);
/// What is done, for messages.
const ACTION: &str = "read the log of a sandbox";

impl Inner {
    pub(crate) async fn logs(
        self: &Arc<Self>,
        id: &SandboxId,
        options: LogOptions,
    ) -> Result<LogStream, ProviderError> {
        let (labelled, outcome) = self.existing(id).await?;
        if outcome.is_some() {
            let past = self.past(id, labelled.record.created).await?;
            return Ok(pieces(&past, options.tail).boxed());
        }
        let mut reader = Reader {
            inner: Arc::clone(self),
            id: id.clone(),
            messages: None,
            offset: 0,
            until: Instant::now() + FOLLOWED,
        };
        if options.follow && options.tail.is_none() {
            return Ok(reader.follow().boxed());
        }
        let so_far = reader.so_far().await?;
        let begin = pieces(&so_far, options.tail);
        Ok(if options.follow { begin.chain(reader.follow()).boxed() } else { begin.boxed() })
    }

    /// What the service has kept of the output of a sandbox that was made at this time.
    pub(crate) async fn past(&self, id: &SandboxId, created: f64) -> Result<Vec<u8>, ProviderError> {
        #[expect(clippy::cast_possible_truncation, reason = "seconds since 1970")]
        let since = created as i64 - CLOCKS;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let until = i64::try_from(now).unwrap_or(i64::MAX - CLOCKS) + CLOCKS;
        let wish = FetchLogs {
            app_id: self.app().await?.to_owned(),
            since: Some(Time { seconds: since }),
            until: Some(Time { seconds: until }),
            limit: FETCHED,
            sandbox_id: id.to_string(),
        };
        let told: Option<Fetched> = self.control.told(ACTION, "AppFetchLogs", &wish).await?;
        let mut items: Vec<_> = told.into_iter().flat_map(|told| told.batches).flat_map(|batch| batch.items).collect();
        items.sort_by(|one, other| one.timestamp.total_cmp(&other.timestamp));
        Ok(items.into_iter().flat_map(|item| item.data.into_bytes()).collect())
    }
}

/// The last lines of a text, or all of it.
fn pieces(text: &[u8], lines: Option<usize>) -> stream::Iter<std::vec::IntoIter<Result<Bytes, ProviderError>>> {
    let begin = lines.map_or(0, |lines| last(text, lines));
    let chosen = text.get(begin..).unwrap_or_default();
    stream::iter(chosen.chunks(PIECE).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect::<Vec<_>>())
}

/// Where the last lines of a text begin.
fn last(text: &[u8], lines: usize) -> usize {
    if lines == 0 {
        return text.len();
    }
    let end = text.len() - usize::from(text.ends_with(b"\n"));
    let before = text.get(..end).unwrap_or_default();
    let mut ends = before.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    ends.nth(lines - 1).map_or(0, |(at, _)| at + 1)
}

/// Reads the output of a sandbox that runs.
struct Reader {
    inner: Arc<Inner>,
    id: SandboxId,
    messages: Option<Messages<StdioPiece>>,
    /// Where to go on.
    offset: u64,
    until: Instant,
}

impl Reader {
    /// What was written so far, but for what is older than the most that is kept.
    async fn so_far(&mut self) -> Result<BytesMut, ProviderError> {
        let (mut all, mut quiet, began) = (BytesMut::new(), QUIET.0, Instant::now());
        while began.elapsed() < READ {
            match timeout(quiet, self.next()).await {
                Ok(Some(piece)) => all.extend_from_slice(&piece?),
                Ok(None) | Err(_) => break,
            }
            let _older = all.split_to(all.len().saturating_sub(KEPT));
            quiet = QUIET.1;
        }
        Ok(all)
    }

    /// All that comes, until the sandbox ends.
    fn follow(self) -> impl futures_util::Stream<Item = Result<Bytes, ProviderError>> {
        stream::unfold(Some(self), |reader| async move {
            let mut reader = reader?;
            let closing = reader.inner.backend.closing.clone();
            let until = reader.until;
            let piece = tokio::select! {
                piece = reader.next() => piece?,
                () = sleep_until(until) => return None,
                () = closing.cancelled() => return None,
            };
            let rest = piece.is_ok().then_some(reader);
            Some((piece, rest))
        })
    }

    /// The next piece; none at the end of the sandbox. Nothing is lost when it is not waited for any more.
    async fn next(&mut self) -> Option<Result<Bytes, ProviderError>> {
        let mut failed = 0;
        loop {
            match self.more().await {
                Ok(Some(piece)) if piece.is_empty() => {}
                Ok(Some(piece)) => return Some(Ok(piece)),
                ended_or_failed => {
                    self.messages = None;
                    failed += 1;
                    // A log ends with its sandbox, and is cut off otherwise.
                    match (self.inner.outcome(&self.id, Duration::ZERO).await, ended_or_failed) {
                        (Ok(Some(None)), Ok(_)) if failed < AGAIN.1 => {}
                        (Ok(Some(None)), Err(error)) if failed < AGAIN.1 && error.is_temporary() => {}
                        (Ok(Some(None)), Err(error)) | (Err(error), _) => return Some(Err(error)),
                        (Ok(_), _) => return None,
                    }
                    sleep(AGAIN.0).await;
                }
            }
        }
    }

    /// Reads on; none at the end of the stream.
    async fn more(&mut self) -> Result<Option<Bytes>, ProviderError> {
        if self.messages.is_none() {
            let Some(router) = self.inner.router(&self.id).await? else { return Ok(None) };
            self.messages = Some(router.output(self.offset).await?);
        }
        let Some(messages) = &mut self.messages else { return Ok(None) };
        match messages.next().await {
            Ok(Some(piece)) => {
                let length = u64::try_from(piece.data.len()).unwrap_or_default();
                // Where the service has dropped what was there, it says where what it has begins.
                self.offset = self.offset.max(piece.starting_offset) + length;
                Ok(Some(piece.data.into()))
            }
            Ok(None) => Ok(None),
            Err(failure) => {
                let refused = self.inner.control.refused(ACTION, self.inner.control.limit, failure);
                Err(refused.error)
            }
        }
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
            ("a\nb\nc\n", 9, "a\nb\nc\n"),
            ("a\nb\nc\n", 0, ""),
            ("", 1, ""),
            ("\n\n", 1, "\n"),
        ] {
            assert_eq!(&text[last(text.as_bytes(), lines)..], expected, "{text:?} {lines}");
        }
    }
}
