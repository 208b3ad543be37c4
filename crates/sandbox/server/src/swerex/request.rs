//! Requests, and what is said of one that does not have its form: as FastAPI says it.

use gloveport_swerex::types::{
    BashAction, CloseSession, Command, CreateSession, Interrupt, ReadFile, SessionAction, WriteFile,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use serde_path_to_error::{Error, Path, Segment};

type Wrong = Error<serde_json::Error>;

/// What is asked.
pub(super) trait Request: Sized {
    /// The member that tells kinds of it apart, and the kinds.
    const KINDS: Option<(&str, &[&str])> = None;

    /// Reads one of this kind.
    fn read(value: &Value, kind: Option<&str>) -> Result<Self, Wrong>;
}

impl Request for CreateSession {
    const KINDS: Option<(&str, &[&str])> = Some(("session_type", &["bash"]));

    fn read(value: &Value, _: Option<&str>) -> Result<Self, Wrong> {
        plain(value)
    }
}

impl Request for CloseSession {
    const KINDS: Option<(&str, &[&str])> = CreateSession::KINDS;

    fn read(value: &Value, _: Option<&str>) -> Result<Self, Wrong> {
        plain(value)
    }
}

impl Request for SessionAction {
    const KINDS: Option<(&str, &[&str])> = Some(("action_type", &["bash", "bash_interrupt"]));

    fn read(value: &Value, kind: Option<&str>) -> Result<Self, Wrong> {
        if kind == Some("bash_interrupt") {
            return plain::<Interrupt>(value).map(Self::Interrupt);
        }
        plain::<BashAction>(value).map(Self::Bash)
    }
}

impl Request for Command {
    fn read(value: &Value, _: Option<&str>) -> Result<Self, Wrong> {
        plain(value)
    }
}

impl Request for ReadFile {
    fn read(value: &Value, _: Option<&str>) -> Result<Self, Wrong> {
        plain(value)
    }
}

impl Request for WriteFile {
    fn read(value: &Value, _: Option<&str>) -> Result<Self, Wrong> {
        plain(value)
    }
}

fn plain<T: DeserializeOwned>(value: &Value) -> Result<T, Wrong> {
    serde_path_to_error::deserialize(value)
}

/// Reads a request. The error is one of those that an answer with status 422 lists.
pub(super) fn understand<T: Request>(bytes: &[u8]) -> Result<T, Value> {
    if bytes.is_empty() {
        return Err(json!({"type": "missing", "loc": ["body"], "msg": "Field required", "input": null}));
    }
    let value: Value = serde_json::from_slice(bytes).map_err(|error| {
        json!({"type": "json_invalid", "loc": ["body", error.column()], "msg": "JSON decode error", "input": {},
            "ctx": {"error": error.to_string()}})
    })?;
    if !value.is_object() {
        let text = "Input should be a valid dictionary or object to extract fields from";
        return Err(json!({"type": "model_attributes_type", "loc": ["body"], "msg": text, "input": value}));
    }
    let kind = match T::KINDS {
        Some((member, kinds)) => Some(kind_of(&value, member, kinds)?),
        None => None,
    };
    T::read(&value, kind).map_err(|wrong| told(&wrong, kind, &value))
}

/// Which of its kinds a request is.
fn kind_of<'k>(value: &Value, member: &str, kinds: &[&'k str]) -> Result<&'k str, Value> {
    let quoted = format!("'{member}'");
    let given = match value.get(member) {
        None => {
            let text = format!("Unable to extract tag using discriminator {quoted}");
            return Err(json!({"type": "union_tag_not_found", "loc": ["body"], "msg": text, "input": value,
                "ctx": {"discriminator": quoted}}));
        }
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    kinds.iter().find(|kind| **kind == given).copied().ok_or_else(|| {
        let expected = kinds.iter().map(|kind| format!("'{kind}'")).collect::<Vec<_>>().join(", ");
        let text =
            format!("Input tag '{given}' found using {quoted} does not match any of the expected tags: {expected}");
        json!({"type": "union_tag_invalid", "loc": ["body"], "msg": text, "input": value,
            "ctx": {"discriminator": quoted, "tag": given, "expected_tags": expected}})
    })
}

/// What is wrong, where, and what stands there.
fn told(wrong: &Wrong, kind: Option<&str>, value: &Value) -> Value {
    let text = wrong.inner().to_string();
    let mut place = vec![json!("body")];
    place.extend(kind.map(Value::from));
    let found = follow(wrong.path(), value, &mut place);
    if let Some(field) = text.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        place.push(json!(field));
        return json!({"type": "missing", "loc": place, "msg": "Field required", "input": found});
    }
    let (name, text) = [
        ("expected a string", "string_type", "Input should be a valid string"),
        ("expected a sequence", "list_type", "Input should be a valid list"),
        ("expected a map", "dict_type", "Input should be a valid dictionary"),
        ("expected a boolean", "bool_type", "Input should be a valid boolean"),
        ("expected f64", "float_type", "Input should be a valid number"),
        ("expected u32", "int_type", "Input should be a valid integer"),
    ]
    .into_iter()
    .find_map(|(end, name, told)| text.ends_with(end).then(|| (name, told.to_owned())))
    .unwrap_or(("value_error", text));
    json!({"type": name, "loc": place, "msg": text, "input": found})
}

