//! Who hears that a secret was used.

use std::sync::Arc;

use gloveport_audit::{Event, record};
use http::Method;

use crate::log::Lines;
use gloveport_allow_list::Target;

/// What is written down of a method; the longest in use is shorter.
const LONGEST_METHOD: usize = 12;

/// A secret went out in a request.
#[derive(Clone, Copy, Debug)]
pub struct Used<'a> {
    /// The name of the secret.
    pub secret: &'a str,
    /// Where it went.
    pub target: &'a Target,
    /// What the request asks for.
    pub method: &'a Method,
}

/// Who is told of every use.
pub(crate) type Observer = Arc<dyn Fn(&Used<'_>) + Send + Sync>;

/// Tells of uses.
#[derive(Clone)]
pub(crate) struct Uses {
    lines: Arc<Lines>,
    observer: Option<Observer>,
}

impl Uses {
    pub(crate) fn new() -> Self {
        Self { lines: Arc::new(Lines::new()), observer: None }
    }

    pub(crate) fn observed_by(self, observer: Observer) -> Self {
        Self { observer: Some(observer), ..self }
    }

    pub(crate) fn tell(&self, used: &Used<'_>) {
        // Methods are whatever the sandbox calls them.
        let method: String = used.method.as_str().chars().take(LONGEST_METHOD).collect();
        record(|| Event::Secret {
            name: used.secret.to_owned(),
            target: used.target.to_string(),
            method: method.clone(),
        });
        if let Some(observer) = &self.observer {
            observer(used);
        }
        let Some(unsaid) = self.lines.next() else { return };
        if unsaid > 0 {
            tracing::info!(count = unsaid, "secrets were put in more often than is told");
        }
        tracing::info!(secret = used.secret, target = %used.target, method, "a secret was put in");
    }
}
