//! Requests to the service and to its sandboxes, again where that helps (`hosted-apis` 2.4, 3.5, 4.1).

use std::{fmt, time::Duration};

use bytes::Bytes;
use gloveport_client::{Certificates, Pool, causes};
use gloveport_protocol::Secret;
use gloveport_provider::{Check, ProviderError};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header::RETRY_AFTER};
use reqwest::Response;
use serde::de::DeserializeOwned;
use tokio::{
    sync::OnceCell,
    time::{sleep, timeout},
};

use crate::fault::{self, Words};

/// Tries of a request.
const TRIES: u32 = 4;
/// Pause after the first one; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause, also of those that the service names.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Most bytes of an answer: a page of a list, or a file of ours.
const ANSWER: usize = 16 * 1024 * 1024;
/// The headers with which services say whether another try is of use.
const SHOULD_RETRY: [&str; 2] = ["should-retry", "x-should-retry"];
/// The header with a pause in milliseconds.
const AFTER_MILLIS: &str = "retry-after-ms";

/// When a request is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// Also when its answer was lost: it does no harm twice.
    Always,
    /// Only when it was refused.
    Refused,
}

/// A request.
#[derive(Clone)]
pub struct Request {
    /// What is done.
    pub method: Method,
    /// The whole URL.
    pub url: String,
    /// Its headers, with whatever lets it in.
    pub headers: HeaderMap,
    /// Its body; empty for none.
    pub body: Bytes,
    /// When it is sent again.
    pub again: Again,
    /// Time for each try.
    pub limit: Duration,
}

impl fmt::Debug for Request {
    /// Without headers and body: there are keys in these.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("method", &self.method).field("url", &self.url).finish_non_exhaustive()
    }
}

/// An answer, whatever its status is.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, to the last byte.
    pub body: Vec<u8>,
}

/// A service, and what it is reached with.
pub struct Service {
    words: Words,
    url: String,
    key: Option<Secret>,
    pool: OnceCell<Pool>,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("url", &self.url).field("has_key", &self.key.is_some()).finish_non_exhaustive()
    }
}

impl Service {
    /// The service at this URL, with the key that it knows. It is not asked anything yet.
    pub fn new(words: Words, url: impl Into<String>, key: Option<Secret>) -> Self {
        Self { words, url: url.into(), key, pool: OnceCell::new() }
    }

    /// Which service it is, for messages.
    pub fn name(&self) -> String {
        format!("{} at {}", self.words.name, self.url)
    }

    /// The key, without which nothing is asked.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn key(&self) -> Result<&Secret, ProviderError> {
        self.key.as_ref().ok_or_else(|| ProviderError::Access {
            engine: self.name(),
            reason: "no key is set".to_owned(),
            hint: self.words.no_key.to_owned(),
        })
    }

    /// A header with the key: these characters before it, and then the key.
    ///
    /// # Errors
    ///
    /// There is no key, or none that a header can have.
    pub fn key_header(&self, before: &str) -> Result<HeaderValue, ProviderError> {
        let value = HeaderValue::from_str(&format!("{before}{}", self.key()?.expose()));
        let mut value = value.map_err(|_| self.failed("use the key", "it has characters that no header can have"))?;
        value.set_sensitive(true);
        Ok(value)
    }

    fn unreachable(&self, error: &(dyn std::error::Error + 'static)) -> ProviderError {
        ProviderError::Unreachable {
            engine: self.name(),
            source: causes(error).into(),
            hint: self.words.network.to_owned(),
        }
    }

    fn late(&self, action: &str, limit: Duration) -> ProviderError {
        ProviderError::Timeout { action: format!("asking {} to {action}", self.name()), limit }
    }

    /// It failed, or what it answered is of no use.
    pub fn failed(&self, action: &str, reason: impl fmt::Display) -> ProviderError {
        fault::failed(&self.name(), action, reason)
    }

    /// The error that a status is.
    pub fn refused(&self, action: &str, status: StatusCode, body: &[u8]) -> ProviderError {
        fault::refused(&self.words, &self.name(), action, status, body)
    }

    /// What came of asking the service for something harmless, for people.
    pub fn check(&self, asked: Result<(), ProviderError>) -> Check {
        let name = "service".to_owned();
        let Err(error) = asked else {
            let found = format!("{}, and the key is accepted", self.name());
            return Check { name, works: true, found, remedy: None };
        };
        let remedy = match &error {
            ProviderError::Access { hint, .. } | ProviderError::Unreachable { hint, .. } => hint.clone(),
            _ => "look at docs/hosted.md".to_owned(),
        };
        let found = causes(&error);
        // What to do is told apart.
        let found = found.strip_suffix(&format!("; {remedy}")).unwrap_or(&found).to_owned();
        Check { name, works: false, found, remedy: Some(remedy) }
    }

    /// What an answer says in JSON.
    ///
    /// # Errors
    ///
    /// It is something else.
    pub fn read<T: DeserializeOwned>(&self, action: &str, answer: &Answer) -> Result<T, ProviderError> {
        let not_understood = |error| self.failed(action, format!("its answer is not understood: {error}"));
        serde_json::from_slice(&answer.body).map_err(not_understood)
    }

    /// Sends a request that is about one thing, and gives the answer; none if there is no such thing.
    ///
    /// # Errors
    ///
    /// As for [`ask`](Self::ask); and the service refuses it.
    pub async fn told(&self, action: &str, request: &Request) -> Result<Option<Answer>, ProviderError> {
        let answer = self.ask(action, request).await?;
        match answer.status {
            status if status.is_success() => Ok(Some(answer)),
            StatusCode::NOT_FOUND => Ok(None),
            status => Err(self.refused(action, status, &answer.body)),
        }
    }

    /// Sends a request, again where that helps, and gives the whole answer, whatever its status is.
    ///
    /// # Errors
    ///
    /// There is no answer, or one without end.
    pub async fn ask(&self, action: &str, request: &Request) -> Result<Answer, ProviderError> {
        let mut pause = FIRST_PAUSE;
        for tries in 1.. {
            let asked = timeout(request.limit, self.ask_once(action, request)).await;
            let asked = asked.unwrap_or_else(|_| Err(self.late(action, request.limit)));
            let again = match &asked {
                Ok(answer) => wants_again(answer),
                Err(error) => (error.is_temporary() && request.again == Again::Always).then_some(Pause::Own),
            };
            match again {
                Some(Pause::Named(named)) if tries < TRIES => sleep(named.min(LONGEST_PAUSE)).await,
                Some(Pause::Own) if tries < TRIES => sleep(jittered(pause)).await,
                _ => return asked,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Err(self.failed(action, "it was asked too often"))
    }

    async fn ask_once(&self, action: &str, request: &Request) -> Result<Answer, ProviderError> {
        let mut answer = self.send(action, request).await?;
        let (status, headers, mut body) = (answer.status(), answer.headers().clone(), Vec::new());
        loop {
            match answer.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() > ANSWER => {
                    return Err(self.failed(action, format!("its answer has more than {ANSWER} bytes")));
                }
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => return Ok(Answer { status, headers, body }),
                Err(error) => return Err(self.unreachable(&error.without_url())),
            }
        }
    }

    /// Sends a request once, and gives the head of the answer.
    ///
    /// # Errors
    ///
    /// There is no answer within the time of the request.
    pub async fn send(&self, action: &str, request: &Request) -> Result<Response, ProviderError> {
        let pool = self.pool.get_or_try_init(async || Pool::new(Certificates::Checked)).await;
        let pool = pool.map_err(|error| self.failed(action, causes(&error)))?;
        let Request { method, url, headers, body, .. } = request.clone();
        let sent = pool.http().request(method, url).headers(headers).body(body).send();
        match timeout(request.limit, sent).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.unreachable(&error.without_url())),
            Err(_) => Err(self.late(action, request.limit)),
        }
    }
}

