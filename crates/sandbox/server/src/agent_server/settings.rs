//! What `POST /api/init` brings, and what is wrong with it. Errors never repeat values: many of them are secret.

use serde_json::{Map, Value, json};

use super::{answers::understood, options::DeferredSettings};
use crate::key::SessionKey;

/// All fields that there are.
const FIELDS: [&str; 12] = [
    "session_api_keys",
    "secret_key",
    "previous_secret_keys",
    "conversations_path",
    "bash_events_dir",
    "conversation_worktree_root",
    "webhooks",
    "web_url",
    "allow_cors_origins",
    "max_concurrent_runs",
    "env",
    "telemetry",
];
/// Longest variable with its name, in bytes: the system starts no program with a longer one.
const VARIABLE: usize = 128 * 1024 - 2;

/// The settings of a body, or all that is wrong with it.
pub(super) fn settings_of(bytes: &[u8]) -> Result<DeferredSettings, Vec<Value>> {
    let value = understood(bytes).map_err(|wrong| vec![wrong])?;
    let Value::Object(fields) = &value else {
        let text = "Input should be a valid dictionary or object to extract fields from";
        return Err(vec![wrong("model_attributes_type", &[], text)]);
    };
    let mut form = Form { fields, errors: Vec::new() };
    let unknown = fields.keys().filter(|name| !FIELDS.contains(&name.as_str()));
    form.errors.extend(unknown.map(|name| wrong("extra_forbidden", &[json!(name)], "Extra inputs are not permitted")));
    let settings = DeferredSettings {
        session_keys: form.texts("session_api_keys").map(|keys| keys.into_iter().map(SessionKey::new).collect()),
        secret_key: form.text("secret_key").filter(|key| !key.trim().is_empty()).map(SessionKey::new),
        previous_secret_keys: form
            .texts("previous_secret_keys")
            .map(|keys| keys.into_iter().map(SessionKey::new).collect()),
        environment: form.variables("env"),
        events: form.text("bash_events_dir").map(Into::into),
        origins: form.texts("allow_cors_origins"),
        of_agent: [
            ("OH_CONVERSATIONS_PATH", form.text("conversations_path")),
            ("OH_CONVERSATION_WORKTREE_ROOT", form.text("conversation_worktree_root")),
            ("OH_WEBHOOKS", form.json("webhooks", "list_type", "Input should be a valid list", Value::is_array)),
            ("OH_WEB_URL", form.text("web_url")),
            ("OH_MAX_CONCURRENT_RUNS", form.number("max_concurrent_runs")),
            (
                "OH_TELEMETRY",
                form.json("telemetry", "dict_type", "Input should be a valid dictionary", Value::is_object),
            ),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect(),
    };
    if form.errors.is_empty() { Ok(settings) } else { Err(form.errors) }
}

/// Something that is not what it should be, below the body.
fn wrong(kind: &str, below: &[Value], text: &str) -> Value {
    let place: Vec<Value> = std::iter::once(json!("body")).chain(below.iter().cloned()).collect();
    json!({"type": kind, "loc": place, "msg": text})
}

/// The fields of a body, and what was found to be wrong with them.
struct Form<'a> {
    fields: &'a Map<String, Value>,
    errors: Vec<Value>,
}

