//! What belongs to an agent: there is none in this server, and these say so.

use axum::response::Response;
use http::StatusCode;

use crate::{answer, route::Route};

/// What to do about it.
const ADVICE: &str = "This server has a sandbox and no agent. Conversations need OpenHands' own agent-server in its place; \
    commands, files and git are served here.";

/// Parts of the API below `/api/` that are those of an agent.
const PARTS: [&str; 11] =
    ["acp", "auth", "llm", "mcp", "marketplace", "plugins", "profiles", "settings", "skills", "sub-agents", "tools"];

pub(super) fn routes() -> Vec<Route> {
    let any = |path| Route { method: "any", path, handler: axum::routing::any(no_agent) };
    vec![
        any("/api/conversations"),
        any("/api/conversations/{*rest}"),
        any("/v1/{*rest}"),
        Route::get("/api/tools/", tools),
    ]
}

async fn no_agent() -> Response {
    answer::detail(StatusCode::NOT_IMPLEMENTED, ADVICE)
}

/// The tools of an agent that is not here.
async fn tools() -> Response {
    answer::json(StatusCode::OK, &[(); 0])
}

/// What is missing at a path that no route has, if it is a part of an agent.
pub(super) fn missing_part(path: &str) -> Option<String> {
    let part = path.strip_prefix("/api/")?.split('/').next()?;
    PARTS.contains(&part).then(|| format!("/api/{part} is a part of an agent. {ADVICE}"))
}
