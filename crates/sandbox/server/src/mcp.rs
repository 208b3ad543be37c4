//! MCP: the sandbox as a server, and under `/mcp/` its own servers as one (action-execution-api 5), where there are any.
//!
//! | path | what | transport |
//! |---|---|---|
//! | `/mcp` | the sandbox as a computer | streamable HTTP |
//! | `/mcp/sse`, `/mcp/messages/` | its servers | HTTP+SSE, as clients of OpenHands 0.62 speak it |
//! | `/mcp/proxy` | its servers | streamable HTTP |
//!
//! Those of HTTP+SSE need the session's key twice where there is one, as `X-Session-API-Key` and as `Authorization: Bearer`.
//! For the others, either will do: most clients can only send the latter.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use gloveport_mcp::MOST_BODY;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header::WWW_AUTHENTICATE};
use serde_json::json;

use crate::{
    answer,
    app::App,
    auth::{self, COMPUTER, PROXY},
    body,
    options::ServerOptions,
};

/// The paths, for every method.
pub(crate) const PATHS: [&str; 5] = [COMPUTER, "/mcp/sse", "/mcp/messages/", "/mcp/messages", PROXY];

/// Why a request with one key but without the other is refused, as the protocol words it.
const CHALLENGE: HeaderValue =
    HeaderValue::from_static(r#"Bearer error="invalid_token", error_description="Authentication required""#);

/// Any request of one of these paths.
pub(crate) async fn serve(State(app): State<Arc<App>>, request: Request) -> Response {
    let path = request.uri().path();
    if path == COMPUTER {
        return computer(&app, request).await;
    }
    if app.mcp.proxy().is_empty() {
        return answer::detail(StatusCode::NOT_FOUND, "Not Found");
    }
    if path != PROXY
        && let Some(refusal) = lacks_token(&app.options, request.headers())
    {
        return refusal;
    }
    match (path, request.method()) {
        (PROXY, _) => match whole(&app, request).await {
            Ok(request) => app.mcp.streamable(request).await,
            Err(refusal) => *refusal,
        },
        ("/mcp/sse", &Method::GET) => app.mcp.open_stream(),
        ("/mcp/messages/" | "/mcp/messages", &Method::POST) => {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let session = query.split('&').find_map(|field| field.strip_prefix("session_id="));
            match body::text_of_json(MOST_BODY, request.into_body(), &app.options.limits).await {
                Ok(body) => app.mcp.take_message(session, &body).await,
                Err(error) => error.answer(),
            }
        }
        _ => answer::detail(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed"),
    }
}

/// A request to the sandbox as a computer.
async fn computer(app: &App, request: Request) -> Response {
    if request.method() == Method::POST {
        app.action_arrived();
    }
    match whole(app, request).await {
        Ok(request) => app.computer.handle(request).await,
        Err(refusal) => *refusal,
    }
}

/// The request with all of its message, within the bounds of the server.
async fn whole(app: &App, request: Request) -> Result<Request, Box<Response>> {
    if request.method() != Method::POST {
        return Ok(request);
    }
    let (parts, body) = request.into_parts();
    match body::text_of_json(MOST_BODY, body, &app.options.limits).await {
        Ok(body) => Ok(Request::from_parts(parts, body.into())),
        Err(error) => Err(Box::new(error.answer())),
    }
}

fn lacks_token(options: &ServerOptions, headers: &HeaderMap) -> Option<Response> {
    let key = options.session_key.as_ref()?;
    if auth::token(headers).is_some_and(|token| key.matches(token)) {
        return None;
    }
    let body = json!({"error": "invalid_token", "error_description": "Authentication required"});
    let mut refusal = answer::json(StatusCode::UNAUTHORIZED, &body);
    refusal.headers_mut().insert(WWW_AUTHENTICATE, CHALLENGE);
    Some(refusal)
}
