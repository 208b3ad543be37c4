//! The actions that wait for the user.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use gloveport_protocol::{ActionEvent, ConfirmationState};

use crate::{analyzer::Assessment, gate::GateError};

/// Most actions of a session that can wait at once. An agent waits for one; the rest is room for a few agents.
pub const MAX_PENDING: usize = 64;

/// An action that waits.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingAction {
    /// Number of its event; the user decides by it.
    pub id: i64,
    /// The action as it was published.
    pub action: ActionEvent,
    /// Why the user is asked.
    pub assessment: Assessment,
}

/// An action that was asked about, for its second publication with the user's answer (security 4, step 4).
pub fn decided(mut action: ActionEvent, state: ConfirmationState) -> ActionEvent {
    action.action.clear_thought();
    action.set_confirmation(state);
    // The stream gives both anew.
    action.id = None;
    action.timestamp = None;
    action
}

/// The actions that wait, by number.
#[derive(Default)]
pub(super) struct Pending {
    actions: Mutex<BTreeMap<i64, PendingAction>>,
}

impl Pending {
    pub(super) fn hold(&self, action: ActionEvent, assessment: Assessment) -> Result<(), GateError> {
        let id = action.id.ok_or(GateError::WithoutId)?;
        let mut actions = self.lock();
        if actions.contains_key(&id) {
            return Err(GateError::AlreadyPending { id });
        }
        if actions.len() >= MAX_PENDING {
            return Err(GateError::TooMany { limit: MAX_PENDING });
        }
        actions.insert(id, PendingAction { id, action, assessment });
        Ok(())
    }

    /// The action for its second publication (security 4, step 4), and why the user was asked.
    pub(super) fn decide(&self, id: i64, state: ConfirmationState) -> Result<(ActionEvent, Assessment), GateError> {
        let PendingAction { action, assessment, .. } = self.discard(id).ok_or(GateError::NotPending { id })?;
        Ok((decided(action, state), assessment))
    }

    pub(super) fn discard(&self, id: i64) -> Option<PendingAction> {
        self.lock().remove(&id)
    }

    pub(super) fn all(&self) -> Vec<PendingAction> {
        self.lock().values().cloned().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    /// Nothing that holds the lock can panic halfway through a change.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<i64, PendingAction>> {
        self.actions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
