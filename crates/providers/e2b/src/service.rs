//! Requests to the service and to its sandboxes, again where that helps (`hosted-apis` 2.4).

use std::{fmt, time::Duration};

use bytes::Bytes;
use gloveport_client::{Certificates, Pool, causes};
use gloveport_protocol::Secret;
use gloveport_provider::ProviderError;
use http::{HeaderMap, Method, StatusCode, header::RETRY_AFTER};
use reqwest::Response;
use tokio::{
    sync::OnceCell,
    time::{sleep, timeout},
};

use crate::{E2bOptions, fault};

/// Tries of a request.
const TRIES: u32 = 4;
/// Pause after the first one; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause, also of those that the service names.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Most bytes of an answer: a page of a list, or a file of ours.
const ANSWER: usize = 16 * 1024 * 1024;
/// The header with which the service says whether another try is of use.
const SHOULD_RETRY: &str = "should-retry";

/// When a request is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// Also when its answer was lost: it does no harm twice.
    Always,
    /// Only when it was refused.
    Refused,
}

/// A request.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) again: Again,
    pub(crate) limit: Duration,
}

/// An answer, whatever its status is.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// The service.
pub(crate) struct Service {
    options: E2bOptions,
    pool: OnceCell<Pool>,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("url", &self.options.api_url).finish_non_exhaustive()
    }
}

impl Service {
    pub(crate) fn new(options: E2bOptions) -> Self {
        Self { options, pool: OnceCell::new() }
    }

    /// Which service it is, for messages.
    pub(crate) fn name(&self) -> String {
        format!("E2B at {}", self.options.api_url)
    }

    /// The key, without which nothing is asked.
    pub(crate) fn key(&self) -> Result<&Secret, ProviderError> {
        self.options.key.as_ref().ok_or_else(|| ProviderError::Access {
            engine: self.name(),
            reason: "no key is set".to_owned(),
            hint: "set E2B_API_KEY, or api_key_file in [extended.e2b]".to_owned(),
        })
    }

    fn unreachable(&self, error: &(dyn std::error::Error + 'static)) -> ProviderError {
        ProviderError::Unreachable {
            engine: self.name(),
            source: causes(error).into(),
            hint: "look at the network, and at api_url and domain in [extended.e2b]".to_owned(),
        }
    }

    fn late(&self, action: &str, limit: Duration) -> ProviderError {
        ProviderError::Timeout { action: format!("asking {} to {action}", self.name()), limit }
    }

    pub(crate) fn failed(&self, action: &str, reason: impl fmt::Display) -> ProviderError {
        fault::failed(&self.name(), action, reason)
    }

    /// Sends a request, again where that helps, and gives the whole answer.
    pub(crate) async fn ask(&self, action: &str, request: &Request) -> Result<Answer, ProviderError> {
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
    pub(crate) async fn send(&self, action: &str, request: &Request) -> Result<Response, ProviderError> {
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
    let wants = match header(SHOULD_RETRY) {
        Some(word) => word.eq_ignore_ascii_case("true"),
        None => matches!(answer.status.as_u16(), 429 | 502..=504),
    };
    let named = header(RETRY_AFTER.as_str()).and_then(|value| value.parse().ok()).map(Duration::from_secs);
    // What has succeeded is not asked again, whatever a header says.
    (wants && !answer.status.is_success()).then_some(named.map_or(Pause::Own, Pause::Named))
}

/// A pause of half to all of this time, so that many that wait do not come back at once.
fn jittered(pause: Duration) -> Duration {
    let random = gloveport_ids::random::<1>().ok().and_then(|digits| u8::from_str_radix(&digits, 16).ok());
    pause / 2 + pause / 2 * u32::from(random.unwrap_or(u8::MAX)) / 255
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    #[test]
    fn the_service_says_whether_and_when_another_try_is_of_use() {
        let named = |seconds| Some(Pause::Named(Duration::from_secs(seconds)));
        for (status, headers, expected) in [
            (429, &[][..], Some(Pause::Own)),
            (503, &[("retry-after", "7")], named(7)),
            (503, &[("should-retry", "false")], None),
            (500, &[("should-retry", "true")], Some(Pause::Own)),
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
