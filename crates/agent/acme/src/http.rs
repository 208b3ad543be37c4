//! Requests to the authority, by the HTTP client that everything here uses: names are looked up as elsewhere, and proxies are
//! those of the environment.

use std::{fs, future::Future, path::Path, pin::Pin, time::Duration};

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use instant_acme::{Account, AccountBuilder, BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::crypto::ring;

use crate::AcmeError;

/// Time for one request.
const LIMIT: Duration = Duration::from_mins(1);
/// Most bytes of an answer; a chain of certificates has a few thousand.
const LARGEST: usize = 1024 * 1024;

struct Client(reqwest::Client);

/// Makes accounts of authorities that this certificate vouches for, or those of the system.
pub(crate) fn accounts(root: Option<&Path>) -> Result<AccountBuilder, AcmeError> {
    let failed = |reason: String| AcmeError::Authority { what: "the authority cannot be asked", reason };
    let _installed_before = ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder().https_only(true).timeout(LIMIT);
    if let Some(path) = root {
        let text = fs::read(path);
        let text = text.map_err(|source| AcmeError::Store { what: "read", path: path.to_owned(), source })?;
        let roots = reqwest::Certificate::from_pem_bundle(&text).map_err(|error| failed(chain(&error)))?;
        if roots.is_empty() {
            return Err(failed(format!("`{}` has no certificate in PEM form", path.display())));
        }
        builder = builder.tls_certs_only(roots);
    }
    let client = builder.build().map_err(|error| failed(chain(&error)))?;
    Ok(Account::builder_with_http(Box::new(Client(client))))
}

/// An error with its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

impl HttpClient for Client {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let client = self.0.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let Ok(body) = body.collect().await;
            let body = body.to_bytes();
            let asked = client.request(head.method, head.uri.to_string()).headers(head.headers).body(body);
            let mut answer = asked.send().await.map_err(other)?;
            let mut response = Response::new(());
            (*response.status_mut(), *response.headers_mut()) = (answer.status(), std::mem::take(answer.headers_mut()));
            let mut whole = Vec::new();
            let mut parts = answer.bytes_stream();
            while let Some(part) = parts.try_next().await.map_err(other)? {
                if whole.len() + part.len() > LARGEST {
                    return Err(Error::Other(format!("the answer has more than {LARGEST} bytes").into()));
                }
                whole.extend_from_slice(&part);
            }
            Ok(BytesResponse::from(response.map(|()| Full::new(Bytes::from(whole)))))
        })
    }
}

fn other(error: reqwest::Error) -> Error {
    Error::Other(Box::new(error))
}
