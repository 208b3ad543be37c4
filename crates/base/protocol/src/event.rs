//! The envelope around an action or an observation, and its JSON form (actions-and-observations 2).

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::action::{self, Action};
use crate::envelope::{self, Envelope, put};
use crate::error::{
    EnvelopeError, FREE_TEXT_LIMIT, ParseActionError, ParseEventError, ParseObservationError, describe,
};
use crate::legacy;
use crate::observation::{self, Observation};
use crate::python;
use crate::values::{ConfirmationState, EventSource};

/// An action or an observation: what a conversation is made of.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "events are shared behind an `Arc`, not moved about")]
pub enum Event {
    /// Something is wanted.
    Action(ActionEvent),
    /// Something happened.
    Observation(ObservationEvent),
}

impl Event {
    /// Reads an event of either sort: what has an `action` is an action (event-stream 1.1).
    pub fn from_value(value: Value) -> Result<Self, ParseEventError> {
        let has = |key| value.as_object().is_some_and(|event| event.contains_key(key));
        if has("observation") && !has("action") {
            Ok(Self::Observation(ObservationEvent::from_value(value)?))
        } else {
            Ok(Self::Action(ActionEvent::from_value(value)?))
        }
    }

    /// The JSON form.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Action(event) => event.to_value(),
            Self::Observation(event) => event.to_value(),
        }
    }

    /// Number in the conversation.
    pub fn id(&self) -> Option<i64> {
        match self {
            Self::Action(event) => event.id,
            Self::Observation(event) => event.id,
        }
    }

    /// When it happened: ISO 8601 without zone.
    pub fn timestamp(&self) -> Option<&str> {
        match self {
            Self::Action(event) => event.timestamp.as_deref(),
            Self::Observation(event) => event.timestamp.as_deref(),
        }
    }

    /// Who wants or caused it.
    pub fn source(&self) -> Option<EventSource> {
        match self {
            Self::Action(event) => event.source,
            Self::Observation(event) => event.source,
        }
    }

    /// Number of the event that led to it.
    pub fn cause(&self) -> Option<i64> {
        match self {
            Self::Action(event) => event.cause,
            Self::Observation(event) => event.cause,
        }
    }

    /// Name of the kind on the wire. An action and an observation can have the same.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Action(event) => event.action.kind(),
            Self::Observation(event) => event.observation.kind(),
        }
    }

    /// Whether the agent is not meant to see it: a `run` that says so, and what comes of it.
    pub fn hidden(&self) -> bool {
        match self {
            Self::Action(event) => event.action.hidden(),
            Self::Observation(event) => match &event.observation {
                Observation::Run(run) => run.hidden,
                _ => false,
            },
        }
    }

    /// Gives it its place in a conversation.
    pub fn place(&mut self, new_id: i64, new_timestamp: String, new_source: EventSource) {
        let (id, timestamp, source) = match self {
            Self::Action(event) => (&mut event.id, &mut event.timestamp, &mut event.source),
            Self::Observation(event) => (&mut event.id, &mut event.timestamp, &mut event.source),
        };
        *id = Some(new_id);
        *timestamp = Some(new_timestamp);
        *source = Some(new_source);
    }
}

impl From<ActionEvent> for Event {
    fn from(event: ActionEvent) -> Self {
        Self::Action(event)
    }
}

impl From<ObservationEvent> for Event {
    fn from(event: ObservationEvent) -> Self {
        Self::Observation(event)
    }
}

impl From<Action> for Event {
    fn from(action: Action) -> Self {
        Self::Action(action.into())
    }
}

impl From<Observation> for Event {
    fn from(observation: Observation) -> Self {
        Self::Observation(observation.into())
    }
}

/// An action and what is known about it.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionEvent {
    /// Number in the conversation.
    pub id: Option<i64>,
    /// When it happened: ISO 8601 without zone.
    pub timestamp: Option<String>,
    /// Who wants it.
    pub source: Option<EventSource>,
    /// Number of the event that led to it.
    pub cause: Option<i64>,
    /// The model's tool call; carried, never looked into.
    pub tool_call_metadata: Option<Value>,
    /// What the model's answer cost; carried, never looked into.
    pub llm_metrics: Option<Value>,
    /// Hard limit in seconds.
    pub timeout: Option<f64>,
    /// Whether the user let it pass, for kinds of action that have no such field of their own: see
    /// [`ActionEvent::confirmation`].
    pub confirmation_state: Option<ConfirmationState>,
    /// What is wanted.
    pub action: Action,
}

