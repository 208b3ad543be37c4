//! `/files`: what is in files, in both directions (`hosted-apis` 2.3).

mod upload;

use std::borrow::Cow;

use axum::{
    Json,
    body::Body,
    extract::Request,
    response::{IntoResponse as _, Response},
};
use futures_util::stream;
use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_TYPE},
};
use serde_json::{Value, json};

use super::{
    handle::{Agent, unknown},
    paths,
};
use crate::{
    Refusal,
    connect::{Code, ConnectError},
    token::Signed,
};

/// What headers begin with that say something of a file beside its content.
const METADATA: &str = "x-metadata-";

/// The query of a request.
#[derive(Debug, Default)]
struct Query {
    path: Option<String>,
    username: String,
    signature: Option<String>,
    expiration: Option<String>,
}

impl Query {
    fn read(query: Option<&str>) -> Self {
        let mut read = Self::default();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            let value = Cow::into_owned(value);
            match &*name {
                "path" => read.path = Some(value),
                "username" => read.username = value,
                "signature" => read.signature = Some(value),
                "signature_expiration" => read.expiration = Some(value),
                _ => {}
            }
        }
        read
    }
}

/// Answers a request; one that does not show the token must be signed with it.
pub(super) async fn answer(agent: &Agent, request: Request, is_known: bool) -> Result<Response, Refusal> {
    let query = Query::read(request.uri().query());
    let operation = match *request.method() {
        Method::GET => "read",
        Method::POST => "write",
        _ => {
            return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "files are read with GET and written with POST"));
        }
    };
    if !is_known {
        let signed = query.signature.as_deref().map(|signature| Signed {
            path: query.path.as_deref().unwrap_or_default(),
            operation,
            user: &query.username,
            signature,
            expiration: query.expiration.as_deref(),
        });
        if !signed.is_some_and(|signed| signed.is_good(&agent.place.sandbox)) {
            return Err(unknown());
        }
    }
    let outcome = if operation == "read" { agent.download(&query).await } else { agent.upload(&query, request).await };
    outcome.map_err(refused)
}

/// An error of the agent beside its calls.
fn refused(error: ConnectError) -> Refusal {
    let status = match error.code {
        // A disk that is full, and not a client that asks too often.
        Code::ResourceExhausted => StatusCode::INSUFFICIENT_STORAGE,
        Code::Unavailable => StatusCode::BAD_GATEWAY,
        code => code.status(),
    };
    Refusal::new(status, error.message)
}

impl Agent {
    async fn download(&self, query: &Query) -> Result<Response, ConnectError> {
        let path = query.path.as_deref().ok_or_else(|| ConnectError::wrong("the query has no path"))?;
        let path = self.file(path, &query.username).await?;
        let content = self.place.client.files().read(&path, None).await?;
        let length = content.info.length;
        let pieces = stream::try_unfold(content.bytes, async |mut bytes| {
            let piece = bytes.next().await.map_err(std::io::Error::other)?;
            Ok::<_, std::io::Error>(piece.map(|piece| (piece, bytes)))
        });
        let mut response = Response::new(Body::from_stream(pieces));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        if let Some(length) = length {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        Ok(response)
    }

    async fn upload(&self, query: &Query, request: Request) -> Result<Response, ConnectError> {
        no_metadata(request.headers())?;
        let stored = upload::take(self, query.path.as_deref(), &query.username, request).await?;
        let told: Vec<Value> =
            stored.iter().map(|path| json!({"name": paths::name(path), "type": "file", "path": path})).collect();
        Ok(Json(told).into_response())
    }
}

/// Files have no place for it.
fn no_metadata(headers: &HeaderMap) -> Result<(), ConnectError> {
    if headers.keys().any(|name| name.as_str().starts_with(METADATA)) {
        return Err(ConnectError::new(
            Code::Unimplemented,
            "metadata of files is not offered by this server; leave it out",
        ));
    }
    Ok(())
}
