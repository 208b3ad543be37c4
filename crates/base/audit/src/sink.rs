//! The log of this process, which all that happens in it is told, wherever it happens.

use std::sync::OnceLock;

use crate::event::Event;

/// Whoever keeps what is recorded. A process has one sandbox, so it has one of them.
pub trait Sink: Send + Sync + 'static {
    /// Keeps it before it returns. What becomes of the sandbox if that fails is its matter.
    fn keep(&self, event: Event);
}

static SINK: OnceLock<Box<dyn Sink>> = OnceLock::new();

/// Has everything recorded that happens in this process from now on. There is one for its whole life: whether it is this one.
pub fn record_into(sink: impl Sink) -> bool {
    SINK.set(Box::new(sink)).is_ok()
}

/// Records what happens, if anything is recorded; it is only made then. Call it before it happens, if that can be told.
pub fn record(event: impl FnOnce() -> Event) {
    if let Some(sink) = SINK.get() {
        sink.keep(event());
    }
}
