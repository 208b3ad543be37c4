//! What a session takes over from one before it, whose process is gone: its questions.

use gloveport_protocol::ActionEvent;
use gloveport_security::{Assessment, PendingAction};

use crate::{Runtime, RuntimeError};

impl Runtime {
    /// The actions that wait for the user, oldest first.
    pub fn pending(&self) -> Vec<PendingAction> {
        self.session.gate.pending()
    }

    /// Waits for the user's decision about an action that is in the history already, with the question: a session before
    /// this one has asked. [`confirm`](Self::confirm) and [`reject`](Self::reject) take its number.
    pub fn wait_again(&self, action: ActionEvent, assessment: Assessment) -> Result<(), RuntimeError> {
        Ok(self.session.gate.hold(action, assessment)?)
    }
}
