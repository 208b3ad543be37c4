//! Older forms of events that the caller still reads (actions-and-observations 2.4 rules 2 to 7, 2.5 rule 2).

use serde_json::{Map, Value};

use crate::python_literal;
use crate::values::SecurityRisk;

/// Brings the `args` of an action into today's form and gives the timestamp that was among them.
pub(crate) fn normalise_args(args: &mut Map<String, Value>) -> Option<String> {
    let timestamp = match args.shift_remove("timestamp") {
        Some(Value::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    };
    if let Some(state) = args.shift_remove("is_confirmed").filter(|state| !state.is_null()) {
        args.insert("confirmation_state".to_owned(), state);
    }
    if let Some(urls) = args.shift_remove("images_urls") {
        args.insert("image_urls".to_owned(), urls);
    }
    normalise_security_risk(args);
    args.shift_remove("keep_prompt");
    args.shift_remove("task_completed");
    if let Some(code) = args.shift_remove("translated_ipython_code") {
        if let Some(entries) = code.as_str().and_then(editor_call) {
            args.extend(entries);
        }
        if args.get("command").and_then(Value::as_str) == Some("view") {
            args.shift_remove("command");
        }
    }
    timestamp
}

/// Values that are no risk are dropped, so that the default applies. Booleans and whole floats equal their integers.
fn normalise_security_risk(args: &mut Map<String, Value>) {
    let Some(value) = args.get("security_risk") else { return };
    let number = match value {
        Value::Bool(flag) => Some(i64::from(*flag)),
        Value::Number(number) if number.is_f64() => {
            [-1, 0, 1, 2].into_iter().find(|candidate| Value::from(*candidate).as_f64() == number.as_f64())
        }
        other => other.as_i64(),
    };
    match number.and_then(SecurityRisk::from_i64) {
        Some(risk) => {
            args.insert("security_risk".to_owned(), Value::from(risk.as_i64()));
        }
        None => {
            args.shift_remove("security_risk");
        }
    }
}

/// The arguments of a call `print(file_editor(**{…}))`.
fn editor_call(code: &str) -> Option<Map<String, Value>> {
    let literal = code.strip_prefix("print(file_editor(**")?.strip_suffix("))")?;
    match python_literal::parse(literal)? {
        Value::Object(entries) => Some(entries),
        _ => None,
    }
}

/// Brings the `extras` of an observation into today's form.
pub(crate) fn normalise_extras(extras: &mut Map<String, Value>) {
    for (old, new) in [("exit_code", "exit_code"), ("command_id", "pid")] {
        let Some(value) = extras.shift_remove(old) else { continue };
        let slot = extras.entry("metadata").or_insert(Value::Null);
        if slot.is_null() {
            *slot = Value::Object(Map::new());
        }
        if let Value::Object(metadata) = slot {
            metadata.insert(new.to_owned(), value);
        }
    }
    extras.shift_remove("formatted_output_and_error");
}
