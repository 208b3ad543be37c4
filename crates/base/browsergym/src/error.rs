//! Why an action fails, as the observation tells it (spec/browser.md 2).

use thiserror::Error;

/// An exception of the reference: its class and its message. Shown as `{class}: {message}`, which is the text of
/// `last_browser_action_error`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{class}: {message}")]
pub struct ActionError {
    /// The Python class of the exception, such as `ValueError`.
    pub class: String,
    /// What went wrong.
    pub message: String,
}

impl ActionError {
    /// An exception of any class.
    pub fn new(class: impl Into<String>, message: impl Into<String>) -> Self {
        Self { class: class.into(), message: message.into() }
    }

    /// A wrong value.
    pub fn value(message: impl Into<String>) -> Self {
        Self::new("ValueError", message)
    }

    /// Wrong arguments, or a value of a wrong type.
    pub fn r#type(message: impl Into<String>) -> Self {
        Self::new("TypeError", message)
    }

    /// A name that does not exist.
    pub fn name(message: impl Into<String>) -> Self {
        Self::new("NameError", message)
    }

    /// A text that is no Python.
    pub fn syntax(message: impl Into<String>) -> Self {
        Self::new("SyntaxError", message)
    }

    /// What the driver of the browser refuses.
    pub fn driver(message: impl Into<String>) -> Self {
        Self::new("Error", message)
    }

    /// What takes too long, by the driver's clock.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new("TimeoutError", message)
    }
}
