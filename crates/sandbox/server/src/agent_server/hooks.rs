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

use super::answers::{invalid, no_object, understood, wrong};
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
    let value = match understood(&bytes) {
        Ok(value) if value.is_object() => value,
        Ok(other) => return invalid(&[no_object(&other)]),
        Err(wrong) => return invalid(&[wrong]),
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
        Some(inner) => inner.as_object()?,
        None => whole,
    };
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
    let is_anything = all.values().any(|matchers| matchers.as_array().is_some_and(|matchers| !matchers.is_empty()));
    is_anything.then(|| all.into())
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

/// One hook with all of its fields. A command is run, and a prompt is asked; each needs its text, and has no other.
fn hook(given: &Value) -> Option<Value> {
    let given = given.as_object()?;
    let text = |name: &str| match given.get(name) {
        None | Some(Value::Null) => Some(None),
        Some(Value::String(text)) => Some(Some(text.as_str())),
        Some(_) => None,
    };
    let kind = text("type")?.unwrap_or("command");
    let command = if given.get("command").is_some_and(Value::is_null) { return None } else { text("command")? };
    let (command, prompt) = (command.unwrap_or_default(), text("prompt")?);
    let is_background = given.get("async").or(given.get("async_")).map_or(Some(false), boolean)?;
    let is_whole = match kind {
        "command" => !command.trim().is_empty(),
        "prompt" => prompt.is_some_and(|prompt| !prompt.trim().is_empty()) && command.is_empty() && !is_background,
        "agent" => command.is_empty() && !is_background,
        _ => false,
    };
    let tools = given.get("tools").map_or(Some(Vec::new()), |tools| {
        tools.as_array()?.iter().map(|tool| tool.as_str().map(Value::from)).collect()
    })?;
    is_whole.then_some(())?;
    Some(json!({"type": kind, "name": text("name")?, "command": command, "prompt": prompt,
        "system_prompt": text("system_prompt")?, "tools": tools, "timeout": whole(given.get("timeout"), 60)?,
        "max_iterations": whole(given.get("max_iterations"), 3)?, "async": is_background}))
}

/// A whole number, also as a text.
fn whole(given: Option<&Value>, default: u64) -> Option<u64> {
    match given {
        None => Some(default),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(value) => value.as_u64(),
    }
}

/// A boolean, also as a word.
fn boolean(given: &Value) -> Option<bool> {
    match given {
        Value::String(text) => crate::form::boolean(text),
        other => other.as_bool(),
    }
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
            json!({"stop": []}),
            json!({"stop": [{"hooks": [{"command": 5}]}]}),
            json!({"stop": [{"hooks": [{"command": ""}]}]}),
            json!({"stop": [{"hooks": [{"type": "prompt"}]}]}),
            json!({"stop": [{"hooks": [{"command": "x", "timeout": 0.5}]}]}),
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
        std::fs::write(&file, r#"{"stop": [{"hooks": [{"command": "x", "async": "yes", "timeout": "7"}]}]}"#).unwrap();
        assert!(of_project(directory.path()).is_some());
    }
}
