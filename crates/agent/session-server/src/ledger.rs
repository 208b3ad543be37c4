//! What of a history is unanswered: actions without an observation, and questions without a decision.

use std::collections::BTreeMap;

use gloveport_event_stream::{EventStore, HistoryError, Search};
use gloveport_protocol::{Action, ActionEvent, AgentState, ConfirmationState, Event, Observation};
use gloveport_security::decided;

/// An action that waits for the user.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) action: ActionEvent,
    /// Why the user is asked; empty as long as the question is not in the history.
    pub(crate) reason: String,
}

/// What is unanswered, by the number of the action.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// Kinds of actions that are executed, or are answered as refused, and have no observation.
    pub(crate) open: BTreeMap<i64, &'static str>,
    /// Actions that wait for a decision.
    pub(crate) asked: BTreeMap<i64, Asked>,
}

impl Ledger {
    /// Takes the next event of the history.
    pub(crate) fn see(&mut self, event: &Event) {
        match event {
            Event::Action(action) => self.see_action(action),
            Event::Observation(observation) => {
                let Some(cause) = observation.cause else { return };
                match &observation.observation {
                    Observation::AgentStateChanged(state) => {
                        let is_question = state.agent_state == AgentState::AwaitingUserConfirmation.as_str();
                        if let Some(asked) = self.asked.get_mut(&cause).filter(|_| is_question) {
                            asked.reason.clone_from(&state.reason);
                        }
                    }
                    _ => {
                        self.open.remove(&cause);
                    }
                }
            }
        }
    }

    fn see_action(&mut self, event: &ActionEvent) {
        let (Some(id), true) = (event.id, is_answered(&event.action)) else { return };
        let state = event.confirmation();
        if state == ConfirmationState::AwaitingConfirmation {
            self.asked.insert(id, Asked { action: event.clone(), reason: String::new() });
            return;
        }
        // A decision is the action once more.
        let of = self.asked.iter().find(|(_, asked)| decided(asked.action.clone(), state).action == event.action);
        if let Some(of) = of.map(|(of, _)| *of) {
            self.asked.remove(&of);
        }
        self.open.insert(id, event.action.kind());
    }

    /// The first number from which the history has to be read to know the same, if it goes on with `next`.
    pub(crate) fn settled(&self, next: i64) -> i64 {
        let first = self.open.keys().next().into_iter().chain(self.asked.keys().next()).min();
        first.copied().unwrap_or(next).min(next)
    }

    /// Reads a history from this number on, before which everything is settled; gives the number after the last event, too.
    pub(crate) async fn read(events: &EventStore, from: i64) -> Result<(Self, i64), HistoryError> {
        let mut ledger = Self::default();
        let mut next = from;
        let mut found = events.search(Search { start: from, ..Search::default() });
        while let Some(event) = found.next().await? {
            next = event.id().map_or(next, |id| id + 1);
            ledger.see(&event);
        }
        Ok((ledger, next))
    }
}

/// Whether actions of this kind have an observation in the end.
fn is_answered(action: &Action) -> bool {
    action.is_runnable() || matches!(action, Action::Think(_) | Action::TaskTracking(_))
}

#[cfg(test)]
mod tests {
    use gloveport_protocol::{
        AgentStateChangedObservation, ErrorObservation, EventSource, MessageAction, ObservationEvent, RunAction,
    };

    use super::*;

    fn place(event: impl Into<Event>, id: i64) -> Event {
        let mut event = event.into();
        event.place(id, "2026-01-01T00:00:00.000000".to_owned(), EventSource::Agent);
        event
    }

    fn answer(observation: Observation, cause: i64, id: i64) -> Event {
        place(ObservationEvent { cause: Some(cause), ..ObservationEvent::from(observation) }, id)
    }

    fn run(command: &str, state: ConfirmationState) -> ActionEvent {
        let mut event = ActionEvent::from(Action::Run(RunAction::new(command)));
        event.set_confirmation(state);
        event
    }

    #[test]
    fn actions_are_open_until_they_are_answered_and_questions_until_they_are_decided() {
        use ConfirmationState::{AwaitingConfirmation, Confirmed, Rejected};
        let question = |cause, id| {
            let state = AgentState::AwaitingUserConfirmation.as_str();
            let state = AgentStateChangedObservation {
                reason: "it is bad".to_owned(),
                ..AgentStateChangedObservation::new("", state)
            };
            answer(Observation::AgentStateChanged(state), cause, id)
        };
        let done = |cause, id| answer(Observation::Error(ErrorObservation::new("done")), cause, id);
        let mut ledger = Ledger::default();
        let mut see = |events: &[Event]| {
            for event in events {
                ledger.see(event);
            }
            (ledger.open.keys().copied().collect::<Vec<_>>(), ledger.asked.keys().copied().collect::<Vec<_>>())
        };
        let message = Action::Message(MessageAction::new("hello"));
        assert_eq!(see(&[place(message, 0), place(run("a", Confirmed), 1)]), (vec![1], vec![]));
        assert_eq!(see(&[place(run("b", AwaitingConfirmation), 2), question(2, 3)]), (vec![1], vec![2]));
        // The same text that was never asked about decides nothing of another one.
        assert_eq!(see(&[place(run("c", AwaitingConfirmation), 4), question(4, 5)]), (vec![1], vec![2, 4]));
        assert_eq!(see(&[done(1, 6), place(run("c", Rejected), 7)]), (vec![7], vec![2]));
        assert_eq!(see(&[done(7, 8), place(run("b", Confirmed), 9)]), (vec![9], vec![]));
        assert_eq!(ledger.settled(10), 9);
        ledger.see(&done(9, 10));
        assert_eq!(ledger.settled(11), 11);
    }
}
