//! A server that was started ahead: until somebody says what it is for, its port takes nothing but that.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use gloveport_protocol::SESSION_KEY_HEADER;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc, oneshot},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::SessionKey;

/// Connections at a time.
const MOST: usize = 16;
/// Largest text that says what a server is for.
const LARGEST: usize = 64 * 1024 * 1024;
/// Time for the head of a request.
const HEAD: Duration = Duration::from_secs(10);
/// Time for the whole of it, until it is taken.
const WHOLE: Duration = Duration::from_mins(2);
/// Pause after a connection that was not accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// What a server is for, and somebody who waits for the answer.
#[derive(Debug)]
pub struct Claim {
    /// What was sent.
    pub body: Bytes,
    answer: oneshot::Sender<Result<(), String>>,
}

impl Claim {
    /// The server is what it was asked to be.
    pub fn fulfil(self) {
        // Whoever asked may have gone.
        let _gone = self.answer.send(Ok(()));
    }

    /// It cannot be that.
    pub fn refuse(self, reason: String) {
        let _gone = self.answer.send(Err(reason));
    }
}

/// Waits until somebody who has this key says at this path what the server is for. `/alive` is answered meanwhile, and
/// everything else refused; `None` if it is to stop before.
///
/// The answer is sent when the [`Claim`] is fulfilled or refused, by a task that ends with the connection.
pub async fn wait_for_claim(
    listener: &TcpListener,
    path: &'static str,
    key: SessionKey,
    stop: &CancellationToken,
) -> Option<Claim> {
    let (claims, mut claimed) = mpsc::channel(1);
    let door = Arc::new(Door { path, key, claims, places: Semaphore::new(MOST) });
    let mut connections = JoinSet::new();
    let claim = loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, Arc::clone(&door)));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    sleep(PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
            claim = claimed.recv() => break claim,
            () = stop.cancelled() => return None,
        }
    };
    // Whoever waits for an answer gets it, and no other claim is taken.
    claimed.close();
    connections.detach_all();
    claim
}

struct Door {
    path: &'static str,
    key: SessionKey,
    claims: mpsc::Sender<Claim>,
    places: Semaphore,
}

async fn serve(stream: TcpStream, door: Arc<Door>) {
    let Ok(_place) = door.places.try_acquire() else { return };
    let _without = stream.set_nodelay(true);
    let answering = service_fn(|request| {
        let door = Arc::clone(&door);
        async move { Ok::<_, Infallible>(door.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        // Whatever comes after a claim is for the server itself.
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answering);
    match timeout(WHOLE, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection to a waiting server broke"),
        Err(_) => tracing::debug!("a connection to a waiting server was silent for too long"),
    }
}

impl Door {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        if request.method() == Method::GET && request.uri().path() == "/alive" {
            return told(StatusCode::OK, r#"{"status":"waiting"}"#.to_owned());
        }
        if request.uri().path() != self.path || request.method() != Method::POST {
            return refused(StatusCode::SERVICE_UNAVAILABLE, "the sandbox waits for its session");
        }
        let presented = request.headers().get(SESSION_KEY_HEADER).map(http::HeaderValue::as_bytes);
        if !self.key.matches(presented.unwrap_or_default()) {
            return refused(StatusCode::UNAUTHORIZED, "the key is missing or wrong");
        }
        let body = match Limited::new(request.into_body(), LARGEST).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => return refused(StatusCode::BAD_REQUEST, &error.to_string()),
        };
        let (answer, answered) = oneshot::channel();
        if self.claims.try_send(Claim { body, answer }).is_err() {
            return refused(StatusCode::CONFLICT, "the sandbox has a session already");
        }
        match answered.await {
            Ok(Ok(())) => told(StatusCode::OK, r#"{"status":"ok"}"#.to_owned()),
            Ok(Err(reason)) => refused(StatusCode::UNPROCESSABLE_ENTITY, &reason),
            Err(_) => refused(StatusCode::SERVICE_UNAVAILABLE, "the server ended"),
        }
    }
}

fn refused(status: StatusCode, reason: &str) -> Response<Full<Bytes>> {
    told(status, serde_json::json!({"detail": reason}).to_string())
}

fn told(status: StatusCode, json: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(json)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    headers.insert(http::header::X_CONTENT_TYPE_OPTIONS, http::HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const PATH: &str = "/claim";

    async fn ask(at: SocketAddr, method: &str, path: &str, key: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nx-session-api-key: {key}\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn only_who_has_the_key_says_what_a_waiting_server_is_for_and_only_once() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let at = listener.local_addr().unwrap();
        let asking = tokio::spawn(async move {
            let mut statuses = Vec::new();
            for (method, path, key) in
                [("GET", "/alive", ""), ("POST", "/execute_action", "k"), ("POST", PATH, "x"), ("GET", PATH, "k")]
            {
                statuses.push(ask(at, method, path, key, "").await[9..12].to_owned());
            }
            (statuses, ask(at, "POST", PATH, "k", "what").await)
        });
        let stop = CancellationToken::new();
        let claim = wait_for_claim(&listener, PATH, SessionKey::new("k"), &stop).await.unwrap();
        assert_eq!(claim.body, "what");
        claim.fulfil();
        let (statuses, answer) = asking.await.unwrap();
        assert_eq!(statuses, ["200", "503", "401", "503"]);
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(r#"{"status":"ok"}"#), "{answer}");
    }

    #[tokio::test]
    async fn a_refusal_reaches_whoever_asked_and_a_stop_ends_the_wait() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let at = listener.local_addr().unwrap();
        let asking = tokio::spawn(async move { ask(at, "POST", PATH, "k", "").await });
        let stop = CancellationToken::new();
        let claim = wait_for_claim(&listener, PATH, SessionKey::new("k"), &stop).await.unwrap();
        claim.refuse("no \"such\" plugin".to_owned());
        let answer = asking.await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 422") && answer.contains(r#"no \"such\" plugin"#), "{answer}");
        stop.cancel();
        assert!(wait_for_claim(&listener, PATH, SessionKey::new("k"), &stop).await.is_none());
    }
}
