//! The file viewer: pages that show an image or a PDF file to a browser on the same machine
//! (`action-execution-api` §3, and steps 2 and 3 of its 1.4).
//!
//! It listens on loopback only and needs nothing from the network. Who has its address may use it: a ticket is in it that
//! nobody can guess, and the file that tells it can be read by the user of the tools alone. What is shown is what that user
//! may read. A page of another origin gets nothing, whatever name it comes by.

mod open;
mod page;
mod port;

use std::{
    fs::File,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    os::unix::fs::fchown,
    path::Path,
    sync::Arc,
    time::Duration,
};

use axum::{
    Extension, Router,
    extract::{Query, Request, State},
    middleware::{self, Next},
    response::Response,
    routing::get,
};
use gloveport_sys::Identity;
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode, Uri,
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, ORIGIN, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS},
};
use tokio::{
    net::TcpListener,
    task::{JoinHandle, JoinSet},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    answer,
    docs::escape,
    options::Limits,
    serve::{converse, prepare},
    transfer::Transfers,
};
pub use port::{Ticket, choose_port, write_url};

/// Where programs look for the address of the viewer.
pub const URL_FILE: &str = "/tmp/oh-server-url";

/// Ports that are taken before there are none.
const TRIES: usize = 3;
/// Connections; more wait in the queue of the listener.
const CONNECTIONS: usize = 64;
/// Pages that are made at the same time.
const PAGES: usize = 4;
/// Time to finish pages when the viewer stops.
const DRAIN: Duration = Duration::from_millis(500);
/// What a browser may do with an answer that says nothing else: show its text.
const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// Pause after an error of `accept`.
const PAUSE: Duration = Duration::from_millis(100);

/// A viewer. Dropping it stops it, too, without finishing pages.
#[derive(Debug)]
pub struct Viewer {
    port: u16,
    ticket: Ticket,
    stop: CancellationToken,
    /// Until it serves.
    waiting: Option<(TcpListener, Option<File>)>,
    serving: Option<JoinHandle<()>>,
}

impl Viewer {
    /// Takes a port for a viewer beside the server on port `beside`, and writes its address to `url_file`. Whoever asks it
    /// waits until it [serves](Self::serve_as). A viewer that can not be started is missed by nobody but those who want to
    /// view a file, so that is only logged.
    pub async fn start(beside: u16, url_file: &Path) -> Option<Self> {
        let Some((listener, port)) = listen(beside).await else {
            tracing::warn!(beside, "there is no free port for the file viewer");
            return None;
        };
        let ticket = match Ticket::new() {
            Ok(ticket) => ticket,
            Err(error) => {
                tracing::warn!(%error, "there is no ticket for the file viewer");
                return None;
            }
        };
        let file = match write_url(url_file, port, &ticket) {
            Ok(file) => Some(file),
            Err(error) => {
                let file = url_file.display();
                tracing::warn!(%error, %file, "the address of the file viewer can not be written");
                None
            }
        };
        tracing::info!(port, "the file viewer listens");
        let stop = CancellationToken::new();
        Some(Self { port, ticket, stop, waiting: Some((listener, file)), serving: None })
    }

    /// Begins to show files, with the rights of a user if it is another one than this process's, who gets the file with
    /// the address, too. Once is enough.
    pub fn serve_as(&mut self, identity: Option<&Identity>) {
        let Some((listener, file)) = self.waiting.take() else { return };
        if let (Some(identity), Some(file)) = (identity, file)
            && let Err(error) = fchown(&file, Some(identity.uid), Some(identity.gid))
        {
            tracing::warn!(%error, user = identity.uid, "the user can not get the address of the file viewer");
        }
        let show = Show { ticket: self.ticket.clone(), identity: identity.cloned() };
        self.serving = Some(tokio::spawn(serve(listener, show, self.stop.clone())));
    }

