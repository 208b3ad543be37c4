use serde_json::json;

use super::*;
use crate::{
    node::Node,
    setting::{Mismatch, Setting as _},
};

fn sse(url: &str) -> Result<String, String> {
    McpSseServer::new(url, None).map(|server| server.url).map_err(|error| error.to_string())
}

#[test]
fn a_url_is_trimmed_and_checked_with_the_texts_of_the_specification() {
    for (url, expected) in [
        ("  https://example.com/mcp ", Ok("https://example.com/mcp")),
        ("ws://h", Ok("ws://h")),
        ("wss://h:1/x", Ok("wss://h:1/x")),
        ("HTTP://h", Ok("HTTP://h")),
        ("", Err("URL cannot be empty")),
        (" \t", Err("URL cannot be empty")),
        ("example.com", Err("URL must include a scheme (http:// or https://)")),
        ("/path", Err("URL must include a scheme (http:// or https://)")),
        ("http://", Err("URL must include a valid domain/host")),
        ("http:///x", Err("URL must include a valid domain/host")),
        ("localhost:8080", Err("URL must include a valid domain/host")),
        ("ftp://h", Err("URL scheme must be http, https, ws, or wss")),
    ] {
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(sse(url), expected, "{url:?}");
        assert_eq!(
            McpHttpServer::new(url, None).map(|server| server.url).map_err(|error| error.to_string()),
            expected,
            "{url:?}"
        );
    }
}

#[test]
fn the_limit_of_a_call_is_between_one_second_and_an_hour_or_none() {
    for (seconds, expected) in [
        (Some(1), Ok(Some(1))),
        (Some(3600), Ok(Some(3600))),
        (None, Ok(None)),
        (Some(0), Err(McpError::TimeoutNotPositive)),
        (Some(-5), Err(McpError::TimeoutNotPositive)),
        (Some(3601), Err(McpError::TimeoutTooLong)),
        (Some(i64::MAX), Err(McpError::TimeoutTooLong)),
    ] {
        let server = McpHttpServer::new("http://h", None).unwrap();
        assert_eq!(server.timeout, Some(60));
        assert_eq!(server.with_timeout(seconds).map(|server| server.timeout), expected, "{seconds:?}");
    }
    assert_eq!(McpError::TimeoutNotPositive.to_string(), "Timeout must be positive");
    assert_eq!(McpError::TimeoutTooLong.to_string(), "Timeout cannot exceed 3600 seconds");
}

fn stdio(value: &Value) -> Result<McpStdioServer, Mismatch> {
    let mut config = McpConfig::default();
    config.stdio_servers.read(&Node::from_json(&json!([value])))?;
    Ok(config.stdio_servers.remove(0))
}

#[test]
fn a_stdio_server_is_checked_with_the_texts_of_the_specification() {
    let base = |member: &str, value: Value| {
        let mut entry = json!({"name": "a", "command": "b"});
        entry[member] = value;
        entry
    };
    for (entry, place, message) in [
        (base("name", json!("  ")), "[0].name", "Server name cannot be empty"),
        (
            base("name", json!("a b")),
            "[0].name",
            "Server name can only contain letters, numbers, hyphens, and underscores",
        ),
        (base("command", json!(" ")), "[0].command", "Command cannot be empty"),
        (
            base("command", json!("npx -y")),
            "[0].command",
            "Command should be a single executable without spaces (use arguments field for parameters)",
        ),
        (base("args", json!("a 'b")), "[0].args", "Invalid argument format: No closing quotation"),
        (base("args", json!("a \\")), "[0].args", "Invalid argument format: No escaped character"),
        (base("args", json!([1])), "[0].args", "must be a list of strings, or a string, not one with other values"),
        (base("args", json!(7)), "[0].args", "must be a list of strings, or a string, not an integer"),
        (base("env", json!("A=b,hunter2")), "[0].env", "Environment variable '**********' must be in KEY=VALUE format"),
        (base("env", json!("=b")), "[0].env", "Environment variable key cannot be empty"),
        (
            base("env", json!("1A=b")),
            "[0].env",
            "Invalid environment variable name '**********': letters, digits and underscores, and no digit first",
        ),
        (json!({"name": "a"}), "[0]", "`command` is missing"),
        (json!("npx"), "[0]", "must be a table, not a text"),
    ] {
        let mismatch = stdio(&entry).unwrap_err();
        assert_eq!((mismatch.within.as_str(), mismatch.message.as_str()), (place, message), "{entry}");
    }
}

#[test]
fn arguments_and_variables_have_a_text_form() {
    let server = stdio(&json!({
        "name": " tavily ", "command": " npx ", "args": "-y 'tavily mcp'  --x=\"1 2\"", "env": "A=b=c, B= d,",
    }))
    .unwrap();
    let expected = McpStdioServer::new(
        "tavily",
        "npx",
        vec!["-y".into(), "tavily mcp".into(), "--x=1 2".into()],
        BTreeMap::from([("A".into(), "b=c".into()), ("B".into(), " d".into())]),
    );
    assert_eq!(Ok(server), expected);
}

#[test]
fn stdio_servers_are_equal_if_name_command_ordered_args_and_unordered_env_are() {
    let make = |args: &str, env: &str| stdio(&json!({"name": "a", "command": "b", "args": args, "env": env})).unwrap();
    assert_eq!(make("1 2", "A=1,B=2"), make("1 2", "B=2,A=1"));
    assert_ne!(make("1 2", ""), make("2 1", ""));
    assert_ne!(make("", "A=1"), make("", "A=2"));
    assert_ne!(make("", ""), McpStdioServer { name: "c".into(), ..make("", "") });
    assert_ne!(make("", ""), McpStdioServer { command: "c".into(), ..make("", "") });
}

#[test]
fn merging_puts_the_servers_behind_each_other_and_leaves_none_out() {
    let one = McpConfig {
        sse_servers: vec![McpSseServer::new("http://a", None).unwrap()],
        shttp_servers: vec![McpHttpServer::new("http://b", None).unwrap()],
        stdio_servers: vec![McpStdioServer::new("c", "d", Vec::new(), BTreeMap::new()).unwrap()],
    };
    let other = McpConfig { sse_servers: one.sse_servers.clone(), ..McpConfig::default() };
    let merged = one.merge(&other);
    assert_eq!(merged.sse_servers, [one.sse_servers[0].clone(), one.sse_servers[0].clone()]);
    assert_eq!((&merged.shttp_servers, &merged.stdio_servers), (&one.shttp_servers, &one.stdio_servers));
}

#[test]
fn debug_shows_neither_keys_nor_variables() {
    let config = McpConfig {
        sse_servers: vec![McpSseServer::new("http://u:hunter2@a/?k=hunter2", Some("hunter2".into())).unwrap()],
        shttp_servers: vec![McpHttpServer::new("http://b", Some("hunter2".into())).unwrap()],
        stdio_servers: vec![stdio(&json!({"name": "a", "command": "b", "env": {"A": "hunter2"}})).unwrap()],
    };
    let text = format!("{config:?} {:#?} {:?}", config.sse_servers, config.stdio_servers);
    assert!(!text.contains("hunter2"), "{text}");
    assert!(text.contains("McpConfig") && text.contains("http://u:**********@a/?k=**********"), "{text}");
}
