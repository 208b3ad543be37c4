//! Calls of the service (`hosted-apis` 5.1): with the token, again where that helps, and always as the same wish.

use std::{
    fmt,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gloveport_hosted::service::Service;
use gloveport_protocol::Secret;
use gloveport_provider::ProviderError;
use http::{HeaderMap, HeaderName, HeaderValue};
use prost::Message;
use serde::Deserialize;
use tokio::{
    sync::Mutex,
    time::{sleep, timeout},
};

use crate::{
    ModalOptions,
    channel::Channel,
    grpc::{Code, Failure, Messages, Status, framed},
    names::WORDS,
    wire::{Empty, Text},
};

/// Where the calls are.
const PATH: &str = "/modal.client.ModalClient/";
/// More tries of a call that fails for a reason that may pass.
const MORE: u32 = 3;
/// First and longest pause between them.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// Most tries that the service itself asks for, and the longest pause that it may ask for.
const TOLD: (u32, Duration) = (30, Duration::from_secs(30));
/// How long a token of the service is taken to last that does not say so.
const TOKEN: Duration = Duration::from_mins(20);
/// The kind of client whose formats these are, and its release (`hosted-apis` 5.1).
const CLIENT: (&str, &str) = ("9", "1.0.0");

/// A call that has failed.
#[derive(Debug)]
pub(crate) struct Refused {
    /// What the service said; none if nobody heard it.
    pub(crate) code: Option<Code>,
    pub(crate) error: ProviderError,
}

impl From<Refused> for ProviderError {
    fn from(refused: Refused) -> Self {
        refused.error
    }
}

/// What one try of a call is.
#[derive(Clone, Copy)]
pub(crate) struct Try<'a> {
    /// The same for all tries.
    pub(crate) key: &'a str,
    /// Tries before it.
    pub(crate) number: u32,
}

/// A token that the service has made for these calls.
struct Jwt {
    token: String,
    renew: Instant,
}

/// The service.
pub(crate) struct Control {
    /// Names it in messages, and brings files where it says.
    pub(crate) service: Service,
    channel: Channel,
    token_id: Option<String>,
    /// Time for each try.
    pub(crate) limit: Duration,
    jwt: Mutex<Option<Jwt>>,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("service", &self.service).finish_non_exhaustive()
    }
}

impl Control {
    pub(crate) fn new(options: &ModalOptions) -> Self {
        Self {
            service: Service::new(WORDS, &options.server_url, options.token_secret.clone()),
            channel: Channel::new(&options.server_url),
            token_id: options.token_id.clone(),
            limit: options.answer_within,
            jwt: Mutex::new(None),
        }
    }

    /// The secret half of the token, without which nothing is asked.
    pub(crate) fn secret(&self) -> Result<&Secret, ProviderError> {
        let secret = self.service.key()?;
        if self.token_id.is_none() {
            return Err(ProviderError::Access {
                engine: self.service.name(),
                reason: "its token has no id".to_owned(),
                hint: WORDS.no_key.to_owned(),
            });
        }
        Ok(secret)
    }

    /// Whether the token is accepted.
    pub(crate) async fn check(&self) -> Result<(), ProviderError> {
        self.jwt.lock().await.take();
        self.jwt().await.map(drop)
    }

    /// Asks something, again where that helps.
    pub(crate) async fn ask<A: Message, B: Message + Default>(
        &self,
        action: &str,
        method: &str,
        message: &A,
    ) -> Result<B, Refused> {
        let key = self.key(action)?;
        self.ask_as(action, method, message, &key, self.limit).await
    }

    /// The same about something that may not be there; none if it is not.
    pub(crate) async fn told<A: Message, B: Message + Default>(
        &self,
        action: &str,
        method: &str,
        message: &A,
    ) -> Result<Option<B>, ProviderError> {
        found(self.ask(action, method, message).await)
    }

