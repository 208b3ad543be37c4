//! The file viewer: pages that show a file to a browser on the same machine
//! (`action-execution-api` §3, and steps 2 and 3 of its 1.4).
//!
//! It is a part of the server's one port: a port of its own would be one that another server is about to take. It answers
//! this machine only, and needs nothing from the network. Who has its address may use it: a ticket is in it that nobody
//! can guess, and the file that tells it can be read by the user of the tools alone. What is shown is what that user may
//! read. A page of another origin gets nothing, whatever name it comes by.

mod address;
mod open;
mod page;
mod ticket;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use axum::{
    Extension, Router,
    extract::{Query, Request},
    middleware::{self, Next},
    response::Response,
    routing::get,
};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode, Uri,
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, ORIGIN, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS},
};

use crate::{answer, app::App, docs::escape};
pub use address::{Announced, Viewer};
use ticket::PREFIX;
pub use ticket::{Ticket, write_url};

/// Where programs look for the address of the viewer.
pub const URL_FILE: &str = "/tmp/oh-server-url";

/// What a browser may do with an answer that says nothing else: show its text.
const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox";

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// Whether a path is one of the viewer's, which checks who asks by itself.
pub(crate) fn owns(path: &str) -> bool {
    path.starts_with(PREFIX)
}

/// The pages of a viewer, with their whole paths.
pub(crate) fn router(viewer: Viewer) -> Router<Arc<App>> {
    let viewer = Extension(Arc::new(viewer));
    Router::new()
        .route("/viewer/", get(async || running()))
        .route("/viewer/view", get(async || no_ticket()))
        .route("/viewer/{ticket}", get(root))
        .route("/viewer/{ticket}/view", get(view))
        .layer(middleware::from_fn(guarded))
        .layer(viewer)
}

/// Lets in who is on this machine and asks for it by its name, and no page of another origin; and makes a browser do
/// nothing with an answer but show it.
async fn guarded(request: Request, next: Next) -> Response {
    let headers = request.headers();
    let is_local = request.extensions().get().is_some_and(|Peer(peer)| is_local(peer.ip()));
    let mut response = if !is_local || !names_this_machine(headers) || is_foreign(headers) {
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
    Extension(viewer): Extension<Arc<Viewer>>,
    axum::extract::Path(ticket): axum::extract::Path<String>,
) -> Response {
    if viewer.ticket.is(&ticket) { running() } else { not_found() }
}

async fn view(
    Extension(viewer): Extension<Arc<Viewer>>,
    axum::extract::Path(ticket): axum::extract::Path<String>,
    uri: Uri,
) -> Response {
    if !viewer.ticket.is(&ticket) {
        return no_ticket();
    }
    let pairs = Query::<Vec<(String, String)>>::try_from_uri(&uri).map(|Query(pairs)| pairs).unwrap_or_default();
    let Some(path) = pairs.into_iter().rev().find_map(|(name, value)| (name == "path").then_some(value)) else {
        return answer::invalid("the query has no `path`");
    };
    match page::answer(&viewer.turns, viewer.identity.as_ref(), &path).await {
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

    #[test]
    fn only_loopback_is_this_machine() {
        for (peer, local) in [("127.0.0.1", true), ("::1", true), ("127.0.0.2", false), ("10.0.0.1", false)] {
            assert_eq!(is_local(peer.parse().unwrap()), local, "{peer}");
        }
    }
}
