//! The members of [`TerminalStatus`] side by side, as generators of clients understand them. A test compares this with what
//! is sent.

use utoipa::ToSchema;

use super::TerminalStatus;

/// How a terminal stands.
#[derive(ToSchema)]
#[schema(as = TerminalActivity, rename_all = "lowercase")]
#[cfg_attr(test, derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[cfg_attr(not(test), expect(dead_code, reason = "it stands for texts in the document of the interface"))]
enum Activity {
    /// Its program is being started.
    Starting,
    /// Its program runs.
    Running,
    /// Its program ended.
    Ended,
}

/// A terminal as listings show it.
#[derive(ToSchema)]
#[cfg_attr(test, derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(not(test), expect(dead_code, reason = "it stands for another type in the document of the interface"))]
struct Form {
    /// Its id.
    id: String,
    /// Program and arguments.
    argv: Vec<String>,
    /// Directory that the program was started in.
    cwd: String,
    /// Width in characters.
    columns: u16,
    /// Height in characters.
    rows: u16,
    /// Clients that are attached.
    attached: usize,
    /// Offset of the oldest byte of output that is kept.
    start: u64,
    /// Offset behind the last byte of output.
    end: u64,
    /// How it stands.
    state: Activity,
    /// Process id of the program, while it runs.
    #[cfg_attr(test, serde(default, skip_serializing_if = "Option::is_none"))]
    pid: Option<u32>,
    /// Status as a shell reports it, once it has ended: the exit status, or 128 plus the signal; -1 if it is not known.
    #[cfg_attr(test, serde(default, skip_serializing_if = "Option::is_none"))]
    exit_code: Option<i32>,
    /// Number of the signal that ended it; null if it ended by itself.
    #[cfg_attr(test, serde(default, skip_serializing_if = "Option::is_none"))]
    signal: Option<i32>,
}

crate::form::has_form!(TerminalStatus, Form);

#[cfg(test)]
mod tests {
    use serde_json::{from_value, to_value};

    use super::*;
    use crate::terminals::{TerminalExit, TerminalState};

    #[test]
    fn the_form_has_the_members_that_are_sent() {
        for state in [
            TerminalState::Starting,
            TerminalState::Running { pid: 1 },
            TerminalState::Ended(TerminalExit { exit_code: 143, signal: Some(15) }),
        ] {
            let (id, argv, cwd) = ("a".to_owned(), vec!["sh".to_owned()], "/".into());
            let status = TerminalStatus { id, argv, cwd, columns: 80, rows: 24, attached: 0, start: 0, end: 1, state };
            let sent = to_value(&status).unwrap();
            let form: Form = from_value(sent.clone()).unwrap();
            assert_eq!(to_value(&form).unwrap(), sent);
        }
    }
}
