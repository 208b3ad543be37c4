//! One operation of a session that is done at once: rated, asked about, done, and written down with what came of it.

use gloveport_protocol::{
    Action, ErrorObservation, EventSource, Observation, ObservationEvent, WriteAction,
    truncate::{CONTENT_LIMIT, truncate_content},
};
use gloveport_runtime::{Begun, Operations, Refused};

use crate::{explained, signals};

/// What is said of contents that are not in the history.
pub(crate) const NOT_KEPT: &str = "the history does not keep what it contains";
/// Most bytes of a file's new content that the history keeps.
const MOST: usize = 1024 * 1024;

/// What became of an operation.
#[derive(Debug)]
pub(crate) enum Done {
    /// It was done, and this came of it.
    Came(Box<ObservationEvent>),
    /// It was not done.
    Refused(Box<Refused>),
    /// The person has given it up.
    Interrupted,
}

/// Does something as an operation. C-c gives it up.
pub(crate) async fn operate(
    operations: &Operations,
    action: Action,
    work: impl Future<Output = anyhow::Result<Observation>>,
) -> anyhow::Result<Done> {
    let operation = match operations.begin(action, EventSource::User).await? {
        Begun::Allowed(operation) => operation,
        Begun::Refused(refused) => return Ok(Done::Refused(refused)),
    };
    // Once a question was asked, C-c no longer ends this process by itself.
    let mut interrupts = signals::interrupts()?;
    let worked = tokio::select! {
        worked = work => worked,
        () = interrupts.recv() => {
            operation.finish(failed("the user has interrupted it")).await?;
            return Ok(Done::Interrupted);
        }
    };
    match worked {
        Ok(observation) => {
            let mut event = operation.finish(bounded(&observation)).await?;
            event.observation = observation;
            Ok(Done::Came(Box::new(event)))
        }
        Err(error) => {
            operation.finish(failed(&explained(&error))).await?;
            Err(error)
        }
    }
}

fn failed(reason: &str) -> Observation {
    Observation::Error(ErrorObservation::new(format!("It failed: {reason}")))
}

/// The observation as long as agents see it.
pub(crate) fn bounded(observation: &Observation) -> Observation {
    let mut observation = observation.clone();
    let short = |text: &mut String| {
        if let std::borrow::Cow::Owned(short) = truncate_content(text, CONTENT_LIMIT) {
            *text = short;
        }
    };
    match &mut observation {
        Observation::Read(read) => short(&mut read.content),
        Observation::RunIpython(cell) => short(&mut cell.content),
        Observation::Edit(edit) => {
            short(&mut edit.content);
            edit.diff.iter_mut().for_each(short);
        }
        _ => {}
    }
    observation
}

/// A file that is written whole, as the history has it.
pub(crate) fn writing(path: &str, content: &[u8]) -> Action {
    let size = content.len();
    let text = match std::str::from_utf8(content) {
        // The action ends the last line itself.
        Ok(text) if size <= MOST => text.strip_suffix('\n').unwrap_or(text).to_owned(),
        Ok(_) => format!("[{size} bytes; {NOT_KEPT}]"),
        Err(_) => format!("[{size} bytes that are not UTF-8 text; {NOT_KEPT}]"),
    };
    Action::Write(WriteAction::new(path, text))
}

/// Whether an action writes what the history does not keep, so that it cannot be done again.
pub(crate) fn writes_unknown(action: &Action) -> bool {
    match action {
        Action::Write(write) => {
            let note = write.content.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            note.is_some_and(|note| note.ends_with(NOT_KEPT) && !note.contains('\n'))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use gloveport_protocol::ReadObservation;

    use super::*;

    #[test]
    fn the_history_keeps_text_of_a_usual_size_and_says_what_else_was_written() {
        let content = |bytes: &[u8]| {
            let action = writing("/f", bytes);
            let unknown = writes_unknown(&action);
            let Action::Write(write) = action else { panic!("no write") };
            (write.content, unknown)
        };
        assert_eq!(content(b"text\n"), ("text".to_owned(), false));
        let binary = format!("[2 bytes that are not UTF-8 text; {NOT_KEPT}]");
        assert_eq!(content(b"a\xff"), (binary, true));
        assert_eq!(content(&vec![b'a'; MOST + 1]), (format!("[{} bytes; {NOT_KEPT}]", MOST + 1), true));
    }

    #[test]
    fn an_observation_of_the_history_is_as_long_as_agents_see_it() {
        let long = Observation::Read(ReadObservation::new("x".repeat(2 * CONTENT_LIMIT), "/f"));
        let kept = bounded(&long);
        assert!(kept.content().len() < CONTENT_LIMIT + 100 && kept.content().contains("truncated"));
        let short = Observation::Read(ReadObservation::new("x", "/f"));
        assert_eq!(bounded(&short), short);
    }
}
