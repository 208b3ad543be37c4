//! Makes a sandbox in a task of its own, so that nothing is left behind when the caller gives up.

use std::future::Future;

use tokio::{
    sync::mpsc,
    task::{JoinError, spawn},
};
use tokio_util::sync::CancellationToken;

use crate::{Phase, Progress};

/// Reports of progress that wait to be told.
const WAITING: usize = 256;

/// Tells how far the making of a sandbox is, from the task that makes it.
#[derive(Clone, Debug)]
pub struct Teller(mpsc::Sender<(Phase, String)>);

impl Teller {
    /// One whom nobody listens to.
    pub fn silent() -> Self {
        Self(mpsc::channel(1).0)
    }

    /// A phase begins, or there is something new in it.
    pub fn enter(&self, phase: Phase, detail: &str) {
        // What nobody takes in time is of no use later.
        let _full = self.0.try_send((phase, detail.to_owned()));
    }
}

/// Runs this in a task to its end, whether or not the caller waits for it, and passes on what it tells. The token is
/// cancelled when the caller has given up: the task takes back what it has made.
///
/// # Errors
///
/// The task panicked.
pub async fn apart<F, M>(progress: &Progress, make: F) -> Result<M::Output, JoinError>
where
    F: FnOnce(Teller, CancellationToken) -> M,
    M: Future<Output: Send> + Send + 'static,
{
    let (tell, mut told) = mpsc::channel(WAITING);
    let given_up = CancellationToken::new();
    let task = spawn(make(Teller(tell), given_up.clone()));
    let guard = given_up.drop_guard();
    // Ends with the task, which has the other end.
    while let Some((phase, detail)) = told.recv().await {
        progress.enter(phase, &detail);
    }
    let result = task.await?;
    guard.disarm();
    Ok(result)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{sync::oneshot, time::timeout};

    use super::*;

    #[tokio::test]
    async fn what_is_given_up_goes_on_and_hears_of_it() {
        let (tell, told) = oneshot::channel();
        let progress = Progress::silent();
        let making = apart(&progress, |_, given_up| async move {
            given_up.cancelled().await;
            tell.send("taken back").unwrap();
        });
        timeout(Duration::from_millis(10), making).await.unwrap_err();
        assert_eq!(timeout(Duration::from_secs(5), told).await.unwrap().unwrap(), "taken back");
    }

    #[tokio::test]
    async fn what_the_task_tells_reaches_the_caller_before_its_result() {
        let progress = Progress::silent();
        let made = apart(&progress, |tell, _| async move {
            tell.enter(Phase::Creating, "");
            tell.enter(Phase::Started, "");
            7
        });
        assert_eq!(made.await.unwrap(), 7);
        let phases: Vec<_> = progress.timings().into_iter().map(|timing| timing.phase).collect();
        assert_eq!(phases, [Phase::Creating, Phase::Started]);
    }
}