    /// The port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Stops it, after pages in the making had half a second.
    pub async fn stop(mut self) {
        self.stop.cancel();
        if let Some(serving) = self.serving.take()
            && let Err(error) = serving.await
        {
            tracing::error!(%error, "the file viewer did not end as it should");
        }
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        if let Some(serving) = &self.serving {
            serving.abort();
        }
    }
}

/// To whom files are shown, and as whom.
#[derive(Debug)]
struct Show {
    ticket: Ticket,
    identity: Option<Identity>,
}

/// Takes a port on loopback. One that was free may be taken by somebody else in the same moment.
async fn listen(beside: u16) -> Option<(TcpListener, u16)> {
    for _ in 0..TRIES {
        let port = choose_port(beside).await?;
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
            Ok(listener) => return Some((listener, port)),
            Err(error) => tracing::debug!(%error, port, "a free port can not be used"),
        }
    }
    None
}

/// Serves until `stop` is cancelled.
async fn serve(listener: TcpListener, show: Show, stop: CancellationToken) {
    let limits = Arc::new(Limits { transfers: PAGES, ..Limits::default() });
    let router = router(&limits, show);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(_ended) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept(), if connections.len() < CONNECTIONS => match accepted {
                Ok((stream, peer)) => {
                    prepare(&stream);
                    let router = router.clone().layer(Extension(Peer(peer)));
                    connections.spawn(converse(stream, router, Arc::clone(&limits), Arc::default(), stop.clone()));
                }
                Err(error) => {
                    tracing::debug!(%error, "the file viewer can not accept a connection");
                    let _stopped = stop.run_until_cancelled(sleep(PAUSE)).await;
                }
            },
        }
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    if timeout(DRAIN, all).await.is_err() {
        connections.shutdown().await;
    }
}

/// Who asks.
#[derive(Debug, Clone, Copy)]
struct Peer(SocketAddr);

