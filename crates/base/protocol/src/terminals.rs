//! Bodies and messages of terminals (`/v1/terminals`).
//!
//! A client is attached over a WebSocket: binary messages are the bytes of the terminal in both directions, and text
//! messages are [`ToTerminal`] and [`FromTerminal`] as JSON.

mod form;

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A request for a terminal with a program on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminalRequest {
    /// Name that the caller chooses: letters, digits, `-`, `_`, `.`; made up if it is absent.
    #[serde(default)]
    #[schema(pattern = "^[A-Za-z0-9._-]{1,128}$", example = "work")]
    pub id: Option<String>,
    /// Program and arguments; the interactive shell of the sandbox's user if it is absent.
    #[serde(default)]
    #[schema(min_items = 1, example = json!(["bash", "-l"]))]
    pub argv: Option<Vec<String>>,
    /// Directory to start in; where the sandbox's shell is if it is absent.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub cwd: Option<PathBuf>,
    /// Variables added to the environment, such as `TERM`.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Width in characters.
    #[serde(default = "default_columns")]
    #[schema(minimum = 1, maximum = 65535)]
    pub columns: u16,
    /// Height in characters.
    #[serde(default = "default_rows")]
    #[schema(minimum = 1, maximum = 65535)]
    pub rows: u16,
}

impl Default for TerminalRequest {
    fn default() -> Self {
        let (columns, rows) = (default_columns(), default_rows());
        Self { id: None, argv: None, cwd: None, env: BTreeMap::new(), columns, rows }
    }
}

fn default_columns() -> u16 {
    80
}

fn default_rows() -> u16 {
    24
}

/// Size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminalSize {
    /// Width.
    #[schema(minimum = 1, maximum = 65535)]
    pub columns: u16,
    /// Height.
    #[schema(minimum = 1, maximum = 65535)]
    pub rows: u16,
}

/// A terminal as listings show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalStatus {
    /// Its id.
    pub id: String,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Directory that the program was started in.
    pub cwd: PathBuf,
    /// Width in characters.
    pub columns: u16,
    /// Height in characters.
    pub rows: u16,
    /// Clients that are attached.
    pub attached: usize,
    /// Offset of the oldest byte of output that is kept.
    pub start: u64,
    /// Offset behind the last byte of output.
    pub end: u64,
    /// How it stands.
    #[serde(flatten)]
    pub state: TerminalState,
}

/// How a terminal stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum TerminalState {
    /// Its program is being started.
    Starting,
    /// Its program runs.
    Running {
        /// Process id of the program.
        pid: u32,
    },
    /// Its program ended.
    Ended(TerminalExit),
}

/// How the program of a terminal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalExit {
    /// Status as a shell reports it: the exit status, or 128 plus the signal; -1 if it is not known.
    pub exit_code: i32,
    /// Number of the signal that ended it; absent if it ended by itself.
    pub signal: Option<i32>,
}

/// What a client tells a terminal beside the bytes that are typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub enum ToTerminal {
    /// The terminal gets another size.
    Resize(TerminalSize),
    /// The programs in the foreground get a signal.
    Signal {
        /// Its name without `SIG`: `INT`, `TERM`, `HUP`, `QUIT`, `TSTP`, `CONT`, `KILL`, `WINCH`, `USR1` or `USR2`.
        name: String,
    },
}

/// What a terminal tells a client beside the bytes that programs write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum FromTerminal {
    /// The first message.
    Start {
        /// Id of the terminal.
        id: String,
        /// Offset of the first byte that follows.
        offset: u64,
        /// Offset behind the last byte that there is now: what comes before it was written before this client came.
        end: u64,
        /// Bytes that this client has typed on all its connections so far and that the terminal took. It sends what
        /// comes behind them once more.
        input: u64,
    },
    /// Output was lost, because it is no longer kept. What follows begins at `to`.
    Gap {
        /// Offset of the first byte that is lost.
        from: u64,
        /// Offset behind the last one.
        to: u64,
    },
    /// The terminal took what this client has typed, up to here.
    Input {
        /// Bytes on all its connections.
        offset: u64,
    },
    /// A message of the client could not be followed.
    Error {
        /// Why, for people.
        message: String,
    },
    /// The program ended, and all output was sent. The last message.
    Exit(TerminalExit),
}

/// Why the server closes a WebSocket (RFC 6455, 7.4).
pub mod close {
    /// The program ended; the message [`FromTerminal::Exit`](super::FromTerminal::Exit) came before.
    pub const ENDED: u16 = 1000;
    /// The server is stopping.
    pub const STOPPING: u16 = 1001;
    /// A message is not what it must be, or larger than 256 KiB.
    pub const INVALID: u16 = 1008;
    /// Nothing came from the client for too long, not even an answer to a ping.
    pub const SILENT: u16 = 4000;
    /// The same client is attached over another connection.
    pub const REPLACED: u16 = 4001;
    /// The output can not be read.
    pub const UNREADABLE: u16 = 4002;
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json, to_value};

    use super::*;

    #[test]
    fn the_messages_have_their_forms() {
        for (message, form) in [
            (
                ToTerminal::Resize(TerminalSize { columns: 1, rows: 2 }),
                json!({"type": "resize", "columns": 1, "rows": 2}),
            ),
            (ToTerminal::Signal { name: "INT".into() }, json!({"type": "signal", "name": "INT"})),
        ] {
            assert_eq!(to_value(&message).unwrap(), form);
            assert_eq!(from_value::<ToTerminal>(form).unwrap(), message);
        }
        for (message, form) in [
            (
                FromTerminal::Start { id: "a".into(), offset: 1, end: 2, input: 3 },
                json!({"type": "start", "id": "a", "offset": 1, "end": 2, "input": 3}),
            ),
            (FromTerminal::Gap { from: 1, to: 2 }, json!({"type": "gap", "from": 1, "to": 2})),
            (FromTerminal::Input { offset: 1 }, json!({"type": "input", "offset": 1})),
            (FromTerminal::Error { message: "m".into() }, json!({"type": "error", "message": "m"})),
            (
                FromTerminal::Exit(TerminalExit { exit_code: 143, signal: Some(15) }),
                json!({"type": "exit", "exit_code": 143, "signal": 15}),
            ),
        ] {
            assert_eq!(to_value(&message).unwrap(), form);
            assert_eq!(from_value::<FromTerminal>(form).unwrap(), message);
        }
    }

    #[test]
    fn a_request_may_be_empty_and_its_mistakes_are_refused() {
        assert_eq!(from_value::<TerminalRequest>(json!({})).unwrap(), TerminalRequest::default());
        for wrong in [json!({"argv": "sh"}), json!({"columns": -1}), json!({"width": 1}), Value::Null] {
            assert!(from_value::<TerminalRequest>(wrong.clone()).is_err(), "{wrong}");
        }
        for wrong in [json!({"type": "resize", "columns": 1}), json!({"type": "other"}), json!({})] {
            assert!(from_value::<ToTerminal>(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