/// A pause before another try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pause {
    /// The service has named it.
    Named(Duration),
    /// Longer with each try.
    Own,
}

/// The pause after which another try is of use; none if it is not.
fn wants_again(answer: &Answer) -> Option<Pause> {
    let header = |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok());
    let wants = match SHOULD_RETRY.into_iter().find_map(header) {
        Some(word) => word.eq_ignore_ascii_case("true"),
        None => matches!(answer.status.as_u16(), 408 | 429 | 502..=504),
    };
    // What has succeeded is not asked again, whatever a header says.
    (wants && !answer.status.is_success()).then_some(named(&answer.headers).map_or(Pause::Own, Pause::Named))
}

/// The pause that headers name. Where each limit has a header of its own (`retry-after-sandbox-create`), the longest counts.
fn named(headers: &HeaderMap) -> Option<Duration> {
    let number = |value: &HeaderValue| value.to_str().ok().and_then(|text| text.trim().parse::<u64>().ok());
    if let Some(millis) = headers.get(AFTER_MILLIS).and_then(number) {
        return Some(Duration::from_millis(millis));
    }
    let is_pause = |name: &HeaderName| name.as_str().starts_with(RETRY_AFTER.as_str()) && name != AFTER_MILLIS;
    let seconds = headers.iter().filter(|(name, _)| is_pause(name)).filter_map(|(_, value)| number(value));
    seconds.max().map(Duration::from_secs)
}

/// A pause of half to all of this time, so that many that wait do not come back at once.
fn jittered(pause: Duration) -> Duration {
    let random = gloveport_ids::random::<1>().ok().and_then(|digits| u8::from_str_radix(&digits, 16).ok());
    pause / 2 + pause / 2 * u32::from(random.unwrap_or(u8::MAX)) / 255
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_says_whether_and_when_another_try_is_of_use() {
        let named = |seconds| Some(Pause::Named(Duration::from_secs(seconds)));
        for (status, headers, expected) in [
            (429, &[][..], Some(Pause::Own)),
            (503, &[("retry-after", "7")], named(7)),
            (503, &[("should-retry", "false")], None),
            (500, &[("should-retry", "true")], Some(Pause::Own)),
            (503, &[("retry-after-ms", "7000"), ("retry-after", "1")], named(7)),
            (429, &[("retry-after-authenticated", "2"), ("retry-after-sandbox-create", "7")], named(7)),
            (503, &[("x-should-retry", "false")], None),
            (408, &[], Some(Pause::Own)),
            (500, &[], None),
            (404, &[], None),
            (200, &[("should-retry", "true")], None),
            (503, &[("retry-after", "soon")], Some(Pause::Own)),
        ] {
            let headers = headers
                .iter()
                .map(|(name, value): &(&str, &str)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()))
                .collect();
            let answer = Answer { status: StatusCode::from_u16(status).unwrap(), headers, body: Vec::new() };
            assert_eq!(wants_again(&answer), expected);
        }
    }

    #[test]
    fn a_pause_is_never_longer_than_it_may_be() {
        for _ in 0..100 {
            let pause = jittered(Duration::from_secs(2));
            assert!((Duration::from_secs(1)..=Duration::from_secs(2)).contains(&pause), "{pause:?}");
        }
    }
}
