//! All routes, and what every request passes on its way to them.

use std::{
    any::Any,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use axum::{
    Router,
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
};
use futures_util::FutureExt as _;
use gloveport_executor::Executor;
use http::{StatusCode, Uri};
use tokio_util::sync::CancellationToken;

use crate::{
    agent_server::{self, waiting::Waiting},
    answer,
    app::App,
    auth, docs, health, mcp,
    metrics::Group,
    options::{ServerOptions, Wire},
    pages, plugins, policy, ports,
    route::Route,
    swerex, v0, v1, viewer,
};

/// What to do about a request that nothing answers.
const SEE: &str = "GET /docs lists the calls";

/// Every route of the server.
pub(crate) fn routes() -> impl Iterator<Item = Route> {
    v0::routes().into_iter().chain(v1::routes()).chain(health::routes()).chain(docs::routes())
}

/// The routes without connections, for tests and for embedding. Time limits and the bound on connections are those of
/// whoever serves them.
pub fn router(executor: Arc<Executor>, options: ServerOptions) -> Router {
    for_app(App::new(executor, options, CancellationToken::new()))
}

pub(crate) fn for_app(app: Arc<App>) -> Router {
    match &app.options.wire {
        Wire::OpenHands => {
            let with_origin = middleware::from_fn_with_state(Arc::clone(&app), pages::with_origin);
            assemble(app, routes()).layer(with_origin)
        }
        Wire::SweRex => {
            let known = swerex::routes().into_iter().chain(health::routes());
            finish(known.fold(Router::new(), |router, route| router.route(route.path, route.handler)), app)
        }
        Wire::AgentServer(_) => {
            let with_origin = middleware::from_fn_with_state(Arc::clone(&app), agent_server::with_origin);
            finish(agent_server::router(&app), app).layer(with_origin)
        }
        Wire::Deferred(_) => {
            let with_origin = middleware::from_fn_with_state(Arc::clone(&app), agent_server::with_origin);
            let pass_on = middleware::from_fn_with_state(Arc::clone(&app), agent_server::init::pass_on);
            finish(agent_server::waiting_router(for_app), app).layer(with_origin).layer(pass_on)
        }
    }
}

fn assemble(app: Arc<App>, routes: impl Iterator<Item = Route>) -> Router {
    let known = routes.fold(Router::new(), |router, route| router.route(route.path, route.handler));
    let known = match app.options.viewer.clone() {
        Some(viewer) => known.merge(viewer::router(viewer)),
        None => known,
    };
    let known = mcp::PATHS.into_iter().fold(known, |router, path| router.route(path, axum::routing::any(mcp::serve)));
    let known =
        ports::PATHS.into_iter().fold(known, |router, path| router.route(path, axum::routing::any(ports::serve)));
    let known =
        plugins::PATHS.into_iter().fold(known, |router, path| router.route(path, axum::routing::any(plugins::serve)));
    finish(known, app)
}

fn finish(known: Router<Arc<App>>, app: Arc<App>) -> Router {
    known
        .fallback(unknown_path)
        .method_not_allowed_fallback(unknown_method)
        .layer(middleware::from_fn_with_state(Arc::clone(&app), enter))
        .with_state(app)
}

async fn unknown_path(State(app): State<Arc<App>>, request: Request) -> Response {
    if app.agent_server.is_some() {
        return agent_server::unknown_path(&app, request).await;
    }
    if let Some(waiting) = &app.waiting {
        return agent_server::init::unknown_path(waiting, request.uri());
    }
    answer::refusal(request.uri().path(), StatusCode::NOT_FOUND, "unknown_path", "Not Found", SEE)
}

async fn unknown_method(State(app): State<Arc<App>>, uri: Uri) -> Response {
    if app.agent_server.is_some() || app.waiting.is_some() {
        return agent_server::unknown_method(&uri);
    }
    let status = StatusCode::METHOD_NOT_ALLOWED;
    answer::refusal(uri.path(), status, "method_not_allowed", "Method Not Allowed", SEE)
}

/// Key, bound, containment of panics, counting. Nothing of the body is read before.
async fn enter(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let group = Group::of(path);
    let is_of_plugin = plugins::owns(path);
    let mut checked = auth::check_host(&app.options, &request);
    // The way to the services of plugins asks by itself, and so do the viewer, the view of the browser, and the routes for
    // clients of the SDK.
    let asks_itself = app.agent_server.is_some()
        || app.waiting.as_ref().is_some_and(Waiting::has_key)
        || is_of_plugin
        || app.options.viewer.is_some() && viewer::owns(path)
        || v1::lets_in_itself(&app.views, &request);
    if !asks_itself {
        checked = checked.and_then(|()| auth::check(&app.options, &request));
    }
    let mut response = if let Err(refusal) = checked {
        *refusal
    } else {
        let in_flight = InFlight::new(&app.metrics.requests_in_flight);
        // Whoever asks whether the server is alive gets an answer in any case.
        if in_flight.before >= app.options.limits.requests && !matches!(path, "/alive" | "/health") {
            let text = "Too many requests are worked on; try again later";
            answer::refusal(path, StatusCode::SERVICE_UNAVAILABLE, "too_many_requests", text, "try again later")
        } else if app.executor.is_paused() && !v1::works_while_paused(path) {
            let hint = "resume it, and send the request again";
            answer::refusal(path, StatusCode::SERVICE_UNAVAILABLE, "paused", v1::PAUSED, hint)
        } else {
            let is_native = answer::is_native(path);
            let handled = AssertUnwindSafe(next.run(request)).catch_unwind().await;
            handled.unwrap_or_else(|panic| contain(panic.as_ref(), is_native))
        }
    };
    // Services and programs say themselves what browsers may do with their answers.
    let is_of_program = response.extensions_mut().remove::<answer::OfProgram>().is_some();
    if !is_of_plugin && !is_of_program {
        policy::apply(&mut response);
    }
    app.metrics.answered(group, response.status());
    response
}

fn contain(panic: &(dyn Any + Send), is_native: bool) -> Response {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = text.unwrap_or("without a text"), "a request failed by a defect of the server");
    if is_native { answer::defect() } else { answer::unexpected() }
}

