//! The page on which a person sees the live view and takes over.
//!
//! It is for a person's browser, which cannot send the session's key as a header. Who has the key learns a token from
//! `GET /v1/plugins`, which opens the page: in its URL for once, and then as a cookie that no script can read
//! ([`gloveport_proxy::Admission`], as for the pages of plugins). The cookie opens this page and nothing else.
//!
//! The page connects to the live view with a key that opens nothing else either, which it offers among the protocols of the
//! WebSocket as the session's key is. Pages of plugins have the origin of the server, so the page and that key are kept from
//! them: the page has an origin of its own (`sandbox`), so nobody reads it in a window or a frame, and it is given to the
//! address bar of a window only, so nobody fetches it. A browser that does not say what a page is for is not given it.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Request, State},
    response::Response,
};
use gloveport_proxy::{
    Admission, Mount, Trust,
    admission::{Admitted, Turned},
    origin::{Cause, cause},
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, SET_COOKIE},
};

use super::{handle::browser, live};
use crate::{
    answer::{self, with_type},
    app::App,
    auth,
    v1::error::ApiError,
    views::Views,
};

pub(super) use crate::views::PATH;

/// What the cookie is sent to.
const MOUNT: &str = "/v1/browser";
const DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
const PAGE: &str = include_str!("view.html");
const STYLE: &str = include_str!("view.css");
const SCRIPT: &str = include_str!("view.js");

/// Whether a request is one of those that are let in here and not by the session's key.
pub(crate) fn lets_in_itself<B>(views: &Views, request: &http::Request<B>) -> bool {
    match request.uri().path() {
        // Other methods have no handler that would ask.
        PATH => matches!(*request.method(), Method::GET | Method::HEAD),
        live::PATH => auth::offered(request.headers(), live::KEY_PROTOCOL)
            .is_some_and(|offered| views.key.as_ref().is_some_and(|key| key.matches(&offered))),
        _ => false,
    }
}

#[utoipa::path(
    get,
    path = "/v1/browser/view",
    tag = "browser",
    operation_id = "view_browser",
    summary = "Look at the browser, and use it",
    description = "A page for a browser. `GET /v1/plugins` tells the token that opens it, as `?tkn=`.",
    responses(
        (status = 200, description = "The page.", body = String, content_type = "text/html"),
        (status = 303, description = "The token in the URL was right: the same page without it."),
    ),
)]
pub(super) async fn view(State(app): State<Arc<App>>, mut request: Request) -> Result<Response, ApiError> {
    let trust = auth::trust(&app.options, &request);
    if let Err(error) = browser(&app) {
        // A stranger learns nothing of what there is.
        return auth::check(&app.options, &request).map_or_else(|refusal| Ok(*refusal), |()| Err(error));
    }
    let (_, token) = app.views.page();
    let Admitted { cookie } = match Admission::new("browser", token).check(&mut request, &Mount::new(MOUNT, ""), trust)
    {
        Ok(admitted) => admitted,
        Err(Turned(response)) => return Ok(response.map(Body::new)),
    };
    if !is_for_a_window(trust, request.method(), request.headers()) {
        let reason = "The page is opened in a window of its own, by a browser that is on the server's machine or connected \
            over TLS.";
        let hint = "open it in a browser as http://localhost, through a tunnel if the server is elsewhere, or over TLS";
        return Ok(answer::native(StatusCode::FORBIDDEN, "forbidden", reason, hint));
    }
    Ok(made(&app.views, cookie))
}

/// Whether nobody but the user gets to see the answer.
fn is_for_a_window(trust: Trust, method: &Method, headers: &HeaderMap) -> bool {
    let mut destinations = headers.get_all(DEST).iter();
    match (destinations.next(), destinations.next()) {
        (None, _) => trust == Trust::Known || cause(method, headers) == Cause::Program,
        (Some(destination), None) => destination == "document",
        (Some(_), Some(_)) => false,
    }
}

fn made(views: &Views, cookie: Option<HeaderValue>) -> Response {
    let nonce = gloveport_ids::random::<16>().unwrap_or_default();
    let key = views.key.as_ref().map_or("", |key| key.secret());
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts"
    );
    let protocols = format!("{} {}{}", live::PROTOCOL, live::KEY_PROTOCOL, auth::encoded(key));
    let page = PAGE
        .replace("{nonce}", &nonce)
        .replace("{protocols}", &protocols)
        .replace("{style}", STYLE)
        .replace("{script}", SCRIPT);
    let mut response = with_type(StatusCode::OK, "text/html; charset=utf-8", page);
    let headers = response.headers_mut();
    // Without random numbers there is no script that may run.
    let policy = HeaderValue::try_from(policy).ok().filter(|_| !nonce.is_empty());
    headers.extend(policy.map(|policy| (CONTENT_SECURITY_POLICY, policy)));
    headers.extend(cookie.map(|cookie| (SET_COOKIE, cookie)));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_given_to_windows_and_to_who_has_the_key() {
        for (trust, headers, given) in [
            (Trust::Stranger, vec![("sec-fetch-dest", "document")], true),
            (Trust::Stranger, vec![("sec-fetch-dest", "empty"), ("sec-fetch-site", "same-origin")], false),
            (Trust::Stranger, vec![("sec-fetch-dest", "iframe"), ("sec-fetch-site", "same-origin")], false),
            (Trust::Stranger, vec![("sec-fetch-dest", "document"), ("sec-fetch-dest", "empty")], false),
            (Trust::Stranger, vec![("accept-language", "en")], false),
            (Trust::Stranger, vec![("origin", "http://localhost"), ("host", "localhost")], false),
            (Trust::Stranger, vec![], true),
            (Trust::Known, vec![("accept-language", "en")], true),
            (Trust::Known, vec![("sec-fetch-dest", "empty")], false),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in &headers {
                map.append(*name, value.parse().unwrap());
            }
            assert_eq!(is_for_a_window(trust, &Method::GET, &map), given, "{trust:?} {headers:?}");
        }
    }

    #[test]
    fn the_page_has_a_policy_that_lets_its_own_script_run_and_nothing_else() {
        let (one, other) = (made(&Views::new(), None), made(&Views::new(), None));
        let policy = |response: &Response| response.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
        let expected = "default-src 'none'; script-src 'nonce-N'; style-src 'nonce-N'; connect-src 'self'; base-uri 'none'; \
            form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts";
        let nonce = policy(&one).split("'nonce-").nth(1).unwrap().split('\'').next().unwrap().to_owned();
        assert_eq!(policy(&one).replace(&nonce, "N"), expected);
        assert_ne!(policy(&one), policy(&other));
        assert_eq!(one.headers()[CACHE_CONTROL], "no-store");
        for part in [PAGE, SCRIPT, STYLE] {
            assert!(!part.contains("http://") && !part.contains("https://") && !part.contains("innerHTML"));
        }
    }
}
