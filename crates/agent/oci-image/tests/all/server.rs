//! A registry on this machine, which can be told to do what registries and networks do on bad days.

use std::{
    collections::VecDeque,
    convert::Infallible,
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{
        HeaderMap, StatusCode,
        header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, LOCATION, RANGE, RETRY_AFTER, WWW_AUTHENTICATE},
    },
    response::{IntoResponse as _, Response},
};
use futures_util::{StreamExt as _, stream};

use crate::support::{Made, digest};

/// What is done once instead of what was asked for.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// So many bytes, then the connection ends.
    Break(usize),
    /// So many bytes, then nothing.
    Silence(usize),
    /// The whole, although a part was asked for.
    Whole,
    Status(u16),
    Redirect(String),
    Other(Vec<u8>),
    /// These bytes again and again, without a length.
    Endless(Vec<u8>),
    /// After this time.
    Late(Duration),
}

/// Who gets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Open,
    /// With a token, which everybody gets.
    Token,
    /// With a token, which `user` with `password` gets.
    TokenForUser,
    /// With `user` and `password`.
    Basic,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) range: Option<String>,
    pub(crate) authorization: Option<String>,
}

pub(crate) struct Served {
    pub(crate) image: Mutex<Made>,
    pub(crate) door: Mutex<Door>,
    pub(crate) seen: Mutex<Vec<Seen>>,
    /// For manifests, configurations, layers and tokens.
    pub(crate) manifest: Mutex<VecDeque<Fault>>,
    pub(crate) layer: Mutex<VecDeque<Fault>>,
    pub(crate) token: Mutex<VecDeque<Fault>>,
    pub(crate) at_once: AtomicUsize,
    pub(crate) most_at_once: AtomicUsize,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) served: Arc<Served>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(crate) async fn new(image: Made) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = Arc::new(Served {
            image: Mutex::new(image),
            door: Mutex::new(Door::Open),
            seen: Mutex::default(),
            manifest: Mutex::default(),
            layer: Mutex::default(),
            token: Mutex::default(),
            at_once: AtomicUsize::new(0),
            most_at_once: AtomicUsize::new(0),
        });
        let router = Router::new().fallback(answer).with_state((address, Arc::clone(&served)));
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, served, task }
    }

    pub(crate) fn reference(&self) -> String {
        format!("{}/team/image:1", self.address)
    }

    pub(crate) fn layer_faults(&self, faults: impl IntoIterator<Item = Fault>) {
        self.served.layer.lock().unwrap().extend(faults);
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.served.seen.lock().unwrap().clone()
    }

    /// Requests for layers.
    pub(crate) fn layers(&self) -> Vec<Seen> {
        let image = self.served.image.lock().unwrap().clone();
        let is_layer = |seen: &Seen| image.layers.iter().any(|layer| seen.path.ends_with(&digest(&layer.bytes)));
        self.seen().into_iter().filter(is_layer).collect()
    }
}

/// Counts requests that are answered at the same time.
struct Counted(Arc<Served>);

impl Counted {
    fn new(served: &Arc<Served>) -> Self {
        let now = served.at_once.fetch_add(1, SeqCst) + 1;
        served.most_at_once.fetch_max(now, SeqCst);
        Self(Arc::clone(served))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.at_once.fetch_sub(1, SeqCst);
    }
}