    /// Asks something that the service does once for each key, within this time for each try.
    pub(crate) async fn ask_as<A: Message, B: Message + Default>(
        &self,
        action: &str,
        method: &str,
        message: &A,
        key: &str,
        limit: Duration,
    ) -> Result<B, Refused> {
        let (path, body) = (format!("{PATH}{method}"), framed(message));
        let mut is_renewed = false;
        loop {
            let jwt = self.jwt().await.map_err(|error| Refused { code: None, error })?;
            let once = |number| {
                let (path, body, jwt) = (&path, body.clone(), &jwt);
                async move {
                    let headers = self.headers(Try { key, number }, Some(jwt))?;
                    one(Messages::of(self.channel.send(path, headers, body).await?)?).await
                }
            };
            match Box::pin(attempts(limit, once)).await {
                // The token that the service had made is not good any more.
                Err(failure) if failure.code() == Some(Code::Unauthenticated) && !is_renewed => {
                    is_renewed = true;
                    self.jwt.lock().await.take();
                }
                asked => return asked.map_err(|failure| self.refused(action, limit, failure)),
            }
        }
    }

    /// Asks for something that comes in pieces. It is asked once.
    pub(crate) async fn stream<A: Message, B: Message + Default>(
        &self,
        action: &str,
        method: &str,
        message: &A,
    ) -> Result<Messages<B>, Refused> {
        let key = self.key(action)?;
        let jwt = self.jwt().await.map_err(|error| Refused { code: None, error })?;
        let begun = async {
            let headers = self.headers(Try { key: &key, number: 0 }, Some(&jwt))?;
            Messages::of(self.channel.send(&format!("{PATH}{method}"), headers, framed(message)).await?)
        };
        let begun = timeout(self.limit, Box::pin(begun)).await.unwrap_or_else(|_| Err(late()));
        begun.map_err(|failure| self.refused(action, self.limit, failure))
    }

    /// A name for a call, of which no other has the same.
    pub(crate) fn key(&self, action: &str) -> Result<String, Refused> {
        let failed = |error| Refused { code: None, error: self.service.failed(action, error) };
        uuid().map_err(failed)
    }

    /// The token with which calls are let in; it is made anew at half of its life.
    async fn jwt(&self) -> Result<String, ProviderError> {
        let action = "let this machine in";
        self.secret()?;
        let mut kept = self.jwt.lock().await;
        if let Some(jwt) = kept.as_ref().filter(|jwt| Instant::now() < jwt.renew) {
            return Ok(jwt.token.clone());
        }
        let (path, body, key) = (format!("{PATH}AuthTokenGet"), framed(&Empty {}), self.key(action)?);
        let once = |number| {
            let (path, body, key) = (&path, body.clone(), key.as_str());
            async move {
                let headers = self.headers(Try { key, number }, None)?;
                one::<Text>(Messages::of(self.channel.send(path, headers, body).await?)?).await
            }
        };
        let made = Box::pin(attempts(self.limit, once)).await;
        let made = made.map_err(|failure| self.refused(action, self.limit, failure))?;
        let renew = Instant::now() + lifetime(&made.text).unwrap_or(TOKEN) / 2;
        Ok(kept.insert(Jwt { token: made.text, renew }).token.clone())
    }

    fn headers(&self, this: Try<'_>, jwt: Option<&str>) -> Result<HeaderMap, Failure> {
        let mut headers = common(this)?;
        let mut set = |name: &'static str, value: &str| {
            headers.insert(HeaderName::from_static(name), value_of(value)?);
            Ok::<_, Failure>(())
        };
        set("x-modal-client-type", CLIENT.0)?;
        set("x-modal-client-version", CLIENT.1)?;
        set("x-modal-libmodal-version", concat!("gloveport/", env!("CARGO_PKG_VERSION")))?;
        set("x-idempotency-key", this.key)?;
        set("x-modal-token-id", self.token_id.as_deref().unwrap_or_default())?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        set("x-modal-timestamp", &format!("{:.3}", now.as_secs_f64()))?;
        let secret = self.service.key().map(Secret::expose).unwrap_or_default();
        for (name, value) in [("x-modal-token-secret", Some(secret)), ("x-modal-auth-token", jwt)] {
            let Some(value) = value else { continue };
            let mut value = value_of(value)?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
        Ok(headers)
    }

