//! What is told: a command, a piece of its output.

use jiff::Timestamp;
use serde::Serialize;
use uuid::Uuid;

/// What kind of event this is. Events of one time are in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Kind {
    /// A command.
    BashCommand,
    /// A piece of what a command wrote.
    BashOutput,
}

/// The place of an event among all others. No two have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Microseconds since 1970.
    pub micros: i64,
    /// What it is.
    pub kind: Kind,
    /// Its id.
    pub id: Uuid,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What the shell is given.
    pub command: String,
    /// Directory, as it was asked for.
    pub cwd: Option<String>,
    /// Seconds that it may take.
    pub timeout: i64,
}

/// A piece of what a command wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Whose it is.
    pub command: Uuid,
    /// Its number, from 0 on.
    pub order: u64,
    /// How the command ended; `None` if it goes on.
    pub exit_code: Option<i32>,
    /// What is new, without what is nothing.
    pub stdout: String,
    /// The same of the errors.
    pub stderr: String,
}

/// What is to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A command.
    Command(Command),
    /// A piece of output.
    Output(Output),
}

impl Event {
    /// What it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Command(_) => Kind::BashCommand,
            Self::Output(_) => Kind::BashOutput,
        }
    }

    /// Its JSON, under this key.
    pub fn json(&self, key: Key) -> Vec<u8> {
        let (id, timestamp) = (key.id.simple().to_string(), stamp(key.micros));
        let written = match self {
            Self::Command(it) => serde_json::to_vec(&CommandJson {
                command: &it.command,
                cwd: it.cwd.as_deref(),
                timeout: it.timeout,
                id,
                timestamp,
                kind: key.kind,
            }),
            Self::Output(it) => serde_json::to_vec(&OutputJson {
                id,
                timestamp,
                command_id: it.command.simple().to_string(),
                order: it.order,
                exit_code: it.exit_code,
                stdout: some(&it.stdout),
                stderr: some(&it.stderr),
                kind: key.kind,
            }),
        };
        // Texts and numbers can always be written.
        written.unwrap_or_default()
    }
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

#[derive(Serialize)]
struct CommandJson<'a> {
    command: &'a str,
    cwd: Option<&'a str>,
    timeout: i64,
    id: String,
    timestamp: String,
    kind: Kind,
}

#[derive(Serialize)]
struct OutputJson<'a> {
    id: String,
    timestamp: String,
    command_id: String,
    order: u64,
    exit_code: Option<i32>,
    stdout: Option<&'a str>,
    stderr: Option<&'a str>,
    kind: Kind,
}

/// A time as events show it: UTC, microseconds.
pub fn stamp(micros: i64) -> String {
    let time = Timestamp::from_microsecond(micros).unwrap_or(Timestamp::UNIX_EPOCH);
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// Now, in microseconds since 1970.
pub fn now() -> i64 {
    Timestamp::now().as_microsecond()
}

/// An id that no event has had, as far as random numbers go.
pub fn new_id() -> std::io::Result<Uuid> {
    let text = gloveport_ids::uuid().map_err(|error| std::io::Error::other(error.to_string()))?;
    Uuid::parse_str(&text).map_err(std::io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_all_their_fields_and_empty_output_is_null() {
        let id = Uuid::from_u128(0xa);
        let key = |kind| Key { micros: 1_763_783_663_166_189, kind, id };
        let command = Event::Command(Command { command: "echo".into(), cwd: None, timeout: 30 });
        assert_eq!(
            String::from_utf8(command.json(key(Kind::BashCommand))).unwrap(),
            r#"{"command":"echo","cwd":null,"timeout":30,"id":"0000000000000000000000000000000a","timestamp":"2025-11-22T03:54:23.166189Z","kind":"BashCommand"}"#
        );
        let output = Output { command: id, order: 0, exit_code: Some(3), stdout: "hi\n".into(), stderr: String::new() };
        let text = String::from_utf8(Event::Output(output).json(key(Kind::BashOutput))).unwrap();
        assert!(
            text.contains(r#""order":0,"exit_code":3,"stdout":"hi\n","stderr":null,"kind":"BashOutput""#),
            "{text}"
        );
        assert_eq!(stamp(0), "1970-01-01T00:00:00.000000Z");
    }
}
