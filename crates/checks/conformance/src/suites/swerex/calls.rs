//! What is asked of a server of SWE-ReX, and what it answers.

use serde_json::{Value, json};

use crate::{Check, check::Expect, server::Request};

/// Seconds after which a command of a check is given up.
const LIMIT: f64 = 20.0;

/// A value with more members.
fn with(mut value: Value, more: &Value) -> Value {
    if let (Some(members), Some(more)) = (value.as_object_mut(), more.as_object()) {
        members.extend(more.clone());
    }
    value
}

/// Makes the session of the check, with more members of the request. It reads the file of [`quiet`].
pub(super) fn create_with(more: &Value) -> Request {
    let body = json!({
        "session": "{session}", "startup_source": ["{dir}/.quiet"], "startup_timeout": LIMIT, "session_type": "bash",
    });
    Request::json("/create_session", &with(body, more))
}

/// A check with a file that makes sessions of the reference the same everywhere: where bash marks what is pasted, the
/// marks leave line ends in its outputs.
pub(super) fn quiet(id: &'static str, title: &'static str, spec: &'static str) -> Check {
    Check::new(id, title, spec).file(".quiet", "bind 'set enable-bracketed-paste off' 2>/dev/null\n")
}

/// A check that begins with a session of its own.
pub(super) fn in_session(id: &'static str, title: &'static str, spec: &'static str) -> Check {
    quiet(id, title, spec).send(create_with(&json!({})), Expect::status(200).at("/session_type", "bash"))
}

/// A command of the session whose exit code is in the answer, with more members of the request.
pub(super) fn run_with(command: &str, more: &Value) -> Request {
    let body = json!({
        "command": command, "session": "{session}", "timeout": LIMIT, "check": "silent", "action_type": "bash",
    });
    Request::json("/run_in_session", &with(body, more))
}

/// A command of the session whose exit code is in the answer.
pub(super) fn run(command: &str) -> Request {
    run_with(command, &json!({}))
}

/// A text for the program that the session talks to, which is awaited by these expressions.
pub(super) fn talk(text: &str, expect: &[&str]) -> Request {
    run_with(text, &json!({"is_interactive_command": true, "expect": expect}))
}

/// An interrupt of the session.
pub(super) fn interrupt() -> Request {
    let body = json!({"session": "{session}", "timeout": 1, "n_retry": 5, "action_type": "bash_interrupt"});
    Request::json("/run_in_session", &body)
}

/// Closes a session.
pub(super) fn close(session: &str) -> Request {
    Request::json("/close_session", &json!({"session": session, "session_type": "bash"}))
}

/// A command beside the sessions, a text or a list, with more members of the request.
pub(super) fn execute(command: impl Into<Value>, more: &Value) -> Request {
    Request::json("/execute", &with(json!({"command": command.into(), "timeout": LIMIT}), more))
}

/// A command of a shell beside the sessions.
pub(super) fn shell(command: &str) -> Request {
    execute(command, &json!({"shell": true}))
}

/// What a command of a session answers.
pub(super) fn gives(output: &str, exit: impl Into<Value>) -> Expect {
    ended(exit).is("/output", output)
}

/// What a command of a session answers, with any output.
pub(super) fn ended(exit: impl Into<Value>) -> Expect {
    Expect::status(200).at("/exit_code", exit).at("/failure_reason", "").at("/session_type", "bash")
}

/// What a command beside the sessions answers.
pub(super) fn printed(stdout: &str, stderr: &str, exit: i64) -> Expect {
    Expect::whole(json!({"stdout": stdout, "stderr": stderr, "exit_code": exit}))
}

/// An exception of SWE-ReX.
pub(super) fn raised(class: &str) -> Expect {
    raised_as(&format!("swerex.exceptions.{class}"))
}

/// An exception of this class.
pub(super) fn raised_as(class: &str) -> Expect {
    Expect::status(511).at("/swerexception/class_path", class)
}

/// An exception with this message.
pub(super) fn says(class: &str, message: &str) -> Expect {
    raised(class).is("/swerexception/message", message)
}

/// What `seq` prints.
pub(super) fn numbers(last: u32) -> String {
    let mut lines: Vec<String> = (1..=last).map(|number| number.to_string()).collect();
    lines.push(String::new());
    lines.join("\n")
}