    /// The error that a failure is (`hosted-apis` 7).
    pub(crate) fn refused(&self, action: &str, limit: Duration, failure: Failure) -> Refused {
        let engine = self.service.name();
        let Status { code, message, .. } = match failure {
            Failure::Network(reason) => {
                let error =
                    ProviderError::Unreachable { engine, source: reason.into(), hint: WORDS.network.to_owned() };
                return Refused { code: None, error };
            }
            Failure::Status(status) => status,
        };
        let reason = if message.is_empty() { format!("{code:?}") } else { format!("{message} ({code:?})") };
        let access = |hint: &str| ProviderError::Access {
            engine: engine.clone(),
            reason: reason.clone(),
            hint: hint.to_owned(),
        };
        let later = |hint: &str| ProviderError::Unreachable {
            engine: engine.clone(),
            source: reason.clone().into(),
            hint: hint.to_owned(),
        };
        let failed = |hint: &str| self.service.failed(action, format!("{reason}{hint}"));
        let error = match code {
            Code::Unauthenticated => access(WORDS.wrong_key),
            Code::PermissionDenied => access(WORDS.forbidden),
            Code::ResourceExhausted => later(WORDS.quota),
            Code::Unavailable => later("try it later"),
            Code::DeadlineExceeded | Code::Cancelled => {
                ProviderError::Timeout { action: format!("asking {engine} to {action}"), limit }
            }
            Code::InvalidArgument | Code::OutOfRange => {
                gloveport_hosted::fault::wrong("a wish", format!("{engine} does not {action}: {reason}"))
            }
            Code::FailedPrecondition | Code::Aborted => failed("; it is doing something else, try it again"),
            Code::Unimplemented => failed("; it does not offer that, or not any more: look for a newer gloveport"),
            Code::NotFound | Code::AlreadyExists | Code::Internal | Code::Unknown | Code::DataLoss => failed(""),
        };
        Refused { code: Some(code), error }
    }
}

/// What comes of asking about something that may not be there.
pub(crate) fn found<T>(asked: Result<T, Refused>) -> Result<Option<T>, ProviderError> {
    match asked {
        Ok(answer) => Ok(Some(answer)),
        Err(Refused { code: Some(Code::NotFound), .. }) => Ok(None),
        Err(refused) => Err(refused.error),
    }
}

/// The headers that every call has.
pub(crate) fn common(this: Try<'_>) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/grpc"));
    headers.insert("te", HeaderValue::from_static("trailers"));
    headers.insert("x-throttle-retry-attempt", HeaderValue::from_static("0"));
    headers.insert("x-retry-attempt", value_of(&this.number.to_string())?);
    Ok(headers)
}

pub(crate) fn value_of(text: &str) -> Result<HeaderValue, Failure> {
    let wrong = |_| Failure::Network("the token has characters that no header can have".to_owned());
    HeaderValue::from_str(text).map_err(wrong)
}

/// The one message of an answer.
pub(crate) async fn one<M: Message + Default>(mut messages: Messages<M>) -> Result<M, Failure> {
    let Some(first) = messages.next().await? else {
        return Err(Failure::Network("the answer is empty".to_owned()));
    };
    // How the call has ended comes after it.
    while messages.next().await?.is_some() {}
    Ok(first)
}

fn late() -> Failure {
    let message = "there is no answer".to_owned();
    Failure::Status(Status { code: Code::DeadlineExceeded, message, retry_after: None })
}

