//! Tools of MCP servers in a session (runtime-interface 14, action-execution-client 7, local-and-cli-runtime B11).
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first broken assumption")]

use std::{
    collections::BTreeMap,
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex},
};

use crate::support::{History, Sandbox, Scripted, within};
use futures_util::FutureExt as _;
use gloveport_client::ClientOptions;
use gloveport_config::{Config, McpConfig, McpSseServer, McpStdioServer};
use gloveport_protocol::{Action, ActionEvent, CallToolMcpAction, EventSource, McpObservation, Observation};
use gloveport_runtime::{Cli, Runtime, RuntimeError, RuntimeOptions, ServerAt};
use gloveport_testing::{is_alive, mcp_program, until};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

/// The servers of the client's tests.
const SERVER: &str = "../mcp/tests/all/server.py";

fn script() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(SERVER).display().to_string()
}

/// A server that is a program.
fn program(name: &str, mode: &str) -> McpStdioServer {
    McpStdioServer::new(name, "python3", vec![script(), mode.to_owned()], BTreeMap::new()).unwrap()
}

/// A server that speaks server-sent events, and ends with this.
struct Listening {
    url: String,
    _child: Child,
}

impl Listening {
    async fn start(mode: &str) -> Self {
        let mut child = Command::new("python3")
            .args([&script(), "http", mode])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut line = String::new();
        within(BufReader::new(child.stdout.take().unwrap()).read_line(&mut line)).await.unwrap();
        Self { url: format!("http://127.0.0.1:{}/sse", line.trim()), _child: child }
    }

    fn configured(&self) -> McpSseServer {
        McpSseServer::new(&self.url, None).unwrap()
    }
}

fn call(tool: &str, arguments: Value) -> ActionEvent {
    let arguments = serde_json::from_value(arguments).unwrap();
    Action::CallToolMcp(CallToolMcpAction { arguments, ..CallToolMcpAction::new(tool) }).into()
}

/// The observation of a call that gave a result, and the text in it.
async fn called(runtime: &Runtime, event: &ActionEvent) -> (McpObservation, String) {
    let observation = match within(runtime.run_action(event)).await.unwrap() {
        Observation::Mcp(observation) => observation,
        other => panic!("{other:?}"),
    };
    let result: Value = serde_json::from_str(&observation.content).unwrap();
    let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    (observation, text)
}

/// A session whose sandbox answers as it is told.
async fn in_sandbox(sandbox: &Scripted, mcp: McpConfig) -> Runtime {
    let config = Config { mcp, ..Config::default() };
    let options = RuntimeOptions {
        sid: "sid-of-session".to_owned(),
        attach_to_existing: true,
        ..RuntimeOptions::new(config, sandbox.clone())
    };
    let runtime = Runtime::new(options).unwrap();
    within(runtime.connect()).await.unwrap();
    runtime
}

