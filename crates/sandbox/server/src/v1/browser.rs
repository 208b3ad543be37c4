//! The browser of the sandbox: its pages, what is done in them, what they are like, and whoever looks on or takes over.

mod cdp;
mod handle;
mod live;
mod status;
mod view;

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Query, State, rejection::QueryRejection},
    response::Response,
};
use gloveport_protocol::browser::{
    BrowserAct, BrowserStatus, NavigateRequest, PageView, PdfRequest, ScreenshotRequest, StorageState,
};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::{error::ApiError, parse};
use crate::{
    answer::{self, with_type},
    app::App,
    body,
    docs::Binary,
    route::Route,
};
use handle::{browser, used};
pub(crate) use view::lets_in_itself;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/browser", status),
        Route::post("/v1/browser/start", start),
        Route::get("/v1/browser/page", page),
        Route::post("/v1/browser/navigate", navigate),
        Route::post("/v1/browser/act", act),
        Route::get("/v1/browser/markdown", markdown),
        Route::post("/v1/browser/screenshot", screenshot),
        Route::post("/v1/browser/pdf", pdf),
        Route::get("/v1/browser/har", har),
        Route::get("/v1/browser/console", console),
        Route::get("/v1/browser/network", network),
        Route::get("/v1/browser/storage", storage),
        Route::put("/v1/browser/storage", set_storage),
        Route::get(live::PATH, live::live),
        Route::get(view::PATH, view::view),
        Route::get(cdp::PATH, cdp::cdp),
        Route::get("/v1/browser/cdp/json/version", cdp::version),
        Route::get("/v1/browser/cdp/json/version/", cdp::version_with_slash),
    ]
}

/// What the document of the interface says of these.
#[cfg(test)]
#[derive(utoipa::OpenApi)]
#[openapi(
    paths(
        status,
        start,
        page,
        navigate,
        act,
        markdown,
        screenshot,
        pdf,
        har,
        console,
        network,
        storage,
        set_storage,
        live::live,
        view::view,
        cdp::cdp,
        cdp::version,
        cdp::version_with_slash
    ),
    components(schemas(Binary))
)]
pub(super) struct Operations;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SinceQuery {
    /// Entries before this one are left out: the `next` of an answer before, or 0.
    #[serde(default)]
    #[param(default = 0)]
    since: u64,
}

/// What there is since a question before. Entries that are no longer kept are left out.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BrowserConsole)]
struct Console {
    /// The `since` of the next question.
    next: u64,
    /// What pages wrote, oldest first.
    #[schema(value_type = Vec<ConsoleLine>)]
    entries: Vec<Value>,
}

/// What there is since a question before. Entries that are no longer kept are left out.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BrowserNetwork)]
struct Network {
    /// The `since` of the next question.
    next: u64,
    /// What pages fetched, oldest first.
    #[schema(value_type = Vec<NetworkRequest>)]
    entries: Vec<Value>,
}

/// A line of a page's console.
#[derive(ToSchema)]
#[schema(as = BrowserConsoleEntry)]
#[expect(dead_code, reason = "it stands for an entry in the document of the interface")]
struct ConsoleLine {
    /// `log`, `info`, `warning`, `error`, `exception` and others.
    level: String,
    /// What was written.
    text: String,
    /// The address of the page or the script.
    url: String,
}

/// Something that a page fetched. `GET /v1/browser/har` has all of it.
#[derive(ToSchema)]
#[schema(as = BrowserNetworkEntry)]
#[expect(dead_code, reason = "it stands for an entry in the document of the interface")]
struct NetworkRequest {
    /// `GET` and others.
    method: String,
    /// Its address.
    url: String,
    /// What it is for: `Document`, `Script`, `XHR` and others.
    kind: String,
    /// Status of the answer.
    status: Option<i64>,
    /// Why it failed.
    error: Option<String>,
}

#[utoipa::path(
    get,
    path = "/v1/browser",
    tag = "browser",
    operation_id = "get_browser",
    summary = "Tell how the browser stands",
    description = "This does not start it.",
    responses((status = 200, description = "How it stands.", body = BrowserStatus)),
)]
async fn status(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    Ok(answer::json(StatusCode::OK, &status::of(browser(&app)?).await))
}

#[utoipa::path(
    post,
    path = "/v1/browser/start",
    tag = "browser",
    operation_id = "start_browser",
    summary = "Start the browser",
    description = "It also starts with its first use. Starting one that is up is not an error.",
    responses((status = 200, description = "It is up.", body = BrowserStatus)),
)]
async fn start(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let browser = used(&app)?;
    browser.start().await?;
    Ok(answer::json(StatusCode::OK, &status::of(browser).await))
}

#[utoipa::path(
    get,
    path = "/v1/browser/page",
    tag = "browser",
    operation_id = "get_page",
    summary = "Tell what the active page is like",
    description = "The tree has the ids by which elements are named in acts.",
    responses((status = 200, description = "The page.", body = PageView)),
)]
async fn page(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    Ok(answer::json(StatusCode::OK, &used(&app)?.view().await?))
}

