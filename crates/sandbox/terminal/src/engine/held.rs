//! What is typed for a running program at the right moment only: Enter behind a text, and a key that sends a signal.

use std::time::Duration;

use tokio::time::Instant;

use super::doubt::{Doubt, VERIFY_PAUSE};
use crate::keys::ControlKey;

/// Time for a program that reads single keys to take what was typed before Enter.
const ENTER_PAUSE: Duration = Duration::from_millis(2);
/// Longest time that a key which sends a signal is held back while the shell starts a program.
const KEY_LIMIT: Duration = Duration::from_millis(50);
/// After this long Enter is pressed, also if the program is not seen to read on.
const ENTER_LIMIT: Duration = Duration::from_millis(300);

/// Keys that are still to be pressed.
#[derive(Debug, Default)]
pub(super) struct Held {
    enter: Option<Doubt>,
    /// A key that sends a signal, held back while the shell starts a program.
    key: Option<(ControlKey, Doubt)>,
}

impl Held {
    /// Something is still to be typed behind what was.
    pub(super) fn is_any(&self) -> bool {
        self.enter.is_some() || self.key.is_some()
    }

    /// When to look.
    pub(super) fn next_look(&self) -> Option<Instant> {
        let enter = self.enter.map(|doubt| doubt.next());
        let key = self.key.map(|(_, doubt)| doubt.next());
        enter.into_iter().chain(key).min()
    }

    /// A key is to be typed as soon as a program, or the shell, is there to get its signal.
    pub(super) fn key_later(&mut self, key: ControlKey) {
        self.key = Some((key, Doubt::looked_at_after(VERIFY_PAUSE, Instant::now())));
    }

    /// The key that was held back: something is to be typed behind it.
    pub(super) fn take_key(&mut self) -> Option<ControlKey> {
        self.key.take().map(|(key, _)| key)
    }

    /// The key that can be typed now. One that was held back for long enough is typed, come what may.
    pub(super) fn ready_key(&mut self, now: Instant, between_programs: impl Fn() -> bool) -> Option<ControlKey> {
        let (_, doubt) = self.key.as_mut()?;
        let ready = doubt.due(now) && (doubt.is_over(now, KEY_LIMIT) || !between_programs());
        if ready { self.take_key() } else { None }
    }

    /// Enter is to be pressed behind a text, for a program that reads single keys.
    pub(super) fn enter_later(&mut self) {
        self.enter = Some(Doubt::looked_at_after(ENTER_PAUSE, Instant::now()));
    }

    /// Whether it is time to see if Enter can be pressed.
    pub(super) fn enter_due(&mut self, now: Instant) -> bool {
        self.enter.as_mut().is_some_and(|enter| enter.due(now))
    }

    /// Whether the program had its time to take the text before Enter.
    pub(super) fn enter_overdue(&self, now: Instant) -> bool {
        self.enter.is_some_and(|enter| enter.is_over(now, ENTER_LIMIT))
    }

    /// Enter is pressed now or never; answers whether it was to be pressed.
    pub(super) fn take_enter(&mut self) -> bool {
        self.enter.take().is_some()
    }
}
