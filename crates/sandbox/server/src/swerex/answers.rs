//! Answers that were given, for requests that are sent again.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;
use tokio::{sync::watch, time::Instant};

use crate::answer;

/// How long an answer is kept.
const KEPT: Duration = Duration::from_mins(5);
/// Most bytes of all that are kept.
const HELD: usize = 64 * 1024 * 1024;
/// Most of them.
const MOST: usize = 8192;
/// Longest name of a request that is remembered.
const NAME: usize = 128;

/// A status and a body of JSON.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    status: StatusCode,
    body: Bytes,
}

impl Answer {
    pub(super) fn new(status: StatusCode, body: &impl Serialize) -> Self {
        match serde_json::to_vec(body) {
            Ok(bytes) => Self { status, body: bytes.into() },
            Err(error) => {
                tracing::error!(%error, "an answer cannot be written as JSON");
                Self { status: StatusCode::INTERNAL_SERVER_ERROR, body: Bytes::from_static(b"{}") }
            }
        }
    }

    pub(super) fn into_response(self) -> Response {
        answer::with_type(self.status, "application/json", self.body)
    }
}

/// What requests were answered, by their names.
#[derive(Debug, Default)]
pub(super) struct Answers(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    all: HashMap<String, watch::Receiver<Option<Answer>>>,
    /// Those that are given, in the order of that, with their sizes.
    given: VecDeque<(Instant, String, usize)>,
    held: usize,
}

impl Answers {
    /// Does something to the end, whoever waits for it; once for a name.
    pub(super) async fn once(
        self: &Arc<Self>,
        name: Option<&str>,
        work: impl Future<Output = Answer> + Send + 'static,
    ) -> Answer {
        let mut answered = self.begin(name.filter(|name| (1..=NAME).contains(&name.len())), work);
        match answered.wait_for(Option::is_some).await.map(|answer| answer.clone()) {
            Ok(Some(answer)) => answer,
            // It has panicked.
            Ok(None) | Err(_) => {
                Answer::new(StatusCode::INTERNAL_SERVER_ERROR, &gloveport_protocol::ErrorBody::new(answer::UNEXPECTED))
            }
        }
    }

    fn begin(
        self: &Arc<Self>,
        name: Option<&str>,
        work: impl Future<Output = Answer> + Send + 'static,
    ) -> watch::Receiver<Option<Answer>> {
        let mut table = self.table();
        table.forget(Instant::now());
        if let Some(known) = name.and_then(|name| table.all.get(name)) {
            return known.clone();
        }
        let (give, answered) = watch::channel(None);
        if let Some(name) = name {
            table.all.insert(name.to_owned(), answered.clone());
        }
        drop(table);
        let mut of_name = name.map(|name| OfName { answers: Arc::clone(self), name: name.to_owned(), size: 0 });
        tokio::spawn(async move {
            let answer = work.await;
            if let Some(of_name) = &mut of_name {
                of_name.size = answer.body.len();
            }
            give.send_replace(Some(answer));
        });
        answered
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Lets go what is too old or too much.
    fn forget(&mut self, now: Instant) {
        while let Some((given, _, size)) = self.given.front() {
            if now.duration_since(*given) < KEPT && self.held <= HELD && self.given.len() <= MOST {
                return;
            }
            self.held -= size;
            if let Some((_, name, _)) = self.given.pop_front() {
                self.all.remove(&name);
            }
        }
    }
}

/// A request with a name that is worked on. It counts as answered when this is dropped.
struct OfName {
    answers: Arc<Answers>,
    name: String,
    size: usize,
}

impl Drop for OfName {
    fn drop(&mut self) {
        let mut table = self.answers.table();
        table.held += self.size;
        let (name, size) = (std::mem::take(&mut self.name), self.size);
        table.given.push_back((Instant::now(), name, size));
        table.forget(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use tokio::time::{advance, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_repeated_request_waits_for_the_first_and_gets_its_answer_for_a_while() {
        let (answers, count) = (Arc::new(Answers::default()), Arc::new(AtomicU32::new(0)));
        let work = || {
            let count = Arc::clone(&count);
            async move {
                sleep(Duration::from_secs(1)).await;
                Answer::new(StatusCode::OK, &(count.fetch_add(1, Relaxed) + 1))
            }
        };
        let (first, second) = tokio::join!(answers.once(Some("a"), work()), answers.once(Some("a"), work()));
        assert_eq!((first.body, second.body), (Bytes::from("1"), Bytes::from("1")));
        assert_eq!(answers.once(Some("a"), work()).await.body, "1");
        assert_eq!(answers.once(Some("b"), work()).await.body, "2");
        for expected in ["3", "4"] {
            assert_eq!(answers.once(None, work()).await.body, expected);
        }
        advance(KEPT).await;
        assert_eq!(answers.once(Some("a"), work()).await.body, "5");
        let broken = answers.once(Some("c"), async { panic!("a defect") }).await;
        assert_eq!(broken.status, StatusCode::INTERNAL_SERVER_ERROR);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_kept_is_bounded() {
        let answers = Arc::new(Answers::default());
        let large = "x".repeat(HELD / 4);
        for name in 0..20 {
            let answer = Answer::new(StatusCode::OK, &large);
            answers.once(Some(&name.to_string()), async move { answer }).await;
        }
        for name in 0..2 * MOST {
            answers.once(Some(&format!("n{name}")), async { Answer::new(StatusCode::OK, &1) }).await;
        }
        tokio::task::yield_now().await;
        let table = answers.table();
        assert!(table.held <= HELD && table.all.len() <= MOST + 1, "{} {}", table.held, table.all.len());
        assert_eq!(table.all.len(), table.given.len());
    }
}
