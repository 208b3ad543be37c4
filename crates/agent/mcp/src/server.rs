//! Where an MCP server is, and how it is spoken to (runtime-interface 14.3).

use std::{collections::BTreeMap, fmt, time::Duration};

use gloveport_config::{McpConfig, McpHttpServer, McpSseServer, McpStdioServer};
use gloveport_protocol::{SESSION_KEY_HEADER, Secret};
use reqwest::Url;

use crate::{ErrorSource, TokenStore};

/// The header that names the conversation for which tools are called.
const CONVERSATION: &str = "X-OpenHands-ServerConversation-ID";

/// Where an MCP server is, and how it is spoken to. Two are equal if they would be the same connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// A program that is started, and speaks over its standard streams.
    Stdio(StdioServer),
    /// A server that speaks HTTP with server-sent events, as MCP did until 2024.
    Sse(HttpServer),
    /// A server that speaks streamable HTTP.
    Http(HttpServer),
}

/// A program that is an MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StdioServer {
    /// What people call it.
    pub name: String,
    /// The program: a name that is looked for in `PATH`, or a path.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables for its environment, beside the few that it gets of this process: where home and programs are, and who
    /// the user is.
    pub env: BTreeMap<String, Secret>,
}

/// A server that is reached over HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpServer {
    /// Where it listens.
    pub url: String,
    /// Headers of every request.
    pub headers: Vec<(String, Secret)>,
    /// Longest time of a call; none where whoever calls decides it.
    pub timeout: Option<Duration>,
    /// Where the tokens of logins are; none where nobody logs in.
    pub tokens: Option<TokenStore>,
}

impl HttpServer {
    /// A server without a key and a limit of its own.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), headers: Vec::new(), timeout: None, tokens: None }
    }

    /// With the tokens of a login, if there are some in this store when the server is connected, and it has no key.
    /// They are for streamable HTTP.
    #[must_use]
    pub fn with_tokens(mut self, store: &TokenStore) -> Self {
        self.tokens = Some(store.clone());
        self
    }

    /// Whether its configuration says who asks, in a header or in its address.
    pub(crate) fn has_key(&self) -> bool {
        let has_user = |url: Url| !url.username().is_empty() || url.password().is_some();
        self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
            || Url::parse(&self.url).is_ok_and(has_user)
    }

    /// With the key in the three headers in which servers of OpenHands look for it.
    #[must_use]
    pub fn with_key(mut self, key: Option<&Secret>) -> Self {
        if let Some(key) = key.filter(|key| !key.is_empty()) {
            self.headers.push(("Authorization".to_owned(), Secret::new(format!("Bearer {}", key.expose()))));
            self.headers.push(("s".to_owned(), key.clone()));
            self.headers.push((SESSION_KEY_HEADER.to_owned(), key.clone()));
        }
        self
    }

    /// With the conversation for which tools are called.
    #[must_use]
    pub fn with_conversation(mut self, id: Option<&str>) -> Self {
        self.headers.extend(id.map(|id| (CONVERSATION.to_owned(), Secret::new(id))));
        self
    }
}

impl fmt::Debug for HttpServer {
    /// Leaves out what is secret, which a URL may have, too.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HttpServer")
            .field("url", &shown(&self.url))
            .field("headers", &self.headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("timeout", &self.timeout)
            .field("tokens", &self.tokens)
            .finish()
    }
}

impl Server {
    /// With the tokens of logins, for a server that speaks streamable HTTP.
    #[must_use]
    pub fn with_tokens(self, store: &TokenStore) -> Self {
        match self {
            Self::Http(server) => Self::Http(server.with_tokens(store)),
            other => other,
        }
    }

    /// What people call it: the name of a program, or a URL without what may be secret in it.
    pub fn name(&self) -> String {
        match self {
            Self::Stdio(server) => server.name.clone(),
            Self::Sse(server) | Self::Http(server) => shown(&server.url),
        }
    }

    /// Whether somebody could log in there: it is a server for which this program has tokens, and no key.
    pub(crate) fn can_login(&self) -> bool {
        matches!(self, Self::Http(server) if !server.has_key())
    }

    /// How it is spoken to.
    pub const fn source(&self) -> ErrorSource {
        match self {
            Self::Stdio(_) => ErrorSource::Stdio,
            Self::Sse(_) => ErrorSource::Sse,
            Self::Http(_) => ErrorSource::Http,
        }
    }

    /// Longest time of a call that its configuration allows; none where whoever calls decides it.
    pub const fn timeout(&self) -> Option<Duration> {
        match self {
            Self::Stdio(_) => None,
            Self::Sse(server) | Self::Http(server) => server.timeout,
        }
    }

