//! What the server of a sandbox writes: a file there, which a program there reads.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use gloveport_hosted::server::READ;
use gloveport_provider::{LogOptions, LogStream, ProviderError, SandboxId, SandboxState};
use tokio::{
    runtime::Handle,
    time::{Instant, timeout},
};

use crate::{
    agent::{Event, Fault, Program, Running, Start},
    inner::{Inner, Tokens},
};

/// Largest piece of a log.
const PIECE: usize = 64 * 1024;
/// Most lines that can be asked for; more is all.
const LINES: usize = 1_000_000_000;
/// How long a log is followed.
const FOLLOWED: Duration = Duration::from_hours(24);
/// How long the end of the program that reads may take.
const END: Duration = Duration::from_secs(10);

/// The last lines (`$2`) of the log of a directory (`$1`), and all that comes until what writes to it ends.
const FOLLOW: &str = r#"exec tail -n "$2" -F --pid="$(cat "$1/pid")" "$1/log" 2>/dev/null"#;

/// A program that reads a log in a sandbox, and is ended when nobody listens any more.
struct Reader {
    inner: Arc<Inner>,
    id: SandboxId,
    tokens: Tokens,
    /// The stream; none once it has ended by itself.
    running: Option<Running>,
    /// What has come and is not yet passed on.
    waiting: VecDeque<Bytes>,
    until: Instant,
}

impl Inner {
    pub(crate) async fn logs(
        self: &Arc<Self>,
        id: &SandboxId,
        options: LogOptions,
    ) -> Result<LogStream, ProviderError> {
        let (told, labelled) = self.existing(id).await?;
        if told.state != "running" {
            let state = SandboxState::Paused;
            return Err(ProviderError::State { action: "read the log of", id: id.clone(), state });
        }
        let tokens = self.tokens_of(&told, &labelled.record).await.map_err(|fault| fault.of(id))?;
        let directory = &labelled.record.directory;
        let lines = options.tail.map(|lines| lines.min(LINES));
        let (script, lines) = match (options.follow, lines) {
            (false, lines) => (READ, lines.unwrap_or(LINES).to_string()),
            (true, Some(lines)) => (FOLLOW, lines.to_string()),
            // From the first line on.
            (true, None) => (FOLLOW, "+1".to_owned()),
        };
        let program = Program::script(script, &[directory, &lines]);
        let start = Start { program, tag: None, stdin: false };
        let agent = self.agent(id, &tokens)?;
        let running = agent.start("read the log of a sandbox", "root", start).await.map_err(|fault| fault.of(id))?;
        let reader = Reader {
            inner: Arc::clone(self),
            id: id.clone(),
            tokens,
            running: Some(running),
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
            let running = self.running.as_mut()?;
            let event = tokio::select! {
                event = running.event() => event,
                () = tokio::time::sleep_until(self.until) => return None,
                () = self.inner.backend.closing.cancelled() => return None,
            };
            match event {
                Ok(Some(Event::Said(piece))) if piece.is_empty() => {}
                Ok(Some(Event::Said(piece))) => self.waiting.push_back(piece),
                Ok(Some(Event::Ended(_)) | None) => self.running = None,
                Err(fault) => {
                    self.running = None;
                    return self.cut_off(fault).await.map(Err);
                }
            }
        }
    }

    /// A log ends with its sandbox, and is cut off otherwise.
    async fn cut_off(&self, fault: Fault) -> Option<ProviderError> {
        let reason = match fault {
            Fault::Gone(reason) => reason,
            Fault::Other(error) => error.to_string(),
        };
        match self.inner.find(&self.id).await {
            Ok(Some(found)) if matches!(found.state, SandboxState::Running | SandboxState::Unknown(_)) => {
                Some(self.inner.control.service.failed("give the rest of a log", reason))
            }
            Ok(_) => None,
            Err(error) => Some(error),
        }
    }
}

impl Drop for Reader {
    /// The agent lets programs go on to whose output nobody listens.
    fn drop(&mut self) {
        let (Some(running), Ok(handle)) = (self.running.take(), Handle::try_current()) else { return };
        let (inner, id, tokens) = (Arc::clone(&self.inner), self.id.clone(), std::mem::take(&mut self.tokens));
        let tasks = self.inner.backend.tasks.clone();
        tasks.spawn_on(
            async move {
                let killed = async { inner.agent(&id, &tokens).map_err(Fault::from)?.kill(running.pid).await };
                match timeout(END, killed).await {
                    Ok(Ok(()) | Err(Fault::Gone(_))) => {}
                    Ok(Err(Fault::Other(error))) => tracing::debug!(%id, %error, "a reader of a log was not ended"),
                    Err(_) => tracing::debug!(%id, "a reader of a log was not ended in time"),
                }
            },
            &handle,
        );
    }
}