#[utoipa::path(
    post,
    path = "/v1/browser/navigate",
    tag = "browser",
    operation_id = "navigate",
    summary = "Lead the active page somewhere, or open another one",
    description = "That the address could not be opened is told in `error` of the page that is then to be seen.",
    request_body = NavigateRequest,
    responses((status = 200, description = "The page.", body = PageView)),
)]
async fn navigate(State(app): State<Arc<App>>, body: Body) -> Result<Response, ApiError> {
    let request: NavigateRequest = parse(&app, body).await?;
    Ok(answer::json(StatusCode::OK, &used(&app)?.navigate(request).await?))
}

#[utoipa::path(
    post,
    path = "/v1/browser/act",
    tag = "browser",
    operation_id = "act",
    summary = "Do one thing in the active page",
    description = "What it lacked is told in `error` of the page as it is then.",
    request_body = BrowserAct,
    responses((status = 200, description = "The page.", body = PageView)),
)]
async fn act(State(app): State<Arc<App>>, body: Body) -> Result<Response, ApiError> {
    let act: BrowserAct = parse(&app, body).await?;
    Ok(answer::json(StatusCode::OK, &used(&app)?.act(act).await?))
}

#[utoipa::path(
    get,
    path = "/v1/browser/markdown",
    tag = "browser",
    operation_id = "get_markdown",
    summary = "Read the active page as text",
    responses((status = 200, description = "Its text.", body = String, content_type = "text/markdown")),
)]
async fn markdown(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let text = used(&app)?.markdown().await?;
    Ok(with_type(StatusCode::OK, "text/markdown; charset=utf-8", text))
}

#[utoipa::path(
    post,
    path = "/v1/browser/screenshot",
    tag = "browser",
    operation_id = "take_screenshot",
    summary = "Take a picture of the active page",
    request_body = ScreenshotRequest,
    responses((status = 200, description = "The picture.", body = Binary, content_type = "image/png")),
)]
async fn screenshot(State(app): State<Arc<App>>, body: Body) -> Result<Response, ApiError> {
    let request: ScreenshotRequest = parse(&app, body).await?;
    Ok(with_type(StatusCode::OK, "image/png", used(&app)?.screenshot(request).await?))
}

#[utoipa::path(
    post,
    path = "/v1/browser/pdf",
    tag = "browser",
    operation_id = "print_page",
    summary = "Print the active page",
    request_body = PdfRequest,
    responses((status = 200, description = "The pages.", body = Binary, content_type = "application/pdf")),
)]
async fn pdf(State(app): State<Arc<App>>, body: Body) -> Result<Response, ApiError> {
    let request: PdfRequest = parse(&app, body).await?;
    Ok(with_type(StatusCode::OK, "application/pdf", used(&app)?.pdf(request).await?))
}

#[utoipa::path(
    get,
    path = "/v1/browser/har",
    tag = "browser",
    operation_id = "get_har",
    summary = "Read what the last action fetched as an HTTP archive",
    description = "HAR 1.2, without the values of headers that are secrets.",
    responses((status = 200, description = "The archive.", body = Object)),
)]
async fn har(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    Ok(answer::json(StatusCode::OK, &used(&app)?.har().await?))
}

#[utoipa::path(
    get,
    path = "/v1/browser/console",
    tag = "browser",
    operation_id = "read_console",
    summary = "Read what pages wrote to their consoles",
    params(SinceQuery),
    responses((status = 200, description = "The entries.", body = Console)),
)]
async fn console(
    State(app): State<Arc<App>>,
    query: Result<Query<SinceQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(SinceQuery { since }) = query?;
    let (next, entries) = used(&app)?.console(since).await?;
    Ok(answer::json(StatusCode::OK, &Console { next, entries: values(&entries) }))
}

#[utoipa::path(
    get,
    path = "/v1/browser/network",
    tag = "browser",
    operation_id = "read_network",
    summary = "Read what pages fetched",
    params(SinceQuery),
    responses((status = 200, description = "The entries.", body = Network)),
)]
async fn network(
    State(app): State<Arc<App>>,
    query: Result<Query<SinceQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(SinceQuery { since }) = query?;
    let (next, entries) = used(&app)?.network(since).await?;
    Ok(answer::json(StatusCode::OK, &Network { next, entries: values(&entries) }))
}

#[utoipa::path(
    get,
    path = "/v1/browser/storage",
    tag = "browser",
    operation_id = "get_browser_storage",
    summary = "Read cookies and local storage",
    description = "In the form of Playwright's storage state.",
    responses((status = 200, description = "They.", body = StorageState)),
)]
async fn storage(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    Ok(answer::json(StatusCode::OK, &used(&app)?.storage().await?))
}

#[utoipa::path(
    put,
    path = "/v1/browser/storage",
    tag = "browser",
    operation_id = "put_browser_storage",
    summary = "Set cookies and local storage",
    description = "A state of before, so that a login need not be repeated. If any of it is wrong nothing changes.",
    request_body = StorageState,
    responses((status = 200, description = "They are set.", body = BrowserStatus)),
)]
async fn set_storage(State(app): State<Arc<App>>, body: Body) -> Result<Response, ApiError> {
    // What pages store may be larger than what people write.
    let state: StorageState = body::json(body, &app.options.limits).await?;
    let browser = used(&app)?;
    browser.set_storage(state).await?;
    Ok(answer::json(StatusCode::OK, &status::of(browser).await))
}

fn values(entries: &[impl Serialize]) -> Vec<Value> {
    entries.iter().map(|entry| serde_json::to_value(entry).unwrap_or_default()).collect()
}
