//! `gloveport mcp`: a sandbox as an MCP server; and tools and resources of any MCP server, by hand.

mod arguments;
mod browse;
mod computer;
mod install;
mod login;
mod serve;

use std::{
    fmt::Write as _,
    io::{IsTerminal as _, Read as _},
    process::ExitCode,
};

use anyhow::Context as _;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use gloveport_mcp_client::{Client, HttpServer, Server, StdioServer, dump, rmcp::model::ReadResourceRequestParams};
use gloveport_protocol::{McpServerEntry, Secret};
use serde_json::{Map, Value, json};

use self::arguments::{CallArgs, McpCommand, McpServerArgs, ResourcesArgs, ToolsArgs, Transport};
pub(crate) use self::arguments::{HELP, McpArgs};
use crate::{
    exit::INTERRUPTED,
    here, key_file,
    output::{print, print_bytes, print_json},
    session, signals,
    visible::{lines, one_line},
};

/// Where a sandbox serves its MCP servers as one.
const PROXY: &str = "/mcp/proxy";

/// Most bytes of arguments that are read from standard input: a message of a sandbox's server has room for no more.
const MOST_ARGUMENTS: u64 = 64 * 1024 * 1024;

/// Runs the command. C-c ends it, and a server that it has started.
pub(crate) async fn mcp(arguments: McpArgs) -> anyhow::Result<ExitCode> {
    let Some(command) = arguments.command else { return serve::serve(*arguments.serve).await };
    let mut interrupts = signals::interrupts()?;
    tokio::select! {
        done = Box::pin(by_hand(&command)) => done,
        () = interrupts.recv() => Ok(ExitCode::from(INTERRUPTED)),
    }
}

async fn by_hand(command: &McpCommand) -> anyhow::Result<ExitCode> {
    match command {
        McpCommand::Tools(arguments) => {
            with_client(&arguments.server, async |client| tools(client, arguments).await).await
        }
        McpCommand::Call(arguments) => {
            with_client(&arguments.server, async |client| call(client, arguments).await).await
        }
        McpCommand::Resources(arguments) => {
            with_client(&arguments.server, async |client| resources(client, arguments).await).await
        }
        McpCommand::Login(arguments) => login::login(arguments).await,
        McpCommand::Logout(arguments) => login::logout(arguments).await,
        McpCommand::Install(arguments) => install::install(arguments).await,
        McpCommand::Uninstall(arguments) => install::uninstall(arguments).await,
    }
}

/// Does something with a connected server.
async fn with_client(
    which: &McpServerArgs,
    work: impl AsyncFnOnce(&Client) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    let client = Client::connect(&server(which).await?).await?;
    let done = work(&client).await;
    client.close().await;
    done
}

/// The server that is meant.
async fn server(which: &McpServerArgs) -> anyhow::Result<Server> {
    if let Some(id) = &which.session {
        let (url, key) = session::address(id).await?;
        let url = format!("{}{PROXY}", url.trim_end_matches('/'));
        return Ok(Server::Http(HttpServer::new(url).with_key(key.as_ref())));
    }
    let text = which.server.as_deref().unwrap_or_default().trim();
    if text.starts_with("http://") || text.starts_with("https://") {
        anyhow::ensure!(which.env.is_empty(), "--env is for a server that is started, and {text} is a URL");
        // The variable with the key of a sandbox is not for whichever server somebody names.
        let key = match (&which.key_file, &which.key) {
            (Some(file), _) => Some(key_file::given(file)?),
            (None, Some(key)) => {
                tracing::warn!("everyone on this machine can see the key in the arguments; use --key-file instead");
                Some(key.clone())
            }
            (None, None) => here::known_key(text),
        };
        let key = key.map(Secret::new);
        let mut server = HttpServer::new(text).with_key(key.as_ref());
        server.tokens = login::store();
        let path = text.split(['?', '#']).next().unwrap_or_default();
        let is_sse = match which.transport {
            Some(transport) => transport == Transport::Sse,
            None => path.trim_end_matches('/').ends_with("/sse"),
        };
        return Ok(if is_sse { Server::Sse(server) } else { Server::Http(server) });
    }
    anyhow::ensure!(which.transport.is_none(), "--transport is for a URL, and `{text}` is a command");
    let has_key = which.key_file.is_some() || which.key.is_some();
    anyhow::ensure!(!has_key, "a key is for a URL, and `{text}` is a command");
    let (command, args) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let entry = json!({"name": "server", "command": command, "args": args});
    let entry = McpServerEntry::from_value(&entry).with_context(|| format!("--server `{text}` is no command"))?;
    let mut env = std::collections::BTreeMap::new();
    for variable in &which.env {
        let (name, value) = variable.split_once('=').with_context(|| format!("--env {variable}: write NAME=VALUE"))?;
        env.insert(name.to_owned(), Secret::new(value));
    }
    let name = command.rsplit('/').next().unwrap_or(command).to_owned();
    Ok(Server::Stdio(StdioServer { name, command: entry.command, args: entry.args, env }))
}