/// A session of the runtime `cli`.
async fn of_this_process(mcp: McpConfig) -> (Runtime, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let config = Config { runtime: "cli".to_owned(), mcp, ..Config::default() };
    let runtime = Runtime::new(RuntimeOptions::new(config, Cli::in_directory(directory.path()))).unwrap();
    within(runtime.connect()).await.unwrap();
    (runtime, directory)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_of_a_server_over_http_answers_in_the_form_of_the_reference() {
    let server = Listening::start("plain").await;
    let mcp = McpConfig { sse_servers: vec![server.configured()], ..McpConfig::default() };
    let runtime = in_sandbox(&Scripted::obedient(), mcp).await;
    let (observation, text) = called(&runtime, &call("u", json!({"a": "é"}))).await;
    assert!(text.starts_with("call 1 of u with {\"a\": \"\\u00e9\"} at "), "{text}");
    assert_eq!(observation.name, "u");
    assert_eq!(Value::Object(observation.arguments), json!({"a": "é"}));
    let prefix = "{\"meta\": null, \"content\": [{\"type\": \"text\", \"text\": \"call 1 of u with ";
    assert!(observation.content.starts_with(prefix), "{}", observation.content);
    assert!(
        observation
            .content
            .ends_with("\"annotations\": null, \"meta\": null}], \"structuredContent\": null, \"isError\": false}")
    );
    let tools = within(runtime.mcp_tools(&[])).await.unwrap();
    assert_eq!(tools.iter().map(|tool| &tool["function"]["name"]).collect::<Vec<_>>(), ["t", "u"]);
    runtime.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_run_in_the_sandbox_which_is_asked_with_its_key() {
    let server = Listening::start("headers").await;
    let sandbox = Scripted::obedient();
    sandbox.serve_mcp_at(server.url.clone());
    // This process must not start it.
    let program = McpStdioServer::new("only-there", "no-such-program", Vec::new(), BTreeMap::new()).unwrap();
    let runtime = in_sandbox(&sandbox, McpConfig { stdio_servers: vec![program], ..McpConfig::default() }).await;
    for _ in 0..2 {
        let (_, text) = called(&runtime, &call("t", json!({}))).await;
        let headers: Value = serde_json::from_str(&text).unwrap();
        for (name, value) in [
            ("authorization", "Bearer session key"),
            ("s", "session key"),
            ("x-session-api-key", "session key"),
            ("x-openhands-serverconversation-id", "sid-of-session"),
        ] {
            assert_eq!(headers[name], value);
        }
    }
    let names: Vec<_> = sandbox.updates().iter().map(|update| update[0].name.clone()).collect();
    assert_eq!(names, ["only-there"], "it is told once");
    runtime.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_run_in_a_real_sandbox_and_are_called_through_its_server() {
    let sandbox = Sandbox::keyed("key of the sandbox").await;
    let mcp = McpConfig { stdio_servers: vec![program("one", "plain")], ..McpConfig::default() };
    let connector = ServerAt::new(ClientOptions::new(sandbox.0.url()).with_key(Some("key of the sandbox")));
    let options = RuntimeOptions::new(Config { mcp, ..sandbox.config() }, connector);
    let runtime = Runtime::new(options).unwrap();
    within(runtime.connect()).await.unwrap();
    // A single server keeps its names, and goes on from call to call.
    let (_, first) = called(&runtime, &call("u", json!({"a": "é"}))).await;
    assert!(first.starts_with("call 1 of u with {\"a\": \"\\u00e9\"} at "), "{first}");
    assert!(called(&runtime, &call("u", json!({}))).await.1.starts_with("call 2 of u"));
    // Another one joins: both have other names from now on, and the first one still runs.
    let tools = within(runtime.mcp_tools(&[program("two", "changing")])).await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["one_t", "one_u", "two_version-0", "two_change"]);
    assert!(called(&runtime, &call("one_u", json!({}))).await.1.starts_with("call 3 of u"));
    // What changes in the sandbox is known here.
    called(&runtime, &call("two_change", json!({}))).await;
    assert!(called(&runtime, &call("two_version-1", json!({}))).await.1.starts_with("call 2 of version-1"));
    // The server of the sandbox ends at once, because no connection is left.
    within(runtime.close()).await;
    sandbox.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_finds_no_server_or_no_tool_is_a_status_and_no_observation() {
    let server = Listening::start("plain").await;
    for (servers, expected) in [
        (vec![], "error STATUS$ERROR ValueError: No MCP clients found"),
        (
            vec![server.configured()],
            "error STATUS$ERROR ValueError: No matching MCP agent found for tool name: nothing",
        ),
    ] {
        let history = History::new().await;
        let statuses: Arc<Mutex<Vec<String>>> = Arc::default();
        let told = Arc::clone(&statuses);
        let config = Config { mcp: McpConfig { sse_servers: servers, ..McpConfig::default() }, ..Config::default() };
        let options = RuntimeOptions {
            attach_to_existing: true,
            status_callback: Some(Arc::new(move |level, status, text| {
                told.lock().unwrap().push(format!("{} {status} {text}", level.as_str()));
            })),
            ..RuntimeOptions::new(config, Scripted::obedient()).with_stream(&history.stream)
        };
        let runtime = Runtime::new(options).unwrap();
        within(runtime.connect()).await.unwrap();
        history.stream.add(call("nothing", json!({})), EventSource::Agent).await.unwrap();
        until("the status is told", || statuses.lock().unwrap().iter().any(|status| status == expected)).await;
        let error = within(runtime.run_action(&call("nothing", json!({})))).await.unwrap_err();
        assert!(matches!(error, RuntimeError::McpTool(_)), "{error}");
        runtime.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_cli_starts_programs_keeps_them_for_the_next_call_and_ends_them() {
    let mcp = McpConfig { stdio_servers: vec![program("one", "plain")], ..McpConfig::default() };
    let (runtime, _directory) = of_this_process(mcp).await;
    let process = |text: &str| text.rsplit(' ').next().unwrap().parse::<u32>().unwrap();
    let (_, first) = called(&runtime, &call("t", json!({}))).await;
    let (_, second) = called(&runtime, &call("t", json!({}))).await;
    assert!(first.starts_with("call 1 of t") && second.starts_with("call 2 of t"), "{first} {second}");
    let pid = process(&first);
    assert!(pid == process(&second) && is_alive(pid));

    // Programs beyond the configuration, such as those of microagents, stay for later calls, too.
    let extra = [program("changing", "changing"), program("one", "plain")];
    let tools = within(runtime.mcp_tools(&extra)).await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["t", "u", "version-0", "change"]);
    assert!(called(&runtime, &call("change", json!({}))).await.1.starts_with("call 1 of change"));
    runtime.close().await;
    assert!(!is_alive(pid), "it ends with the session");
    let closed = within(runtime.run_action(&call("t", json!({})))).await.unwrap_err();
    assert!(matches!(closed, RuntimeError::Closed));
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_fails_in_the_runtime_cli_is_an_observation() {
    let missing = McpStdioServer::new("missing", "no-such-program", Vec::new(), BTreeMap::new()).unwrap();
    for (servers, expected) in [
        (vec![], "No MCP servers configured"),
        (vec![missing], "No MCP clients could be created - check server configurations"),
        (
            vec![program("one", "plain")],
            "Error executing MCP tool nothing: No matching MCP agent found for tool name: nothing",
        ),
    ] {
        let mcp = McpConfig { stdio_servers: servers, ..McpConfig::default() };
        let (runtime, _directory) = of_this_process(mcp).await;
        match within(runtime.run_action(&call("nothing", json!({})))).await.unwrap() {
            Observation::Error(error) => assert_eq!(error.content, expected),
            other => panic!("{other:?}"),
        }
        runtime.close().await;
    }
    // The limit of the action counts for servers without one of their own.
    let mcp = McpConfig { stdio_servers: vec![program("slow", "slow")], ..McpConfig::default() };
    let (runtime, _directory) = of_this_process(mcp).await;
    let event = ActionEvent { timeout: Some(0.5), ..call("t", json!({})) };
    let observation = within(runtime.run_action(&event)).await.unwrap();
    let expected = r#"{"isError": true, "error": "Tool \"t\" timed out after 0.5 seconds", "content": []}"#;
    assert_eq!(observation.content(), expected);
    // A call ends with its session.
    let event = call("t", json!({}));
    let mut calling = Box::pin(runtime.run_action(&event));
    assert!((&mut calling).now_or_never().is_none(), "it has begun");
    let (called, ()) = within(async { tokio::join!(calling, runtime.close()) }).await;
    assert!(matches!(called.unwrap_err(), RuntimeError::Closed));
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_others_wrote_work_in_the_runtime_cli() {
    let (Some(everything), Some(time)) = (mcp_program("mcp-server-everything"), mcp_program("mcp-server-time")) else {
        return;
    };
    let server = |name: &str, program: &Path| {
        McpStdioServer::new(name, program.to_str().unwrap(), Vec::new(), BTreeMap::new()).unwrap()
    };
    let stdio_servers = vec![server("everything", &everything), server("time", &time)];
    let (runtime, _directory) = of_this_process(McpConfig { stdio_servers, ..McpConfig::default() }).await;
    let tools = within(runtime.mcp_tools(&[])).await.unwrap();
    assert!(tools.iter().any(|tool| tool["function"]["name"] == "convert_time"), "{tools:?}");
    assert!(tools.iter().all(|tool| tool["function"]["parameters"]["type"] == "object"));
    let (_, text) = called(&runtime, &call("get-sum", json!({"a": 1, "b": 2}))).await;
    assert_eq!(text, "The sum of 1 and 2 is 3.");
    let (observation, _) = called(&runtime, &call("get-structured-content", json!({"location": "New York"}))).await;
    let result: Value = serde_json::from_str(&observation.content).unwrap();
    assert!(result["structuredContent"]["temperature"].is_number(), "{result}");
    runtime.close().await;
}
