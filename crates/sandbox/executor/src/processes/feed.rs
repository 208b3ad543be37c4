//! What a process writes, for all who follow it.
//!
//! A bounded part is kept. Whoever follows holds the process back as a pipe would, for a while; then the oldest is let go, and
//! they are told how much they missed. Output that nobody follows is let go, too.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gloveport_protocol::processes::{ProcessEnd, ProcessEvent, ProcessFrom, ProcessStream};
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

/// Bytes that are kept.
const KEPT: usize = 1024 * 1024;
/// How long a process waits for the slowest of those who follow it.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long it waits for the first one: who starts it follows it a moment later.
const FIRST: Duration = Duration::from_secs(5);

/// What a process writes.
#[derive(Debug)]
pub(super) struct Feed {
    state: Mutex<State>,
    /// There is more to tell.
    more: Notify,
    /// Somebody has taken something, or has gone.
    taken: Notify,
    began: Instant,
}

#[derive(Debug, Default)]
struct State {
    pieces: VecDeque<(ProcessStream, Vec<u8>)>,
    /// Bytes of them.
    held: usize,
    /// Number of the first of them.
    first: u64,
    /// Bytes of all that were let go.
    let_go: u64,
    /// Numbers of the next pieces of all who follow.
    followers: HashMap<u64, u64>,
    /// How many there have been.
    count: u64,
    end: Option<ProcessEnd>,
}

impl State {
    fn next(&self) -> u64 {
        self.first + self.pieces.len() as u64
    }

    fn let_go_oldest(&mut self) {
        if let Some((_, bytes)) = self.pieces.pop_front() {
            self.held -= bytes.len();
            self.let_go += bytes.len() as u64;
            self.first += 1;
        }
    }

    /// Whether somebody still needs the oldest piece.
    fn is_needed(&self) -> bool {
        self.followers.values().any(|next| *next <= self.first)
    }
}