async fn tools(client: &Client, arguments: &ToolsArgs) -> anyhow::Result<ExitCode> {
    let tools = client.tools().await?;
    if arguments.json {
        print_json(&json!({"tools": *tools}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for tool in tools.iter() {
        let about = tool.description.as_deref().unwrap_or_default().trim();
        let first = about.lines().next().unwrap_or_default();
        // Writing into a string cannot fail.
        let _written =
            writeln!(text, "{}{}{}", one_line(&tool.name), if first.is_empty() { "" } else { "  " }, one_line(first));
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

async fn call(client: &Client, arguments: &CallArgs) -> anyhow::Result<ExitCode> {
    let given = object(&arguments.arguments)?;
    let result = client.call(&arguments.tool, given, arguments.timeout).await?;
    let failed = result.is_error.unwrap_or(false);
    let whole = dump(&result);
    if arguments.json {
        print_json(&whole)?;
    } else {
        let text = whole["content"].as_array().into_iter().flatten().map(part).collect::<String>();
        print(&text)?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The arguments of a call.
fn object(text: &str) -> anyhow::Result<Map<String, Value>> {
    let text = match text.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?,
        None if text == "-" => {
            let mut whole = String::new();
            let read = std::io::stdin().lock().take(MOST_ARGUMENTS + 1).read_to_string(&mut whole);
            let count = read.context("cannot read the arguments from standard input")?;
            anyhow::ensure!(count as u64 <= MOST_ARGUMENTS, "the arguments have more than {MOST_ARGUMENTS} bytes");
            whole
        }
        None => text.to_owned(),
    };
    let value: Value =
        serde_json::from_str(&text).context("the arguments are no JSON; write an object, {\"name\": 1}")?;
    match value {
        Value::Object(arguments) => Ok(arguments),
        _ => anyhow::bail!("the arguments must be a JSON object, for example {{\"name\": 1}}"),
    }
}

/// A part of a result, for people.
fn part(part: &Value) -> String {
    let field = |name: &str| part[name].as_str().unwrap_or_default();
    match field("type") {
        "text" => {
            let text = lines(field("text")).into_owned();
            if text.ends_with('\n') { text } else { text + "\n" }
        }
        kind @ ("image" | "audio") => {
            let size = STANDARD.decode(field("data")).map_or(0, |bytes| bytes.len());
            format!("[{kind}: {}, {size} bytes; --json has it]\n", one_line(field("mimeType")))
        }
        "resource" => match part["resource"]["text"].as_str() {
            Some(text) => lines(text).into_owned() + "\n",
            None => format!(
                "[resource: {}; --json has it]\n",
                one_line(part["resource"]["uri"].as_str().unwrap_or_default())
            ),
        },
        "resource_link" => format!("[resource: {}]\n", one_line(field("uri"))),
        kind => format!("[{}; --json has it]\n", one_line(kind)),
    }
}

async fn resources(client: &Client, arguments: &ResourcesArgs) -> anyhow::Result<ExitCode> {
    let peer = client.peer();
    let Some(uri) = &arguments.uri else {
        let resources = peer.list_all_resources().await.context("the resources cannot be listed")?;
        if arguments.json {
            print_json(&json!({"resources": resources}))?;
        } else {
            let row = |uri: &str, name: &str| format!("{}  {}\n", one_line(uri), one_line(name));
            print(&resources.iter().map(|one| row(&one.uri, &one.name)).collect::<String>())?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let asked = ReadResourceRequestParams::new(uri.clone());
    let read = peer.read_resource(asked).await.with_context(|| format!("the resource {uri} cannot be read"))?;
    let read = serde_json::to_value(&read)?;
    if arguments.json {
        print_json(&read)?;
        return Ok(ExitCode::SUCCESS);
    }
    for content in read["contents"].as_array().into_iter().flatten() {
        if let Some(text) = content["text"].as_str() {
            let text = if std::io::stdout().is_terminal() { lines(text).into_owned() } else { text.to_owned() };
            print_bytes(text.as_bytes())?;
        } else {
            let bytes = STANDARD.decode(content["blob"].as_str().unwrap_or_default());
            let bytes = bytes.with_context(|| format!("the resource {uri} is no base64"))?;
            anyhow::ensure!(!std::io::stdout().is_terminal(), "{uri} is binary; redirect the output to a file");
            print_bytes(&bytes)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
