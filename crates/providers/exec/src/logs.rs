//! What the server of a sandbox writes, as the program gives it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use gloveport_provider::{LogStream, ProviderError, SandboxId};
use tokio::{
    io::AsyncReadExt as _,
    process::ChildStdout,
    task::JoinHandle,
    time::{Instant, timeout},
};

use crate::{
    answer::{self, About},
    call::{Call, Ended, Group, feed},
    stderr::Lines,
};

/// Most bytes of a piece.
const PIECE: usize = 64 * 1024;

struct Reading {
    call: Arc<Call>,
    id: SandboxId,
    follow: bool,
    group: Group,
    stdout: ChildStdout,
    lines: JoinHandle<Lines>,
    began: Instant,
}

/// Calls the program and gives what it writes as it comes. Dropping the stream ends the program.
pub(crate) fn stream(call: Call, id: &SandboxId, follow: bool) -> Result<LogStream, ProviderError> {
    let call = Arc::new(call);
    let mut group = Group::spawn(&call)?;
    let mut lines = Lines::new(&call.provider, call.verb.word(), call.mask.clone());
    let failed =
        |reason: String| call.failed(&reason, &Lines::new(&call.provider, call.verb.word(), call.mask.clone()));
    let child = group.child().map_err(failed)?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else { return Err(failed("it has no pipes".to_owned())) };
    let told = {
        let call = Arc::clone(&call);
        tokio::spawn(async move {
            let (_fed, ()) = tokio::join!(feed(stdin, &call.input), lines.read(stderr));
            lines
        })
    };
    let reading = Reading { call, id: id.clone(), follow, group, stdout, lines: told, began: Instant::now() };
    Ok(stream::unfold(Some(reading), |reading| async { reading?.next().await }).boxed())
}

impl Reading {
    async fn next(mut self) -> Option<(Result<Bytes, ProviderError>, Option<Self>)> {
        let mut piece = vec![0; PIECE];
        let read = self.stdout.read(&mut piece);
        // Nobody knows when the next line of a followed log comes.
        let read = if self.follow { Ok(read.await) } else { timeout(self.call.limit, read).await };
        match read {
            Ok(Ok(0)) => self.ended().await.map(|error| (Err(error), None)),
            Ok(Ok(count)) => {
                piece.truncate(count);
                Some((Ok(piece.into()), Some(self)))
            }
            Ok(Err(source)) => {
                let path = self.call.program.clone();
                Some((Err(ProviderError::File { action: "read the output of", path, source }), None))
            }
            Err(_) => {
                let action = format!("the next part of the log from {}", self.call.engine());
                Some((Err(ProviderError::Timeout { action, limit: self.call.limit }), None))
            }
        }
    }

    /// The error that the program ended with.
    async fn ended(mut self) -> Option<ProviderError> {
        let status = timeout(Duration::from_secs(5), self.group.wait()).await.ok()?.ok()?;
        if status.success() {
            return None;
        }
        let lines = timeout(Duration::from_secs(1), self.lines).await.ok()?.ok()?;
        let ended = Ended { status, answer: Vec::new(), lines, took: self.began.elapsed() };
        Some(answer::read_line(&self.call, &ended, &About::Sandbox(&self.id)))
    }
}