/// What stands at a place, which is added to what is known of it.
fn follow<'v>(path: &Path, value: &'v Value, place: &mut Vec<Value>) -> &'v Value {
    let mut found = value;
    for segment in path {
        let (name, next) = match segment {
            Segment::Map { key } => (json!(key), found.get(key)),
            Segment::Seq { index } => (json!(index), found.get(*index)),
            Segment::Enum { .. } | Segment::Unknown => break,
        };
        let Some(next) = next else { break };
        place.push(name);
        found = next;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong<T: Request>(text: &str) -> (Value, Value, Value) {
        let mut wrong = understand::<T>(text.as_bytes()).map(drop).unwrap_err();
        (wrong["loc"].take(), wrong["type"].take(), wrong["input"].take())
    }

    /// The values are those of SWE-ReX's own server.
    #[test]
    fn what_is_wrong_is_told_with_its_place_as_swerex_tells_it() {
        for (text, place, kind, input) in [
            (r#"{"path": 7}"#, json!(["body", "path"]), "string_type", json!(7)),
            ("{}", json!(["body", "path"]), "missing", json!({})),
            (r#"{"path": "a", "encoding": 5}"#, json!(["body", "encoding"]), "string_type", json!(5)),
            ("[]", json!(["body"]), "model_attributes_type", json!([])),
            ("null", json!(["body"]), "model_attributes_type", json!(null)),
            ("", json!(["body"]), "missing", json!(null)),
            ("{", json!(["body", 1]), "json_invalid", json!({})),
        ] {
            assert_eq!(wrong::<ReadFile>(text), (place, json!(kind), input), "{text}");
        }
        for (more, place, kind, input) in [
            (json!({"env": {"a": 1}}), json!(["body", "env", "a"]), "string_type", json!(1)),
            (json!({"cwd": 7}), json!(["body", "cwd"]), "string_type", json!(7)),
            (json!({"timeout": []}), json!(["body", "timeout"]), "float_type", json!([])),
            (json!({"shell": {}}), json!(["body", "shell"]), "bool_type", json!({})),
        ] {
            let mut whole = json!({"command": "true"});
            whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            assert_eq!(wrong::<Command>(&whole.to_string()), (place, json!(kind), input), "{whole}");
        }
        for (text, place, kind) in [
            (r#"{"command": "x"}"#, json!(["body"]), "union_tag_not_found"),
            (r#"{"action_type": "zsh"}"#, json!(["body"]), "union_tag_invalid"),
            (r#"{"action_type": "bash"}"#, json!(["body", "bash", "command"]), "missing"),
            (r#"{"action_type": "bash", "command": 7}"#, json!(["body", "bash", "command"]), "string_type"),
            (
                r#"{"action_type": "bash", "command": "true", "expect": "a"}"#,
                json!(["body", "bash", "expect"]),
                "list_type",
            ),
            (
                r#"{"action_type": "bash", "command": "true", "expect": [1]}"#,
                json!(["body", "bash", "expect", 0]),
                "string_type",
            ),
            (
                r#"{"action_type": "bash_interrupt", "n_retry": []}"#,
                json!(["body", "bash_interrupt", "n_retry"]),
                "int_type",
            ),
        ] {
            let (found, of_kind, _) = wrong::<SessionAction>(text);
            assert_eq!((found, of_kind), (place, json!(kind)), "{text}");
        }
        let session = r#"{"session": 7, "session_type": "bash"}"#;
        let expected = (json!(["body", "bash", "session"]), json!("string_type"), json!(7));
        assert_eq!(wrong::<CreateSession>(session), expected);
        assert_eq!(wrong::<CloseSession>(session), expected);
        assert_eq!(wrong::<CloseSession>("{}").1, json!("union_tag_not_found"));
        assert_eq!(wrong::<CloseSession>(r#"{"session_type": 7}"#).1, json!("union_tag_invalid"));
    }

    #[test]
    fn requests_are_read_by_their_kinds() {
        let interrupt = understand::<SessionAction>(br#"{"action_type": "bash_interrupt", "n_retry": 5}"#).unwrap();
        assert!(matches!(interrupt, SessionAction::Interrupt(interrupt) if interrupt.n_retry == 5));
        let command = understand::<SessionAction>(br#"{"action_type": "bash", "command": "true", "more": 1}"#).unwrap();
        assert!(matches!(command, SessionAction::Bash(command) if command.command == "true"));
    }
}
