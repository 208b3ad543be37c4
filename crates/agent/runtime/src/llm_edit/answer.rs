//! What models say.

use serde_json::Value;

const OPENING: &str = "<updated_code>";
const CLOSING: &str = "</updated_code>";
/// A first line that repeats what the draft was for.
const EDIT_MARK: &str = "#EDIT:";

/// The code of the first block in an answer (runtime-interface 15).
pub(super) fn updated_code(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(OPENING)?;
    let (code, _) = rest.split_once(CLOSING)?;
    let without_mark = code.starts_with(EDIT_MARK).then(|| code.split_once('\n')).flatten().map(|(_, rest)| rest);
    Some(without_mark.unwrap_or(code))
}

/// A draft that corrects a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Draft {
    pub(super) content: String,
    pub(super) start: i64,
    pub(super) end: i64,
}

/// How a model wants a file corrected.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Correction {
    /// By one more draft.
    Draft(Draft),
    /// By this text of the whole file.
    Whole(String),
}

/// The message of a model's answer.
#[derive(Debug)]
pub(super) struct Message(Value);

impl Message {
    /// The first message of a completion.
    pub(super) fn of(completion: &Value) -> Option<Self> {
        completion.pointer("/choices/0/message").filter(|message| message.is_object()).cloned().map(Self)
    }

    /// Its text; empty if it has none.
    pub(super) fn text(&self) -> String {
        match self.0.get("content") {
            Some(Value::String(text)) => text.clone(),
            // Some endpoints answer in parts.
            Some(Value::Array(parts)) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
            _ => String::new(),
        }
    }

    /// How it corrects a file: a call of the tool, or the whole text. Anything else is no correction, and neither is
    /// one of another file.
    pub(super) fn correction(&self, path: &str) -> Option<Correction> {
        let calls = self.0.get("tool_calls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        match calls {
            [] => updated_code(&self.text()).map(|code| Correction::Whole(code.to_owned())),
            [call] => draft(call.get("function")?, path).map(Correction::Draft),
            _ => None,
        }
    }
}

fn draft(function: &Value, path: &str) -> Option<Draft> {
    if function.get("name")?.as_str()? != super::prompt::TOOL {
        return None;
    }
    let arguments: Value = serde_json::from_str(function.get("arguments")?.as_str()?).ok()?;
    let line = |name: &str, default: i64| match arguments.get(name) {
        None | Some(Value::Null) => Some(default),
        Some(Value::String(text)) => text.parse().ok(),
        Some(number) => number.as_i64(),
    };
    if arguments.get("path")?.as_str()? != path {
        return None;
    }
    let content = arguments.get("content")?.as_str()?.to_owned();
    Some(Draft { content, start: line("start", 1)?, end: line("end", -1)? })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_code_is_in_the_first_block() {
        for (text, expected) in [
            ("<updated_code>a</updated_code>", Some("a")),
            ("Sure!\n<updated_code>\na\n</updated_code>\nDone.", Some("\na\n")),
            ("<updated_code>a</updated_code><updated_code>b</updated_code>", Some("a")),
            ("<updated_code>a<updated_code>b</updated_code>", Some("a<updated_code>b")),
            ("<updated_code></updated_code>", Some("")),
            ("<updated_code>#EDIT: fix\na\nb</updated_code>", Some("a\nb")),
            ("<updated_code>#EDIT: fix</updated_code>", Some("#EDIT: fix")),
            ("<updated_code>\n#EDIT: fix\na</updated_code>", Some("\n#EDIT: fix\na")),
            ("<updated_code>a", None),
            ("</updated_code>a<updated_code>", None),
            ("<UPDATED_CODE>a</UPDATED_CODE>", None),
            ("", None),
        ] {
            assert_eq!(updated_code(text), expected, "{text}");
        }
    }

    #[test]
    fn a_text_may_come_in_parts() {
        for (content, expected) in [
            (json!("a"), "a"),
            (json!([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]), "ab"),
            (json!(null), ""),
        ] {
            let completion = json!({"choices": [{"message": {"content": content}}]});
            assert_eq!(Message::of(&completion).unwrap().text(), expected);
        }
        assert!(Message::of(&json!({"choices": []})).is_none());
        assert!(Message::of(&json!({"choices": [{"message": "a"}]})).is_none());
    }

    #[test]
    fn a_correction_is_one_call_of_the_tool_for_the_file_or_a_block() {
        let call =
            |name: &str, arguments: Value| json!({"function": {"name": name, "arguments": arguments.to_string()}});
        let draft =
            |content: &str, start, end| Some(Correction::Draft(Draft { content: content.to_owned(), start, end }));
        let fix = call("edit_file", json!({"path": "/a", "content": "x", "start": 2, "end": "3"}));
        for (message, expected) in [
            (json!({"tool_calls": [fix]}), draft("x", 2, 3)),
            (json!({"tool_calls": [call("edit_file", json!({"path": "/a", "content": "x"}))]}), draft("x", 1, -1)),
            (
                json!({"tool_calls": [], "content": "<updated_code>y</updated_code>"}),
                Some(Correction::Whole("y".to_owned())),
            ),
            (json!({"tool_calls": null, "content": "no idea"}), None),
            (json!({"tool_calls": [fix, fix]}), None),
            (json!({"tool_calls": [call("edit_file", json!({"path": "/b", "content": "x"}))]}), None),
            (json!({"tool_calls": [call("edit_file", json!({"path": "/a"}))]}), None),
            (json!({"tool_calls": [call("edit_file", json!({"path": "/a", "content": "x", "start": "one"}))]}), None),
            (json!({"tool_calls": [call("finish", json!({}))]}), None),
            (json!({"tool_calls": [{"function": {"name": "edit_file", "arguments": "{"}}]}), None),
        ] {
            let completion = json!({"choices": [{"message": message}]});
            assert_eq!(Message::of(&completion).unwrap().correction("/a"), expected, "{message}");
        }
    }
}
