//! Servers that others than the configuration name (runtime-interface 13.3, 14.2).

use std::collections::BTreeMap;

use gloveport_config::{Config, McpConfig, McpError, McpHttpServer, McpStdioServer};
use gloveport_mcp_client::{ErrorCollector, ErrorSource};
use gloveport_protocol::{McpServerEntry, Secret};

use crate::microagents::Microagent;

/// How the key of the search engine begins for which there is a server.
const TAVILY: &str = "tvly-";

/// The servers that a backend of OpenHands adds to those of the configuration: its own at `mcp_host`, and the search
/// engine's if there is a key for it (`search_api_key`).
///
/// A session adds none of them by itself. A backend that serves `/mcp/mcp` merges both into the configuration of its
/// sessions ([`McpConfig::merge`]), and one without a web server the search engine alone.
pub fn default_mcp_servers(config: &Config) -> Result<McpConfig, McpError> {
    let own = McpHttpServer::new(&format!("http://{}/mcp/mcp", config.mcp_host), None)?;
    let search = config.search_api_key.as_ref().filter(|key| key.expose().starts_with(TAVILY)).map(|key| {
        let env = BTreeMap::from([("TAVILY_API_KEY".to_owned(), key.clone())]);
        McpStdioServer::new("tavily", "npx", vec!["-y".to_owned(), "tavily-mcp@0.2.1".to_owned()], env)
    });
    let stdio_servers = search.transpose()?.into_iter().collect();
    Ok(McpConfig { shttp_servers: vec![own], stdio_servers, ..McpConfig::default() })
}

/// The programs that microagents bring along (`mcp_tools`), each once: what [`Runtime::mcp_tools`](crate::Runtime::mcp_tools)
/// takes. One that is none is left out, and is in the log and among the collected errors.
pub fn microagent_mcp_servers(microagents: &[Microagent]) -> Vec<McpStdioServer> {
    let mut servers = Vec::new();
    for microagent in microagents {
        let tools = microagent.metadata.mcp_tools.as_ref();
        let listed = tools.and_then(|tools| tools.get("stdio_servers")).and_then(serde_json::Value::as_array);
        for value in listed.into_iter().flatten() {
            match McpServerEntry::from_value(value) {
                Ok(entry) => {
                    let env = entry.env.into_iter().map(|(name, value)| (name, Secret::new(value))).collect();
                    let server = McpStdioServer { name: entry.name, command: entry.command, args: entry.args, env };
                    if !servers.contains(&server) {
                        servers.push(server);
                    }
                }
                Err(error) => {
                    let name = &microagent.name;
                    tracing::warn!(microagent = name, %error, "an MCP server of a microagent is left out");
                    let message = format!("the microagent {name} brings an MCP server that is none: {error}");
                    ErrorCollector::global().add(name, ErrorSource::Stdio, message, Some(error.to_string()));
                }
            }
        }
    }
    servers
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_backend_has_its_own_server_and_a_search_engine_with_a_key() {
        let mut config = Config { mcp_host: "h:1".to_owned(), ..Config::default() };
        let servers = default_mcp_servers(&config).unwrap();
        assert_eq!(servers.shttp_servers, [McpHttpServer::new("http://h:1/mcp/mcp", None).unwrap()]);
        assert_eq!(servers.stdio_servers, []);
        config.search_api_key = Some("other".into());
        assert_eq!(default_mcp_servers(&config).unwrap().stdio_servers, []);
        config.search_api_key = Some("tvly-key".into());
        let [search] = &default_mcp_servers(&config).unwrap().stdio_servers[..] else { panic!("no server") };
        assert_eq!((search.name.as_str(), search.command.as_str()), ("tavily", "npx"));
        assert_eq!(search.args, ["-y", "tavily-mcp@0.2.1"]);
        assert_eq!(search.env["TAVILY_API_KEY"].expose(), "tvly-key");
    }

    #[test]
    fn programs_of_microagents_come_once_and_wrong_ones_not() {
        let microagent = |name: &str, servers: &str| {
            let text = format!("---\nname: {name}\nmcp_tools:\n  stdio_servers: [{servers}]\n---\nText");
            Microagent::parse(&text, Path::new(&format!("{name}.md")), None).unwrap()
        };
        let time = "{name: time, command: uvx, args: 'a \"b c\"', env: {ZONE: UTC}}";
        let found = microagent_mcp_servers(&[
            microagent("one", time),
            microagent("two", &format!("{{name: 'no name', command: x}}, {time}, {{name: fetch, command: uvx}}")),
        ]);
        assert_eq!(found.iter().map(|server| server.name.as_str()).collect::<Vec<_>>(), ["time", "fetch"]);
        assert_eq!(found[0].args, ["a", "b c"]);
        assert_eq!(found[0].env["ZONE"].expose(), "UTC");
        let told = ErrorCollector::global().errors();
        assert!(told.iter().any(|error| error.server_name == "two"), "{told:?}");
    }
}
