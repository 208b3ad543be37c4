//! The file viewer: pages that show an image or a PDF file to a browser on the same machine
//! (`action-execution-api` §3, and steps 2 and 3 of its 1.4).
//!
//! It listens on loopback only, asks for no key, and needs nothing from the network.

mod page;
mod pdf;
mod port;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use axum::{
    Extension, Router,
    extract::{Query, State},
    response::Response,
    routing::get,
};
use http::{HeaderMap, StatusCode, Uri, header::HOST};
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
pub use port::{choose_port, write_url};

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
/// Pause after an error of `accept`.
const PAUSE: Duration = Duration::from_millis(100);

/// A viewer that runs. Dropping it stops it, too, without finishing pages.
#[derive(Debug)]
pub struct Viewer {
    port: u16,
    stop: CancellationToken,
    serving: Option<JoinHandle<()>>,
}

impl Viewer {
    /// Starts a viewer beside the server on port `beside`, and writes its address to `url_file`. A viewer that can not
    /// be started is missed by nobody but those who want to view a file, so that is only logged.
    pub async fn start(beside: u16, url_file: &Path) -> Option<Self> {
        let Some((listener, port)) = listen(beside).await else {
            tracing::warn!(beside, "there is no free port for the file viewer");
            return None;
        };
        if let Err(error) = write_url(url_file, port) {
            tracing::warn!(%error, file = %url_file.display(), "the address of the file viewer can not be written");
        }
        tracing::info!(port, "the file viewer listens");
        let stop = CancellationToken::new();
        let serving = Some(tokio::spawn(serve(listener, stop.clone())));
        Some(Self { port, stop, serving })
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
pub async fn serve(listener: TcpListener, stop: CancellationToken) {
    let limits = Arc::new(Limits { transfers: PAGES, ..Limits::default() });
    let router = router(&limits);
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

fn router(limits: &Limits) -> Router {
    Router::new()
        .route(
            "/",
            get(async || answer::json(StatusCode::OK, &serde_json::json!({"status": "File viewer server is running"}))),
        )
        .route("/view", get(view))
        .fallback(async || answer::detail(StatusCode::NOT_FOUND, "Not Found"))
        .method_not_allowed_fallback(async || answer::detail(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed"))
        .with_state(Arc::new(Transfers::new(limits)))
}

async fn view(
    State(turns): State<Arc<Transfers>>,
    Extension(Peer(peer)): Extension<Peer>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let pairs = Query::<Vec<(String, String)>>::try_from_uri(&uri).map(|Query(pairs)| pairs).unwrap_or_default();
    let Some(path) = pairs.into_iter().rev().find_map(|(name, value)| (name == "path").then_some(value)) else {
        return answer::invalid("the query has no `path`");
    };
    if !is_local(peer.ip()) || !names_this_machine(&headers) {
        return html(
            StatusCode::FORBIDDEN,
            "<h1>Access Denied</h1><p>This endpoint is only accessible from localhost</p>",
        );
    }
    match page::answer(&turns, &path).await {
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

/// The file and its extension, or why it can not be shown.
fn find(path: &str) -> Result<(PathBuf, Kind), page::ViewError> {
    let file = PathBuf::from(path);
    if !path.starts_with('/') {
        return Err(page::ViewError::Relative);
    }
    let Ok(metadata) = std::fs::metadata(&file) else { return Err(page::ViewError::Missing) };
    if metadata.is_dir() {
        return Err(page::ViewError::Directory);
    }
    let kind = Kind::of(path)?;
    Ok((file, kind))
}

/// What can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pdf,
    Image {
        /// Its media type.
        mime: &'static str,
    },
}

impl Kind {
    /// By the extension: what follows the last dot of the name, unless only dots stand before it.
    fn of(path: &str) -> Result<Self, page::ViewError> {
        let name = path.rsplit('/').next().unwrap_or_default().trim_start_matches('.');
        let extension = name.rfind('.').and_then(|at| name.get(at..)).unwrap_or_default().to_lowercase();
        match extension.as_str() {
            ".pdf" => Ok(Self::Pdf),
            ".png" => Ok(Self::Image { mime: "image/png" }),
            ".jpg" | ".jpeg" => Ok(Self::Image { mime: "image/jpeg" }),
            ".gif" => Ok(Self::Image { mime: "image/gif" }),
            _ => Err(page::ViewError::Unsupported(extension)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_the_extension() {
        for (path, expected) in [
            ("/a/b.PNG", Ok(Kind::Image { mime: "image/png" })),
            ("/a.png/b.jpeg", Ok(Kind::Image { mime: "image/jpeg" })),
            ("/a.b.gif", Ok(Kind::Image { mime: "image/gif" })),
            ("/a.pdf", Ok(Kind::Pdf)),
            ("/a.png/b", Err("")),
            ("/.png", Err("")),
            ("/..png", Err("")),
            ("/a.", Err(".")),
            ("/a.TXT", Err(".txt")),
        ] {
            let expected = expected.map_err(|extension: &str| {
                format!(
                    "Unsupported file extension: {extension}. Supported extensions are: .pdf, .png, .jpg, .jpeg, .gif."
                )
            });
            let found = Kind::of(path).map_err(|error| error.message().unwrap());
            assert_eq!(found, expected, "{path}");
        }
    }

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

    #[tokio::test]
    async fn other_machines_are_refused() {
        use http::Request;
        use tower::ServiceExt as _;
        for (peer, status) in [("127.0.0.1:5", 400), ("[::1]:5", 400), ("127.0.0.2:5", 403), ("10.0.0.1:5", 403)] {
            let router = router(&Limits::default()).layer(Extension(Peer(peer.parse().unwrap())));
            let request = Request::get("/view?path=x").body(axum::body::Body::empty()).unwrap();
            let response = router.oneshot(request).await.unwrap();
            assert_eq!(response.status(), status, "{peer}");
        }
    }
}
