//! Requests to servers that other servers name: to few places, without redirects, and bounded in time, size and number.

use std::{
    error::Error,
    fmt,
    net::IpAddr,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use gloveport_client::{Certificates, ClientError, Pool, causes};
use gloveport_protocol::Secret;
use reqwest::{
    Client, Method, StatusCode, Url,
    header::{CONTENT_TYPE, HeaderMap},
    redirect,
};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest};
use tokio::time::timeout;

use super::record::Credentials;

/// How long one answer may take.
const REQUEST_LIMIT: Duration = Duration::from_secs(15);
/// Most bytes of one answer.
const LARGEST: usize = 64 * 1024;
/// Most requests of one login: a server that names many others does not make this program ask all of them.
const MOST: usize = 40;

/// Why there is no answer. Addresses in it are without query.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error(
        "{0} is not asked: it must begin with https://, or be on this machine as the MCP server is, and have no user"
    )]
    Forbidden(String),
    #[error("more than {MOST} requests would be needed")]
    TooMany,
    #[error("{0} answers with more than {size} KiB", size = LARGEST / 1024)]
    TooLarge(String),
    #[error("{0} did not answer within {limit} seconds", limit = REQUEST_LIMIT.as_secs())]
    Slow(String),
    #[error("{0} cannot be reached: {1}")]
    Failed(String, String),
}

/// What answered, and with what.
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// Sends what has to do with the login at one server.
#[derive(Clone)]
pub(crate) struct Requests {
    server: Url,
    http: Client,
    used: Arc<AtomicUsize>,
    last_document: Arc<Mutex<Option<Url>>>,
}

impl Requests {
    pub(crate) fn for_server(server: &Url) -> Result<Self, ClientError> {
        Ok(Self { server: server.clone(), http: connections()?, used: Arc::default(), last_document: Arc::default() })
    }

    /// Whether tokens and codes may go there: encrypted, or on this machine if that is where the MCP server is.
    ///
    /// Names are not resolved for this: whatever a name leads to gets a request only after it has shown a certificate.
    pub(crate) fn may_ask(&self, url: &Url) -> bool {
        let is_safe = match url.scheme() {
            "https" => !is_here(url) || is_here(&self.server),
            "http" => is_here(url) && is_here(&self.server),
            _ => false,
        };
        is_safe && url.has_host() && url.username().is_empty() && url.password().is_none()
    }

    /// The address that the last document came from.
    pub(crate) fn last_document(&self) -> Option<Url> {
        self.last_document.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends a form to an endpoint as this client.
    pub(crate) async fn form(
        &self,
        endpoint: &str,
        client: &Credentials,
        fields: &[(&str, &str)],
    ) -> Result<Response, RequestError> {
        let request = self.form_request(endpoint, client, fields)?;
        self.send(request).await
    }

    /// The request of a form, which says who this client is (RFC 6749, 2.3.1).
    fn form_request(
        &self,
        endpoint: &str,
        client: &Credentials,
        fields: &[(&str, &str)],
    ) -> Result<reqwest::Request, RequestError> {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(fields);
        let mut request = self.http.post(endpoint);
        match &client.secret {
            Some(secret) if !client.secret_in_body => {
                let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
                request = request.basic_auth(encoded(&client.id), Some(encoded(secret.expose())));
            }
            secret => {
                form.append_pair("client_id", &client.id);
                form.extend_pairs(secret.iter().map(|secret| ("client_secret", secret.expose())));
            }
        }
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form.finish());
        request.build().map_err(|error| RequestError::Failed(shown(endpoint), causes(&error.without_url())))
    }

    async fn send(&self, request: reqwest::Request) -> Result<Response, RequestError> {
        let (url, is_get) = (request.url().clone(), request.method() == Method::GET);
        let name = shown(url.as_str());
        if !self.may_ask(&url) {
            return Err(RequestError::Forbidden(name));
        }
        let answered = timeout(REQUEST_LIMIT, self.answer(request, &name)).await;
        let response = answered.unwrap_or(Err(RequestError::Slow(name)))?;
        if is_get && response.status == StatusCode::OK {
            *self.last_document.lock().unwrap_or_else(PoisonError::into_inner) = Some(url);
        }
        Ok(response)
    }

