//! The services of plugins under `/plugins/NAME/`.
//!
//! These paths are for browsers, which cannot send the session's key in a header. So beside the key, the token of the
//! plugin lets in, which may be in the URL for once, as `?tkn=` (see [`gloveport_proxy::Admission`]). Who has the key learns it
//! from `GET /v1/plugins`. The check of every other route does not apply to them.
//!
//! The pages of all plugins and the server's interface have one origin. What keeps a page of a plugin from the interface is
//! the key, which no page has, and without a key, that no page is answered there (`auth`).

use std::sync::Arc;

use axum::{
    extract::{Path, Request, State},
    response::Response,
};

use crate::app::App;

/// The paths, for every method.
pub(crate) const PATHS: [&str; 3] = ["/plugins/{name}", "/plugins/{name}/", "/plugins/{name}/{*rest}"];

/// Whether a path is one of these, so that [`Passage::pass`](crate::passage::Passage::pass) checks who asks.
pub(crate) fn owns(path: &str) -> bool {
    // Without a name there is no route that checks, and what has none is answered by nobody's gate.
    path.strip_prefix("/plugins/").is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
}

/// Any request of one of these paths.
pub(crate) async fn serve(
    State(app): State<Arc<App>>,
    Path(parameters): Path<std::collections::BTreeMap<String, String>>,
    request: Request,
) -> Response {
    let name = parameters.get("name").map(String::as_str).unwrap_or_default();
    let plugin = app.executor.plugins().find(name).map(|plugin| &**plugin);
    app.passage.pass(plugin, name, &app.options, &app.stop, request).await
}
