//! What processes do, as the agent tells it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::{StreamExt as _, stream};
use gloveport_client::{AttachedTerminal, ProcessOutput, TerminalEvent};
use gloveport_protocol::{
    processes::{ProcessEnd, ProcessEvent, ProcessStream},
    terminals::TerminalExit,
};
use serde_json::{Value, json};

use crate::connect::{Code, ConnectError, Events};

/// A message that says nothing.
pub(super) fn keep_alive() -> Value {
    json!({"event": {"keepalive": {}}})
}

fn start(pid: u32) -> Value {
    json!({"event": {"start": {"pid": pid}}})
}

fn data(stream: &str, bytes: &[u8]) -> Value {
    json!({"event": {"data": {stream: STANDARD.encode(bytes)}}})
}

/// As Go tells it, which is what clients have come to know.
fn end(code: Option<i32>, signal: Option<i32>) -> Value {
    let status = match (code, signal) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal: {}", signal_word(signal)),
        (None, None) => "unknown".to_owned(),
    };
    let mut end = json!({"exitCode": code.unwrap_or(-1), "exited": code.is_some(), "status": status});
    if code != Some(0) {
        end["error"] = status.into();
    }
    json!({"event": {"end": end}})
}

fn signal_word(signal: i32) -> String {
    match signal {
        1 => "hangup".to_owned(),
        2 => "interrupt".to_owned(),
        6 => "aborted".to_owned(),
        9 => "killed".to_owned(),
        11 => "segmentation fault".to_owned(),
        13 => "broken pipe".to_owned(),
        15 => "terminated".to_owned(),
        other => format!("signal {other}"),
    }
}

/// What a process with pipes does.
pub(super) fn of_pipes(pid: u32, output: ProcessOutput) -> Events {
    let told = stream::try_unfold(Some(output), async |state| {
        let Some(mut output) = state else { return Ok(None) };
        match output.next().await? {
            Some(ProcessEvent::Output { stream, bytes }) => {
                let name = if stream == ProcessStream::Stdout { "stdout" } else { "stderr" };
                Ok(Some((data(name, &bytes), Some(output))))
            }
            Some(ProcessEvent::Lost(count)) => {
                let note = format!("\n[{count} bytes of output were lost here, because they were not read in time]\n");
                Ok(Some((data("stderr", note.as_bytes()), Some(output))))
            }
            Some(ProcessEvent::Ended(ProcessEnd { timed_out: true, .. })) => {
                Err(ConnectError::new(Code::DeadlineExceeded, "the time of the process is over, and it was ended"))
            }
            Some(ProcessEvent::Ended(ProcessEnd { exit_code, signal, .. })) => Ok(Some((end(exit_code, signal), None))),
            None => Ok(None),
        }
    });
    first(pid, told.boxed())
}

/// What a process on a terminal does.
pub(super) fn of_terminal(pid: u32, terminal: AttachedTerminal) -> Events {
    let told = stream::try_unfold(Some(terminal), async |state| {
        let Some(mut terminal) = state else { return Ok(None) };
        loop {
            match terminal.next().await? {
                Some(TerminalEvent::Output { bytes, .. }) => return Ok(Some((data("pty", &bytes), Some(terminal)))),
                Some(TerminalEvent::Ended(TerminalExit { exit_code, signal })) => {
                    let code = signal.is_none().then_some(exit_code);
                    return Ok(Some((end(code, signal), None)));
                }
                Some(_) => {}
                None => return Ok(None),
            }
        }
    });
    first(pid, told.boxed())
}

fn first(pid: u32, rest: Events) -> Events {
    stream::once(std::future::ready(Ok(start(pid)))).chain(rest).boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told_as_go_tells_them() {
        for (code, signal, expected) in [
            (Some(0), None, json!({"exitCode": 0, "exited": true, "status": "exit status 0"})),
            (
                Some(3),
                None,
                json!({"exitCode": 3, "exited": true, "status": "exit status 3", "error": "exit status 3"}),
            ),
            (
                None,
                Some(9),
                json!({"exitCode": -1, "exited": false, "status": "signal: killed", "error": "signal: killed"}),
            ),
        ] {
            assert_eq!(end(code, signal)["event"]["end"], expected);
        }
    }
}
