//! What the server of a sandbox writes: a file there, which is read piece by piece.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use gloveport_provider::{LogOptions, LogStream, ProviderError, SandboxId, SandboxState};
use tokio::time::{Instant, sleep};

use crate::{
    inner::Inner,
    toolbox::{Fault, Toolbox},
    wire::Phase,
};

/// Largest piece of a log.
const PIECE: usize = 64 * 1024;
/// Most lines that can be asked for; more is all.
const LINES: usize = 1_000_000_000;
/// How long a log is followed.
const FOLLOWED: Duration = Duration::from_hours(24);
/// How often one that is followed is looked at, and how long it may be silent before it is looked at less often.
const EVERY: (Duration, Duration) = (Duration::from_millis(300), Duration::from_secs(2));
/// When the second of these begins.
const QUIET: Duration = Duration::from_secs(10);

/// The last lines (`$2`) of both files of a directory (`$1`), and where the newer one ends, as text of one line each.
const READ: &str = r#"end=$(cat "$1/log" 2>/dev/null | wc -c)
echo $end
{ cat "$1/log.1" 2>/dev/null; head -c $end "$1/log" 2>/dev/null; } | tail -n "$2" | base64 | tr -d '\n'"#;
/// What came to the newer file after so many bytes (`$2`), a megabyte at most, where that ends, and whether the server has ended.
/// A file that is shorter was begun anew.
const MORE: &str = r#"over=goes-on
test -e "$1/ended" && over=over
size=$(cat "$1/log" 2>/dev/null | wc -c)
from=$2
test "$size" -ge "$from" || from=0
end=$((from + 1048576))
test "$size" -ge "$end" || end=$size
test "$end" = "$size" || over=goes-on
echo $end $over
head -c "$end" "$1/log" 2>/dev/null | tail -c "+$((from + 1))" | base64 | tr -d '\n'"#;

/// A log that is followed.
struct Reader {
    inner: Arc<Inner>,
    id: SandboxId,
    directory: String,
    /// Bytes of the file that were read; none once it has ended.
    read: Option<u64>,
    /// What has come and is not yet passed on.
    waiting: VecDeque<Bytes>,
    until: Instant,
    /// When something came last.
    last: Instant,
}

/// Runs a script that tells a line and then a piece of a log.
async fn piece(toolbox: &Toolbox<'_>, script: &str, arguments: &[&str]) -> Result<(Vec<String>, Bytes), Fault> {
    let action = "read the log of a sandbox";
    let failed = |reason: String| Fault::from(toolbox.service.failed(action, reason));
    let (code, said) = toolbox.run(action, script, arguments).await?;
    if code != 0 {
        return Err(failed(format!("a script ended with code {code}: {said}")));
    }
    let (line, text) = said.split_once('\n').unwrap_or((&said, ""));
    let bytes = STANDARD.decode(text.trim()).map_err(|error| failed(error.to_string()))?;
    Ok((line.split_whitespace().map(str::to_owned).collect(), bytes.into()))
}

impl Inner {
    pub(crate) async fn logs(
        self: &Arc<Self>,
        id: &SandboxId,
        options: LogOptions,
    ) -> Result<LogStream, ProviderError> {
        let (told, labelled) = self.existing(id).await?;
        if told.phase() != Phase::Running {
            let state = SandboxState::Paused;
            return Err(ProviderError::State { action: "read the log of", id: id.clone(), state });
        }
        let directory = labelled.record.directory;
        let lines = options.tail.unwrap_or(LINES).min(LINES).to_string();
        let toolbox = self.toolbox(&told)?;
        let first = piece(&toolbox, READ, &[&directory, &lines]).await.map_err(|fault| fault.of(id))?;
        let (end, bytes) = first;
        let end = end.first().and_then(|end| end.parse().ok()).unwrap_or_default();
        let now = Instant::now();
        let reader = Reader {
            inner: Arc::clone(self),
            id: id.clone(),
            directory,
            read: options.follow.then_some(end),
            waiting: [bytes].into(),
            until: now + FOLLOWED,
            last: now,
        };
        let pieces = stream::unfold(reader, |mut reader| async move {
            let piece = reader.next().await?;
            Some((piece, reader))
        });
        Ok(pieces.boxed())
    }
}

impl Reader {
    /// The next piece; none at the end of the log.
    async fn next(&mut self) -> Option<Result<Bytes, ProviderError>> {
        loop {
            if let Some(mut first) = self.waiting.pop_front() {
                if first.is_empty() {
                    continue;
                }
                if first.len() > PIECE {
                    let rest = first.split_off(PIECE);
                    self.waiting.push_front(rest);
                }
                return Some(Ok(first));
            }
            let read = self.read?;
            let pause = if self.last.elapsed() < QUIET { EVERY.0 } else { EVERY.1 };
            tokio::select! {
                () = sleep(pause) => {}
                () = tokio::time::sleep_until(self.until) => return None,
                () = self.inner.backend.closing.cancelled() => return None,
            }
            match self.more(read).await {
                Ok(Some((end, bytes, is_over))) => {
                    if !bytes.is_empty() {
                        self.last = Instant::now();
                    }
                    self.read = (!is_over).then_some(end);
                    self.waiting.push_back(bytes);
                }
                // A log ends with its sandbox, and with its rest.
                Ok(None) => self.read = None,
                Err(error) => {
                    self.read = None;
                    return Some(Err(error));
                }
            }
        }
    }

    /// What has come since; none where the sandbox does not run any more.
    async fn more(&self, read: u64) -> Result<Option<(u64, Bytes, bool)>, ProviderError> {
        let (told, _) = match self.inner.existing(&self.id).await {
            Err(ProviderError::NotFound(_)) => return Ok(None),
            existing => existing?,
        };
        if told.phase() != Phase::Running {
            return Ok(None);
        }
        let toolbox = self.inner.toolbox(&told)?;
        match piece(&toolbox, MORE, &[&self.directory, &read.to_string()]).await {
            Ok((words, bytes)) => {
                let end = words.first().and_then(|end| end.parse().ok()).unwrap_or(read);
                Ok(Some((end, bytes, words.get(1).is_some_and(|word| word == "over"))))
            }
            Err(Fault::Gone(_)) => Ok(None),
            Err(Fault::Other(error)) => Err(error),
        }
    }
}
