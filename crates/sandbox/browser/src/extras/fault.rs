//! Why something is not done.

use gloveport_browsergym::ActionError;

use crate::browser::BrowserError;

/// Why something is not done.
#[derive(Debug)]
pub(super) enum Fault {
    /// It makes no sense, whatever the page is like.
    Invalid(String),
    /// The page or the browser does not do it.
    Action(ActionError),
}

impl From<ActionError> for Fault {
    fn from(error: ActionError) -> Self {
        Self::Action(error)
    }
}

impl From<Fault> for BrowserError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Invalid(words) => Self::Invalid(words),
            Fault::Action(error) => Self::Page(error.to_string()),
        }
    }
}
