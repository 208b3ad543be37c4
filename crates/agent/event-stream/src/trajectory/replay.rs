//! A trajectory that is played again (event-stream 6.3).

use std::collections::VecDeque;

use gloveport_protocol::{Action, ActionEvent, Event, EventSource, Observation, ObservationEvent};

/// The actions of a trajectory, one after the other. When they are used up, agent and user go on by themselves.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    events: VecDeque<Event>,
}

impl Replay {
    /// Takes the events of a trajectory.
    ///
    /// What came from the environment and empty observations are left out. No message but the last event waits for an
    /// answer, as the answer is in the trajectory.
    pub fn new(events: impl IntoIterator<Item = Event>) -> Self {
        let is_played = |event: &Event| {
            event.source() != Some(EventSource::Environment)
                && !matches!(event, Event::Observation(ObservationEvent { observation: Observation::Null, .. }))
        };
        let mut events: VecDeque<_> = events.into_iter().filter(is_played).collect();
        let before_last = events.len().saturating_sub(1);
        for event in events.iter_mut().take(before_last) {
            if let Event::Action(ActionEvent { action: Action::Message(message), .. }) = event {
                message.wait_for_response = false;
            }
        }
        Self { events }
    }

    /// Whether there is another action. Observations before it are passed over: they are made anew.
    pub fn should_replay(&mut self) -> bool {
        while let Some(Event::Observation(_)) = self.events.front() {
            self.events.pop_front();
        }
        !self.events.is_empty()
    }

    /// Takes the next action.
    pub fn step(&mut self) -> Option<ActionEvent> {
        while let Some(event) = self.events.pop_front() {
            if let Event::Action(action) = event {
                return Some(action);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn actions_are_played_in_order_and_nobody_waits_before_the_end() {
        let events = [
            json!({"source": "user", "action": "message", "args": {"content": "a", "wait_for_response": true}}),
            json!({"source": "agent", "observation": "run", "content": "x", "extras": {"command": "ls"}}),
            json!({"source": "agent", "observation": "null", "content": ""}),
            json!({"source": "environment", "action": "recall", "args": {"query": "q", "recall_type": "knowledge"}}),
            json!({"action": "run", "args": {"command": "ls"}}),
            json!({"source": "agent", "action": "message", "args": {"content": "b", "wait_for_response": true}}),
            json!({"source": "environment", "observation": "null", "content": ""}),
        ];
        let mut replay = Replay::new(events.map(|event| Event::from_value(event).unwrap()));
        let mut played = Vec::new();
        while replay.should_replay() {
            let action = replay.step().unwrap().action;
            let waits = matches!(&action, Action::Message(message) if message.wait_for_response);
            played.push((action.message(), waits));
        }
        let expected = [("a", false), ("Running command: ls", false), ("b", true)];
        assert_eq!(played, expected.map(|(text, waits)| (text.to_owned(), waits)));
        assert_eq!(replay.step(), None);
    }

    #[test]
    fn without_events_nothing_is_played() {
        assert!(!Replay::new([]).should_replay());
    }
}
