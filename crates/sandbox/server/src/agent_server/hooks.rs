//! `/api/hooks` (`agent-server-workspace-api` §7): what a project wants to be run beside its agent.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
    sync::Arc,
};

use axum::{body::Body, extract::State, response::Response};
use gloveport_sys::replace;
use http::StatusCode;
use serde_json::{Map, Value, json};
use tokio::task::spawn_blocking;

use super::answers::{invalid, wrong};
use crate::{answer, app::App, body, route::Route};

/// Where a project has them.
const FILE: &str = ".openhands/hooks.json";
/// Largest file of them, in bytes.
const LARGEST: u64 = 1024 * 1024;
/// Their events, in both of the forms that a file may have.
const EVENTS: [(&str, &str); 6] = [
    ("pre_tool_use", "PreToolUse"),
    ("post_tool_use", "PostToolUse"),
    ("user_prompt_submit", "UserPromptSubmit"),
    ("session_start", "SessionStart"),
    ("session_end", "SessionEnd"),
    ("stop", "Stop"),
];

pub(super) fn routes() -> Vec<Route> {
    vec![Route::post("/api/hooks", hooks)]
}

async fn hooks(State(app): State<Arc<App>>, body: Body) -> Response {
    app.action_arrived();
    let limits = &app.options.limits;
    let bytes = match body::text_of_json(limits.json_body, body, limits).await {
        Ok(bytes) => bytes,
        Err(error) => return error.answer(),
    };
    let value: Value = match serde_json::from_slice(&bytes) {
        Ok(value) => value,
        Err(error) => {
            return invalid(&[json!({"type": "json_invalid", "loc": ["body", error.column()],
                "msg": "JSON decode error", "input": {}, "ctx": {"error": error.to_string()}})]);
        }
    };
    let directory = match value.get("project_dir") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(other) => {
            return invalid(&[wrong("string_type", "body", "project_dir", "Input should be a valid string", other)]);
        }
    };
    let found = spawn_blocking(move || directory.and_then(|directory| of_project(Path::new(&directory)))).await;
    answer::json(StatusCode::OK, &json!({"hook_config": found.ok().flatten()}))
}

/// The hooks of a project; none if its file is missing, empty or broken.
fn of_project(directory: &Path) -> Option<Value> {
    let text = read(&directory.join(FILE)).ok()?;
    normalized(&serde_json::from_slice(&text).ok()?)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file: File = replace::open_to_read(path)?;
    let mut text = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut text)?;
    if text.len() as u64 > LARGEST {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(text)
}

/// All events in one form, each hook with all of its fields.
fn normalized(file: &Value) -> Option<Value> {
    let whole = file.as_object()?;
    let given = match whole.get("hooks") {
        Some(inner) if whole.len() == 1 => inner.as_object()?,
        Some(_) => return None,
        None => whole,
    };
    if given.is_empty() {
        return None;
    }
    let is_known = |key: &String| EVENTS.iter().any(|(snake, camel)| key == snake || key == camel);
    if !given.keys().all(is_known) {
        return None;
    }
    let mut all = Map::new();
    for (snake, camel) in EVENTS {
        let matchers = match (given.get(snake), given.get(camel)) {
            (Some(_), Some(_)) => return None,
            (Some(one), None) | (None, Some(one)) => one.as_array()?.iter().map(matcher).collect::<Option<Vec<_>>>()?,
            (None, None) => Vec::new(),
        };
        all.insert(snake.to_owned(), matchers.into());
    }
    Some(all.into())
}

fn matcher(given: &Value) -> Option<Value> {
    let given = given.as_object()?;
    let pattern = given.get("matcher").map_or(Some("*"), Value::as_str)?;
    let hooks = match given.get("hooks") {
        Some(hooks) => hooks.as_array()?.iter().map(hook).collect::<Option<Vec<_>>>()?,
        None => Vec::new(),
    };
    Some(json!({"matcher": pattern, "hooks": hooks}))
}

fn hook(given: &Value) -> Option<Value> {
    let given = given.as_object()?;
    let mut whole = json!({"type": "command", "name": null, "command": "", "prompt": null, "system_prompt": null,
        "tools": [], "timeout": 60, "max_iterations": 3, "async": false});
    for (name, value) in whole.as_object_mut()? {
        let other = if name == "async" { given.get("async_") } else { None };
        if let Some(given) = given.get(name.as_str()).or(other) {
            if !(value.is_null() && given.is_string() || given.is_null() && value.is_null() || same_kind(value, given))
            {
                return None;
            }
            *value = given.clone();
        }
    }
    Some(whole)
}

/// Whether two values are of one kind.
fn same_kind(one: &Value, other: &Value) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_have_one_form_and_what_is_broken_is_nothing() {
        let one = json!({"PreToolUse": [{"hooks": [{"command": "x", "timeout": 5}]}]});
        for file in [one.clone(), json!({"hooks": one})] {
            let all = normalized(&file).unwrap();
            assert_eq!(all.as_object().unwrap().len(), 6);
            assert_eq!(all["stop"], json!([]));
            assert_eq!(
                all["pre_tool_use"],
                json!([{"matcher": "*", "hooks": [{"type": "command", "name": null, "command": "x", "prompt": null,
                    "system_prompt": null, "tools": [], "timeout": 5, "max_iterations": 3, "async": false}]}])
            );
        }
        for broken in [
            json!([]),
            json!({}),
            json!({"other": []}),
            json!({"stop": [], "Stop": []}),
            json!({"stop": [{"hooks": [{"command": 5}]}]}),
            json!({"stop": {}}),
        ] {
            assert_eq!(normalized(&broken), None, "{broken}");
        }
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(of_project(directory.path()), None);
        std::fs::create_dir(directory.path().join(".openhands")).unwrap();
        let file = directory.path().join(FILE);
        std::fs::write(&file, "{").unwrap();
        assert_eq!(of_project(directory.path()), None);
        std::fs::write(&file, r#"{"stop": []}"#).unwrap();
        assert!(of_project(directory.path()).is_some());
    }
}