    /// A text about the server without its secrets.
    pub(crate) fn mask(&self, text: &str) -> String {
        match self {
            Self::Stdio(server) => {
                let mut secrets: Vec<&str> = server.env.values().map(Secret::expose).collect();
                // A secret may be part of another. Short values, such as numbers of ports, are in every text.
                secrets.retain(|secret| secret.len() >= SHORTEST_SECRET);
                secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
                let hide = |text: String, secret: &&str| text.replace(*secret, &Secret::new("").to_string());
                secrets.iter().fold(text.to_owned(), hide)
            }
            Self::Sse(server) | Self::Http(server) => {
                let mut text = text.replace(&server.url, &shown(&server.url));
                if let Ok(mut url) = Url::parse(&server.url) {
                    text = text.replace(url.as_str(), &shown(&server.url));
                    // Errors of requests name the address without the user in it.
                    if url.set_username("").is_ok() && url.set_password(None).is_ok() {
                        text = text.replace(url.as_str(), &shown(&server.url));
                    }
                }
                for (_, value) in server.headers.iter().filter(|(_, value)| value.expose().len() >= SHORTEST_SECRET) {
                    text = text.replace(value.expose(), &value.to_string());
                }
                text
            }
        }
    }
}

/// Values of variables from this length on are taken out of texts.
const SHORTEST_SECRET: usize = 6;

/// A URL without user, password and query.
pub(crate) fn shown(url: &str) -> String {
    let Ok(mut parsed) = Url::parse(url) else { return "an address that is no URL".to_owned() };
    // Neither fails for a URL that has a host, and others have no user.
    let _ = parsed.set_username("");
    let _ = parsed.set_password(None);
    parsed.set_query(None);
    parsed.set_fragment(None);
    let text = parsed.to_string();
    // `http://host` is not told as `http://host/`.
    if text.len() == url.len() + 1 { text.trim_end_matches('/').to_owned() } else { text }
}

/// Which servers of a configuration are dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dial {
    /// Those that are reached over HTTP; programs run in the sandbox, which serves them.
    OverHttp,
    /// Programs, too.
    All,
}

/// The servers of a configuration in the order in which they are asked: server-sent events, streamable HTTP, programs.
/// `conversation` is told to those that are reached over HTTP.
pub fn servers(config: &McpConfig, conversation: Option<&str>, dial: Dial) -> Vec<Server> {
    let sse = |server: &McpSseServer| {
        let http = HttpServer::new(&server.url).with_key(server.api_key.as_ref());
        Server::Sse(http.with_conversation(conversation))
    };
    let http = |server: &McpHttpServer| {
        let timeout = server.timeout.map(|seconds| Duration::from_secs(seconds.into()));
        let http = HttpServer { timeout, ..HttpServer::new(&server.url) }.with_key(server.api_key.as_ref());
        Server::Http(http.with_conversation(conversation))
    };
    let stdio = |server: &McpStdioServer| {
        Server::Stdio(StdioServer {
            name: server.name.clone(),
            command: server.command.clone(),
            args: server.args.clone(),
            env: server.env.clone(),
        })
    };
    let mut servers: Vec<Server> =
        config.sse_servers.iter().map(sse).chain(config.shttp_servers.iter().map(http)).collect();
    if dial == Dial::All {
        servers.extend(config.stdio_servers.iter().map(stdio));
    }
    servers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> McpConfig {
        let env = [("TOKEN".to_owned(), Secret::new("sesame-in-env"))].into_iter().collect();
        McpConfig {
            sse_servers: vec![McpSseServer::new("http://u:pw@h/sse?key=hidden", Some("sesame".into())).unwrap()],
            shttp_servers: vec![McpHttpServer::new("https://h2/mcp", None).unwrap()],
            stdio_servers: vec![McpStdioServer::new("time", "uvx", vec!["a".into()], env).unwrap()],
        }
    }

    #[test]
    fn servers_are_dialled_in_order_with_their_headers() {
        let all = servers(&config(), Some("conversation"), Dial::All);
        let [Server::Sse(sse), Server::Http(http), Server::Stdio(_)] = &all[..] else { panic!("{all:?}") };
        let told: Vec<_> = sse.headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        let expected = [
            ("Authorization", "Bearer sesame"),
            ("s", "sesame"),
            ("x-session-api-key", "sesame"),
            ("X-OpenHands-ServerConversation-ID", "conversation"),
        ];
        assert_eq!(told, expected);
        assert_eq!(http.headers.len(), 1);
        assert_eq!((http.timeout, all[0].timeout()), (Some(Duration::from_mins(1)), None));
        assert_eq!(servers(&config(), None, Dial::OverHttp).len(), 2);
        assert!(servers(&config(), None, Dial::OverHttp)[1..].iter().all(|server| match server {
            Server::Http(http) => http.headers.is_empty(),
            _ => false,
        }));
    }

    #[test]
    fn nothing_secret_is_shown() {
        let all = servers(&config(), None, Dial::All);
        assert_eq!(all.iter().map(Server::name).collect::<Vec<_>>(), ["http://h/sse", "https://h2/mcp", "time"]);
        assert_eq!(Server::Http(HttpServer::new("http://host")).name(), "http://host");
        let text = format!("{all:?}");
        assert!(!["sesame", "hidden", "pw"].iter().any(|secret| text.contains(secret)), "{text}");
        assert_eq!(all[0].mask("no http://u:pw@h/sse?key=hidden"), "no http://h/sse");
        assert_eq!(all[0].mask("url (http://h/sse?key=hidden)"), "url (http://h/sse)");
        assert_eq!(all[0].mask("the key sesame"), "the key **********");
        assert_eq!(all[2].mask("bad token sesame-in-env!"), "bad token **********!");
    }
}
