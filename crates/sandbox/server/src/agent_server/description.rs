//! `/openapi.json`: what there is, for tools that look for it.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::{keyed, open};
use crate::{answer, app::App, route::Route};

/// What queries of these paths may have; those that end with `!` must be there.
const PARAMETERS: [(&str, &[&str]); 12] = [
    (
        "/api/bash/bash_events/search",
        &[
            "kind__eq",
            "command_id__eq",
            "timestamp__gte",
            "timestamp__lt",
            "order__gt",
            "sort_order",
            "page_id",
            "limit",
        ],
    ),
    ("/api/file/upload", &["path!"]),
    ("/api/file/download", &["path!"]),
    ("/api/file/create_directory", &["path!"]),
    ("/api/file/home", &["include_hidden"]),
    ("/api/file/search_subdirs", &["path!", "page_id", "limit", "include_hidden"]),
    ("/api/file/archive", &["path!", "format", "base_ref", "use_default_excludes", "exclude"]),
    ("/api/git/changes", &["path!", "ref"]),
    ("/api/git/diff", &["path!", "ref", "commit"]),
    ("/api/git/commits", &["path!", "limit"]),
    ("/api/git/commits/{sha}/changes", &["path!"]),
    ("/api/vscode/url", &["base_url", "workspace_dir"]),
];

pub(super) async fn description(State(app): State<Arc<App>>) -> Response {
    answer::json(StatusCode::OK, &document(app.options.version))
}

fn document(version: &str) -> Value {
    let mut paths = Map::new();
    // Sockets, what an agent would have, and what only old clients send are left out.
    let is_told = |route: &Route| {
        !route.path.starts_with("/sockets/") && route.method != "any" && !route.path.contains("{*") && route.path != "/"
    };
    for route in open().into_iter().chain(keyed()).filter(is_told) {
        let known = PARAMETERS.iter().find(|(path, _)| *path == route.path).map_or(&[][..], |(_, names)| names);
        let in_query = known.iter().map(|name| {
            let plain = name.trim_end_matches('!');
            json!({"name": plain, "in": "query", "required": plain != *name, "schema": {}})
        });
        let in_path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let in_path = in_path.map(|name| json!({"name": name, "in": "path", "required": true, "schema": {}}));
        let parameters: Vec<Value> = in_path.chain(in_query).collect();
        let operation = json!({"parameters": parameters, "responses": {"200": {"description": "Successful Response"}}});
        let methods = paths.entry(route.path).or_insert_with(|| json!({}));
        methods[route.method] = operation;
    }
    json!({"openapi": "3.1.0", "info": {"title": "gloveport", "version": version}, "paths": paths})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_with_parameters_is_one_that_is_served() {
        let document = document("1");
        for (path, names) in PARAMETERS {
            let methods = document["paths"][path].as_object().unwrap_or_else(|| panic!("{path}"));
            let told = methods.values().next().unwrap()["parameters"].as_array().unwrap();
            assert!(told.len() >= names.len(), "{path}");
        }
        assert!(document["paths"].get("/sockets/bash-events").is_none());
    }
}
