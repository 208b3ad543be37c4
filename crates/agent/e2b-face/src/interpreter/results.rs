//! What cells show, as the code interpreter tells it: one JSON object a line.

use gloveport_client::CellDetail;
use gloveport_protocol::kernels::{CellOutcome, CellResult, KERNEL_LOST};
use serde_json::{Map, Value, json};

/// The members of results by the types of their forms.
const FORMS: [(&str, &str); 11] = [
    ("text/plain", "text"),
    ("text/html", "html"),
    ("text/markdown", "markdown"),
    ("image/svg+xml", "svg"),
    ("image/png", "png"),
    ("image/jpeg", "jpeg"),
    ("application/pdf", "pdf"),
    ("text/latex", "latex"),
    ("application/json", "json"),
    ("application/javascript", "javascript"),
    ("application/vnd.dataframe+json", "data"),
];

/// A text as Python writes it.
pub(super) fn python_text(text: &str) -> String {
    // Its escapes are those of JSON but for the pairs, which `ensure_ascii` makes and this does not.
    Value::from(text).to_string()
}

/// One line of the answer.
pub(super) fn line(value: &Value) -> String {
    format!("{value}\n")
}

/// What something that a cell did is told as; nothing for its usual end.
pub(super) fn told(detail: CellDetail, timestamp: i64) -> Option<Value> {
    Some(match detail {
        CellDetail::Stream { is_error, text } => {
            json!({"type": if is_error { "stderr" } else { "stdout" }, "text": text, "timestamp": timestamp})
        }
        CellDetail::Display { data, is_result } => result(data, is_result),
        CellDetail::Raised { name, value, traceback } => error(&name, &value, &traceback.join("\n")),
        CellDetail::Ended(CellResult { end, .. }) => match end {
            CellOutcome::Completed | CellOutcome::Raised => return None,
            CellOutcome::TimedOut => error("TimeoutError", "the time of the execution is over", ""),
            CellOutcome::Died => error("KernelDied", &format!("the kernel ended with the code. {KERNEL_LOST}"), ""),
        },
    })
}

pub(super) fn error(name: &str, value: &str, traceback: &str) -> Value {
    json!({"type": "error", "name": name, "value": value, "traceback": traceback})
}

fn result(data: Map<String, Value>, is_result: bool) -> Value {
    let mut told = Map::new();
    let mut extra = Map::new();
    for (kind, form) in data {
        match FORMS.iter().find(|(known, _)| *known == kind) {
            Some((_, "json" | "data")) if form.is_object() || form.is_array() => {
                let member = if kind == "application/json" { "json" } else { "data" };
                told.insert(member.to_owned(), form);
            }
            Some((_, member)) => {
                let mut text = whole(form);
                // Python's base64 comes in lines.
                if let (true, Value::String(base64)) =
                    (kind.starts_with("image/") && kind != "image/svg+xml", &mut text)
                {
                    base64.retain(|letter| !letter.is_ascii_whitespace());
                }
                told.insert((*member).to_owned(), text);
            }
            None => drop(extra.insert(kind, form)),
        }
    }
    told.insert("type".to_owned(), "result".into());
    told.insert("is_main_result".to_owned(), is_result.into());
    if !extra.is_empty() {
        told.insert("extra".to_owned(), extra.into());
    }
    told.into()
}

/// Text may come as its lines.
fn whole(form: Value) -> Value {
    match form {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect::<String>().into(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_get_the_names_of_their_members_and_others_are_extra() {
        let data = json!({
            "text/plain": ["a\n", "b"], "image/png": "AA\nBB\n", "application/json": {"a": 1}, "application/x": 1,
            "text/html": "<b>",
        });
        let told = result(data.as_object().cloned().unwrap(), true);
        let expected = json!({
            "type": "result", "is_main_result": true, "text": "a\nb", "png": "AABB", "json": {"a": 1}, "html": "<b>",
            "extra": {"application/x": 1},
        });
        assert_eq!(told, expected);
    }

    #[test]
    fn texts_are_literals_of_python() {
        assert_eq!(python_text("a\"b\\\n'ä"), "\"a\\\"b\\\\\\n'ä\"");
    }
}
