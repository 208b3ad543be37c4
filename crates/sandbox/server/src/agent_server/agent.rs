//! What belongs to an agent: it is passed on to the agent's own server ([`hosted`](super::hosted)), or, without one, these say
//! so.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use http::StatusCode;

use crate::{answer, app::App, route::Route};

/// What to do about it.
const ADVICE: &str = "This server has a sandbox and no agent. Install OpenHands' own server beside it (`pip install \
    openhands-agent-server`), or name its program with GLOVEPORT_AGENT_SERVER; commands, files and git are served here.";

/// Parts of the API below `/api/` that are those of an agent.
const PARTS: [&str; 11] =
    ["acp", "auth", "llm", "mcp", "marketplace", "plugins", "profiles", "settings", "skills", "sub-agents", "tools"];

pub(super) fn routes() -> Vec<Route> {
    let any = |path| Route { method: "any", path, handler: axum::routing::any(conversations) };
    vec![
        any("/api/conversations"),
        any("/api/conversations/{*rest}"),
        any("/v1/{*rest}"),
        Route::get("/api/tools/", tools),
    ]
}

async fn conversations(State(app): State<Arc<App>>, request: Request) -> Response {
    match app.hosted_agent() {
        Some(hosted) => {
            app.action_arrived();
            hosted.pass(request).await
        }
        None => answer::detail(StatusCode::NOT_IMPLEMENTED, ADVICE),
    }
}

/// The tools of the agent, if there is one.
async fn tools(State(app): State<Arc<App>>, request: Request) -> Response {
    match app.hosted_agent() {
        Some(hosted) => {
            app.action_arrived();
            hosted.pass(request).await
        }
        None => answer::json(StatusCode::OK, &[(); 0]),
    }
}

/// What is missing at a path that no route has, if it is a part of an agent.
pub(super) fn missing_part(path: &str) -> Option<String> {
    let part = path.strip_prefix("/api/")?.split('/').next()?;
    PARTS.contains(&part).then(|| format!("/api/{part} is a part of an agent. {ADVICE}"))
}