impl<'a> Form<'a> {
    fn field(&self, name: &str) -> Option<&'a Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    fn complain(&mut self, kind: &str, below: &[Value], text: &str) {
        self.errors.push(wrong(kind, below, text));
    }

    fn text(&mut self, name: &str) -> Option<String> {
        let text = self.field(name)?.as_str().map(str::to_owned);
        if text.is_none() {
            self.complain("string_type", &[json!(name)], "Input should be a valid string");
        }
        text
    }

    fn texts(&mut self, name: &str) -> Option<Vec<String>> {
        let Value::Array(items) = self.field(name)? else {
            self.complain("list_type", &[json!(name)], "Input should be a valid list");
            return None;
        };
        for (at, _) in items.iter().enumerate().filter(|(_, item)| !item.is_string()) {
            self.complain("string_type", &[json!(name), json!(at)], "Input should be a valid string");
        }
        Some(items.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    }

    /// Variables as a program can have them.
    fn variables(&mut self, name: &str) -> Vec<(String, String)> {
        let items = match self.field(name) {
            None => return Vec::new(),
            Some(Value::Object(items)) => items,
            Some(_) => {
                self.complain("dict_type", &[json!(name)], "Input should be a valid dictionary");
                return Vec::new();
            }
        };
        let mut variables = Vec::new();
        for (variable, value) in items {
            let place = [json!(name), json!(variable)];
            let Value::String(value) = value else {
                self.complain("string_type", &place, "Input should be a valid string");
                continue;
            };
            if variable.is_empty() || variable.contains(['=', '\0']) || value.contains('\0') {
                self.complain("value_error", &place, "no program can have a variable like this");
            } else if variable.len() + value.len() > VARIABLE {
                self.complain("value_error", &place, "no program can be started with a variable of over 128 KiB");
            } else {
                variables.push((variable.clone(), value.clone()));
            }
        }
        variables
    }

    /// A whole number from 1 on, as a text.
    fn number(&mut self, name: &str) -> Option<String> {
        let value = self.field(name)?;
        let number = value.as_i64().or_else(|| value.as_str()?.trim().parse().ok());
        match number {
            Some(number) if number >= 1 => return Some(number.to_string()),
            Some(_) => {
                self.complain("greater_than_equal", &[json!(name)], "Input should be greater than or equal to 1");
            }
            None => self.complain("int_type", &[json!(name)], "Input should be a valid integer"),
        }
        None
    }

    /// Something that the agent understands, as it came.
    fn json(&mut self, name: &str, kind: &str, text: &str, fits: fn(&Value) -> bool) -> Option<String> {
        let value = self.field(name)?;
        if !fits(value) {
            self.complain(kind, &[json!(name)], text);
            return None;
        }
        Some(value.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_read_and_what_is_not_stays() {
        let settings = settings_of(
            json!({"session_api_keys": ["k"], "secret_key": " ", "env": {"A": "1"}, "bash_events_dir": "/e",
                "webhooks": [{"base_url": "u"}], "max_concurrent_runs": "3", "web_url": null})
            .to_string()
            .as_bytes(),
        )
        .unwrap();
        assert!(settings.session_keys.unwrap()[0].matches(b"k") && settings.secret_key.is_none());
        assert_eq!(settings.environment, [("A".to_owned(), "1".to_owned())]);
        assert_eq!(settings.events.unwrap().to_str(), Some("/e"));
        assert_eq!(
            settings.of_agent,
            [("OH_WEBHOOKS", r#"[{"base_url":"u"}]"#.to_owned()), ("OH_MAX_CONCURRENT_RUNS", "3".to_owned())]
        );
        let nothing = settings_of(b"{}").unwrap();
        assert!(nothing.session_keys.is_none() && nothing.of_agent.is_empty());
    }

    #[test]
    fn mistakes_are_told_with_their_places_and_without_values() {
        for (body, kind, place) in [
            (json!([]), "model_attributes_type", json!(["body"])),
            (json!({"key": "s3cret"}), "extra_forbidden", json!(["body", "key"])),
            (json!({"session_api_keys": "s3cret"}), "list_type", json!(["body", "session_api_keys"])),
            (json!({"session_api_keys": ["s3cret", 7]}), "string_type", json!(["body", "session_api_keys", 1])),
            (json!({"secret_key": ["s3cret"]}), "string_type", json!(["body", "secret_key"])),
            (json!({"env": "s3cret"}), "dict_type", json!(["body", "env"])),
            (json!({"env": {"A": ["s3cret"]}}), "string_type", json!(["body", "env", "A"])),
            (json!({"env": {"A=B": "s3cret"}}), "value_error", json!(["body", "env", "A=B"])),
            (json!({"env": {"A": "s3cret\u{0}"}}), "value_error", json!(["body", "env", "A"])),
            (json!({"env": {"A": "s3cret".repeat(30_000)}}), "value_error", json!(["body", "env", "A"])),
            (json!({"webhooks": {"a": "s3cret"}}), "list_type", json!(["body", "webhooks"])),
            (json!({"telemetry": "s3cret"}), "dict_type", json!(["body", "telemetry"])),
            (json!({"max_concurrent_runs": 0}), "greater_than_equal", json!(["body", "max_concurrent_runs"])),
            (json!({"max_concurrent_runs": "s3cret"}), "int_type", json!(["body", "max_concurrent_runs"])),
        ] {
            let wrong = settings_of(body.to_string().as_bytes()).unwrap_err();
            assert_eq!((&wrong[0]["type"], &wrong[0]["loc"], wrong.len()), (&json!(kind), &place, 1), "{body}");
            assert!(!json!(wrong).to_string().contains("s3cret"), "{wrong:?}");
        }
        assert_eq!(settings_of(b"{").unwrap_err()[0]["type"], "json_invalid");
        assert_eq!(settings_of(b"").unwrap_err()[0]["type"], "missing");
    }
}
