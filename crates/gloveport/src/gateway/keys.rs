//! `gloveport gateway key`: the keys of tenants.

use std::{process::ExitCode, time::Duration};

use clap::{Args, Subcommand};
use gloveport_gateway_store::{Key, MOST_ROWS, NewKey};

use super::database::{DatabaseArgs, note, when};
use crate::{
    output::{print, print_json, print_painted},
    paint::Paint,
    session::{table::table, values::duration},
};

/// Examples, and exit codes.
const HELP: &str = "Example:\n  gloveport gateway key create team-a --label ci --database gateway.db > key\n  gloveport \
    gateway key rotate 0123456789abcdef --grace 1h --database gateway.db > key\n\nExit codes: 0 done, 1 failed, 2 wrong \
    command line.";

#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Make a key of a tenant, and print it. It is stored nowhere and cannot be shown again.
    #[command(after_help = HELP)]
    Create(CreateArgs),
    /// List keys, without their secrets.
    #[command(visible_alias = "ls", after_help = HELP)]
    List(ListArgs),
    /// Revoke a key at once and for ever.
    #[command(after_help = HELP)]
    Revoke(RevokeArgs),
    /// Make a key in place of another one, and print it.
    #[command(after_help = HELP)]
    Rotate(RotateArgs),
}

#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// The tenant.
    tenant: String,
    /// What the key is for.
    #[arg(long, value_name = "TEXT", default_value = "")]
    label: String,
    /// It opens nothing any more after this time, such as 90d.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    expires: Option<Duration>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only those of this tenant.
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Debug, Args)]
pub(super) struct RevokeArgs {
    /// The id of the key, as `gateway key list` shows it.
    id: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Debug, Args)]
pub(super) struct RotateArgs {
    /// The id of the key that ends.
    id: String,
    /// The old key opens for so long beside the new one; it ends at once without it.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    grace: Option<Duration>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    database: DatabaseArgs,
}

pub(super) async fn key(command: KeyCommand) -> anyhow::Result<ExitCode> {
    match command {
        KeyCommand::Create(arguments) => {
            let store = arguments.database.open().await?;
            let new = store.add_key(&arguments.tenant, &arguments.label, arguments.expires).await?;
            // A key that nobody gets to know is better than one that is not in the log.
            note(&store, "key create", &arguments.tenant, &new.id, Some(arguments.label)).await?;
            show(&new, arguments.json)?;
        }
        KeyCommand::List(arguments) => list(&arguments).await?,
        KeyCommand::Revoke(arguments) => {
            let store = arguments.database.open().await?;
            let key = store.revoke_key(&arguments.id).await?;
            note(&store, "key revoke", &key.tenant, &key.id, None).await?;
            if arguments.json {
                print_json(&key)?;
            } else {
                print(&format!("revoked the key {} of the tenant {}\n", key.id, key.tenant))?;
            }
        }
        KeyCommand::Rotate(arguments) => {
            let store = arguments.database.open().await?;
            let new = store.rotate_key(&arguments.id, arguments.grace.unwrap_or_default()).await?;
            note(&store, "key rotate", &new.tenant, &arguments.id, Some(format!("the new key is {}", new.id))).await?;
            show(&new, arguments.json)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A new key, alone, so that `> file` works.
fn show(new: &NewKey, json: bool) -> anyhow::Result<()> {
    if json {
        return print_json(&serde_json::json!({"id": new.id, "tenant": new.tenant, "key": new.key.expose()}));
    }
    print(&format!("{}\n", new.key.expose()))
}

async fn list(arguments: &ListArgs) -> anyhow::Result<()> {
    let store = arguments.database.open().await?;
    let mut keys: Vec<Key> = Vec::new();
    loop {
        let page = store.keys(arguments.tenant.as_deref(), keys.last()).await?;
        let is_last = page.len() < MOST_ROWS as usize;
        keys.extend(page);
        if is_last {
            break;
        }
    }
    if arguments.json {
        return print_json(&keys);
    }
    let now = store.now().await?;
    let state = |key: &Key| match (key.revoked, key.expires) {
        (Some(_), _) => "revoked",
        (None, Some(expires)) if expires <= now => "expired",
        (None, _) => "good",
    };
    let rows: Vec<Vec<String>> = keys
        .iter()
        .map(|key| {
            let times = [Some(key.created), key.expires, key.used].map(when);
            let mut row = vec![key.id.clone(), key.tenant.clone(), key.label.clone(), state(key).to_owned()];
            row.extend(times);
            row
        })
        .collect();
    print_painted(&table(&["ID", "TENANT", "LABEL", "STATE", "CREATED", "EXPIRES", "USED"], &rows, Paint::for_stdout()))
}
