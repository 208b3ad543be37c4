//! `gloveport gateway`: any runtime as the Remote Runtime API of OpenHands, and the tenants of one with a database.

mod acme;
mod check;
mod database;
mod e2b;
mod front;
mod history;
mod keys;
mod serve;
mod sessions;
mod settings;
mod tenants;

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Subcommand};

use self::{
    database::DatabaseArgs,
    history::{AuditArgs, SessionsArgs},
    keys::KeyCommand,
    serve::{PORT, ServeArgs},
    tenants::TenantCommand,
};
use crate::{
    key_file,
    output::{print, print_json},
};

/// Exit codes, and how it is used, as `--help` shows them.
pub(crate) const HELP: &str = "Example:\n  openssl rand -hex 32 > key && chmod 600 key\n  gloveport gateway --runtime local \
    --key-file key\n  gloveport gateway env --key-file key      # what an OpenHands backend needs to be told\n  \
    gloveport gateway --config gateway.toml   # tenants with keys of their own: docs/gateway.md\n\nExit codes: 0 \
    done, 1 failed, 2 wrong command line.";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct GatewayArgs {
    #[command(subcommand)]
    command: Option<GatewayCommand>,
    #[command(flatten)]
    serve: ServeArgs,
}

#[derive(Debug, Subcommand)]
enum GatewayCommand {
    /// Print what an OpenHands backend needs to be told to use a gateway: variables, and lines of config.toml.
    Env(EnvArgs),
    /// Keys of tenants.
    #[command(subcommand)]
    Key(KeyCommand),
    /// Tenants, and what each may use.
    #[command(subcommand)]
    Tenant(TenantCommand),
    /// Show the audit log, the newest lines first.
    #[command(after_help = history::AUDIT_HELP)]
    Audit(AuditArgs),
    /// Show sessions and what became of them, the newest first.
    #[command(after_help = history::SESSIONS_HELP)]
    Sessions(SessionsArgs),
    /// Check the configuration, the database and the runtime of a gateway, and say what to do about what is wrong.
    #[command(after_help = check::HELP)]
    Check(CheckArgs),
}

#[derive(Debug, Args)]
struct CheckArgs {
    /// The runtime of the sandboxes. [default: local]
    #[arg(long, value_name = "NAME")]
    runtime: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Debug, Args)]
struct EnvArgs {
    /// URL of the gateway.
    #[arg(long, value_name = "URL", default_value_t = format!("http://127.0.0.1:{PORT}"))]
    url: String,
    /// File with its key. The key itself is not printed, but how the shell reads it.
    #[arg(long, value_name = "FILE")]
    key_file: PathBuf,
    /// Print what the SDKs of E2B read instead: for a gateway with --e2b.
    #[arg(long)]
    e2b: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn gateway(arguments: GatewayArgs) -> anyhow::Result<ExitCode> {
    match arguments.command {
        Some(GatewayCommand::Env(arguments)) => env(&arguments),
        Some(GatewayCommand::Key(command)) => keys::key(command).await,
        Some(GatewayCommand::Tenant(command)) => tenants::tenant(command).await,
        Some(GatewayCommand::Audit(arguments)) => history::audit(arguments).await,
        Some(GatewayCommand::Sessions(arguments)) => history::sessions(arguments).await,
        Some(GatewayCommand::Check(CheckArgs { runtime, json, database })) => {
            check::check(runtime.as_deref(), json, &database).await
        }
        None => serve::serve(arguments.serve).await,
    }
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn env(arguments: &EnvArgs) -> anyhow::Result<ExitCode> {
    // That it can be read is found out here, and not by the backend.
    key_file::given(&arguments.key_file)?;
    let file = std::path::absolute(&arguments.key_file)?;
    let url = arguments.url.trim_end_matches('/');
    if arguments.e2b {
        let file = file.display().to_string();
        if arguments.json {
            print_json(&e2b::json(url, &file))?;
        } else {
            print(&e2b::env(&quoted(url), &quoted(&file)))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.json {
        let told = serde_json::json!({
            "runtime": "remote", "remote_runtime_api_url": url, "api_key_file": file.display().to_string(),
        });
        print_json(&told)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (url, file) = (url, quoted(&file.display().to_string()));
    let toml = serde_json::Value::from(url);
    print(&format!(
        "export RUNTIME=remote\nexport SANDBOX_REMOTE_RUNTIME_API_URL={}\nexport SANDBOX_API_KEY=\"$(cat {file})\"\n\
         # A gateway builds no images: name one, which the runtime local has no use for.\n\
         export SANDBOX_RUNTIME_CONTAINER_IMAGE=\"${{SANDBOX_RUNTIME_CONTAINER_IMAGE:-debian:13}}\"\n\n\
         # or in config.toml:\n#   [core]\n#   runtime = \"remote\"\n#   [sandbox]\n#   remote_runtime_api_url = {toml}\n\
         #   api_key = \"the contents of the file\"\n#   runtime_container_image = \"debian:13\"\n",
        quoted(url),
    ))?;
    Ok(ExitCode::SUCCESS)
}
