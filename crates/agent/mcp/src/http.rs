//! Servers that are reached over HTTP: the connections, headers, and the transport of streamable HTTP.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use gloveport_client::{Certificates, Pool};
use reqwest::{
    Client, StatusCode, Url,
    header::{HeaderMap, HeaderName, HeaderValue},
    redirect,
};
use rmcp::transport::{
    StreamableHttpClientTransport,
    common::client_side_sse::ExponentialBackoff,
    streamable_http_client::{StreamableHttpClient, StreamableHttpClientTransportConfig},
};

use crate::{ConnectError, HttpServer, Server};

/// Most bytes of one event, or of one answer.
pub(crate) const LARGEST: usize = 64 * 1024 * 1024;
/// Most redirects of one request.
const MOST_REDIRECTS: usize = 10;
/// Attempts to get an event stream back that is lost, and the pause before the last ones.
const RECONNECTIONS: usize = 10;
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The connections to all servers of this process.
pub(crate) fn connections() -> Result<Client, ConnectError> {
    static SHARED: OnceLock<Pool> = OnceLock::new();
    if let Some(pool) = SHARED.get() {
        return Ok(pool.http().clone());
    }
    let pool = Pool::with_redirects(Certificates::Checked, same_origin)?;
    Ok(SHARED.get_or_init(|| pool).http().clone())
}

/// Servers send from `/mcp` to `/mcp/`. Such redirects keep the message, and stay at the server that may see the key.
fn same_origin() -> redirect::Policy {
    redirect::Policy::custom(|attempt| {
        let keeps_message = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        let stays = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
        if keeps_message && stays && attempt.previous().len() <= MOST_REDIRECTS {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}

/// The address of a server.
pub(crate) fn address(server: &HttpServer, name: &str) -> Result<Url, ConnectError> {
    let wrong = |reason: String| ConnectError::Address { server: name.to_owned(), reason };
    let url = Url::parse(&server.url).map_err(|error| wrong(error.to_string()))?;
    if matches!(url.scheme(), "http" | "https") {
        Ok(url)
    } else {
        Err(wrong(format!("MCP has no transport over {}", url.scheme())))
    }
}

/// The headers of every request to a server.
pub(crate) fn headers(server: &HttpServer, name: &str) -> Result<HeaderMap, ConnectError> {
    let mut map = HeaderMap::new();
    for (header, value) in &server.headers {
        let wrong = || ConnectError::Header { server: name.to_owned(), header: header.clone() };
        let mut value = HeaderValue::from_str(value.expose()).map_err(|_| wrong())?;
        value.set_sensitive(true);
        map.insert(HeaderName::from_bytes(header.as_bytes()).map_err(|_| wrong())?, value);
    }
    Ok(map)
}

/// The transport of a server that speaks streamable HTTP, whose requests this client sends.
pub(crate) fn streamable<C: StreamableHttpClient + Sync>(
    server: &HttpServer,
    client: C,
) -> Result<StreamableHttpClientTransport<C>, ConnectError> {
    let name = Server::Http(server.clone()).name();
    let url = address(server, &name)?;
    let headers: HashMap<HeaderName, HeaderValue> =
        headers(server, &name)?.into_iter().filter_map(|(header, value)| Some((header?, value))).collect();
    let mut reconnection = ExponentialBackoff::default();
    reconnection.max_times = Some(RECONNECTIONS);
    reconnection.max_delay = Some(LONGEST_PAUSE);
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
        .custom_headers(headers)
        .max_sse_event_size(LARGEST)
        .max_json_response_size(LARGEST);
    config.retry_config = Arc::new(reconnection);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}
