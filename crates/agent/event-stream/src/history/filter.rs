//! Which events somebody wants to see (event-stream 3.1).

use std::borrow::Cow;

use gloveport_protocol::{Event, EventSource, python::json};

/// A sort of event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventType {
    /// Every action.
    Actions,
    /// Every observation.
    Observations,
    /// The action with this name on the wire.
    Action(Cow<'static, str>),
    /// The observation with this name on the wire.
    Observation(Cow<'static, str>),
}

impl EventType {
    /// The action with this name on the wire.
    pub fn action(kind: impl Into<Cow<'static, str>>) -> Self {
        Self::Action(kind.into())
    }

    /// The observation with this name on the wire.
    pub fn observation(kind: impl Into<Cow<'static, str>>) -> Self {
        Self::Observation(kind.into())
    }

    /// Whether an event is of this sort.
    pub fn contains(&self, event: &Event) -> bool {
        match (self, event) {
            (Self::Actions, Event::Action(_)) | (Self::Observations, Event::Observation(_)) => true,
            (Self::Action(kind), Event::Action(_)) | (Self::Observation(kind), Event::Observation(_)) => {
                kind == event.kind()
            }
            _ => false,
        }
    }
}

/// Which events are wanted: those that pass everything that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Only events of one of these sorts; empty for all.
    pub include_types: Vec<EventType>,
    /// No events of these sorts.
    pub exclude_types: Vec<EventType>,
    /// Only events from here. An event without a source does not pass.
    pub source: Option<EventSource>,
    /// No events with an earlier timestamp. Compared as texts, as ISO 8601 allows; an event without a timestamp passes.
    pub start_date: Option<String>,
    /// No events with a later timestamp, compared in the same way.
    pub end_date: Option<String>,
    /// No events that the agent is not meant to see.
    pub exclude_hidden: bool,
    /// Only events with this in their JSON text, which includes the keys; upper and lower case are the same.
    pub query: Option<String>,
}

impl EventFilter {
    /// Whether an event passes.
    pub fn includes(&self, event: &Event) -> bool {
        let one_of = |types: &[EventType]| types.iter().any(|sort| sort.contains(event));
        let early = |start: &String| event.timestamp().is_some_and(|timestamp| timestamp < start.as_str());
        let late = |end: &String| event.timestamp().is_some_and(|timestamp| timestamp > end.as_str());
        (self.include_types.is_empty() || one_of(&self.include_types))
            && !one_of(&self.exclude_types)
            && self.source.is_none_or(|source| event.source() == Some(source))
            && !self.start_date.as_ref().filter(|start| !start.is_empty()).is_some_and(early)
            && !self.end_date.as_ref().filter(|end| !end.is_empty()).is_some_and(late)
            && !(self.exclude_hidden && event.hidden())
            && self.query.as_ref().is_none_or(|query| mentions(event, query))
    }
}

/// Whether the JSON text of an event has the query in it.
///
/// The reference escapes what is not ASCII before it looks, so that a query with an umlaut finds nothing; here it is
/// also looked for in the text as people read it.
fn mentions(event: &Event, query: &str) -> bool {
    let (value, query) = (event.to_value(), query.to_lowercase());
    json::line(&value).to_lowercase().contains(&query)
        || (!query.is_ascii() && value.to_string().to_lowercase().contains(&query))
}

#[cfg(test)]
mod tests {
    use gloveport_protocol::{Action, MessageAction, Observation, RunAction};
    use serde_json::json;

    use super::*;

    fn event(value: serde_json::Value) -> Event {
        Event::from_value(value).unwrap()
    }

    #[test]
    fn an_event_passes_when_all_that_is_set_holds() {
        let run = event(json!({
            "id": 3, "timestamp": "2025-01-02T00:00:00.000000", "source": "agent",
            "action": "run", "args": {"command": "echo Grüße", "hidden": true},
        }));
        let bare = Event::from(Action::Null);
        let observed = Event::from(Observation::Null);
        let filter = EventFilter::default;
        let date = |text: &str| Some(text.to_owned());
        // Whether the command, a null action and a null observation pass.
        for (filter, expected) in [
            (filter(), [true, true, true]),
            (EventFilter { include_types: vec![EventType::Actions], ..filter() }, [true, true, false]),
            (EventFilter { include_types: vec![EventType::action("null")], ..filter() }, [false, true, false]),
            (EventFilter { include_types: vec![EventType::observation("null")], ..filter() }, [false, false, true]),
            (EventFilter { exclude_types: vec![EventType::Observations], ..filter() }, [true, true, false]),
            (EventFilter { exclude_types: vec![EventType::action("run")], ..filter() }, [false, true, true]),
            (EventFilter { source: Some(EventSource::Agent), ..filter() }, [true, false, false]),
            (EventFilter { source: Some(EventSource::User), ..filter() }, [false, false, false]),
            (EventFilter { start_date: date("2025-01-02T00:00:00.000000"), ..filter() }, [true, true, true]),
            (EventFilter { start_date: date("2025-01-02T00:00:00.000001"), ..filter() }, [false, true, true]),
            (EventFilter { end_date: date("2025-01-02T00:00:00.000000"), ..filter() }, [true, true, true]),
            (EventFilter { end_date: date("2025-01-01"), ..filter() }, [false, true, true]),
            (EventFilter { end_date: date(""), ..filter() }, [true, true, true]),
            (EventFilter { exclude_hidden: true, ..filter() }, [false, true, true]),
            (EventFilter { query: date("ECHO gr"), ..filter() }, [true, false, false]),
            (EventFilter { query: date("grÜsse"), ..filter() }, [false, false, false]),
            (EventFilter { query: date("GRÜßE"), ..filter() }, [true, false, false]),
            (EventFilter { query: date("\\u00fc"), ..filter() }, [true, false, false]),
            (EventFilter { query: date("\"null\""), ..filter() }, [false, true, true]),
            (EventFilter { query: date(""), ..filter() }, [true, true, true]),
        ] {
            let passes = [&run, &bare, &observed].map(|event| filter.includes(event));
            assert_eq!(passes, expected, "{filter:?}");
        }
    }

    #[test]
    fn a_sort_tells_an_action_from_the_observation_of_the_same_name() {
        let run = Event::from(Action::Run(RunAction::new("x")));
        assert!(EventType::action("run").contains(&run));
        assert!(!EventType::observation("run").contains(&run));
        assert!(!EventType::action("run").contains(&Event::from(Action::Message(MessageAction::new("x")))));
    }
}
