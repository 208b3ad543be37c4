//! What a value looks like where people and logs see it.
//!
//! Values of type `Secret` hide themselves. This module cares for secrets in places of another type: passwords and
//! queries of URLs, `NAME=value` words, and members of free-form tables whose names tell what they hold.

use serde_json::{Map, Value};

/// What stands in place of a secret (configuration 10).
pub(crate) const MASK: &str = "**********";

/// Parts of names that tell of a secret.
const TELLING: [&str; 8] = ["key", "token", "secret", "password", "passwd", "credential", "authorization", "cookie"];

/// Tables whose members are all taken for secrets.
const CLOSED: [&str; 4] = ["environment", "env", "headers", "extra_headers"];

/// Whether a thing of this name is likely a secret.
fn tells_of_a_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    TELLING.iter().any(|part| name.contains(part))
}

/// A text without the secrets that its form gives away.
pub(crate) fn text(text: &str) -> String {
    if let Some((name, value)) = text.split_once('=')
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        && tells_of_a_secret(name)
        && !value.is_empty()
    {
        return format!("{name}={MASK}");
    }
    url(text)
}

/// A URL without its password and the values of its query. Other texts stay as they are.
pub(crate) fn url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((name, _)) => format!("{name}:{MASK}@{host}"),
            None => format!("{MASK}@{host}"),
        },
        None => authority.to_owned(),
    };
    let path = match path.split_once('?') {
        Some((path, query)) => format!("{path}?{}", masked_query(query)),
        None => path.to_owned(),
    };
    format!("{scheme}://{authority}{path}")
}

fn masked_query(query: &str) -> String {
    let masked = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) => format!("{name}={MASK}"),
        None if pair.is_empty() => String::new(),
        None => MASK.to_owned(),
    });
    masked.collect::<Vec<_>>().join("&")
}

/// A free-form table without what its names tell to be secret.
pub(crate) fn table(members: &Map<String, Value>) -> Map<String, Value> {
    members.iter().map(|(name, value)| (name.clone(), member(name, value))).collect()
}

fn member(name: &str, value: &Value) -> Value {
    match value {
        // Counts and prices of tokens of a model.
        Value::Number(_) if name.contains("tokens") || name.contains("per_token") => value.clone(),
        _ if tells_of_a_secret(name) => closed(value),
        _ => open(name, value),
    }
}

fn open(name: &str, value: &Value) -> Value {
    match value {
        Value::Object(members) if CLOSED.contains(&name.to_ascii_lowercase().as_str()) => {
            members.iter().map(|(name, value)| (name.clone(), closed(value))).collect()
        }
        Value::Array(elements) if CLOSED.contains(&name.to_ascii_lowercase().as_str()) => {
            elements.iter().map(environment_word).collect()
        }
        Value::Object(members) => Value::Object(table(members)),
        Value::Array(elements) => elements.iter().map(|element| open(name, element)).collect(),
        Value::String(string) => Value::String(text(string)),
        other => other.clone(),
    }
}

/// `NAME=value` with only its name.
fn environment_word(value: &Value) -> Value {
    match value {
        Value::String(text) => match text.split_once('=') {
            Some((name, _)) => Value::String(format!("{name}={MASK}")),
            None => value.clone(),
        },
        other => closed(other),
    }
}

/// Only that something is there, and what it is called.
fn closed(value: &Value) -> Value {
    match value {
        Value::Null | Value::Bool(_) => value.clone(),
        Value::String(text) if text.is_empty() => value.clone(),
        Value::String(_) | Value::Number(_) => Value::String(MASK.to_owned()),
        Value::Array(elements) => elements.iter().map(closed).collect(),
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), closed(value))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_url_shows_neither_password_nor_values_of_its_query() {
        for (url_text, expected) in [
            ("https://example.com/mcp", "https://example.com/mcp"),
            ("https://user:hunter2@example.com/mcp", "https://user:**********@example.com/mcp"),
            ("https://hunter2@example.com", "https://**********@example.com"),
            ("https://example.com/?key=hunter2&x=1#top", "https://example.com/?key=**********&x=**********"),
            ("https://example.com?hunter2", "https://example.com?**********"),
            ("/a/b:/workspace:rw", "/a/b:/workspace:rw"),
            ("a@b.example", "a@b.example"),
        ] {
            assert_eq!(url(url_text), expected);
        }
        assert_eq!(text("API_KEY=hunter2"), "API_KEY=**********");
        assert_eq!(text("PATH=/bin"), "PATH=/bin");
    }

    #[test]
    fn a_table_hides_what_its_names_tell_to_be_secret() {
        let members = json!({
            "api_key": "hunter2", "max_tokens": 5, "pin_secret": 5, "tokens": ["hunter2"], "shm_size": "1g",
            "environment": {"A": "hunter2"}, "env": ["A=hunter2"], "inner": {"Password": {"x": "hunter2"}},
            "urls": ["https://u:hunter2@h/"],
        });
        let shown = Value::Object(table(members.as_object().unwrap()));
        assert_eq!(
            shown,
            json!({
                "api_key": MASK, "max_tokens": 5, "pin_secret": MASK, "tokens": [MASK], "shm_size": "1g",
                "environment": {"A": MASK}, "env": [format!("A={MASK}")], "inner": {"Password": {"x": MASK}},
                "urls": [format!("https://u:{MASK}@h/")],
            })
        );
    }
}