fn router(limits: &Limits, show: Show) -> Router {
    Router::new()
        .route("/", get(async || running()))
        .route("/{ticket}", get(root))
        .route("/{ticket}/view", get(view))
        .route("/view", get(async || no_ticket()))
        .fallback(async || not_found())
        .method_not_allowed_fallback(async || answer::detail(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed"))
        .with_state((Arc::new(Transfers::new(limits)), Arc::new(show)))
        .layer(middleware::from_fn(guarded))
}

/// Lets in who is on this machine and asks for it by its name, and no page of another origin; and makes a browser do
/// nothing with an answer but show it.
async fn guarded(Extension(Peer(peer)): Extension<Peer>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let mut response = if !is_local(peer.ip()) || !names_this_machine(headers) || is_foreign(headers) {
        denied("This endpoint is only accessible from localhost")
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        // The address has the ticket.
        (HeaderName::from_static("referrer-policy"), "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    response
}

fn running() -> Response {
    answer::json(StatusCode::OK, &serde_json::json!({"status": "File viewer server is running"}))
}

fn not_found() -> Response {
    answer::detail(StatusCode::NOT_FOUND, "Not Found")
}

fn denied(reason: &str) -> Response {
    html(StatusCode::FORBIDDEN, &format!("<h1>Access Denied</h1><p>{reason}</p>"))
}

fn no_ticket() -> Response {
    denied(&format!("The address of this viewer has a ticket; {URL_FILE} has the whole address."))
}

/// The address itself, as the file has it.
async fn root(
    State((_, show)): State<(Arc<Transfers>, Arc<Show>)>,
    axum::extract::Path(ticket): axum::extract::Path<String>,
) -> Response {
    if show.ticket.is(&ticket) { running() } else { not_found() }
}

async fn view(
    State((turns, show)): State<(Arc<Transfers>, Arc<Show>)>,
    axum::extract::Path(ticket): axum::extract::Path<String>,
    uri: Uri,
) -> Response {
    if !show.ticket.is(&ticket) {
        return no_ticket();
    }
    let pairs = Query::<Vec<(String, String)>>::try_from_uri(&uri).map(|Query(pairs)| pairs).unwrap_or_default();
    let Some(path) = pairs.into_iter().rev().find_map(|(name, value)| (name == "path").then_some(value)) else {
        return answer::invalid("the query has no `path`");
    };
    match page::answer(&turns, show.identity.as_ref(), &path).await {
        Ok(response) => response,
        Err(error) => {
            let (status, title) = error.status_and_title();
            let mut text = format!("<h1>{title}</h1><p>{}</p>", escape(&path));
            if let Some(message) = error.message() {
                text = format!("{text}<p>{}</p>", escape(&message));
            }
            html(status, &text)
        }
    }
}

fn html(status: StatusCode, text: &str) -> Response {
    answer::with_type(status, "text/html; charset=utf-8", text.to_owned())
}

fn is_local(peer: IpAddr) -> bool {
    peer == IpAddr::V4(Ipv4Addr::LOCALHOST) || peer == IpAddr::V6(std::net::Ipv6Addr::LOCALHOST)
}

/// Whether the request was meant for this machine. A page from elsewhere whose name leads here by a trick of its name
/// server carries that name.
fn names_this_machine(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(HOST) else { return true };
    let Ok(host) = host.to_str() else { return false };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => host.split(':').next(),
    };
    name.is_some_and(|name| ["localhost", "127.0.0.1", "::1"].iter().any(|local| name.eq_ignore_ascii_case(local)))
}

/// Whether a browser says that a page of another origin made it ask.
fn is_foreign(headers: &HeaderMap) -> bool {
    let text = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let is_cross = text(&HeaderName::from_static("sec-fetch-site"))
        .is_some_and(|site| !["none", "same-origin"].contains(&site.to_ascii_lowercase().as_str()));
    let is_of_other = text(&ORIGIN).is_some_and(|origin| {
        let authority = origin.strip_prefix("http://");
        authority.is_none() || authority != text(&HOST)
    });
    is_cross || is_of_other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_for_this_machine_are_answered() {
        for (host, expected) in [
            (Some("localhost:8001"), true),
            (Some("LOCALHOST"), true),
            (Some("127.0.0.1:1"), true),
            (Some("[::1]:80"), true),
            (None, true),
            (Some("example.com:8001"), false),
            (Some("localhost.example.com"), false),
            (Some("127.0.0.1.example.com"), false),
            (Some(""), false),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(host) = host {
                headers.insert(HOST, host.parse().unwrap());
            }
            assert_eq!(names_this_machine(&headers), expected, "{host:?}");
        }
    }

    #[test]
    fn pages_of_other_origins_are_foreign() {
        for (origin, site, foreign) in [
            (None, None, false),
            (None, Some("none"), false),
            (None, Some("same-origin"), false),
            (Some("http://localhost:8001"), Some("same-origin"), false),
            (None, Some("same-site"), true),
            (None, Some("cross-site"), true),
            (None, Some(""), true),
            (Some("http://localhost:8002"), None, true),
            (Some("https://localhost:8001"), None, true),
            (Some("https://example.org"), None, true),
            (Some("null"), None, true),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static("localhost:8001"));
            if let Some(origin) = origin {
                headers.insert(ORIGIN, HeaderValue::from_static(origin));
            }
            if let Some(site) = site {
                headers.insert("sec-fetch-site", HeaderValue::from_static(site));
            }
            assert_eq!(is_foreign(&headers), foreign, "{origin:?} {site:?}");
        }
    }

    #[tokio::test]
    async fn other_machines_are_refused() {
        use http::Request;
        use tower::ServiceExt as _;
        for (peer, status) in [("127.0.0.1:5", 200), ("[::1]:5", 200), ("127.0.0.2:5", 403), ("10.0.0.1:5", 403)] {
            let show = Show { ticket: Ticket::new().unwrap(), identity: None };
            let router = router(&Limits::default(), show).layer(Extension(Peer(peer.parse().unwrap())));
            let request = Request::get("/").body(axum::body::Body::empty()).unwrap();
            let response = router.oneshot(request).await.unwrap();
            assert_eq!(response.status(), status, "{peer}");
        }
    }
}
