//! Why JSON was refused.

use serde_json::Value;

use crate::python;

/// Longest free text of an object in an error, in Unicode code points.
pub const FREE_TEXT_LIMIT: usize = 2_000;

/// What a value is, for an error: "an integer".
pub(crate) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number with a fraction",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
    .to_owned()
}

/// Like [`describe`], but shows scalars themselves; for fields that allow few values.
pub(crate) fn describe_text(value: &Value) -> String {
    match value {
        Value::Number(_) | Value::String(_) => python::repr_bounded(value, FREE_TEXT_LIMIT),
        _ => describe(value),
    }
}

/// The names of the missing arguments as Python lists them.
fn listed(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("'{name}'")).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [first, second] => format!("{first} and {second}"),
        [most @ .., last] => format!("{}, and {last}", most.join(", ")),
    }
}

/// What is wrong with the fields of one action or observation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// Fields without a default are absent.
    #[error(
        "{class}.__init__() missing {} required positional argument{}: {}",
        names.len(), if names.len() == 1 { "" } else { "s" }, listed(names)
    )]
    Missing {
        /// Class of the reference that the kind stands for.
        class: &'static str,
        /// The absent fields, in the order of the class.
        names: Vec<&'static str>,
    },
    /// A name that the class does not have.
    #[error("{class}.__init__() got an unexpected keyword argument '{}'", python::bounded(key, FREE_TEXT_LIMIT))]
    Unexpected {
        /// Class of the reference that the kind stands for.
        class: &'static str,
        /// The first such name.
        key: String,
    },
    /// A value of another type than the field's. The reference accepts it here and fails later, if at all.
    #[error("{class}.{field} must be {expected}, not {found}")]
    WrongType {
        /// Class of the reference that the kind stands for.
        class: &'static str,
        /// Name of the field on the wire.
        field: &'static str,
        /// What the field holds: "a string".
        expected: String,
        /// What was there: "an integer".
        found: String,
    },
}

/// What is wrong with the top level of an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// The event is no JSON object.
    #[error("an event must be an object, not {found}")]
    NotAnObject {
        /// What was there: "an array".
        found: String,
    },
    /// A key has a value of another type.
    #[error("the event's '{field}' must be {expected}, not {found}")]
    WrongType {
        /// The key.
        field: &'static str,
        /// What it holds: "a number".
        expected: &'static str,
        /// What was there: "an array".
        found: String,
    },
    /// `source` names nobody.
    #[error("{value} is not a valid EventSource")]
    UnknownSource {
        /// The value, as Python prints it.
        value: String,
    },
}

/// Why an object is no action.
///
/// The text is what follows `Internal server error: ` in the answer (action-execution-api 2.4).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseActionError {
    /// There is neither an `action` nor an `observation` key.
    #[error("Unknown event type: {object}")]
    UnknownEvent {
        /// The object as Python prints it, bounded by [`FREE_TEXT_LIMIT`].
        object: String,
    },
    /// `action` is no string, or no name of an action.
    #[error("'action['action']={value}' is not defined. Available actions: {}", available_actions())]
    UnknownAction {
        /// The value as Python prints it, bounded by [`FREE_TEXT_LIMIT`].
        value: String,
    },
    /// The object is an observation.
    #[error("400: Invalid action type")]
    NotAnAction,
    /// The `args` do not fit the kind of action.
    #[error("action={object} has the wrong arguments: {source}")]
    WrongArguments {
        /// Name of the action on the wire.
        kind: &'static str,
        /// The object as Python prints it, bounded by [`FREE_TEXT_LIMIT`].
        object: String,
        /// What is wrong.
        source: Box<FieldError>,
    },
    /// A condensation names both a list and a range of events, or neither, or half a summary.
    #[error("Invalid configuration of the optional fields.")]
    InvalidCondensation,
    /// The top level is wrong.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
}

fn available_actions() -> String {
    let names: Vec<_> =
        crate::action::names::NAMES.iter().map(|(member, kind)| format!("<ActionType.{member}: '{kind}'>")).collect();
    format!("dict_keys([{}])", names.join(", "))
}

/// Why an object is no observation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseObservationError {
    /// There is no `observation` key.
    #[error("the object has no 'observation' key: {object}")]
    NotAnObservation {
        /// The object as Python prints it, bounded by [`FREE_TEXT_LIMIT`].
        object: String,
    },
    /// `observation` is no name of an observation.
    #[error("{value} is not an observation")]
    UnknownObservation {
        /// The value as Python prints it, bounded by [`FREE_TEXT_LIMIT`].
        value: String,
    },
    /// `content` and `extras` do not fit the kind of observation.
    #[error("the '{kind}' observation has the wrong fields: {source}")]
    WrongFields {
        /// Name of the observation on the wire.
        kind: &'static str,
        /// What is wrong.
        source: Box<FieldError>,
    },
    /// The top level is wrong.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
}

/// Why an object is neither an action nor an observation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseEventError {
    /// It says that it is an action, or says nothing.
    #[error(transparent)]
    Action(#[from] ParseActionError),
    /// It says that it is an observation.
    #[error(transparent)]
    Observation(#[from] ParseObservationError),
}
