//! `/api/git` (`agent-server-workspace-api` §6).

use std::{path::PathBuf, sync::Arc};

use axum::{
    extract::{Path, State},
    response::Response,
};
use gloveport_repository::GitError;
use gloveport_sys::Surroundings;
use http::{StatusCode, Uri};
use serde::Serialize;
use serde_json::Value;

use super::answers::{Parameters, invalid, missing, wrong};
use crate::{answer, app::App, route::Route};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/git/changes", changes),
        Route::get("/api/git/diff", diff),
        Route::get("/api/git/commits", commits),
        Route::get("/api/git/commits/{sha}/changes", commit_changes),
    ]
}

/// What every request of these has.
struct Asked {
    surroundings: Surroundings,
    parameters: Parameters,
    path: PathBuf,
}

impl Asked {
    fn of(app: &App, uri: &Uri) -> Result<Self, Box<Response>> {
        app.action_arrived();
        let parameters = Parameters::of(uri);
        let path = parameters.get("path").map(PathBuf::from);
        let path = path.ok_or_else(|| Box::new(invalid(&[missing("query", "path")])))?;
        let surroundings = app.executor.surroundings();
        let path = surroundings.directory.join(path);
        Ok(Self { surroundings, parameters, path })
    }
}

async fn changes(State(app): State<Arc<App>>, uri: Uri) -> Response {
    let asked = match Asked::of(&app, &uri) {
        Ok(asked) => asked,
        Err(refusal) => return *refusal,
    };
    let reference = asked.parameters.get("ref");
    answered(gloveport_repository::changes(&asked.surroundings, &asked.path, reference).await)
}

async fn diff(State(app): State<Arc<App>>, uri: Uri) -> Response {
    let asked = match Asked::of(&app, &uri) {
        Ok(asked) => asked,
        Err(refusal) => return *refusal,
    };
    let (reference, commit) = (asked.parameters.get("ref"), asked.parameters.get("commit"));
    if let Some(commit) = commit.filter(|commit| !is_sha(commit)) {
        return invalid(&[not_a_sha("query", "commit", commit)]);
    }
    if reference.is_some() && commit.is_some() {
        return answer::detail(StatusCode::BAD_REQUEST, "'ref' and 'commit' are mutually exclusive");
    }
    answered(gloveport_repository::diff(&asked.surroundings, &asked.path, reference, commit).await)
}

async fn commits(State(app): State<Arc<App>>, uri: Uri) -> Response {
    let asked = match Asked::of(&app, &uri) {
        Ok(asked) => asked,
        Err(refusal) => return *refusal,
    };
    let limit = match asked.parameters.number("limit", 50, (1, 200), "greater_than_equal") {
        Ok(limit) => usize::try_from(limit).unwrap_or(1),
        Err(wrong) => return invalid(&[wrong]),
    };
    answered(gloveport_repository::commits(&asked.surroundings, &asked.path, limit).await)
}

async fn commit_changes(State(app): State<Arc<App>>, Path(sha): Path<String>, uri: Uri) -> Response {
    if !is_sha(&sha) {
        return invalid(&[not_a_sha("path", "sha", &sha)]);
    }
    let asked = match Asked::of(&app, &uri) {
        Ok(asked) => asked,
        Err(refusal) => return *refusal,
    };
    answered(gloveport_repository::commit_changes(&asked.surroundings, &asked.path, &sha).await)
}

fn answered<T: Serialize>(found: Result<T, GitError>) -> Response {
    match found {
        Ok(found) => answer::json(StatusCode::OK, &found),
        Err(error) => answer::detail(StatusCode::BAD_REQUEST, error.to_string()),
    }
}

/// Whether this may be the name of a commit.
fn is_sha(text: &str) -> bool {
    (4..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn not_a_sha(place: &str, name: &str, text: &str) -> Value {
    let what = "String should match pattern '^[0-9a-fA-F]{4,64}$'";
    wrong("string_pattern_mismatch", place, name, what, &text.into())
}
