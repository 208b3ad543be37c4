//! The flags of `gloveport mcp`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand, ValueEnum};
use gloveport_mcp_install::Program;
use gloveport_mcp_server::{Tool, UnknownTool};

use crate::{approve::ApproveArgs, session::MakeArgs};

/// Exit codes, as `--help` shows them.
pub(crate) const EXIT_CODES: &str =
    "Exit codes: 0 done; 1 failed, or the tool says that it failed; 2 wrong command line; 130 interrupted.";

/// Examples and exit codes of `gloveport mcp`, as `--help` shows them.
pub(crate) const HELP: &str = "Examples:\n  \
    gloveport mcp install claude -- --runtime docker --image python:3.13\n  \
    gloveport mcp --session my-session --tools shell,read_file\n  \
    gloveport mcp call shell '{\"command\": \"uname -a\"}' --server 'gloveport mcp'\n\n\
    Exit codes: 0 the client has gone; 1 there is no sandbox, or no client; 2 wrong command line; 130 a signal.";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_help_heading = "Commands")]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    pub(crate) command: Option<McpCommand>,
    #[command(flatten)]
    pub(crate) serve: Box<ServeArgs>,
}

/// The sandbox that is served.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// What hosts the sandbox: `local`, `docker`, `exec:PROGRAM`, or NAME for a program gloveport-provider-NAME in PATH.
    #[arg(long, value_name = "NAME", env = "GLOVEPORT_RUNTIME")]
    pub(super) runtime: Option<String>,
    /// Share the sandbox of this session, and its shell, instead of making one.
    #[arg(long, value_name = "ID", conflicts_with_all = ["MakeArgs", "keep", "env"])]
    pub(super) session: Option<String>,
    /// Share the sandbox of the gloveport server at this URL instead of making one.
    #[arg(long, value_name = "URL", conflicts_with_all = ["session", "MakeArgs", "keep", "env"])]
    pub(super) url: Option<String>,
    /// Key of that server. By default that of the variable `GLOVEPORT_KEY`.
    #[arg(long, requires = "url")]
    pub(super) key: Option<String>,
    /// File with the key of that server. Prefer it to --key: everyone on this machine can see arguments.
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(super) key_file: Option<PathBuf>,
    /// The tools to offer, separated by commas. By default all of them: shell, shell_output, shell_input, shell_stop,
    /// python, read_file, write_file, edit_file, search_files, browser_open, browser_act, browser_read.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = tool, hide_possible_values = true)]
    pub(super) tools: Vec<Tool>,
    /// Let the sandbox go on when the client has gone. It is a session, whose id is told on standard error.
    #[arg(long)]
    pub(super) keep: bool,
    /// Set a variable: NAME=VALUE, or NAME to pass on your own; may be repeated.
    #[arg(long, short, value_name = "NAME[=VALUE]", value_parser = crate::session::values::variable)]
    pub(super) env: Vec<(String, String)>,
    #[command(flatten, next_help_heading = "What the sandbox is made of")]
    pub(super) make: MakeArgs,
    #[command(flatten)]
    pub(super) approve: ApproveArgs,
}

fn tool(name: &str) -> Result<Tool, UnknownTool> {
    name.trim().parse()
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
    /// Log in at a server that wants an OAuth login.
    Login(LoginArgs),
    /// Forget a login, and have its tokens revoked.
    Logout(LogoutArgs),
    /// Make `gloveport mcp` a server of an MCP client: show what changes in the client's configuration, ask, and write it.
    #[command(after_help = INSTALL_HELP)]
    Install(InstallArgs),
    /// Take it out of the configuration of an MCP client again.
    Uninstall(UninstallArgs),
}

/// Examples of `install`.
const INSTALL_HELP: &str = "Examples:\n  \
    gloveport mcp install claude -- --runtime docker --image python:3.13\n  \
    gloveport mcp install vscode --project -- --runtime docker\n  \
    gloveport mcp install codex --print\n\n\
    Exit codes: 0 written, or nothing to change; 1 failed, or not confirmed; 2 wrong command line.";

#[derive(Debug, Args)]
pub(crate) struct LoginArgs {
    /// The server's URL.
    pub(super) url: String,
    /// The ID that this program is registered with, where a server does not register programs itself.
    #[arg(long, value_name = "ID")]
    pub(super) client_id: Option<String>,
    /// File with the secret that belongs to that ID.
    #[arg(long, value_name = "FILE", requires = "client_id")]
    pub(super) client_secret_file: Option<PathBuf>,
    /// What the login is to allow; may be repeated. By default what the server asks for.
    #[arg(long, value_name = "NAME")]
    pub(super) scope: Vec<String>,
    /// Longest time until you have logged in, for example 90s or 10m.
    #[arg(long, value_name = "TIME", value_parser = crate::session::values::duration, default_value = "5m")]
    pub(super) timeout: Duration,
    /// Print what came of it as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogoutArgs {
    /// The server's URL.
    pub(super) url: String,
    /// Print what came of it as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// Whose configuration is changed, and how.
#[derive(Debug, Args)]
pub(crate) struct EntryArgs {
    /// The MCP client: claude, claude-desktop, cursor, vscode, zed or codex.
    pub(super) program: Program,
    /// What the client calls the server.
    #[arg(long, value_name = "NAME", default_value = "gloveport")]
    pub(super) name: String,
    /// Only for the project in this directory, in its own file of the client.
    #[arg(long)]
    pub(super) project: bool,
    /// Write it without a question.
    #[arg(long)]
    pub(super) yes: bool,
    /// Print what changes as JSON. It is written with --yes only.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    pub(super) entry: EntryArgs,
    /// Change nothing; print what you can paste into the configuration yourself.
    #[arg(long, conflicts_with = "yes")]
    pub(super) print: bool,
    /// Flags of `gloveport mcp`, which the client starts it with.
    #[arg(last = true, value_name = "FLAGS")]
    pub(super) flags: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct UninstallArgs {
    #[command(flatten)]
    pub(super) entry: EntryArgs,
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
