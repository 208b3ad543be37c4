//! What a client raises: a Python class by its name, a message, and attributes.

use std::{collections::BTreeMap, io, path::Path};

use gloveport_protocol::python;
use serde::Serialize;
use serde_json::Value;

/// Where the classes of SWE-ReX are.
const CLASSES: &str = "swerex.exceptions";

/// Something that a client raises.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Exception {
    /// What went wrong.
    pub message: String,
    /// The Python class of it.
    pub class_path: String,
    /// Always empty: clients print it.
    pub traceback: &'static str,
    /// Attributes of it.
    pub extra_info: BTreeMap<String, Value>,
}

impl Exception {
    /// Of this class.
    fn new(class_path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { message: message.into(), class_path: class_path.into(), traceback: "", extra_info: BTreeMap::new() }
    }

    /// Of a class of SWE-ReX.
    fn own(class: &str, message: impl Into<String>) -> Self {
        Self::new(format!("{CLASSES}.{class}"), message)
    }

    /// With an attribute.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.extra_info.insert(name.to_owned(), value.into());
        self
    }

    /// With what the caller has said of it in front.
    pub(crate) fn told(mut self, error_msg: &str) -> Self {
        if !error_msg.is_empty() {
            self.message = format!("{error_msg}: {}", self.message);
        }
        self
    }

    /// Something for which there is no class.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::own("SwerexException", message)
    }

    pub(crate) fn timeout(message: impl Into<String>) -> Self {
        Self::own("CommandTimeoutError", message)
    }

    pub(crate) fn exit_code(message: impl Into<String>) -> Self {
        Self::own("NonZeroExitCodeError", message)
    }

    pub(crate) fn syntax(message: impl Into<String>) -> Self {
        Self::own("BashIncorrectSyntaxError", message)
    }

    pub(crate) fn session_exists(name: &str) -> Self {
        Self::own("SessionExistsError", format!("session {name} already exists"))
    }

    pub(crate) fn no_session(name: &str) -> Self {
        Self::own("SessionDoesNotExistError", format!("session {} does not exist", repr(name)))
    }

    /// A regular expression that is none.
    pub(crate) fn pattern(pattern: &str, why: impl std::fmt::Display) -> Self {
        Self::new("re.error", format!("{} in `expect` is no regular expression: {why}", repr(pattern)))
    }

    /// A name that Python does not know.
    pub(crate) fn lookup(message: impl Into<String>) -> Self {
        Self::new("builtins.LookupError", message)
    }

    /// Bytes that are no text.
    pub(crate) fn undecodable(message: impl Into<String>) -> Self {
        Self::new("builtins.UnicodeDecodeError", message)
    }

    /// A value that is none.
    pub(crate) fn value(message: impl Into<String>) -> Self {
        Self::new("builtins.ValueError", message)
    }

    /// A text with a zero byte for the system, which knows none.
    pub(crate) fn zero_byte() -> Self {
        Self::value("embedded null byte")
    }

    /// An error of the system, as Python tells it.
    pub(crate) fn os(error: &io::Error, path: &Path) -> Self {
        let class = match error.kind() {
            io::ErrorKind::NotFound => "FileNotFoundError",
            io::ErrorKind::PermissionDenied => "PermissionError",
            io::ErrorKind::IsADirectory => "IsADirectoryError",
            io::ErrorKind::NotADirectory => "NotADirectoryError",
            io::ErrorKind::AlreadyExists => "FileExistsError",
            _ => "OSError",
        };
        let text = error.to_string();
        let Some(number) = error.raw_os_error() else {
            if path.as_os_str().as_encoded_bytes().contains(&0) {
                return Self::zero_byte();
            }
            return Self::new(format!("builtins.{class}"), format!("{text}: {}", repr(&path.to_string_lossy())));
        };
        // Rust puts the number behind the text.
        let text = text.strip_suffix(&format!(" (os error {number})")).unwrap_or(&text);
        Self::new(format!("builtins.{class}"), format!("[Errno {number}] {text}: {}", repr(&path.to_string_lossy())))
    }
}

/// A text as Python's `repr` prints it.
pub(crate) fn repr(text: &str) -> String {
    python::repr(&Value::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_are_told_as_python_tells_them() {
        for (number, expected, class) in [
            (2, "[Errno 2] No such file or directory: '/a'", "builtins.FileNotFoundError"),
            (13, "[Errno 13] Permission denied: '/a'", "builtins.PermissionError"),
            (21, "[Errno 21] Is a directory: '/a'", "builtins.IsADirectoryError"),
            (28, "[Errno 28] No space left on device: '/a'", "builtins.OSError"),
        ] {
            let exception = Exception::os(&io::Error::from_raw_os_error(number), Path::new("/a"));
            assert_eq!((exception.message.as_str(), exception.class_path.as_str()), (expected, class));
        }
        let zero = std::fs::File::open("a\0b").unwrap_err();
        assert_eq!(Exception::os(&zero, Path::new("a\0b")), Exception::zero_byte());
        assert_eq!(Exception::failed("it").told("While testing").message, "While testing: it");
        assert_eq!(Exception::no_session("it's").message, "session \"it's\" does not exist");
    }
}
