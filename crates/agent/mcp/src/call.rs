//! Tools of several servers, in the form of OpenHands (runtime-interface 14.2, 14.4).

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_util::future::join_all;
use gloveport_protocol::python::{self, json};
use rmcp::model::Tool;
use serde_json::{Map, Value};

use crate::{CallError, Client, ErrorCollector, result::dump};

/// Why no tool was called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// There is no server.
    #[error("No MCP clients found")]
    NoClients,
    /// No server has it.
    #[error("No matching MCP agent found for tool name: {0}")]
    NoTool(String),
}

/// Calls a tool at the first of the servers that has it. What comes of it is the content of an observation: the result as
/// JSON, or an error that the agent can read.
///
/// A limit in the configuration of the server is the one that counts; `limit` is for all others.
pub async fn call_tool(
    clients: &[Arc<Client>],
    name: &str,
    arguments: &Map<String, Value>,
    limit: Option<Duration>,
) -> Result<String, ToolError> {
    if clients.is_empty() {
        return Err(ToolError::NoClients);
    }
    let mut found = with_tool(clients, name, false).await;
    if found.is_none() {
        // Not all servers say when their tools change.
        found = with_tool(clients, name, true).await;
    }
    let client = found.ok_or_else(|| ToolError::NoTool(name.to_owned()))?;
    let limit = client.server().timeout().or(limit);
    match client.call(name, arguments.clone(), limit).await {
        Ok(result) => Ok(json::line(&dump(&result))),
        Err(error) => {
            tracing::warn!(server = client.server().name(), tool = name, %error, "an MCP tool gave no result");
            let text = match &error {
                CallError::Timeout { limit, .. } => {
                    format!("Tool \"{name}\" timed out after {} seconds", python::float_text(limit.as_secs_f64()))
                }
                other => other.to_string(),
            };
            Ok(json::line(&serde_json::json!({"isError": true, "error": text, "content": []})))
        }
    }
}

/// The first of the servers that has the tool.
async fn with_tool<'a>(clients: &'a [Arc<Client>], name: &str, again: bool) -> Option<&'a Arc<Client>> {
    // All are asked at the same time. Most know their tools already.
    let listed = join_all(clients.iter().map(|client| listed(client, again))).await;
    let has_tool =
        |tools: &Option<Arc<[Tool]>>| tools.as_ref().is_some_and(|all| all.iter().any(|tool| tool.name == name));
    listed.iter().position(has_tool).and_then(|at| clients.get(at))
}

/// The tools of a server; none if it does not tell them.
async fn listed(client: &Client, again: bool) -> Option<Arc<[Tool]>> {
    let listed = if again { client.refresh_tools().await } else { client.tools().await };
    let error = match listed {
        Ok(tools) => return Some(tools),
        Err(error) => error,
    };
    let server = client.server();
    tracing::error!(server = server.name(), %error, "an MCP server does not list its tools, and is left out");
    let message = format!("Error connecting to {}: its tools cannot be listed: {error}", server.name());
    ErrorCollector::global().add(&server.name(), server.source(), message, Some(error.to_string()));
    None
}

/// The tools of all servers as models take them: `{"type": "function", "function": {"name", "description", "parameters"}}`.
///
/// A name stands there once, for the server that a call reaches: models refuse two tools of one name.
pub async fn tools_for_model(clients: &[Arc<Client>]) -> Vec<Value> {
    let listed = join_all(clients.iter().map(|client| listed(client, true))).await;
    let (mut names, mut tools) = (BTreeSet::new(), Vec::new());
    for (client, list) in clients.iter().zip(&listed) {
        for tool in list.iter().flat_map(|list| list.iter()) {
            if names.insert(tool.name.as_ref()) {
                tools.push(for_model(tool));
            } else {
                let server = client.server().name();
                tracing::warn!(server, tool = %tool.name, "another MCP server has a tool of this name, which is used");
            }
        }
    }
    tools
}

fn for_model(tool: &Tool) -> Value {
    serde_json::json!({
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": *tool.input_schema,
        },
    })
}
