//! A trajectory read from a file (event-stream 6.2).

use std::path::Path;

use gloveport_protocol::{Action, ActionEvent, Event, EventSource};
use serde_json::Value;

use super::TrajectoryError;

/// What is to be played again.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// The message that the conversation begins with.
    pub task: ActionEvent,
    /// What comes after it, without what came from the environment.
    pub events: Vec<Event>,
    /// The number that each of these events had, by which others name it as their cause.
    pub numbers: Vec<Option<i64>>,
}

/// Reads a trajectory from a file.
pub async fn load(path: &Path) -> Result<Trajectory, TrajectoryError> {
    let place = path.to_owned();
    let read = tokio::task::spawn_blocking(move || read(&place)).await;
    let text = read.unwrap_or_else(|error| {
        Err(TrajectoryError::Io { operation: "read", path: path.to_owned(), source: error.into() })
    })?;
    parse(&text, &path.display().to_string())
}

fn read(path: &Path) -> Result<Vec<u8>, TrajectoryError> {
    let failed = |source| TrajectoryError::Io { operation: "read", path: path.to_owned(), source };
    let whole = std::path::absolute(path).map_err(failed)?;
    let Ok(found) = std::fs::metadata(path) else { return Err(TrajectoryError::NotFound(whole)) };
    if !found.is_file() {
        return Err(TrajectoryError::NotAFile(whole));
    }
    std::fs::read(path).map_err(failed)
}

/// Reads a trajectory from its JSON text. `name` says in errors where it is from.
///
/// System prompts before the first message are left out: the reference saves them and then refuses the file.
pub fn parse(text: &[u8], name: &str) -> Result<Trajectory, TrajectoryError> {
    let name = || name.to_owned();
    let value: Value = serde_json::from_slice(text).map_err(|source| TrajectoryError::Json { name: name(), source })?;
    let Value::Array(elements) = value else {
        return Err(TrajectoryError::NotAList { name: name(), found: python_type(&value) });
    };
    let mut events = Vec::new();
    for (index, mut element) in elements.into_iter().enumerate() {
        // What has a number cannot be added to a stream.
        let number = element.as_object_mut().and_then(|members| members.shift_remove("id")).and_then(|id| id.as_i64());
        let event = Event::from_value(element).map_err(|error| TrajectoryError::Event {
            name: name(),
            index,
            source: Box::new(error),
        })?;
        if event.source() != Some(EventSource::Environment) {
            events.push((event, number));
        }
    }
    let is_prompt = |event: &Event| matches!(event, Event::Action(ActionEvent { action: Action::System(_), .. }));
    let mut events = events.into_iter().skip_while(|(event, _)| is_prompt(event));
    match events.next() {
        Some((Event::Action(task), _)) if matches!(task.action, Action::Message(_)) => {
            let (events, numbers) = events.unzip();
            Ok(Trajectory { task, events, numbers })
        }
        Some((other, _)) => {
            let side = if matches!(other, Event::Action(_)) { "action" } else { "observation" };
            let found = format!("the first event is the {side} '{}'", other.kind());
            Err(TrajectoryError::NoTask { name: name(), found })
        }
        None => Err(TrajectoryError::NoTask { name: name(), found: "there are no events".to_owned() }),
    }
}

/// What Python calls the type of a value.
fn python_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(value: &Value) -> Result<Trajectory, String> {
        parse(value.to_string().as_bytes(), "t.json").map_err(|error| error.to_string())
    }

    #[test]
    fn the_first_message_is_the_task_and_the_environment_is_left_out() {
        let trajectory = parsed(&json!([
            {"id": 0, "source": "environment", "observation": "null", "content": ""},
            {"id": 1, "source": "agent", "action": "system", "args": {"content": "prompt"}},
            {"id": 2, "source": "user", "action": "message", "args": {"content": "task"}},
            {"id": 3, "source": "agent", "action": "run", "args": {"command": "ls"}},
            {"id": 4, "source": "agent", "observation": "run", "content": "x", "extras": {"command": "ls"}, "cause": 3},
            {"id": 5, "source": "environment", "observation": "agent_state_changed", "content": "",
             "extras": {"agent_state": "running"}},
            {"id": 6, "action": "finish", "args": {}},
        ]))
        .unwrap();
        assert_eq!(trajectory.task.action.message(), "task");
        assert_eq!(trajectory.task.id, None);
        let kinds: Vec<_> = trajectory.events.iter().map(|event| (event.kind(), event.id())).collect();
        assert_eq!(kinds, [("run", None), ("run", None), ("finish", None)]);
        assert_eq!(trajectory.numbers, [Some(3), Some(4), Some(6)]);
        assert_eq!(trajectory.events[1].cause(), Some(3));
    }

    #[test]
    fn what_is_no_trajectory_is_refused_with_the_reason() {
        for (value, text) in [
            (json!({}), "Expected a list in t.json, got dict"),
            (json!("x"), "Expected a list in t.json, got str"),
            (json!(null), "Expected a list in t.json, got NoneType"),
            (json!([]), "t.json does not begin with a message, which would be the task: there are no events"),
            (
                json!([{"source": "agent", "action": "run", "args": {"command": "ls"}}]),
                "t.json does not begin with a message, which would be the task: the first event is the action 'run'",
            ),
            (json!([1]), "event 0 in t.json cannot be read: an event must be an object, not an integer"),
        ] {
            assert_eq!(parsed(&value).unwrap_err(), text);
        }
        let error = parse(b"[", "t.json").unwrap_err().to_string();
        assert!(error.starts_with("Invalid JSON format in t.json: "), "{error}");
    }

    #[tokio::test]
    async fn a_file_that_is_none_is_refused_with_the_text_of_the_reference() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        assert_eq!(
            load(path).await.unwrap_err().to_string(),
            format!("Trajectory path is a directory, not a file: {}", path.display())
        );
        let path = path.join("t.json");
        assert_eq!(
            load(&path).await.unwrap_err().to_string(),
            format!("Trajectory file not found: {}", path.display())
        );
    }
}
