//! What went wrong with servers, for whoever shows it to people (runtime-interface 14.5).

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

/// Most errors that are kept.
const MOST: usize = 1000;

/// What a server is, or what was being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorSource {
    /// A program.
    Stdio,
    /// A server that speaks server-sent events.
    Sse,
    /// A server that speaks streamable HTTP.
    Http,
    /// Tools were brought into the form that models take.
    Conversion,
    /// Tools were fetched from all servers.
    Fetch,
}

impl ErrorSource {
    /// The word of the interface: `stdio`, `sse`, `shttp`, `conversion` or `fetch`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Sse => "sse",
            Self::Http => "shttp",
            Self::Conversion => "conversion",
            Self::Fetch => "fetch",
        }
    }
}

/// An error with a server.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectedError {
    /// When, in seconds since 1970.
    pub timestamp: f64,
    /// The server: its name, or its URL.
    pub server_name: String,
    /// What it is.
    pub source: ErrorSource,
    /// What failed.
    pub message: String,
    /// Why, if more is known.
    pub details: Option<String>,
}

/// Errors with servers, of which the newest thousand are kept. All may use it at the same time.
#[derive(Debug)]
pub struct ErrorCollector(Mutex<Collected>);

#[derive(Debug)]
struct Collected {
    errors: VecDeque<CollectedError>,
    is_enabled: bool,
}

static GLOBAL: ErrorCollector = ErrorCollector::new();

impl ErrorCollector {
    /// An empty one, which is enabled.
    pub const fn new() -> Self {
        Self(Mutex::new(Collected { errors: VecDeque::new(), is_enabled: true }))
    }

    /// The one of this process, which all connections of pools tell.
    pub fn global() -> &'static Self {
        &GLOBAL
    }

    fn collected(&self) -> MutexGuard<'_, Collected> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an error, unless the collector is disabled.
    pub fn add(&self, server_name: &str, source: ErrorSource, message: String, details: Option<String>) {
        let mut collected = self.collected();
        if !collected.is_enabled {
            return;
        }
        if collected.errors.len() == MOST {
            collected.errors.pop_front();
        }
        let timestamp = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let server_name = server_name.to_owned();
        collected.errors.push_back(CollectedError { timestamp, server_name, source, message, details });
    }

    /// All errors, the oldest first.
    pub fn errors(&self) -> Vec<CollectedError> {
        self.collected().errors.iter().cloned().collect()
    }

    /// Whether there are any.
    pub fn has_errors(&self) -> bool {
        !self.collected().errors.is_empty()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.collected().errors.len()
    }

    /// Forgets all.
    pub fn clear(&self) {
        self.collected().errors.clear();
    }

    /// From now on errors are added.
    pub fn enable(&self) {
        self.collected().is_enabled = true;
    }

    /// From now on errors are not added. Those that are there stay.
    pub fn disable(&self) {
        self.collected().is_enabled = false;
    }
}

impl Default for ErrorCollector {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_collected_while_it_is_enabled_and_the_oldest_go() {
        let collector = ErrorCollector::new();
        assert!(!collector.has_errors());
        for number in 0..=MOST {
            collector.add("time", ErrorSource::Stdio, number.to_string(), None);
        }
        assert_eq!(collector.count(), MOST);
        let errors = collector.errors();
        assert_eq!((errors[0].message.as_str(), errors[0].source.as_str()), ("1", "stdio"));
        collector.disable();
        collector.clear();
        collector.add("time", ErrorSource::Http, "ignored".to_owned(), None);
        assert_eq!(collector.count(), 0);
        collector.enable();
        collector.add("h", ErrorSource::Fetch, "told".to_owned(), Some("why".to_owned()));
        assert!(collector.has_errors() && collector.errors()[0].timestamp > 1.0e9);
    }
}
