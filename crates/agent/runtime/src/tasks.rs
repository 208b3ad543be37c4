//! The list of tasks, kept beside the history (runtime-interface 7.1).

use std::fmt::Write as _;

use gloveport_event_stream::{ConversationPaths, StoreError};
use gloveport_protocol::{ErrorObservation, Observation, TaskTrackingAction, TaskTrackingObservation};
use serde_json::Value;

use crate::runtime::Session;

/// Shows or replaces the list.
pub(crate) async fn track(session: &Session, action: &TaskTrackingAction) -> Observation {
    let path = ConversationPaths::new(&session.sid, session.user_id.as_deref()).tasks();
    let told = |content: String, command: &str, task_list: &[Value]| {
        Observation::TaskTracking(TaskTrackingObservation {
            command: command.to_owned(),
            task_list: task_list.to_vec(),
            ..TaskTrackingObservation::new(content)
        })
    };
    let of_stream = session.stream.as_ref().map(|stream| stream.store().files());
    let Some(store) = session.file_store.as_deref().or(of_stream) else {
        return failed(
            "This session keeps no list of tasks: it has neither an event stream nor a file store.".to_owned(),
        );
    };
    match action.command.as_str() {
        "plan" => {
            let text = markdown(&action.task_list);
            match store.write(&path, text.into()).await {
                Ok(()) => {
                    let count = action.task_list.len();
                    let content =
                        format!("Task list has been updated with {count} items. Stored in session directory: {path}");
                    told(content, "plan", &action.task_list)
                }
                Err(error) => failed(format!("Failed to write task list to session directory {path}: {error}")),
            }
        }
        "view" => {
            let content = match store.read(&path).await {
                Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Err(StoreError::NotFound { .. }) => {
                    "No task list found. Use the \"plan\" command to create one.".to_owned()
                }
                Err(error) => {
                    format!("Failed to read the task list from session directory {path}. Error: {error}")
                }
            };
            told(content, "view", &[])
        }
        other => told(format!("Unknown command: {other}"), other, &[]),
    }
}

fn failed(text: String) -> Observation {
    Observation::Error(ErrorObservation::new(text))
}

fn markdown(tasks: &[Value]) -> String {
    let mut text = String::from("# Task List\n\n");
    for (index, task) in tasks.iter().enumerate() {
        let field = |name| task.get(name).and_then(Value::as_str).unwrap_or_default();
        let icon = match field("status") {
            "in_progress" => "🔄",
            "done" => "✅",
            _ => "⏳",
        };
        writeln!(text, "{}. {icon} {}\n{}", index + 1, field("title"), field("notes")).unwrap_or(());
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tasks_are_a_numbered_list_with_marks() {
        let tasks = [
            json!({"title": "one", "status": "todo", "notes": "n"}),
            json!({"title": "two", "status": "in_progress"}),
            json!({"title": "three", "status": "done", "notes": ""}),
            json!({"status": "?"}),
            json!("no object"),
        ];
        let expected = "# Task List\n\n1. ⏳ one\nn\n2. 🔄 two\n\n3. ✅ three\n\n4. ⏳ \n\n5. ⏳ \n\n";
        assert_eq!(markdown(&tasks), expected);
        assert_eq!(markdown(&[]), "# Task List\n\n");
    }
}
