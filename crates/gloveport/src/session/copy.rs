//! `gloveport session cp`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use gloveport_platform::{archived_name, path_of_name};
use gloveport_protocol::{
    Action, ErrorObservation, EventSource, Observation, ReadAction, ReadObservation, WriteAction, WriteObservation,
};
use gloveport_runtime::Begun;

use super::{arguments::CopyArgs, handling::Handling, operations, runtimes::Runtimes};
use crate::{
    approve,
    exit::{INTERRUPTED, WRONG_COMMAND_LINE},
    explained,
    files::{End, copy_between},
    operate::NOT_KEPT,
    output::print_json,
    signals,
};

/// One side of the copy.
#[derive(Debug, PartialEq, Eq)]
enum Side {
    /// A session and a path in it.
    Session(String, PathBuf),
    /// A path on this machine, or a stream.
    Here(End),
}

impl Side {
    /// `ID:PATH`, where the id has no slash; a path of this machine with a colon can be written as `./a:b`.
    fn parse(path: &Path) -> anyhow::Result<Self> {
        let bytes = archived_name(path);
        if *bytes == *b"-" {
            return Ok(Self::Here(End::Stream));
        }
        let Some(colon) = bytes.iter().position(|byte| *byte == b':') else {
            return Ok(Self::Here(End::Here(path.to_owned())));
        };
        let (id, rest) = (bytes.get(..colon).unwrap_or_default(), bytes.get(colon + 1..).unwrap_or_default());
        // A path with a drive of Windows is absolute, too.
        if id.contains(&b'/') || path.is_absolute() {
            return Ok(Self::Here(End::Here(path.to_owned())));
        }
        let id = String::from_utf8_lossy(id).into_owned();
        anyhow::ensure!(!id.is_empty(), "`{}` names no session; write ID:PATH", path.display());
        anyhow::ensure!(!rest.is_empty(), "`{id}:` names no path in the session; `{id}:.` is where its tools start");
        Ok(Self::Session(id, path_of_name(rest).into_owned()))
    }
}

pub(super) async fn copy(runtimes: &Runtimes, arguments: CopyArgs) -> anyhow::Result<ExitCode> {
    let (id, source, destination) = match (Side::parse(&arguments.source)?, Side::parse(&arguments.destination)?) {
        (Side::Session(id, from), Side::Here(to)) => (id, End::Sandbox(from), to),
        (Side::Here(from), Side::Session(id, to)) => (id, from, End::Sandbox(to)),
        (Side::Session(..), Side::Session(..)) => anyhow::bail!(
            "both paths are in sessions; copy through a pipe: gloveport session cp ID:PATH - | gloveport session cp - ID:PATH"
        ),
        (Side::Here(_), Side::Here(_)) => {
            anyhow::bail!("no path is in a session; write the one that is as ID:PATH")
        }
    };
    if let Some(error) = destination.mixes_with_json().filter(|_| arguments.json) {
        error.print()?;
        return Ok(ExitCode::from(WRONG_COMMAND_LINE));
    }
    let mut found = runtimes.find(&id).await?;
    let client = found.client().await?;
    let handling = Handling {
        approve: arguments.approve,
        input_is_taken: source == End::Stream,
        unrecorded: arguments.no_history,
    };
    let operations = operations::of_session(runtimes, &client, &found, handling).await?;
    let operation = match operations.begin(action(&source, &destination), EventSource::User).await? {
        Begun::Allowed(operation) => operation,
        Begun::Refused(refused) => return approve::refused(&refused, arguments.json),
    };
    let done = observation(&source, &destination);
    // Once a question was asked, C-c no longer ends this process by itself.
    let mut interrupts = signals::interrupts()?;
    let copied = tokio::select! {
        copied = copy_between(&client, source, destination, arguments.quiet) => copied,
        () = interrupts.recv() => {
            operation.finish(failed("the copy was interrupted")).await?;
            return Ok(ExitCode::from(INTERRUPTED));
        }
    };
    match copied {
        Ok(copied) => {
            operation.finish(done).await?;
            if arguments.json {
                print_json(&copied)?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            operation.finish(failed(&explained(&error))).await?;
            Err(error)
        }
    }
}

/// The copy as the history has it: what is in the files is left out, since they may be secret and are often large.
fn action(source: &End, destination: &End) -> Action {
    match (source, destination) {
        (End::Sandbox(from), _) => Action::Read(ReadAction::new(from.to_string_lossy())),
        (_, to) => Action::Write(WriteAction::new(name(to), format!("[copied from {}; {NOT_KEPT}]", name(source)))),
    }
}

fn observation(source: &End, destination: &End) -> Observation {
    match (source, destination) {
        (End::Sandbox(from), to) => Observation::Read(ReadObservation::new(
            format!("[copied to {}; {NOT_KEPT}]", name(to)),
            from.to_string_lossy(),
        )),
        (_, to) => Observation::Write(WriteObservation::new("", name(to))),
    }
}

fn failed(reason: &str) -> Observation {
    Observation::Error(ErrorObservation::new(format!("The copy failed: {reason}")))
}

/// One end of a copy, for people.
fn name(end: &End) -> String {
    match end {
        End::Stream => "a stream of the user".to_owned(),
        End::Here(path) => format!("{} of the user's machine", path.display()),
        End::Sandbox(path) => path.to_string_lossy().into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_session_stands_before_a_colon() {
        let session = |id: &str, path: &str| Some(Side::Session(id.to_owned(), path.into()));
        let here = |path: &str| Some(Side::Here(End::Here(path.into())));
        for (text, expected) in [
            ("s:/a", session("s", "/a")),
            ("s:a:b", session("s", "a:b")),
            ("s:.", session("s", ".")),
            ("-", Some(Side::Here(End::Stream))),
            ("./a:b", here("./a:b")),
            ("/a:b", here("/a:b")),
            ("a", here("a")),
            (":/a", None),
            ("s:", None),
        ] {
            assert_eq!(Side::parse(Path::new(text)).ok(), expected, "{text}");
        }
    }
}