    async fn answer(&self, request: reqwest::Request, name: &str) -> Result<Response, RequestError> {
        let is_get = request.method() == Method::GET;
        let failed = |error: reqwest::Error| RequestError::Failed(name.to_owned(), causes(&error.without_url()));
        let mut answer = self.http.execute(request).await.map_err(failed)?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let mut body = Vec::new();
        // The answer of an MCP server that wants no login is a stream without end.
        if is_get && kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream") {
            return Ok(Response { status, headers, body });
        }
        while let Some(chunk) = answer.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > LARGEST {
                return Err(RequestError::TooLarge(name.to_owned()));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Response { status, headers, body })
    }
}

impl OAuthHttpClient for Requests {
    /// Follows no redirect: the SDK itself follows those within an origin, each as a request of its own.
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let boxed = |error: Box<dyn Error + Send + Sync>| -> OAuthHttpClientError { error };
            let request = reqwest::Request::try_from(request.request).map_err(|error| boxed(error.into()))?;
            if self.used.fetch_add(1, Ordering::Relaxed) >= MOST {
                return Err(boxed(RequestError::TooMany.into()));
            }
            let answer = self.send(request).await.map_err(|error| boxed(error.into()))?;
            let mut response = http::Response::new(answer.body);
            *response.status_mut() = answer.status;
            *response.headers_mut() = answer.headers;
            Ok(response)
        })
    }
}

impl fmt::Debug for Requests {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Requests").finish_non_exhaustive()
    }
}

/// Connections that carry tokens and follow no redirects.
pub(crate) fn connections() -> Result<Client, ClientError> {
    static SHARED: OnceLock<Pool> = OnceLock::new();
    if let Some(pool) = SHARED.get() {
        return Ok(pool.http().clone());
    }
    let pool = Pool::with_redirects(Certificates::Checked, redirect::Policy::none)?;
    Ok(SHARED.get_or_init(|| pool).http().clone())
}

/// Whether an address names this machine.
pub(crate) fn is_here(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.parse::<IpAddr>().map_or_else(|_| host == "localhost", |address| address.is_loopback())
}

/// An address without what may be secret.
fn shown(url: &str) -> String {
    crate::server::shown(url)
}

/// What a token endpoint, or another one, says of an error (RFC 6749, 5.2): its code, and a text for people.
pub(crate) fn told(response: &Response, secrets: &[&Secret]) -> (String, String) {
    #[derive(serde::Deserialize)]
    struct Told {
        error: String,
        #[serde(default)]
        error_description: Option<String>,
    }
    let told = serde_json::from_slice::<Told>(&response.body);
    let (code, text) = told.map_or_else(
        |_| (String::new(), String::new()),
        |told| (told.error.clone(), [told.error, told.error_description.unwrap_or_default()].join(" ")),
    );
    let hidden: Vec<&str> = secrets.iter().map(|secret| secret.expose()).collect();
    let text = super::text::clean(&super::text::without(&text, &hidden));
    let said = if text.is_empty() { String::new() } else { format!(": {text}") };
    (code, format!("it answers with HTTP {}{said}", response.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_encrypted_addresses_and_those_beside_a_server_on_this_machine_are_asked() {
        for (server, url, may) in [
            ("https://host/mcp", "https://login/token", true),
            ("https://host/mcp", "http://login/token", false),
            ("https://host/mcp", "http://127.0.0.1:80/token", false),
            ("https://host/mcp", "https://127.0.0.1/token", false),
            ("https://host/mcp", "https://localhost/token", false),
            ("https://host/mcp", "https://user@login/token", false),
            ("https://host/mcp", "file:///etc/passwd", false),
            ("https://host/mcp", "javascript:alert(1)", false),
            ("http://127.0.0.1:1/mcp", "http://127.0.0.1:2/token", true),
            ("http://localhost:1/mcp", "http://[::1]:2/token", true),
            ("http://127.0.0.1:1/mcp", "https://login/token", true),
            ("http://127.0.0.1:1/mcp", "http://login/token", false),
            ("http://127.0.0.1.example/mcp", "http://127.0.0.1/token", false),
        ] {
            let requests = Requests::for_server(&Url::parse(server).unwrap()).unwrap();
            assert_eq!(requests.may_ask(&Url::parse(url).unwrap()), may, "{server} {url}");
        }
    }
}
