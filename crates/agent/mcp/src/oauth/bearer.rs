//! The token of each request to an MCP server.

use std::{collections::HashMap, fmt, sync::Arc};

use futures_util::stream::BoxStream;
use gloveport_protocol::Secret;
use reqwest::{
    Client, StatusCode, Url,
    header::{HeaderName, HeaderValue},
};
use rmcp::{
    model::ClientJsonRpcMessage,
    transport::{
        auth::AuthError,
        streamable_http_client::{
            StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse, StreamableHttpResponseLimits,
        },
    },
};
use sse_stream::{Error as SseError, Sse};

use super::{
    StoreError, TokenStore,
    login::address,
    record::{Answer, Record, now},
    requests::{Requests, connections, told},
    store::key,
    text::clean,
};
use crate::{ConnectError, HttpServer};

/// Why there is no token, although there was one. The SDK carries its text to whoever asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("its token has expired, and there is no new one: {0}")]
    Refresh(String),
}

impl From<TokenError> for AuthError {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Store(_) => Self::CredentialStoreError(error.to_string()),
            TokenError::Refresh(_) => Self::TokenRefreshFailed(error.to_string()),
        }
    }
}

/// The tokens of one server, in the store of all.
#[derive(Clone, Debug)]
pub(crate) struct Tokens {
    store: TokenStore,
    key: Arc<str>,
    server: Url,
    requests: Requests,
}

impl Tokens {
    /// Those of a server, if somebody has logged in there. A key of the configuration counts more than a login.
    pub(crate) async fn of(server: &HttpServer) -> Result<Option<Self>, ConnectError> {
        let Some(store) = server.tokens.as_ref().filter(|_| !server.has_key()) else { return Ok(None) };
        // Over plain HTTP there is no login, and no token is sent.
        let Ok(url) = address(&server.url) else { return Ok(None) };
        let key: Arc<str> = key(&url).into();
        let known = store.get(&key).await?;
        if !known.is_some_and(|record| record.is_for(&url)) {
            return Ok(None);
        }
        let requests = Requests::for_server(&url)?;
        Ok(Some(Self { store: store.clone(), key, server: url, requests }))
    }

    /// The token to send, which is refreshed first if it has expired, or is the one that the server has rejected. None
    /// if somebody must log in again.
    pub(crate) async fn token(&self, rejected: Option<&Secret>) -> Result<Option<Secret>, TokenError> {
        let Some(record) = self.record().await? else { return Ok(None) };
        if is_good(&record, rejected) {
            return Ok(Some(record.tokens.access));
        }
        // A server that gives a new refresh token takes the old one no more. So a refresh is not given up between its
        // answer and its keeping, whatever becomes of the request that needs it; its request and its locks have limits.
        let (tokens, rejected) = (self.clone(), rejected.cloned());
        let refreshed = tokio::spawn(async move { tokens.refresh(rejected.as_ref()).await }).await;
        refreshed.unwrap_or_else(|error| Err(TokenError::Refresh(error.to_string())))
    }

    /// What is kept now; none if it is not for this server.
    async fn record(&self) -> Result<Option<Record>, StoreError> {
        Ok(self.store.get(&self.key).await?.filter(|record| record.is_for(&self.server)))
    }

    async fn refresh(&self, rejected: Option<&Secret>) -> Result<Option<Secret>, TokenError> {
        let _lock = self.store.lock_server(&self.key).await?;
        // Another process, or another request, may have refreshed it meanwhile.
        let Some(record) = self.record().await? else { return Ok(None) };
        if is_good(&record, rejected) {
            return Ok(Some(record.tokens.access));
        }
        // It is refreshed a little before it expires. Until then the old one does.
        let is_usable = Some(&record.tokens.access) != rejected && !record.tokens.has_expired(now());
        let old = is_usable.then(|| record.tokens.access.clone());
        let Some(refresh) = record.tokens.refresh.clone() else { return Ok(old) };
        match self.ask(record, refresh).await {
            Ok(new) => Ok(new.or(old)),
            Err(TokenError::Refresh(reason)) if old.is_some() => {
                tracing::debug!(server = &*self.key, reason, "the token of an MCP server is not refreshed yet");
                Ok(old)
            }
            Err(error) => Err(error),
        }
    }