impl Feed {
    pub(super) fn new() -> Self {
        Self { state: Mutex::default(), more: Notify::new(), taken: Notify::new(), began: Instant::now() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what was written, as soon as there is room for it.
    pub(super) async fn push(&self, stream: ProcessStream, bytes: &[u8]) {
        let patience = Instant::now() + PATIENCE;
        loop {
            let taken = self.taken.notified();
            let deadline = {
                let mut state = self.state();
                let is_new = state.count == 0;
                let deadline = if is_new { self.began + FIRST } else { patience };
                while state.held + bytes.len() > KEPT && !state.pieces.is_empty() {
                    if (is_new || state.is_needed()) && Instant::now() < deadline {
                        break;
                    }
                    state.let_go_oldest();
                }
                if state.held + bytes.len() <= KEPT || state.pieces.is_empty() {
                    state.held += bytes.len();
                    state.pieces.push_back((stream, bytes.to_vec()));
                    drop(state);
                    self.more.notify_waiters();
                    return;
                }
                deadline
            };
            let _too_late = timeout_at(deadline, taken).await;
        }
    }

    /// Says that nothing more comes.
    pub(super) fn end(&self, end: ProcessEnd) {
        self.state().end.get_or_insert(end);
        self.more.notify_waiters();
    }

    /// How the process ended, once all of its output is here.
    pub(super) fn ended(&self) -> Option<ProcessEnd> {
        self.state().end
    }

    pub(super) fn follow(self: &Arc<Self>, from: ProcessFrom) -> Follower {
        let mut state = self.state();
        let (next, seen) = match from {
            // What is gone already is told first.
            ProcessFrom::Start => (0, 0),
            ProcessFrom::Now => (state.next(), state.let_go),
        };
        let number = state.count;
        state.count += 1;
        state.followers.insert(number, next);
        drop(state);
        self.taken.notify_waiters();
        Follower { feed: Arc::clone(self), number, let_go: seen, is_over: false }
    }

    pub(super) fn followers(&self) -> usize {
        self.state().followers.len()
    }
}

/// Somebody who follows a process.
#[derive(Debug)]
pub struct Follower {
    feed: Arc<Feed>,
    number: u64,
    /// Bytes that were let go when it looked last.
    let_go: u64,
    is_over: bool,
}

impl Follower {
    /// What the process does next; none behind its end.
    pub async fn next(&mut self) -> Option<ProcessEvent> {
        if self.is_over {
            return None;
        }
        let feed = Arc::clone(&self.feed);
        loop {
            let more = feed.more.notified();
            if let Some(event) = self.look(&mut feed.state()) {
                feed.taken.notify_waiters();
                self.is_over = matches!(event, ProcessEvent::Ended(_));
                return Some(event);
            }
            more.await;
        }
    }

    fn look(&mut self, state: &mut State) -> Option<ProcessEvent> {
        let next = *state.followers.get(&self.number)?;
        if next < state.first {
            state.followers.insert(self.number, state.first);
            let lost = state.let_go - self.let_go;
            self.let_go = state.let_go;
            return Some(ProcessEvent::Lost(lost));
        }
        let at = usize::try_from(next - state.first).unwrap_or(usize::MAX);
        let Some((stream, bytes)) = state.pieces.get(at) else { return state.end.map(ProcessEvent::Ended) };
        let event = ProcessEvent::Output { stream: *stream, bytes: bytes.clone() };
        // What is let go from here on has been seen up to this piece.
        self.let_go = state.let_go + state.pieces.iter().take(at + 1).map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
        state.followers.insert(self.number, next + 1);
        Some(event)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.feed.state().followers.remove(&self.number);
        self.feed.taken.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: ProcessEnd = ProcessEnd { exit_code: Some(0), signal: None, timed_out: false };

    fn output(bytes: &[u8]) -> ProcessEvent {
        ProcessEvent::Output { stream: ProcessStream::Stdout, bytes: bytes.to_vec() }
    }

    #[tokio::test]
    async fn each_follower_gets_all_from_where_it_began_and_then_the_end() {
        let feed = Arc::new(Feed::new());
        let mut early = feed.follow(ProcessFrom::Start);
        feed.push(ProcessStream::Stdout, b"a").await;
        let (mut late, mut now) = (feed.follow(ProcessFrom::Start), feed.follow(ProcessFrom::Now));
        feed.push(ProcessStream::Stdout, b"b").await;
        feed.end(END);
        for follower in [&mut early, &mut late] {
            assert_eq!(follower.next().await, Some(output(b"a")));
            assert_eq!(follower.next().await, Some(output(b"b")));
        }
        assert_eq!(now.next().await, Some(output(b"b")));
        for follower in [&mut early, &mut late, &mut now] {
            assert_eq!(follower.next().await, Some(ProcessEvent::Ended(END)));
            assert_eq!(follower.next().await, None);
        }
        drop((early, late, now));
        assert_eq!(feed.followers(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_follower_holds_the_process_back_for_a_while_and_then_learns_what_it_missed() {
        let feed = Arc::new(Feed::new());
        let mut follower = feed.follow(ProcessFrom::Start);
        let piece = vec![b'x'; KEPT / 2];
        let began = Instant::now();
        for _ in 0..2 {
            feed.push(ProcessStream::Stdout, &piece).await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        feed.push(ProcessStream::Stdout, &piece).await;
        assert!(began.elapsed() >= PATIENCE);
        feed.end(END);
        assert_eq!(follower.next().await, Some(ProcessEvent::Lost(piece.len() as u64)));
        assert_eq!(follower.next().await, Some(output(&piece)));
        assert_eq!(follower.next().await, Some(output(&piece)));
        assert_eq!(follower.next().await, Some(ProcessEvent::Ended(END)));
    }

    #[tokio::test(start_paused = true)]
    async fn output_that_nobody_follows_is_let_go_and_who_comes_later_is_told() {
        let feed = Arc::new(Feed::new());
        drop(feed.follow(ProcessFrom::Start));
        let began = Instant::now();
        for _ in 0..5 {
            feed.push(ProcessStream::Stdout, &vec![b'x'; KEPT]).await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        let mut follower = feed.follow(ProcessFrom::Start);
        assert_eq!(follower.next().await, Some(ProcessEvent::Lost(4 * KEPT as u64)));
        assert_eq!(follower.next().await, Some(output(&vec![b'x'; KEPT])));
    }
}
