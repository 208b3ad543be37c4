//! The members of [`ExecStatus`] side by side, as generators of clients understand them: many of those cannot put an object
//! together from alternatives. A test compares this with what is sent.

use utoipa::ToSchema;

use super::{ExecStatus, ExecUsage, Session};

/// Why a native command ended.
#[derive(ToSchema)]
#[schema(as = ExecReason, rename_all = "snake_case")]
#[cfg_attr(test, derive(Debug, PartialEq, serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(not(test), expect(dead_code, reason = "it stands for texts in the document of the interface"))]
pub(super) enum Reason {
    /// By itself.
    Exited,
    /// Its time limit passed.
    TimedOut,
    /// It was given up.
    Cancelled,
    /// A command of the `run` action is running in the main session.
    Refused,
    /// The shell ended with it.
    ShellEnded,
    /// Something failed.
    Failed,
}

/// How a native command stands.
#[derive(ToSchema)]
#[schema(as = ExecActivity, rename_all = "lowercase")]
#[cfg_attr(test, derive(Debug, PartialEq, serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[cfg_attr(not(test), expect(dead_code, reason = "it stands for texts in the document of the interface"))]
enum Activity {
    /// Commands before it run.
    Queued,
    /// It runs.
    Running,
    /// It ended, or was left to itself.
    Ended,
}

/// A command as listings show it.
#[derive(ToSchema)]
#[cfg_attr(test, derive(Debug, PartialEq, serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(not(test), expect(dead_code, reason = "it stands for another type in the document of the interface"))]
struct Form {
    /// Its id.
    id: String,
    /// Its text.
    command: String,
    /// Where it runs.
    session: Session,
    /// How it stands.
    state: Activity,
    /// Offset where its output begins, which is 0; absent while it is queued.
    #[cfg_attr(test, serde(default, skip_serializing_if = "Option::is_none"))]
    start: Option<u64>,
    /// Whether the program in the foreground waits for input; only while it runs.
    #[cfg_attr(test, serde(default, skip_serializing_if = "Option::is_none"))]
    waiting_for_input: Option<bool>,
    /// True while it waits for a line that its terminal does not show, such as a password; else absent.
    #[cfg_attr(test, serde(default, skip_serializing_if = "Option::is_none"))]
    hides_input: Option<bool>,
    /// Exit status; null if there is none. This and all that follows is there once it has ended.
    #[cfg_attr(test, serde(default, skip_serializing_if = "Option::is_none"))]
    exit_code: Option<i32>,
    /// Why it ended.
    #[cfg_attr(test, serde(default, skip_serializing_if = "Option::is_none"))]
    #[schema(nullable = false)]
    reason: Option<Reason>,
    /// What failed, for people.
    #[cfg_attr(test, serde(default, skip_serializing_if = "Option::is_none"))]
    message: Option<String>,
    /// How many bytes it wrote.
    #[cfg_attr(test, serde(default, skip_serializing_if = "Option::is_none"))]
    end: Option<u64>,
    /// Working directory of the shell afterwards.
    #[cfg_attr(test, serde(default, skip_serializing_if = "Option::is_none"))]
    cwd: Option<String>,
    /// What it used.
    #[cfg_attr(test, serde(default, skip_serializing_if = "Option::is_none"))]
    usage: Option<ExecUsage>,
}

crate::form::has_form!(ExecStatus, Form);

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::exec::{ExecEnd, ExecState};

    #[test]
    fn the_form_has_the_members_that_are_sent() {
        let usage =
            ExecUsage { cpu_seconds: 1.0, peak_memory_bytes: Some(1), written_bytes: Some(1), wall_seconds: 1.0 };
        let reasons = ["exited", "timed_out", "cancelled", "refused", "shell_ended", "failed"];
        let ended = reasons.map(|reason| {
            ExecState::Ended(ExecEnd {
                exit_code: Some(0),
                reason: reason.into(),
                message: Some("m".into()),
                start: 0,
                end: 3,
                cwd: "/".into(),
                usage: Some(usage),
            })
        });
        let running = |hides_input| ExecState::Running { start: 0, waiting_for_input: true, hides_input };
        let others = [ExecState::Queued, running(false), running(true)];
        for state in others.into_iter().chain(ended) {
            let status = ExecStatus { id: "a".into(), command: "c".into(), session: Session::New, state };
            let sent = serde_json::to_value(&status).unwrap();
            let form: Form = serde_json::from_value(sent.clone()).unwrap();
            let again: Value = serde_json::to_value(&form).unwrap();
            // As objects: the order of members is free.
            assert_eq!(again, sent);
        }
    }
}