/// A request that is worked on.
struct InFlight<'a> {
    counter: &'a AtomicUsize,
    before: usize,
}

impl<'a> InFlight<'a> {
    fn new(counter: &'a AtomicUsize) -> Self {
        Self { counter, before: counter.fetch_add(1, Relaxed) }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.counter.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use gloveport_executor::ExecutorOptions;
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn a_panic_is_answered_and_the_next_request_is_served() {
        async fn broken() -> Response {
            panic!("a defect");
        }
        let directory = tempfile::tempdir().unwrap();
        let executor = Executor::start(ExecutorOptions::inherited(directory.path().to_owned())).await.unwrap();
        let app = App::new(Arc::clone(&executor), ServerOptions::default(), CancellationToken::new());
        let router = assemble(Arc::clone(&app), routes().chain([Route::get("/broken", broken)]));
        for (path, status, body) in [
            ("/broken", 500, format!("{{\"detail\":\"{}\"}}", answer::UNEXPECTED)),
            ("/alive", 200, "{\"status\":\"ok\"}".to_owned()),
            ("/broken", 500, format!("{{\"detail\":\"{}\"}}", answer::UNEXPECTED)),
        ] {
            let request = Request::builder().uri(path).header("host", "localhost").body(Body::empty()).unwrap();
            let response = router.clone().oneshot(request).await.unwrap();
            assert_eq!(response.status(), status, "{path}");
            assert_eq!(to_bytes(response.into_body(), 1000).await.unwrap(), body, "{path}");
        }
        assert_eq!(app.metrics.requests_in_flight.load(Relaxed), 0);
        executor.close().await;
    }
}
