//! Actions and observations as a person would say them, each with a line end at its end.

use gloveport_protocol::{Action, ActionEvent, Observation};

/// What is about to happen.
pub(crate) fn action(action: &ActionEvent) -> String {
    let what = match &action.action {
        Action::Run(run) if run.is_input => format!("> {}", run.command),
        Action::Run(run) => format!("$ {}", run.command),
        Action::RunIpython(cell) => format!(">>> {}", cell.code),
        other => match other.message() {
            message if message.is_empty() => format!("[{}]", other.kind()),
            message => format!("[{}] {message}", other.kind()),
        },
    };
    format!("{what}\n")
}

/// What came of it.
pub(crate) fn observation(observation: &Observation) -> String {
    let content = content(observation);
    let note = match observation {
        Observation::Run(run) if run.metadata.exit_code != 0 => format!("[exit code {}]\n", run.metadata.exit_code),
        Observation::Error(_) => "[error]\n".to_owned(),
        _ => String::new(),
    };
    format!("{content}{note}")
}

/// What it says, with a line end at its end if it says anything.
pub(crate) fn content(observation: &Observation) -> String {
    let content = observation.content();
    let end = if content.is_empty() || content.ends_with('\n') { "" } else { "\n" };
    format!("{content}{end}")
}
