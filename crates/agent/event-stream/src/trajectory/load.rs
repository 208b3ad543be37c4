//! A trajectory read from a file (event-stream 6.2).

use std::{collections::BTreeSet, path::Path};

use gloveport_protocol::{Action, ActionEvent, Event, EventSource, Observation};
use serde_json::Value;

use super::TrajectoryError;

/// What is to be played again.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// The message that the conversation begins with.
    pub task: ActionEvent,
    /// What comes after it, without what came from the environment.
    pub events: Vec<Event>,
}

/// What was done, also where no conversation began with a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// What there is, without what came from the environment and system prompts before anything else.
    pub events: Vec<Event>,
    /// The number that each of these events had, by which others name it as their cause.
    pub numbers: Vec<Option<i64>>,
    /// The numbers of actions that were refused, and so never executed.
    pub refused: BTreeSet<i64>,
}

/// Reads a trajectory from a file.
pub async fn load(path: &Path) -> Result<Trajectory, TrajectoryError> {
    parse(&text_of(path).await?, &path.display().to_string())
}

/// Reads a trajectory from a file, or a history with one event a line. It need not begin with a message.
pub async fn load_recording(path: &Path) -> Result<Recording, TrajectoryError> {
    parse_recording(&text_of(path).await?, &path.display().to_string())
}

async fn text_of(path: &Path) -> Result<Vec<u8>, TrajectoryError> {
    let place = path.to_owned();
    let read = tokio::task::spawn_blocking(move || read(&place)).await;
    read.unwrap_or_else(|error| {
        Err(TrajectoryError::Io { operation: "read", path: path.to_owned(), source: error.into() })
    })
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
    let mut events = recorded(list(text, name)?, name)?.events.into_iter();
    let found = match events.next() {
        Some(Event::Action(task)) if matches!(task.action, Action::Message(_)) => {
            return Ok(Trajectory { task, events: events.collect() });
        }
        Some(other) => {
            let side = if matches!(other, Event::Action(_)) { "action" } else { "observation" };
            format!("the first event is the {side} '{}'", other.kind())
        }
        None => "there are no events".to_owned(),
    };
    Err(TrajectoryError::NoTask { name: name.to_owned(), found })
}

/// Reads a trajectory from its JSON text, or a history with one event a line. It need not begin with a message.
pub fn parse_recording(text: &[u8], name: &str) -> Result<Recording, TrajectoryError> {
    let values: Result<Vec<Value>, _> = serde_json::Deserializer::from_slice(text).into_iter().collect();
    let is_event = |value: &Value| value.get("action").or_else(|| value.get("observation")).is_some();
    match values {
        Ok(lines) if !lines.is_empty() && lines.iter().all(is_event) => recorded(lines, name),
        _ => recorded(list(text, name)?, name),
    }
}

/// The elements of a JSON list.
fn list(text: &[u8], name: &str) -> Result<Vec<Value>, TrajectoryError> {
    let read = serde_json::from_slice(text);
    match read.map_err(|source| TrajectoryError::Json { name: name.to_owned(), source })? {
        Value::Array(elements) => Ok(elements),
        other => Err(TrajectoryError::NotAList { name: name.to_owned(), found: python_type(&other) }),
    }
}

fn recorded(elements: Vec<Value>, name: &str) -> Result<Recording, TrajectoryError> {
    let (mut events, mut refused) = (Vec::new(), BTreeSet::new());
    for (index, mut element) in elements.into_iter().enumerate() {
        // What has a number cannot be added to a stream.
        let number = element.as_object_mut().and_then(|members| members.shift_remove("id")).and_then(|id| id.as_i64());
        let event = Event::from_value(element).map_err(|error| TrajectoryError::Event {
            name: name.to_owned(),
            index,
            source: Box::new(error),
        })?;
        if let Event::Observation(answer) = &event
            && matches!(answer.observation, Observation::UserRejected(_))
        {
            refused.extend(answer.cause);
        }
        if event.source() != Some(EventSource::Environment) {
            events.push((event, number));
        }
    }
    let is_prompt = |event: &Event| matches!(event, Event::Action(ActionEvent { action: Action::System(_), .. }));
    let (events, numbers) = events.into_iter().skip_while(|(event, _)| is_prompt(event)).unzip();
    Ok(Recording { events, numbers, refused })
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
    }

    #[test]
    fn a_recording_is_a_list_or_has_one_event_a_line_and_needs_no_message() {
        let first = json!({"id": 0, "source": "user", "action": "run", "args": {"command": "ls"}});
        let second = json!({"id": 1, "source": "user", "observation": "run", "content": "x", "cause": 0,
                            "extras": {"command": "ls"}});
        let asked = json!({"id": 2, "source": "environment", "observation": "null", "content": ""});
        let lines = format!("{first}\n{asked}\n{second}\n");
        let list = json!([first, asked, second]).to_string();
        for text in [lines, list] {
            let Recording { events, numbers, refused } = parse_recording(text.as_bytes(), "h").unwrap();
            let kinds: Vec<_> = events.iter().map(|event| (event.kind(), event.id(), event.cause())).collect();
            assert_eq!(kinds, [("run", None, None), ("run", None, Some(0))]);
            assert_eq!(numbers, [Some(0), Some(1)]);
            assert!(refused.is_empty());
        }
        assert_eq!(parse_recording(first.to_string().as_bytes(), "h").unwrap().events.len(), 1);
        for (text, expected) in [
            ("{}", "Expected a list in h, got dict"),
            ("{\"action\": \"run\"}\n[]", "Invalid JSON format in h: "),
            ("", "Invalid JSON format in h: "),
        ] {
            let error = parse_recording(text.as_bytes(), "h").unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_recording_tells_which_actions_were_refused_whoever_refused_them() {
        let list = json!([
            {"id": 4, "source": "agent", "action": "run", "args": {"command": "rm -rf /"}},
            {"id": 5, "source": "environment", "observation": "user_rejected", "content": "no", "cause": 4},
            {"id": 6, "source": "agent", "action": "run", "args": {"command": "ls"}},
            {"id": 7, "source": "agent", "observation": "run", "content": "", "extras": {"command": "ls"}, "cause": 6},
        ]);
        let recording = parse_recording(list.to_string().as_bytes(), "h").unwrap();
        assert_eq!(recording.refused.into_iter().collect::<Vec<_>>(), [4]);
        assert_eq!(recording.numbers, [Some(4), Some(6), Some(7)]);
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
