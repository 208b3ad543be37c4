//! Requests to a registry: where they may lead, how long they may take, when they are sent again.

use std::{net::IpAddr, time::Duration};

use reqwest::{
    Client, Response, StatusCode, Url,
    header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, LOCATION, RANGE, RETRY_AFTER},
    redirect::Policy,
};
use tokio::sync::Mutex;

use super::{
    admission::{Challenge, Token},
    credentials::Credentials,
};
use crate::{error::ImageError, limits::Options, words::shown};

/// Tries of a request that fails in a way that another one can be free of.
pub(super) const TRIES: u32 = 3;
/// Pause after the first one; the next is twice as long.
const PAUSE: Duration = Duration::from_millis(250);
/// Longest pause that a registry can ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Redirections that are followed.
const REDIRECTIONS: usize = 5;
/// Most bytes of a token's answer, and of an error that is read.
const ANSWER: u64 = 256 * 1024;
/// What a certificate that is not trusted is told with.
const CERTIFICATE: &str = "invalid peer certificate: ";
/// Most characters of a registry's words that an error shows.
const SHOWN: usize = 300;

/// Why something failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// Another try may succeed, after a pause if the registry asks for one.
    Again(String, Option<Duration>),
    /// It would fail again.
    Final(ImageError),
}

/// A registry, and what lets requests in.
#[derive(Debug)]
pub(super) struct Http {
    client: Client,
    base: Url,
    /// As it was written.
    host: String,
    scope: String,
    credentials: Credentials,
    admission: Mutex<Option<HeaderValue>>,
}

impl Http {
    pub(super) fn new(host: &str, repository: &str, options: &Options) -> Result<Self, ImageError> {
        let failed = |reason: String| ImageError::Registry {
            what: "get an image".into(),
            registry: host.to_owned(),
            reason: format!("there can be no HTTP client: {reason}"),
        };
        let real = if host == "docker.io" { "registry-1.docker.io" } else { host };
        let url = |scheme: &str| Url::parse(&format!("{scheme}://{real}/")).map_err(|error| failed(error.to_string()));
        let is_near = is_loopback(&url("https")?);
        let _installed_before = rustls::crypto::ring::default_provider().install_default();
        let limits = options.limits;
        let mut builder = Client::builder()
            .redirect(Policy::none())
            .connect_timeout(limits.connect)
            .read_timeout(limits.silence)
            .user_agent(concat!("gloveport/", env!("CARGO_PKG_VERSION")));
        if is_near {
            builder = builder.no_proxy();
        }
        Ok(Self {
            client: builder.build().map_err(|error| failed(causes(&error)))?,
            base: if is_near { url("http")? } else { url("https")? },
            host: host.to_owned(),
            scope: format!("repository:{repository}:pull"),
            credentials: Credentials::of(options.docker_config.as_deref(), host),
            admission: Mutex::new(None),
        })
    }

    /// Gets a small document whole.
    pub(super) async fn small(
        &self,
        what: &str,
        path: &str,
        accept: Option<&str>,
        limit: u64,
    ) -> Result<Vec<u8>, ImageError> {
        let mut headers = HeaderMap::new();
        if let Some(accept) = accept.and_then(|accept| HeaderValue::from_str(accept).ok()) {
            headers.insert(ACCEPT, accept);
        }
        let mut attempt = 1;
        loop {
            let got = async {
                let answer = self.get(what, path, &headers).await?;
                body(answer, limit).await?.ok_or_else(|| {
                    let what = format!("the answer of {} to `{path}`", self.host);
                    Failure::Final(ImageError::Bound { what, limit, unit: "bytes" })
                })
            };
            match got.await {
                Ok(bytes) => return Ok(bytes),
                Err(failure) => self.pause(what, failure, &mut attempt).await?,
            }
        }
    }

    /// Waits for the next try, if there is one.
    pub(super) async fn pause(&self, what: &str, failure: Failure, attempt: &mut u32) -> Result<(), ImageError> {
        match failure {
            Failure::Final(error) => Err(error),
            Failure::Again(reason, _) if *attempt >= TRIES => {
                Err(self.failed(what, format!("{reason}; it was tried {TRIES} times")))
            }
            Failure::Again(_, asked) => {
                let usual = PAUSE.saturating_mul(2_u32.saturating_pow(*attempt - 1));
                tokio::time::sleep(asked.map_or(usual, |asked| asked.min(LONGEST_PAUSE))).await;
                *attempt += 1;
                Ok(())
            }
        }
    }

