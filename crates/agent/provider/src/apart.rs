//! Makes a sandbox in a task of its own, so that nothing is left behind when the caller gives up.

use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{
    sync::{mpsc, oneshot},
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

/// The same for something that must not stay behind: what has been made and the caller has not taken, because it gave up at the
/// last moment, is given to `undo`, in the same task.
///
/// # Errors
///
/// The task panicked.
pub async fn handed_over<F, M, U, D>(progress: &Progress, make: F, undo: U) -> Result<M::Output, JoinError>
where
    F: FnOnce(Teller, CancellationToken) -> M + Send + 'static,
    M: Future<Output: Send> + Send + 'static,
    U: FnOnce(M::Output) -> D + Send + 'static,
    D: Future<Output = ()> + Send,
{
    let (tell, mut told) = mpsc::channel(WAITING);
    let (given_up, gone) = (CancellationToken::new(), CancellationToken::new());
    let (done, is_done) = oneshot::channel();
    let slot = Arc::new(Mutex::new(None));
    let task = spawn({
        let (given_up, gone, slot) = (given_up.clone(), gone.clone(), Arc::clone(&slot));
        async move {
            let output = make(Teller(tell), given_up).await;
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(output);
            // Whether somebody hears of it or not, what was not taken at the end of the caller is left.
            let _gone = done.send(());
            gone.cancelled().await;
            let left = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(left) = left {
                undo(left).await;
            }
        }
    });
    let _gone = gone.drop_guard();
    let guard = given_up.drop_guard();
    while let Some((phase, detail)) = told.recv().await {
        progress.enter(phase, &detail);
    }
    let _finished = is_done.await;
    let taken = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(output) = taken {
        guard.disarm();
        return Ok(output);
    }
    // It has panicked: nobody else takes what it has made before this ends.
    task.await?;
    std::future::pending().await
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

    #[tokio::test]
    async fn what_was_made_and_not_taken_is_undone() {
        for wait in [None, Some(Duration::from_millis(10))] {
            let (undone, mut left) = mpsc::channel(1);
            let (finish, finished) = oneshot::channel::<()>();
            let progress = Progress::silent();
            let making = handed_over(
                &progress,
                |_, _| async move {
                    let _told = finished.await;
                    7
                },
                move |made| async move { undone.send(made).await.unwrap() },
            );
            match wait {
                None => {
                    finish.send(()).unwrap();
                    assert_eq!(making.await.unwrap(), 7);
                    assert_eq!(timeout(Duration::from_secs(5), left.recv()).await.unwrap(), None);
                }
                Some(wait) => {
                    timeout(wait, making).await.unwrap_err();
                    finish.send(()).unwrap();
                    assert_eq!(timeout(Duration::from_secs(5), left.recv()).await.unwrap(), Some(7));
                }
            }
        }
    }

    #[tokio::test]
    async fn what_is_finished_before_the_caller_looks_is_undone_when_it_never_looks() {
        let (undone, mut left) = mpsc::channel(1);
        let progress = Progress::silent();
        {
            let mut making = std::pin::pin!(handed_over(
                &progress,
                |_, _| async { 7 },
                move |made| async move { undone.send(made).await.unwrap() },
            ));
            // It is started, and then not asked again though it is done.
            let polled = futures_util::poll!(making.as_mut());
            assert!(polled.is_pending());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(timeout(Duration::from_secs(5), left.recv()).await.unwrap(), Some(7));
    }
}
