//! The life of the task that owns a shell, also behind a defect of it: a panic is an error of one request, and the session
//! goes on with a new shell.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
};

use gloveport_sys::Exit;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::state::Engine;
use crate::{
    error::TerminalError,
    request::{Job, ShellLoss, Typed},
};

/// Panics after which a session is given up: a defect that comes back at once would start shells for ever.
const MOST_DEFECTS: u32 = 16;

/// Serves requests until the session is closed or all its handles are dropped, then ends everything.
pub(crate) async fn supervise(
    mut engine: Engine,
    mut jobs: mpsc::Receiver<Job>,
    mut typing: mpsc::Receiver<Typed>,
    close: CancellationToken,
) {
    for defects in 1..=MOST_DEFECTS {
        let Err(defect) = caught(engine.serve(&mut jobs, &mut typing, &close)).await else { break };
        tracing::error!(defects, defect, "a shell session failed by a defect of the server; its shell is replaced");
        let renewed = engine.renewed();
        let broken = std::mem::replace(&mut engine, renewed);
        if let Err(defect) = caught(Box::pin(broken.end_broken())).await {
            tracing::error!(defect, "the broken session cannot be ended; its owner ends its processes");
        }
    }
    if let Err(defect) = caught(engine.end()).await {
        tracing::error!(defect, "the session cannot be ended; its owner ends its processes");
    }
}

impl Engine {
    /// What takes the place of a broken engine: nothing of what it believed is taken over but where its shell was.
    fn renewed(&self) -> Self {
        let mut new = Self::new(self.options.clone(), self.shown.log.clone(), self.known.facts.clone());
        new.known.path.clone_from(&self.known.path);
        let exit = Exit { code: None, signal: None, cpu_micros: 0, peak_memory: 0 };
        new.shells.loss = Some(ShellLoss { exit, before_command: true });
        new
    }

    /// Tells those who wait, and ends everything.
    async fn end_broken(mut self) {
        let waiter = self.waiter.take().map(|waiter| waiter.reply);
        let deferred = self.deferred.take().map(|(job, _)| job.reply);
        for reply in waiter.into_iter().chain(deferred) {
            let _caller_gone = reply.send(Err(TerminalError::Defect));
        }
        self.end().await;
    }
}

/// Runs a future to its end; the error is the text of its panic.
async fn caught<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let mut future = pin!(future);
    std::future::poll_fn(move |context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => std::task::Poll::Ready(Err(text(panic.as_ref()))),
    })
    .await
}

fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a text".to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{RunEnd, RunRequest, Shell, ShellOptions};

    #[tokio::test]
    async fn a_defect_in_the_task_is_an_error_of_one_request_and_the_session_goes_on_and_ends() {
        let shell = Shell::start(ShellOptions::inherited("/".into())).await.unwrap();
        for _ in 0..2 {
            shell.run(RunRequest::command("cd /tmp; x=1")).await.unwrap();
            let broken = shell.run(RunRequest::command(super::super::requests::DEFECT)).await;
            assert!(matches!(broken, Err(TerminalError::Defect)), "{broken:?}");
            let report = shell.run(RunRequest::command("echo \"$PWD ${x-unset}\"")).await.unwrap();
            assert_eq!((report.end, report.output.as_str()), (RunEnd::Completed { status: 0 }, "/tmp unset"));
            assert!(report.loss.is_some_and(|loss| loss.before_command));
        }
        tokio::time::timeout(Duration::from_secs(10), shell.close()).await.unwrap();
        assert!(matches!(shell.run(RunRequest::command("echo")).await, Err(TerminalError::Closed)));
    }

    #[tokio::test]
    async fn a_session_whose_task_fails_again_and_again_is_closed_and_wedges_nobody() {
        let shell = Shell::start(ShellOptions::inherited("/".into())).await.unwrap();
        for _ in 0..MOST_DEFECTS {
            let broken = shell.run(RunRequest::command(super::super::requests::DEFECT)).await;
            assert!(matches!(broken, Err(TerminalError::Defect | TerminalError::Closed)), "{broken:?}");
        }
        assert!(matches!(shell.run(RunRequest::command("echo")).await, Err(TerminalError::Closed)));
        tokio::time::timeout(Duration::from_secs(10), shell.close()).await.unwrap();
    }

    #[tokio::test]
    async fn no_time_limit_is_too_long() {
        let shell = Shell::start(ShellOptions::inherited("/".into())).await.unwrap();
        for limit in [Duration::MAX, Duration::from_secs(u64::MAX), Duration::from_secs(i64::MAX.unsigned_abs())] {
            let request = RunRequest::command("echo well").at_most(limit).no_change_after(limit);
            let report = tokio::time::timeout(Duration::from_secs(10), shell.run(request)).await.unwrap().unwrap();
            assert_eq!((report.end, report.output.as_str()), (RunEnd::Completed { status: 0 }, "well"), "{limit:?}");
        }
        tokio::time::timeout(Duration::from_secs(10), shell.close()).await.unwrap();
    }
}
