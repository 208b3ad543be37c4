//! Tools of several servers in the form of OpenHands.

use std::time::Duration;

use gloveport_mcp_client::{HttpServer, Server, ToolError, call_tool, tools_for_model};
use gloveport_testing::within;
use rmcp::model::JsonObject;
use serde_json::json;

use crate::support::{Listening, arguments, bad, connect, connect_to, good};

#[tokio::test(flavor = "multi_thread")]
async fn the_first_server_with_the_tool_answers_in_the_form_of_the_reference() {
    let Some(everything) = good("mcp-server-everything", &[]) else { return };
    let clients = [connect_to(&bad("many", "")).await, connect_to(&everything).await];
    let asked = arguments(json!({"message": "é"}));
    let called = within(call_tool(&clients, "echo", &asked, None)).await.unwrap();
    assert_eq!(
        called,
        "{\"meta\": null, \"content\": [{\"type\": \"text\", \"text\": \"Echo: \\u00e9\", \"annotations\": null, \
         \"meta\": null}], \"structuredContent\": null, \"isError\": false}"
    );
    let missing = within(call_tool(&clients, "nothing", &asked, None)).await.unwrap_err();
    assert_eq!(missing.to_string(), "No matching MCP agent found for tool name: nothing");
    assert_eq!(within(call_tool(&[], "echo", &asked, None)).await.unwrap_err(), ToolError::NoClients);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_wrong_with_a_call_is_an_answer_that_an_agent_can_read() {
    let none = JsonObject::new();
    let slow = [connect_to(&bad("slow", "")).await];
    let limit = Some(Duration::from_millis(1500));
    assert_eq!(
        within(call_tool(&slow, "t", &none, limit)).await.unwrap(),
        r#"{"isError": true, "error": "Tool \"t\" timed out after 1.5 seconds", "content": []}"#
    );
    let refuses = [connect_to(&bad("error", "")).await];
    assert_eq!(
        within(call_tool(&refuses, "t", &none, limit)).await.unwrap(),
        r#"{"isError": true, "error": "no such thing", "content": []}"#
    );
    let dies = [connect_to(&bad("dies", "")).await];
    let lost = within(call_tool(&dies, "t", &none, None)).await.unwrap();
    let expected = r#"{"isError": true, "error": "the connection to the MCP server dies is lost: its program ended"#;
    assert!(lost.starts_with(expected), "{lost}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limit_of_the_servers_configuration_counts() {
    let Some(server) = Listening::everything("streamableHttp").await else { return };
    let url = format!("http://127.0.0.1:{}/mcp", server.port);
    let http = HttpServer { timeout: Some(Duration::from_secs(1)), ..HttpServer::new(url) };
    let clients = [connect(&Server::Http(http)).await];
    let asked = arguments(json!({"duration": 50, "steps": 2}));
    let called = within(call_tool(&clients, "trigger-long-running-operation", &asked, None)).await.unwrap();
    let expected = r#"{"isError": true, "error": "Tool \"trigger-long-running-operation\" timed out after 1.0 seconds", "content": []}"#;
    assert_eq!(called, expected);
    server.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_listed_for_a_model_once_by_name_and_a_broken_server_is_left_out() {
    let (first, broken) = (connect_to(&bad("plain", "")).await, connect_to(&bad("endless-pages", "")).await);
    let second = connect_to(&bad("strange", "")).await;
    let tools = within(tools_for_model(&[broken, first, second])).await;
    let schema = json!({"type": "object", "properties": {}});
    let tool = |name: &str| {
        let description = format!("does {name}");
        json!({"type": "function", "function": {"name": name, "description": description, "parameters": schema}})
    };
    assert_eq!(tools, [tool("t"), tool("u")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_a_server_got_since_is_found() {
    let clients = [connect_to(&bad("changing-silently", "")).await];
    within(call_tool(&clients, "t", &JsonObject::new(), None)).await.unwrap();
    // The server has said nothing of it.
    let called = within(call_tool(&clients, "version-1", &JsonObject::new(), None)).await.unwrap();
    assert!(called.contains("of version-1"), "{called}");
}