    pub(super) fn failed(&self, what: &str, reason: impl Into<String>) -> ImageError {
        ImageError::Registry { what: what.to_owned(), registry: self.host.clone(), reason: reason.into() }
    }

    /// Gets something, with what lets this process in; the status is 200 or 206.
    pub(super) async fn get(&self, what: &str, path: &str, headers: &HeaderMap) -> Result<Response, Failure> {
        let url = self.base.join(path).map_err(|error| Failure::Final(self.failed(what, error.to_string())))?;
        let used = self.admission.lock().await.clone();
        let answer = self.follow(what, url.clone(), headers, used.as_ref()).await?;
        let answer = if answer.status() == StatusCode::UNAUTHORIZED {
            let new = self.admit(what, answer.headers(), used.as_ref()).await?;
            self.follow(what, url, headers, Some(&new)).await?
        } else {
            answer
        };
        if matches!(answer.status(), StatusCode::OK | StatusCode::PARTIAL_CONTENT) {
            return Ok(answer);
        }
        Err(self.refused(what, answer).await)
    }

    /// Sends a request, and follows redirections. What lets it in goes to the registry alone.
    async fn follow(
        &self,
        what: &str,
        mut url: Url,
        headers: &HeaderMap,
        admission: Option<&HeaderValue>,
    ) -> Result<Response, Failure> {
        for _ in 0..=REDIRECTIONS {
            let mut request = self.client.get(url.clone()).headers(headers.clone());
            if let Some(admission) = admission.filter(|_| url.origin() == self.base.origin()) {
                request = request.header(AUTHORIZATION, admission.clone());
            }
            let answer = request.send().await.map_err(|error| self.unanswered(what, error))?;
            if !answer.status().is_redirection() {
                return Ok(answer);
            }
            let location = answer.headers().get(LOCATION).and_then(|location| location.to_str().ok());
            let next = location.and_then(|location| url.join(location).ok());
            url = next.filter(|next| self.may_lead_to(next)).ok_or_else(|| {
                Failure::Final(self.failed(what, "it leads to an address without encryption, or to none"))
            })?;
        }
        Err(Failure::Final(self.failed(what, "it leads from one address to the next without an end")))
    }

    fn may_lead_to(&self, url: &Url) -> bool {
        let is_near = url.scheme() == "http" && is_loopback(url) && is_loopback(&self.base);
        (url.scheme() == "https" || is_near) && url.username().is_empty()
    }

    /// Gets what lets requests in, after they were refused with `used`.
    async fn admit(&self, what: &str, headers: &HeaderMap, used: Option<&HeaderValue>) -> Result<HeaderValue, Failure> {
        let mut admission = self.admission.lock().await;
        // Another request has got a new one meanwhile.
        if let Some(newer) = admission.as_ref().filter(|newer| Some(*newer) != used) {
            return Ok(newer.clone());
        }
        let new = match Challenge::of(headers) {
            None => Err(Failure::Final(self.failed(what, "it asks for a kind of login that is not known"))),
            Some(Challenge::Basic) => {
                let login = self.credentials.login.as_ref().filter(|_| used.is_none());
                login.map(|(user, password)| basic(user, password)).ok_or_else(|| self.denied(what, None))
            }
            Some(Challenge::Token { realm, service }) => self.token(what, &realm, service.as_deref()).await,
        }?;
        *admission = Some(new.clone());
        Ok(new)
    }