impl From<Action> for ActionEvent {
    fn from(action: Action) -> Self {
        Self {
            id: None,
            timestamp: None,
            source: None,
            cause: None,
            tool_call_metadata: None,
            llm_metrics: None,
            timeout: None,
            confirmation_state: None,
            action,
        }
    }
}

impl ActionEvent {
    /// Reads an action as the caller's own deserialiser does (actions-and-observations 2.4).
    pub fn from_value(value: Value) -> Result<Self, ParseActionError> {
        let Value::Object(mut event) = value else {
            return Err(EnvelopeError::NotAnObject { found: describe(&value) }.into());
        };
        let kind = action_kind(&event)?;

        let mut args = match event.get_mut("args") {
            None => Map::new(),
            Some(Value::Object(args)) => std::mem::take(args),
            Some(other) => {
                let found = describe(other);
                return Err(EnvelopeError::WrongType { field: "args", expected: "an object", found }.into());
            }
        };
        let old_timestamp = legacy::normalise_args(&mut args);
        // The class takes its own name as an argument.
        if args.get("action").and_then(Value::as_str) == Some(kind) {
            args.shift_remove("action");
        }
        let action = match Action::from_args(kind, &args) {
            Ok(action) => action,
            Err(error) => {
                if let Some(slot) = event.get_mut("args") {
                    *slot = Value::Object(args);
                }
                let object = python::object_bounded(&event, FREE_TEXT_LIMIT);
                return Err(ParseActionError::WrongArguments { kind, object, source: Box::new(error) });
            }
        };
        if let Action::Condensation(condensation) = &action
            && !condensation.is_valid()
        {
            return Err(ParseActionError::InvalidCondensation);
        }

        let timeout = envelope::timeout(event.get("timeout"))?;
        let Envelope { id, timestamp, source, cause, tool_call_metadata, llm_metrics } =
            Envelope::take(&mut event, old_timestamp)?;
        let confirmation_state =
            event.get("confirmation_state").and_then(Value::as_str).and_then(ConfirmationState::parse);
        Ok(Self { id, timestamp, source, cause, tool_call_metadata, llm_metrics, timeout, confirmation_state, action })
    }

    /// The JSON form (actions-and-observations 2.1).
    pub fn to_value(&self) -> Value {
        let mut event = Map::new();
        put(&mut event, "id", self.id.filter(|id| *id != -1));
        put(&mut event, "timestamp", self.timestamp.as_deref());
        put(&mut event, "source", self.source.map(EventSource::as_str));
        put(&mut event, "message", Some(self.action.message()));
        put(&mut event, "cause", self.cause);
        put(&mut event, "action", Some(self.action.kind()));
        put(&mut event, "tool_call_metadata", self.tool_call_metadata.clone());
        put(&mut event, "llm_metrics", self.llm_metrics.clone());
        put(&mut event, "args", Some(self.action.to_args()));
        put(&mut event, "timeout", self.timeout);
        if self.action.confirmation_state().is_none() {
            let noteworthy = self.confirmation_state.filter(|state| *state != ConfirmationState::Confirmed);
            put(&mut event, "confirmation_state", noteworthy.map(ConfirmationState::as_str));
        }
        Value::Object(event)
    }

    /// Whether the user let it pass (security 1).
    ///
    /// `run` and `run_ipython` carry the state among their arguments. For the other kinds it stands beside the
    /// arguments, where the reference ignores it: among them it would make the event unreadable there.
    pub fn confirmation(&self) -> ConfirmationState {
        self.action.confirmation_state().or(self.confirmation_state).unwrap_or(ConfirmationState::Confirmed)
    }

    /// Says whether the user let it pass.
    pub fn set_confirmation(&mut self, state: ConfirmationState) {
        match &mut self.action {
            Action::Run(run) => run.confirmation_state = state,
            Action::RunIpython(cell) => cell.confirmation_state = state,
            _ => self.confirmation_state = Some(state),
        }
    }
}

