//! The observation of a shell command and what the shell says about itself.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{FieldError, describe};
use crate::fields::{Arguments, WireField, WireStruct};
use crate::truncate::{CONTENT_LIMIT, truncate_content};

/// What the shell says about itself after a command (actions-and-observations 4.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommandMetadata {
    /// Exit code of the command; -1 while it runs or when it is unknown.
    pub exit_code: i64,
    /// Process id of the last background job; -1 without one.
    pub pid: i64,
    /// Who runs the shell.
    pub username: Option<String>,
    /// Short name of the host.
    pub hostname: Option<String>,
    /// Where the shell is.
    pub working_dir: Option<String>,
    /// Path of `python`; empty if there is none.
    pub py_interpreter_path: Option<String>,
    /// Text to be shown before the content.
    pub prefix: String,
    /// Text to be shown after the content.
    pub suffix: String,
}

impl Default for CommandMetadata {
    fn default() -> Self {
        Self {
            exit_code: -1,
            pid: -1,
            username: None,
            hostname: None,
            working_dir: None,
            py_interpreter_path: None,
            prefix: String::new(),
            suffix: String::new(),
        }
    }
}

const METADATA_CLASS: &str = "CmdOutputMetadata";

/// A number that may come as an integer, a whole float, a boolean or a decimal text, as the caller's own class for
/// the metadata accepts them.
struct LaxInteger(i64);

impl WireField for LaxInteger {
    fn expected() -> String {
        "an integer".to_owned()
    }

    #[expect(clippy::cast_possible_truncation, reason = "only whole numbers well inside the range are converted")]
    fn from_wire(value: &Value) -> Result<Self, String> {
        let number = match value {
            Value::Bool(flag) => Some(i64::from(*flag)),
            Value::String(text) => text.trim().parse().ok(),
            Value::Number(number) => number.as_i64().or_else(|| {
                number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e15).map(|float| float as i64)
            }),
            _ => None,
        };
        number.map(Self).ok_or_else(|| describe(value))
    }

    fn to_wire(&self) -> Value {
        Value::from(self.0)
    }
}

impl WireStruct for CommandMetadata {
    const CLASS: &'static str = METADATA_CLASS;

    fn from_map(map: &Map<String, Value>) -> Result<Self, FieldError> {
        let arguments = Arguments::unchecked(Self::CLASS, map);
        Ok(Self {
            exit_code: arguments.optional("exit_code", || LaxInteger(-1))?.0,
            pid: arguments.optional("pid", || LaxInteger(-1))?.0,
            username: arguments.optional("username", || None)?,
            hostname: arguments.optional("hostname", || None)?,
            working_dir: arguments.optional("working_dir", || None)?,
            py_interpreter_path: arguments.optional("py_interpreter_path", || None)?,
            prefix: arguments.optional("prefix", String::new)?,
            suffix: arguments.optional("suffix", String::new)?,
        })
    }

    fn to_map(&self) -> Map<String, Value> {
        [
            ("exit_code", Value::from(self.exit_code)),
            ("pid", Value::from(self.pid)),
            ("username", self.username.to_wire()),
            ("hostname", self.hostname.to_wire()),
            ("working_dir", self.working_dir.to_wire()),
            ("py_interpreter_path", self.py_interpreter_path.to_wire()),
            ("prefix", self.prefix.to_wire()),
            ("suffix", self.suffix.to_wire()),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
    }
}

/// `run`: output of the shell (actions-and-observations 4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunObservation {
    /// The output; truncated by [`RunObservation::new`] unless the command is hidden.
    pub content: String,
    /// The command.
    pub command: String,
    /// The output bypasses the agent.
    pub hidden: bool,
    /// What the shell says about itself.
    pub metadata: CommandMetadata,
}

impl RunObservation {
    /// Truncates the content unless the command is hidden (actions-and-observations 2.7).
    pub fn new(
        command: impl Into<String>,
        content: impl Into<String>,
        hidden: bool,
        metadata: CommandMetadata,
    ) -> Self {
        let mut content = content.into();
        if !hidden {
            content = match truncate_content(&content, CONTENT_LIMIT) {
                std::borrow::Cow::Borrowed(_) => content,
                std::borrow::Cow::Owned(shorter) => shorter,
            };
        }
        Self { content, command: command.into(), hidden, metadata }
    }

    /// Whether the command ended with exit code 0.
    pub const fn success(&self) -> bool {
        self.metadata.exit_code == 0
    }

    /// What the agent's model gets to read (actions-and-observations 4.2).
    pub fn text_for_model(&self) -> String {
        let CommandMetadata { prefix, suffix, working_dir, py_interpreter_path, exit_code, .. } = &self.metadata;
        let mut text = [prefix, self.content.as_str(), suffix].concat();
        // Writing into a string cannot fail.
        if let Some(directory) = working_dir.as_deref().filter(|directory| !directory.is_empty()) {
            let _ = write!(text, "\n[Current working directory: {directory}]");
        }
        if let Some(interpreter) = py_interpreter_path.as_deref().filter(|path| !path.is_empty()) {
            let _ = write!(text, "\n[Python interpreter: {interpreter}]");
        }
        if *exit_code != -1 {
            let _ = write!(text, "\n[Command finished with exit code {exit_code}]");
        }
        text
    }
}

impl WireStruct for RunObservation {
    const CLASS: &'static str = "CmdOutputObservation";

    /// Unknown names are ignored: this class alone takes any.
    fn from_map(map: &Map<String, Value>) -> Result<Self, FieldError> {
        let arguments = Arguments::unchecked(Self::CLASS, map);
        let metadata = match map.get("metadata") {
            Some(Value::Object(metadata)) => CommandMetadata::from_map(metadata)?,
            _ => CommandMetadata::default(),
        };
        Ok(Self::new(
            arguments.required::<String>("command")?,
            arguments.required::<String>("content")?,
            arguments.optional("hidden", || false)?,
            metadata,
        ))
    }

    fn to_map(&self) -> Map<String, Value> {
        [
            ("content", self.content.to_wire()),
            ("command", self.command.to_wire()),
            ("metadata", Value::Object(self.metadata.to_map())),
            ("hidden", Value::Bool(self.hidden)),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
    }
}