    async fn token(&self, what: &str, realm: &str, service: Option<&str>) -> Result<HeaderValue, Failure> {
        let unusable = |reason: &str| Failure::Final(self.failed(what, reason));
        let mut url = Url::parse(realm)
            .ok()
            .filter(|url| self.may_lead_to(url))
            .ok_or_else(|| unusable("it names an address for tokens that is none, or without encryption"))?;
        url.query_pairs_mut().append_pair("scope", &self.scope).extend_pairs(service.map(|name| ("service", name)));
        let mut request = self.client.get(url);
        if let Some((user, password)) = &self.credentials.login {
            request = request.header(AUTHORIZATION, basic(user, password));
        }
        let answer = request.send().await.map_err(|error| self.unanswered(what, error))?;
        if answer.status() != StatusCode::OK {
            return Err(self.refused(what, answer).await);
        }
        let bytes = body(answer, ANSWER).await?.ok_or_else(|| unusable("its token is too long"))?;
        let token = serde_json::from_slice::<Token>(&bytes).ok().and_then(Token::text);
        let header = token.and_then(|token| HeaderValue::from_str(&format!("Bearer {token}")).ok());
        let mut header = header.ok_or_else(|| unusable("what it gives as a token is none"))?;
        header.set_sensitive(true);
        Ok(header)
    }

    /// What an answer means that gives nothing.
    async fn refused(&self, what: &str, answer: Response) -> Failure {
        let status = answer.status();
        let asked = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let words = body(answer, ANSWER).await.ok().flatten().and_then(|bytes| words(&bytes));
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => self.denied(what, words),
            StatusCode::NOT_FOUND => {
                let reason = "it has no such thing, or does not show it to everybody; check the name and the tag";
                Failure::Final(self.failed(what, with_words(reason, words)))
            }
            StatusCode::TOO_MANY_REQUESTS => {
                let reason = "it gets too many requests from here; log in with `docker login`, or try it later";
                Failure::Again(with_words(reason, words), asked.map(Duration::from_secs))
            }
            status if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT => {
                Failure::Again(with_words(&format!("it answered {status}"), words), asked.map(Duration::from_secs))
            }
            status => Failure::Final(self.failed(what, with_words(&format!("it answered {status}"), words))),
        }
    }

    /// Why there is no answer. A certificate that is not trusted would not be the next time.
    fn unanswered(&self, what: &str, error: reqwest::Error) -> Failure {
        let reason = causes(&error.without_url());
        let Some((_, why)) = reason.split_once(CERTIFICATE) else { return Failure::Again(reason, None) };
        let advice = "if an authority of your own has signed it, add that to those of this machine (update-ca-certificates), or name \
                      a file of trusted authorities in SSL_CERT_FILE";
        Failure::Final(
            self.failed(what, format!("its certificate is not trusted here ({}); {advice}", shown(why, SHOWN))),
        )
    }

    fn denied(&self, what: &str, words: Option<String>) -> Failure {
        let advice = match (&self.credentials.hint, &self.credentials.login) {
            (Some(hint), _) => hint.clone(),
            (None, Some(_)) => "the credentials of `docker login` were refused, or are not enough".to_owned(),
            (None, None) => {
                "there is no such image, or it wants a login; check the name, or use `docker login`".to_owned()
            }
        };
        Failure::Final(self.failed(what, with_words(&format!("access was denied: {advice}"), words)))
    }
}

/// A header with what asks for the bytes from one on.
pub(super) fn from(offset: u64) -> HeaderMap {
    let value = HeaderValue::from_str(&format!("bytes={offset}-")).ok();
    value.filter(|_| offset > 0).map(|value| (RANGE, value)).into_iter().collect()
}

fn basic(user: &str, password: &str) -> HeaderValue {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let text = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
    let mut header = HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("Basic"));
    header.set_sensitive(true);
    header
}

/// The whole body; `None` if it is longer than the limit.
async fn body(mut answer: Response, limit: u64) -> Result<Option<Vec<u8>>, Failure> {
    if answer.content_length().is_some_and(|length| length > limit) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(again)? {
        bytes.extend_from_slice(&piece);
        if bytes.len() as u64 > limit {
            return Ok(None);
        }
    }
    Ok(Some(bytes))
}

pub(super) fn again(error: reqwest::Error) -> Failure {
    // Addresses of redirections have keys in them.
    Failure::Again(causes(&error.without_url()), None)
}

fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// What a registry says in its own words, if it says it as it should.
fn words(bytes: &[u8]) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    let error = value.get("errors")?.get(0)?;
    let text = error.get("message").or_else(|| error.get("code"))?.as_str()?;
    (!text.is_empty()).then(|| shown(text, SHOWN))
}

fn with_words(reason: &str, words: Option<String>) -> String {
    words.map_or_else(|| reason.to_owned(), |words| format!("{reason} (it says: {words})"))
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