    /// Gets a new token, and keeps it; none if the refresh token is good no more. Whoever calls it has the lock.
    async fn ask(&self, mut record: Record, refresh: Secret) -> Result<Option<Secret>, TokenError> {
        let fields =
            [("grant_type", "refresh_token"), ("refresh_token", refresh.expose()), ("resource", &record.resource)];
        let asked = self.requests.form(&record.token_endpoint, &record.client, &fields).await;
        let answer = asked.map_err(|error| TokenError::Refresh(error.to_string()))?;
        if answer.status != StatusCode::OK {
            let mut secrets = vec![&refresh, &record.tokens.access];
            secrets.extend(&record.client.secret);
            let (code, text) = told(&answer, &secrets);
            if code != "invalid_grant" {
                return Err(TokenError::Refresh(text));
            }
            tracing::warn!(server = &*self.key, "a login has ended: its tokens are not refreshed any more ({text})");
            record.tokens.refresh = None;
            self.store.put(&self.key, record).await?;
            return Ok(None);
        }
        let wrong = |reason: &str| TokenError::Refresh(clean(reason));
        let answer: Answer =
            serde_json::from_slice(&answer.body).map_err(|_| wrong("the answer has no tokens in it"))?;
        record.tokens = answer.into_tokens(record.tokens.scopes, Some(refresh)).map_err(wrong)?;
        let token = record.tokens.access.clone();
        self.store.put(&self.key, record).await?;
        tracing::debug!(server = &*self.key, "the token of an MCP server is refreshed");
        Ok(Some(token))
    }
}

fn is_good(record: &Record, rejected: Option<&Secret>) -> bool {
    Some(&record.tokens.access) != rejected && !record.tokens.is_old(now())
}

/// Sends requests to one server with its token, and once more with a new one if that is refused.
#[derive(Clone)]
pub(crate) struct Bearer {
    http: Client,
    tokens: Tokens,
}

type Failed = StreamableHttpError<reqwest::Error>;

impl Bearer {
    pub(crate) fn new(tokens: Tokens) -> Result<Self, ConnectError> {
        Ok(Self { http: connections()?, tokens })
    }

    async fn send<T, Sent>(&self, uri: &str, send: impl Fn(Option<String>) -> Sent + Sync) -> Result<T, Failed>
    where
        Sent: Future<Output = Result<T, Failed>> + Send,
    {
        // The address is that of the configuration, always. What it is for does not change with that.
        let is_ours = Url::parse(uri).is_ok_and(|uri| key(&uri) == *self.tokens.key);
        if !is_ours {
            return send(None).await;
        }
        let token = self.tokens.token(None).await.map_err(AuthError::from)?;
        let exposed = |token: &Secret| token.expose().to_owned();
        let refused = match send(token.as_ref().map(exposed)).await {
            Err(error) if is_unauthorized(&error) => error,
            done => return done,
        };
        let Some(token) = token else { return Err(refused) };
        match self.tokens.token(Some(&token)).await.map_err(AuthError::from)? {
            Some(new) => send(Some(exposed(&new))).await,
            None => Err(refused),
        }
    }
}

/// Whether a server does not take a token.
pub(crate) fn is_unauthorized(error: &Failed) -> bool {
    match error {
        StreamableHttpError::AuthRequired(_) => true,
        StreamableHttpError::Client(error) => error.status() == Some(StatusCode::UNAUTHORIZED),
        StreamableHttpError::UnexpectedServerResponse(text) => text.starts_with("HTTP 401"),
        _ => false,
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Bearer").field("tokens", &self.tokens).finish_non_exhaustive()
    }
}