/// Which kind of action the object says it is.
fn action_kind(event: &Map<String, Value>) -> Result<&'static str, ParseActionError> {
    let Some(kind) = event.get("action") else {
        if event.contains_key("observation") {
            return Err(ParseActionError::NotAnAction);
        }
        let object = python::object_bounded(event, FREE_TEXT_LIMIT);
        return Err(ParseActionError::UnknownEvent { object });
    };
    action::names::NAMES
        .iter()
        .map(|(_, name)| *name)
        .find(|name| kind.as_str() == Some(name))
        .ok_or_else(|| ParseActionError::UnknownAction { value: python::repr_bounded(kind, FREE_TEXT_LIMIT) })
}

impl Serialize for ActionEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ActionEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// An observation and what is known about it.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservationEvent {
    /// Number in the conversation.
    pub id: Option<i64>,
    /// When it happened: ISO 8601 without zone.
    pub timestamp: Option<String>,
    /// Who caused it.
    pub source: Option<EventSource>,
    /// Number of the action that led to it.
    pub cause: Option<i64>,
    /// The model's tool call; carried, never looked into.
    pub tool_call_metadata: Option<Value>,
    /// What the model's answer cost; carried, never looked into.
    pub llm_metrics: Option<Value>,
    /// What came of the action.
    pub observation: Observation,
}

impl From<Observation> for ObservationEvent {
    fn from(observation: Observation) -> Self {
        Self {
            id: None,
            timestamp: None,
            source: None,
            cause: None,
            tool_call_metadata: None,
            llm_metrics: None,
            observation,
        }
    }
}

impl ObservationEvent {
    /// Reads an observation as the caller does (actions-and-observations 2.5).
    pub fn from_value(value: Value) -> Result<Self, ParseObservationError> {
        let Value::Object(mut event) = value else {
            return Err(EnvelopeError::NotAnObject { found: describe(&value) }.into());
        };
        let kind = observation_kind(&event)?;

        let extras = match event.shift_remove("extras") {
            None => Map::new(),
            Some(Value::Object(extras)) => extras,
            Some(other) => {
                let found = describe(&other);
                return Err(EnvelopeError::WrongType { field: "extras", expected: "an object", found }.into());
            }
        };
        let content = event.shift_remove("content").unwrap_or_else(|| Value::from(""));
        let mut fields = extras;
        legacy::normalise_extras(&mut fields);
        if fields.contains_key("content") {
            let found = "an object with a second 'content'".to_owned();
            return Err(EnvelopeError::WrongType { field: "extras", expected: "an object", found }.into());
        }
        fields.insert("content".to_owned(), content);
        if fields.get("observation").and_then(Value::as_str) == Some(kind) {
            fields.shift_remove("observation");
        }
        let observation = Observation::from_fields(kind, &fields)
            .map_err(|error| ParseObservationError::WrongFields { kind, source: Box::new(error) })?;

        let Envelope { id, timestamp, source, cause, tool_call_metadata, llm_metrics } =
            Envelope::take(&mut event, None)?;
        Ok(Self { id, timestamp, source, cause, tool_call_metadata, llm_metrics, observation })
    }

    /// The JSON form (actions-and-observations 2.2).
    pub fn to_value(&self) -> Value {
        let mut event = Map::new();
        put(&mut event, "id", self.id.filter(|id| *id != -1));
        put(&mut event, "timestamp", self.timestamp.as_deref());
        put(&mut event, "source", self.source.map(EventSource::as_str));
        put(&mut event, "message", Some(self.observation.message()));
        put(&mut event, "cause", self.cause);
        put(&mut event, "observation", Some(self.observation.kind()));
        put(&mut event, "tool_call_metadata", self.tool_call_metadata.clone());
        put(&mut event, "llm_metrics", self.llm_metrics.clone());
        put(&mut event, "content", Some(self.observation.content()));
        put(&mut event, "extras", Some(self.observation.to_extras()));
        put(&mut event, "success", self.observation.success());
        Value::Object(event)
    }
}

/// Which kind of observation the object says it is.
fn observation_kind(event: &Map<String, Value>) -> Result<&'static str, ParseObservationError> {
    let Some(kind) = event.get("observation") else {
        let object = python::object_bounded(event, FREE_TEXT_LIMIT);
        return Err(ParseObservationError::NotAnObservation { object });
    };
    observation::KINDS
        .into_iter()
        .find(|name| kind.as_str() == Some(name))
        .ok_or_else(|| ParseObservationError::UnknownObservation { value: python::repr_bounded(kind, FREE_TEXT_LIMIT) })
}

impl Serialize for ObservationEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ObservationEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
