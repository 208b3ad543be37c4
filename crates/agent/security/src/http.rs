//! Requests to the services behind analyzers.
//!
//! Nothing that is sent or received becomes part of an error or of the log: it is the conversation.

use std::{sync::Once, time::Duration};

use reqwest::{Client, ClientBuilder, RequestBuilder, redirect};
use serde_json::Value;

use crate::error::AnalyzerError;

/// Largest answer, in bytes. They are a few numbers and sentences.
const MAX_ANSWER: usize = 1024 * 1024;
/// Time to make a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// An HTTP client that works also where the system has no certificates: then the bundled ones are used.
pub(crate) fn client() -> Result<Client, AnalyzerError> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // Fails only if one is installed already, which does as well.
        let _installed_before = rustls::crypto::ring::default_provider().install_default();
    });
    if let Ok(client) = builder().build() {
        return Ok(client);
    }
    let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS
        .iter()
        .map(|der| reqwest::Certificate::from_der(der))
        .collect::<Result<Vec<_>, _>>()
        .map_err(AnalyzerError::NoHttp)?;
    builder().tls_certs_only(roots).build().map_err(AnalyzerError::NoHttp)
}

fn builder() -> ClientBuilder {
    Client::builder().connect_timeout(CONNECT_LIMIT).redirect(redirect::Policy::none())
}

/// Sends a request and reads its answer as JSON, all within a limit. An empty answer is null.
pub(crate) async fn json(request: RequestBuilder, endpoint: &str, limit: Duration) -> Result<Value, AnalyzerError> {
    let silent = || AnalyzerError::Silent { endpoint: endpoint.to_owned(), limit };
    let answer = tokio::time::timeout(limit, body(request, endpoint)).await.map_err(|_elapsed| silent())??;
    if answer.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(&answer).map_err(|_| AnalyzerError::answer(endpoint, "it is not JSON"))
}

async fn body(request: RequestBuilder, endpoint: &str) -> Result<Vec<u8>, AnalyzerError> {
    let broken = |error: reqwest::Error| AnalyzerError::Unreachable {
        endpoint: endpoint.to_owned(),
        source: error.without_url(),
    };
    let mut response = request.send().await.map_err(broken)?;
    let status = response.status();
    if !status.is_success() {
        return Err(AnalyzerError::Status { endpoint: endpoint.to_owned(), status: status.as_u16() });
    }
    let mut answer = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        if answer.len() + chunk.len() > MAX_ANSWER {
            return Err(AnalyzerError::answer(endpoint, "it is too long"));
        }
        answer.extend_from_slice(&chunk);
    }
    Ok(answer)
}
