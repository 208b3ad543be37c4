//! The API of the agent-server of OpenHands' SDK 1.x (docs/wires.md, `agent-server-workspace-api`): commands, files,
//! repositories, in place of all other interfaces.

mod agent;
mod answers;
mod bash;
mod cors;
mod description;
mod details;
mod editor;
pub(crate) mod face;
mod files;
mod git;
mod hooks;
pub(crate) mod hosted;
pub(crate) mod init;
pub(crate) mod options;
mod settings;
mod sockets;
mod tunnel;
pub(crate) mod waiting;

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
};
use gloveport_proxy::Trust;
use http::{
    HeaderMap, HeaderValue, StatusCode, Uri,
    header::{ALLOW, LOCATION, UPGRADE},
};

use crate::{answer, app::App, auth, route::Route};
use waiting::Assemble;

/// Routes that need no key, beside those of the program.
fn open() -> Vec<Route> {
    details::routes().into_iter().chain([init::of_settled()]).chain(sockets::routes()).collect()
}

/// Routes of a server that waits for its settings.
fn waiting(assemble: Assemble) -> Vec<Route> {
    details::routes().into_iter().chain(init::of_waiting(assemble)).collect()
}

/// Routes that need one.
fn keyed() -> Vec<Route> {
    let all = [bash::routes(), files::routes(), git::routes(), hooks::routes(), editor::routes(), agent::routes()];
    all.into_iter().flatten().collect()
}

/// All routes, each with what it asks of callers.
pub(crate) fn router(app: &Arc<App>) -> Router<Arc<App>> {
    let add = |router: Router<Arc<App>>, route: Route| router.route(route.path, route.handler);
    let keyed = keyed().into_iter().fold(Router::new(), add);
    let keyed = keyed.route_layer(middleware::from_fn_with_state(Arc::clone(app), with_key));
    let open = open().into_iter().fold(Router::new(), add);
    let open = open.route_layer(middleware::from_fn_with_state(Arc::clone(app), without_page));
    open.merge(keyed)
}

/// All routes of one that waits for its settings; with them it gets those that `assemble` makes.
pub(crate) fn waiting_router(assemble: Assemble) -> Router<Arc<App>> {
    waiting(assemble).into_iter().fold(Router::new(), |router, route| router.route(route.path, route.handler))
}

/// Lets pages ask that may ([`cors`]), before anything else is looked at.
pub(crate) async fn with_origin(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let Some(origins) = app.origins() else { return next.run(request).await };
    let asked = cors::Asked::of(&request, origins);
    if let Some(answer) = asked.preflight() {
        return answer;
    }
    let mut response = next.run(request).await;
    asked.mark(&mut response);
    response
}

/// Lets in who shows the key, or anybody but a page where there is none.
async fn with_key(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    if auth::trust(&app.options, &request) == Trust::Stranger {
        return answer::detail(StatusCode::UNAUTHORIZED, "Unauthorized");
    }
    match auth::check(&app.options, &request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => *refusal,
    }
}

/// What everybody may ask, even without the key.
async fn without_page(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    if app.options.session_key.is_none()
        && let Err(refusal) = auth::check(&app.options, &request)
    {
        return *refusal;
    }
    next.run(request).await
}

/// A path that is not known: it may be one of the agent's.
pub(crate) async fn unknown_path(app: &App, request: Request) -> Response {
    let Some(hosted) = app.hosted_agent().filter(|_| hosted::owns(request.uri().path())) else {
        return no_such_path(request.uri(), request.headers());
    };
    if auth::trust(&app.options, &request) == Trust::Stranger {
        return answer::detail(StatusCode::UNAUTHORIZED, "Unauthorized");
    }
    match auth::check(&app.options, &request) {
        Ok(()) => {
            app.action_arrived();
            hosted.pass(request).await
        }
        Err(refusal) => *refusal,
    }
}

/// A path that nobody knows: with a slash more or less it may be another.
fn no_such_path(uri: &Uri, headers: &HeaderMap) -> Response {
    let path = uri.path();
    if headers.contains_key(UPGRADE) {
        // There is no such socket.
        return answer::detail(StatusCode::FORBIDDEN, "Not Found");
    }
    let other = match path.strip_suffix('/') {
        Some(shorter) => shorter.to_owned(),
        None => format!("{path}/"),
    };
    let is_known = |route: &Route| !route.path.contains('{') && route.path == other;
    // A path that begins with two slashes would be a host.
    if !path.starts_with("//") && (open().iter().any(is_known) || keyed().iter().any(is_known)) {
        let location = uri.query().map_or_else(|| other.clone(), |query| format!("{other}?{query}"));
        if let Ok(location) = HeaderValue::from_str(&location) {
            let mut response = answer::with_type(StatusCode::TEMPORARY_REDIRECT, "text/plain", "");
            response.headers_mut().insert(LOCATION, location);
            return response;
        }
    }
    answer::detail(StatusCode::NOT_FOUND, agent::missing_part(path).unwrap_or_else(|| "Not Found".to_owned()))
}

/// A method that a path does not have.
pub(crate) fn unknown_method(uri: &Uri) -> Response {
    let mut response = answer::detail(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
    let methods = methods_of(uri.path());
    if let Ok(allow) = HeaderValue::from_str(&methods) {
        response.headers_mut().insert(ALLOW, allow);
    }
    response
}

fn methods_of(path: &str) -> String {
    let all = open().into_iter().chain(keyed());
    let mut methods: Vec<String> =
        all.filter(|route| is_of(route.path, path)).map(|route| route.method.to_uppercase()).collect();
    methods.sort();
    methods.dedup();
    methods.join(", ")
}

/// Whether a path is one of a route's.
fn is_of(route: &str, path: &str) -> bool {
    let (mut known, mut asked) = (route.split('/'), path.split('/'));
    loop {
        match (known.next(), asked.next()) {
            (None, None) => return true,
            (Some(part), Some(_)) if part.starts_with("{*") => return true,
            (Some(part), Some(_)) if part.starts_with('{') => {}
            (Some(part), Some(other)) if part == other => {}
            _ => return false,
        }
    }
}
