//! Reads the servers from what a file or a variable says.

use gloveport_protocol::{McpServerEntry, Secret};
use serde_json::Value;

use super::{CALL_TIMEOUT, McpConfig, McpError, McpHttpServer, McpSseServer, McpStdioServer};
use crate::{
    key::{Key, Section as _},
    kind::Kind,
    node::{Entry, Node, NodeValue},
    setting::{Mismatch, SettingValue, list},
};

impl McpError {
    /// The error at the member of the entry that it is about.
    fn at(&self, node: &Node) -> Mismatch {
        let member = self.field().and_then(|field| member(node, field).map(|member| (field, member)));
        match member {
            Some((field, member)) => Mismatch::rule(self.to_string(), member).inside(&format!(".{field}")),
            None => Mismatch::rule(self.to_string(), node),
        }
    }
}

fn member<'a>(node: &'a Node, name: &str) -> Option<&'a Node> {
    node.table()?.iter().find(|entry| entry.key == name).map(|entry| &entry.node)
}

/// The members of an entry; a text is the URL.
fn url_of(node: &Node) -> Result<(String, &[Entry]), Mismatch> {
    match &node.value {
        NodeValue::Text(url) => Ok((url.clone(), &[])),
        NodeValue::Table(entries) => {
            let missing = || McpError::Missing { field: "url" }.at(node);
            let url = member(node, "url").ok_or_else(missing)?;
            Ok((String::from_node(url).map_err(|mismatch| mismatch.inside(".url"))?, entries))
        }
        _ => {
            Err(McpError::WrongType { field: None, expected: "a URL or a table with a `url`", found: node.what() }
                .at(node))
        }
    }
}

fn read_member<T: SettingValue>(entries: &[Entry], name: &str) -> Result<Option<T>, Mismatch> {
    let Some(entry) = entries.iter().find(|entry| entry.key == name) else { return Ok(None) };
    T::from_node(&entry.node).map(Some).map_err(|mismatch| mismatch.inside(&format!(".{name}")))
}

impl SettingValue for McpSseServer {
    const KIND: Kind = Kind::Table;

    fn from_node(node: &Node) -> Result<Self, Mismatch> {
        let (url, entries) = url_of(node)?;
        let api_key = read_member::<Option<Secret>>(entries, "api_key")?.flatten();
        Self::new(&url, api_key).map_err(|error| error.at(node))
    }

    fn shown(&self) -> Value {
        Value::Object(self.members())
    }
}

impl SettingValue for McpHttpServer {
    const KIND: Kind = Kind::Table;

    fn from_node(node: &Node) -> Result<Self, Mismatch> {
        let (url, entries) = url_of(node)?;
        let api_key = read_member::<Option<Secret>>(entries, "api_key")?.flatten();
        let timeout = read_member::<Option<i64>>(entries, "timeout")?.unwrap_or(Some(i64::from(CALL_TIMEOUT)));
        let server = Self::new(&url, api_key).and_then(|server| server.with_timeout(timeout));
        server.map_err(|error| error.at(node))
    }

    fn shown(&self) -> Value {
        Value::Object(self.members())
    }
}

impl SettingValue for McpStdioServer {
    const KIND: Kind = Kind::Table;

    fn from_node(node: &Node) -> Result<Self, Mismatch> {
        let entry = McpServerEntry::from_value(&node.to_json()).map_err(|error| typed(error, node).at(node))?;
        let env = entry.env.into_iter().map(|(name, value)| (name, Secret::from(value))).collect();
        Ok(Self { name: entry.name, command: entry.command, args: entry.args, env })
    }

    fn shown(&self) -> Value {
        Value::Object(self.members())
    }
}

/// The refusal, with the type of what was there instead of the value.
fn typed(error: gloveport_protocol::http::McpServerEntryError, node: &Node) -> McpError {
    match McpError::from_entry(error) {
        McpError::WrongType { field, expected, .. } => {
            let found = field.map_or(node.what(), |field| member(node, field).map_or("nothing", Node::what));
            // A list or table of the right type holds an element of a wrong one.
            let found = if expected.contains(found) { "one with other values" } else { found };
            McpError::WrongType { field, expected, found }
        }
        other => other,
    }
}

macro_rules! lists {
    ($($server:ident: $kind:ident),+) => {$(
        impl SettingValue for Vec<$server> {
            const KIND: Kind = Kind::$kind;

            fn from_node(node: &Node) -> Result<Self, Mismatch> {
                list(node, Self::KIND)
            }

            fn shown(&self) -> Value {
                self.iter().map(SettingValue::shown).collect()
            }
        }
    )+};
}

lists!(McpSseServer: SseServers, McpHttpServer: ShttpServers, McpStdioServer: StdioServers);

/// The section as one value, which stored settings have.
impl SettingValue for McpConfig {
    const KIND: Kind = Kind::Table;

    fn from_node(node: &Node) -> Result<Self, Mismatch> {
        let NodeValue::Table(entries) = &node.value else {
            return Err(Mismatch::kind(Self::KIND, node));
        };
        let mut config = Self::default();
        for entry in entries {
            let inside = |mismatch: Mismatch| mismatch.inside(&format!(".{}", entry.key));
            let unknown = || inside(Mismatch::rule("unknown key", &entry.node));
            config.setting_mut(&entry.key).ok_or_else(unknown)?.read(&entry.node).map_err(inside)?;
        }
        Ok(config)
    }

    fn shown(&self) -> Value {
        let shown = |key: &Key| Some((key.name.to_owned(), self.setting(key.name)?.shown()));
        Value::Object(Self::KEYS.iter().filter_map(shown).collect())
    }
}
