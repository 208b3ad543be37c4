//! The servers that a microagent brings along (runtime-interface 13.3).

use serde_json::{Map, Value, json};

use super::data::Data;

const STDIO: &str = "stdio_servers";
const SSE: &str = "sse_servers";
const SHTTP: &str = "shttp_servers";

/// Checks what the value must be to be merged with the configuration, and gives it as JSON: an object with the three
/// lists, in which a server given by its URL alone is an object, too.
pub(super) fn read(value: &Data, microagent: &str) -> Result<Value, String> {
    let Data::Map(entries) = value else { return Err(format!("`mcp_tools` must be a map, not {}", value.kind())) };
    let mut servers = Map::from_iter([STDIO, SSE, SHTTP].map(|list| (list.to_owned(), json!([]))));
    for (key, value) in entries {
        let key = key.python_text();
        let Some(list) = servers.get_mut(&key) else {
            return Err(format!("`mcp_tools.{key}` is not known; there are `{STDIO}`, `{SSE}` and `{SHTTP}`"));
        };
        let Data::List(items) = value else {
            return Err(format!("`mcp_tools.{key}` must be a list, not {}", value.kind()));
        };
        *list = items
            .iter()
            .enumerate()
            .map(|(index, item)| server(&key, index, item))
            .collect::<Result<Vec<_>, _>>()
            .map(Value::Array)?;
    }
    let has = |list: &str| servers.get(list).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    if has(SSE) {
        tracing::warn!(microagent, "`mcp_tools` of a microagent has `{SSE}`, which are not used; only `{STDIO}` are");
    }
    if !has(STDIO) {
        return Err(format!("`mcp_tools` has no `{STDIO}`, and no others are used"));
    }
    Ok(Value::Object(servers))
}

fn server(list: &str, index: usize, item: &Data) -> Result<Value, String> {
    let needed: &[&str] = if list == STDIO { &["name", "command"] } else { &["url"] };
    match item {
        Data::Text(url) if list != STDIO => Ok(json!({ "url": url })),
        Data::Map(_) => {
            for key in needed {
                match item.get(key) {
                    Some(Data::Text(text)) if !text.trim().is_empty() => {}
                    Some(Data::Text(_)) => return Err(format!("`mcp_tools.{list}[{index}].{key}` is empty")),
                    Some(other) => {
                        return Err(format!("`mcp_tools.{list}[{index}].{key}` must be a text, not {}", other.kind()));
                    }
                    None => return Err(format!("`mcp_tools.{list}[{index}].{key}` is missing")),
                }
            }
            Ok(item.to_json())
        }
        other => Err(format!("`mcp_tools.{list}[{index}]` must be a map, not {}", other.kind())),
    }
}
