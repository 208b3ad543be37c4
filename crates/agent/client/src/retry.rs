//! When a request is sent again (`action-execution-client` 2).

use std::time::Duration;

use gloveport_protocol::BoxFuture;

use crate::{ClientError, Pause};
use tokio_util::sync::CancellationToken;

/// How often, and after what waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    /// Most requests in all.
    attempts: u32,
    /// Longest wait.
    most: Duration,
}

/// Layer A: status 429.
pub(crate) const STATUS_429: Rule = Rule { attempts: 3, most: Duration::from_mins(1) };
/// Layer B: connections that the peer closes without a whole answer.
pub(crate) const INCOMPLETE: Rule = Rule { attempts: 5, most: Duration::from_secs(15) };

/// Shortest wait of both rules.
const LEAST: Duration = Duration::from_secs(4);

impl Rule {
    /// The wait after this many failures.
    fn wait(self, failures: u32) -> Duration {
        let exponential = Duration::from_secs(1_u64 << failures.saturating_sub(1).min(16));
        LEAST.max(exponential.min(self.most))
    }
}

/// The failures of one request under one rule.
#[derive(Debug)]
pub(crate) struct Failures {
    rule: Rule,
    count: u32,
}

impl Failures {
    pub(crate) const fn under(rule: Rule) -> Self {
        Self { rule, count: 0 }
    }

    /// How many there were.
    pub(crate) const fn count(&self) -> u32 {
        self.count
    }

    /// Waits until the request may be sent again, or gives up.
    pub(crate) async fn wait_after(
        &mut self,
        error: ClientError,
        pause: &dyn Pause,
        shutdown: &CancellationToken,
    ) -> Result<(), ClientError> {
        self.count += 1;
        let exhausted = |last, attempts| Err(ClientError::RetriesExhausted { attempts, last: Box::new(last) });
        if self.count >= self.rule.attempts || shutdown.is_cancelled() {
            return exhausted(error, self.count);
        }
        let wait = self.rule.wait(self.count);
        tracing::debug!(%error, ?wait, "the request is sent again");
        tokio::select! {
            () = pause.pause(wait) => Ok(()),
            () = shutdown.cancelled() => exhausted(error, self.count),
        }
    }
}

/// What is done about a failure that repeating did not cure (`action-execution-client` 2.3): a paused sandbox is
/// resumed, a proxy that is still starting is given time.
pub trait Recovery: Send + Sync {
    /// Decides about one failure. It may do what it takes before it answers; the action waits meanwhile.
    fn recover<'a>(&'a self, failure: Failure<'a>) -> BoxFuture<'a, Verdict>;

    /// Is asked before a request is sent again whose connection closed without a whole answer (layer B). A text means
    /// that this is in vain: the result is [`ClientError::Disconnected`] with it, at once.
    fn lost<'a>(&'a self, _failure: Failure<'a>) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }
}

/// A failed request.
#[derive(Debug)]
pub struct Failure<'a> {
    /// Path of the request, without a slash in front: `execute_action`.
    pub request: &'a str,
    /// How it failed.
    pub error: &'a ClientError,
    /// How often it has been given to the recovery, this time included.
    pub count: u32,
    /// Time since the request was made for the first time.
    pub elapsed: Duration,
    /// Whether the client was closed meanwhile.
    pub closed: bool,
}

/// What happens next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The request is sent again after a wait.
    Again {
        /// How long.
        after: Duration,
    },
    /// The request is sent at once one more time, and what comes of that is the result.
    Once,
    /// The failure is the result.
    Fail,
    /// The result is [`ClientError::RetriesExhausted`] with the failure as the last one.
    Exhausted,
    /// The result is [`ClientError::Disconnected`] with this text, and the failure as its cause.
    Disconnected(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waits_are_those_of_the_reference() {
        let waits = |rule: Rule| (1..=6).map(|failures| rule.wait(failures).as_secs()).collect::<Vec<_>>();
        assert_eq!(waits(STATUS_429), [4, 4, 4, 8, 16, 32]);
        assert_eq!(waits(INCOMPLETE), [4, 4, 4, 8, 15, 15]);
    }
}
