//! The flags of `gloveport mcp`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand, ValueEnum};

/// Exit codes, as `--help` shows them.
pub(crate) const EXIT_CODES: &str =
    "Exit codes: 0 done; 1 failed, or the tool says that it failed; 2 wrong command line; 130 interrupted.";

#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    pub(crate) command: McpCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// List the tools of a server.
    Tools(ToolsArgs),
    /// Call a tool and print what it answers.
    #[command(after_help = EXIT_CODES)]
    Call(CallArgs),
    /// List the resources of a server, or print one of them.
    Resources(ResourcesArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    /// Print the list as JSON, with the schema of each tool's arguments.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server: McpServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// Name of the tool.
    pub(crate) tool: String,
    /// Its arguments, a JSON object; `@FILE` or `-` (standard input) reads it from there.
    #[arg(value_name = "JSON", default_value = "{}")]
    pub(crate) arguments: String,
    /// Longest time for the answer, for example 30, 2m or 1h.
    #[arg(long, value_name = "TIME", value_parser = crate::session::values::duration)]
    pub(crate) timeout: Option<Duration>,
    /// Print the whole result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server: McpServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ResourcesArgs {
    /// The resource to print; without it all are listed.
    pub(crate) uri: Option<String>,
    /// Print the answer as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server: McpServerArgs,
}

/// Which server is meant: one of these.
#[derive(Debug, Args)]
pub(crate) struct McpServerArgs {
    /// A URL, or a command to start: `npx -y @modelcontextprotocol/server-everything`. Quotes group words; there is no shell.
    #[arg(long, required_unless_present = "session")]
    pub(crate) server: Option<String>,
    /// All servers that run in the sandbox of this session, as the sandbox serves them.
    #[arg(long, value_name = "ID", conflicts_with = "server")]
    pub(crate) session: Option<String>,
    /// How a URL is spoken to; `sse` where it ends so, otherwise `http`.
    #[arg(long, value_name = "NAME", conflicts_with = "session")]
    pub(crate) transport: Option<Transport>,
    /// A variable for the environment of the command, `NAME=VALUE`; can be repeated.
    #[arg(long, short = 'e', value_name = "NAME=VALUE", conflicts_with = "session")]
    pub(crate) env: Vec<String>,
    /// Key that a URL needs. It is sent as a bearer token, and as X-Session-API-Key.
    #[arg(long, conflicts_with = "session")]
    pub(crate) key: Option<String>,
    /// File with that key. Prefer it to --key: everyone on this machine can see arguments.
    #[arg(long, value_name = "FILE", conflicts_with = "session")]
    pub(crate) key_file: Option<PathBuf>,
}

/// How a server is spoken to over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    /// Streamable HTTP, as servers speak it today.
    Http,
    /// Server-sent events, as they spoke it until 2024.
    Sse,
}