type Headers = HashMap<HeaderName, HeaderValue>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// The `auth_header` of these is the transport's, which has none.
impl StreamableHttpClient for Bearer {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session_id, auth_header, custom_headers, limits).await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let post = |token| {
            let (uri, message, session) = (Arc::clone(&uri), message.clone(), session_id.clone());
            let headers = custom_headers.clone();
            self.http.post_message_with_response_limits(uri, message, session, token, headers, limits)
        };
        self.send(&uri, post).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), Failed> {
        let delete = |token| {
            let session = Arc::clone(&session_id);
            self.http.delete_session(Arc::clone(&uri), session, token, custom_headers.clone())
        };
        self.send(&uri, delete).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<Events, Failed> {
        let limit = StreamableHttpResponseLimits::default().max_sse_event_size;
        self.get_stream_with_max_sse_event_size(uri, session_id, last_event_id, auth_header, custom_headers, limit)
            .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: Headers,
        max_sse_event_size: usize,
    ) -> Result<Events, Failed> {
        let get = |token| {
            let (uri, session, last) = (Arc::clone(&uri), session_id.clone(), last_event_id.clone());
            let headers = custom_headers.clone();
            self.http.get_stream_with_max_sse_event_size(uri, session, last, token, headers, max_sse_event_size)
        };
        self.send(&uri, get).await
    }
}

#[cfg(test)]
mod tests {
    use gloveport_testing::{until, within};
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
        sync::oneshot,
    };

    use super::{super::record::tests::record, *};

    #[tokio::test]
    async fn a_refresh_that_nobody_waits_for_any_more_is_kept_nevertheless() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (directory, url) = (tempfile::tempdir().unwrap(), Url::parse(&format!("{base}/mcp")).unwrap());
        let store = TokenStore::new(directory.path().join("tokens.json"));
        let mut old = record();
        (old.resource, old.token_endpoint) = (url.to_string(), format!("{base}/token"));
        store.put(&key(&url), old).await.unwrap();
        let (asked, was_asked) = oneshot::channel();
        let (answer, may_answer) = oneshot::channel::<()>();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let count = stream.read(&mut [0; 4096]).await.unwrap();
            asked.send(count).unwrap();
            may_answer.await.unwrap();
            let body = r#"{"access_token": "new", "token_type": "Bearer", "refresh_token": "rotated"}"#;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        });
        let http = HttpServer::new(url.as_str()).with_tokens(&store);
        let tokens = Tokens::of(&http).await.unwrap().unwrap();
        tokio::select! {
            biased;
            token = tokens.token(None) => panic!("{token:?}"),
            asked = was_asked => assert!(asked.unwrap() > 0),
        }
        answer.send(()).unwrap();
        within(server).await.unwrap();
        let kept = || std::fs::read_to_string(store.path()).unwrap();
        until("the new token is kept", || kept().contains("\"rotated\"")).await;
        assert_eq!(tokens.token(None).await.unwrap(), Some(Secret::new("new")));
    }

    #[tokio::test]
    async fn a_token_without_a_refresh_is_used_until_it_expires_or_is_rejected() {
        let (directory, url) = (tempfile::tempdir().unwrap(), Url::parse("https://host/mcp").unwrap());
        let store = TokenStore::new(directory.path().join("tokens.json"));
        let http = HttpServer::new(url.as_str()).with_tokens(&store);
        let access = record().tokens.access;
        for (age, rejected, expected) in
            [(0, None, true), (90, None, true), (101, None, false), (0, Some(&access), false)]
        {
            let mut record = record();
            record.tokens.refresh = None;
            record.tokens.received = now() - age;
            store.put(&key(&url), record).await.unwrap();
            let tokens = Tokens::of(&http).await.unwrap().unwrap();
            assert_eq!(tokens.token(rejected).await.unwrap(), expected.then(|| access.clone()), "{age} {rejected:?}");
        }
    }
}