/// Tries a call until another try is of no use (`hosted-apis` 5.1).
pub(crate) async fn attempts<T, F>(limit: Duration, mut once: impl FnMut(u32) -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let (mut own, mut told, mut pause) = (0, 0, PAUSES.0);
    loop {
        let asked = timeout(limit, once(own + told)).await.unwrap_or_else(|_| Err(late()));
        let Err(failure) = asked else { return asked };
        match &failure {
            Failure::Status(Status { retry_after: Some(after), .. }) if told < TOLD.0 => {
                told += 1;
                sleep((*after).min(TOLD.1)).await;
                continue;
            }
            failure if passes(failure) && own < MORE => own += 1,
            _ => return Err(failure),
        }
        sleep(jittered(pause)).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}

/// Whether a failure may pass.
fn passes(failure: &Failure) -> bool {
    match failure.code() {
        None => true,
        Some(code) => matches!(
            code,
            Code::DeadlineExceeded | Code::Unavailable | Code::Cancelled | Code::Internal | Code::Unknown
        ),
    }
}

/// A pause of half to all of this time, so that many that wait do not come back at once.
fn jittered(pause: Duration) -> Duration {
    let random = gloveport_ids::random::<1>().ok().and_then(|digits| u8::from_str_radix(&digits, 16).ok());
    pause / 2 + pause / 2 * u32::from(random.unwrap_or(u8::MAX)) / 255
}

/// A random UUID.
pub(crate) fn uuid() -> Result<String, gloveport_ids::Error> {
    let digits = gloveport_ids::random::<16>()?;
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    // The version, and the variant, of one that is random.
    Ok(format!("{}-{}-4{}-8{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32)))
}

/// How long a token of the service lasts from now on, if it says so.
fn lifetime(token: &str) -> Option<Duration> {
    #[derive(Deserialize)]
    struct Claims {
        exp: f64,
    }
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?.trim_end_matches('=')).ok()?;
    let claims: Claims = serde_json::from_slice(&claims).ok()?;
    let ends = Duration::try_from_secs_f64(claims.exp).ok()?;
    Some(ends.saturating_sub(SystemTime::now().duration_since(UNIX_EPOCH).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_life_of_a_token_is_what_it_says() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let token = |claims: String| format!("e30.{}.x", URL_SAFE_NO_PAD.encode(claims));
        let told = lifetime(&token(format!("{{\"exp\":{}}}", now + 600))).unwrap();
        assert!((590..=600).contains(&told.as_secs()), "{told:?}");
        assert_eq!(lifetime(&token(r#"{"exp":1}"#.to_owned())), Some(Duration::ZERO));
        for other in ["", "a.b.c", "a", &token(r#"{"exp":-1}"#.to_owned()), &token("{}".to_owned())] {
            assert_eq!(lifetime(other), None, "{other}");
        }
    }

    #[test]
    fn names_of_calls_are_random_uuids() {
        let (one, other) = (uuid().unwrap(), uuid().unwrap());
        assert!(one.len() == 36 && one.as_bytes()[14] == b'4' && one != other, "{one}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_pass_is_tried_again_and_what_the_service_asks_for_is_not_counted() {
        let status = |code, retry_after| Failure::Status(Status { code, message: String::new(), retry_after });
        for (code, after, expected) in [
            (Code::Unavailable, None, 4),
            (Code::Internal, None, 4),
            (Code::NotFound, None, 1),
            (Code::ResourceExhausted, None, 1),
            (Code::ResourceExhausted, Some(Duration::from_secs(1)), 31),
        ] {
            let mut tries = 0;
            let failed = attempts(Duration::from_secs(1), |_| {
                tries += 1;
                let failure = status(code, after);
                async move { Err::<(), _>(failure) }
            });
            assert_eq!(failed.await.unwrap_err().code(), Some(code));
            assert_eq!(tries, expected, "{code:?}");
        }
    }
}