async fn answer(State((address, served)): State<(SocketAddr, Arc<Served>)>, request: Request) -> Response {
    let request = request.into_parts().0;
    let header = |name| request.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let path = request.uri.path_and_query().unwrap().to_string();
    let (range, authorization) = (header(RANGE), header(AUTHORIZATION));
    served.seen.lock().unwrap().push(Seen {
        path: path.clone(),
        range: range.clone(),
        authorization: authorization.clone(),
    });
    let door = *served.door.lock().unwrap();
    // `user:password`
    let is_user = authorization.as_deref() == Some("Basic dXNlcjpwYXNzd29yZA==");
    if path.starts_with("/token?") {
        let fault = served.token.lock().unwrap().pop_front();
        if let Some(fault) = fault {
            return faulty(fault, Vec::new(), None, Counted::new(&served)).await;
        }
        let gives = door == Door::Token || is_user;
        return if gives {
            r#"{"token": "the-token"}"#.into_response()
        } else {
            StatusCode::UNAUTHORIZED.into_response()
        };
    }
    let challenge = match door {
        Door::Open => None,
        Door::Basic => Some("Basic realm=\"x\"".to_owned()).filter(|_| !is_user),
        Door::Token | Door::TokenForUser => {
            Some(format!("Bearer realm=\"http://{address}/token\",service=\"the registry\""))
                .filter(|_| authorization.as_deref() != Some("Bearer the-token"))
        }
    };
    if let Some(challenge) = challenge {
        return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, challenge)]).into_response();
    }
    let image = served.image.lock().unwrap().clone();
    let bytes = if path == "/v2/team/image/manifests/1" {
        Some(image.manifest.bytes.clone())
    } else {
        image
            .blobs()
            .into_iter()
            .map(|blob| &blob.bytes)
            .find(|bytes| request.uri.path().ends_with(&digest(bytes)))
            .cloned()
    };
    let Some(bytes) = bytes else { return StatusCode::NOT_FOUND.into_response() };
    let is_layer = image.layers.iter().any(|layer| path.ends_with(&digest(&layer.bytes)));
    let faults = if is_layer { &served.layer } else { &served.manifest };
    let fault = faults.lock().unwrap().pop_front();
    let counted = Counted::new(&served);
    match fault {
        Some(fault) => faulty(fault, bytes, range, counted).await,
        None => part(&bytes, range, counted),
    }
}

/// The whole, or the part from one byte on.
fn part(bytes: &[u8], range: Option<String>, counted: Counted) -> Response {
    let from = range.map(|range| range.trim_start_matches("bytes=").trim_end_matches('-').parse::<usize>().unwrap());
    let whole = bytes.len();
    let status = from.map_or(StatusCode::OK, |_| StatusCode::PARTIAL_CONTENT);
    let bytes = bytes[from.unwrap_or(0)..].to_vec();
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_LENGTH, bytes.len().into());
    if let Some(from) = from {
        headers.insert(CONTENT_RANGE, format!("bytes {from}-{}/{whole}", whole - 1).parse().unwrap());
    }
    let body = stream::once(async move {
        // Long enough for others to be seen beside it.
        tokio::time::sleep(Duration::from_millis(20)).await;
        drop(counted);
        Ok::<_, Infallible>(Bytes::from(bytes))
    });
    (status, headers, Body::from_stream(body)).into_response()
}

async fn faulty(fault: Fault, bytes: Vec<u8>, range: Option<String>, counted: Counted) -> Response {
    let from =
        range.as_ref().map_or(0, |range| range.trim_start_matches("bytes=").trim_end_matches('-').parse().unwrap());
    let rest = bytes[from..].to_vec();
    let status = if from > 0 { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_LENGTH, rest.len().into());
    headers.insert(CONTENT_RANGE, format!("bytes {from}-{}/{}", bytes.len().max(1) - 1, bytes.len()).parse().unwrap());
    match fault {
        Fault::Whole => part(&bytes, None, counted),
        Fault::Late(time) => {
            tokio::time::sleep(time).await;
            part(&bytes, range, counted)
        }
        Fault::Status(status) => {
            let text = r#"{"errors": [{"code": "X", "message": "the registry's words"}]}"#;
            (StatusCode::from_u16(status).unwrap(), [(RETRY_AFTER, "0")], text).into_response()
        }
        Fault::Redirect(to) => (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, to)]).into_response(),
        Fault::Other(bytes) => bytes.into_response(),
        Fault::Endless(bytes) => {
            let again = stream::repeat_with(move || Ok::<_, Infallible>(Bytes::from(bytes.clone())));
            Body::from_stream(again).into_response()
        }
        Fault::Break(length) => {
            let first = Ok(Bytes::from(rest[..length].to_vec()));
            // What was sent has to leave before the connection ends.
            let last = async {
                tokio::time::sleep(Duration::from_millis(50)).await;
                Err(io::Error::other("broken"))
            };
            (status, headers, Body::from_stream(stream::iter([first]).chain(stream::once(last)))).into_response()
        }
        Fault::Silence(length) => {
            let first = Ok::<_, Infallible>(Bytes::from(rest[..length].to_vec()));
            (status, headers, Body::from_stream(stream::iter([first]).chain(stream::pending()))).into_response()
        }
    }
}
