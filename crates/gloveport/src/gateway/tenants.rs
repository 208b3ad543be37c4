//! `gloveport gateway tenant`: who may use how much.

use std::{process::ExitCode, time::Duration};

use clap::{Args, Subcommand, ValueEnum};
use gloveport_gateway_store::{Limits, MOST_ROWS, Session, Store, Tenant};

use super::{
    database::{DatabaseArgs, note},
    settings::thousandths,
};
use crate::{
    output::{print, print_json, print_painted},
    paint::Paint,
    session::{
        table::table,
        values::{duration, memory},
    },
};

/// Examples, and exit codes.
const HELP: &str = "Example:\n  gloveport gateway tenant create team-a --running 20 --memory 64GiB --database gateway.db\n  \
    gloveport gateway tenant set team-a --allow-image 'ghcr.io/team-a/*' --unlimited memory --database gateway.db\n\nExit \
    codes: 0 done, 1 failed, 2 wrong command line.";

#[derive(Debug, Subcommand)]
pub(super) enum TenantCommand {
    /// Make a tenant. What is not given has no limit.
    #[command(after_help = HELP)]
    Create(CreateArgs),
    /// List tenants.
    #[command(visible_alias = "ls", after_help = HELP)]
    List(ListArgs),
    /// Show a tenant, its limits, and what it uses.
    #[command(after_help = HELP)]
    Show(ShowArgs),
    /// Change limits of a tenant; the others stay.
    #[command(after_help = HELP)]
    Set(SetArgs),
    /// Delete a tenant and its keys. Its history stays.
    #[command(after_help = HELP)]
    Delete(DeleteArgs),
}

#[derive(Debug, Args)]
pub(super) struct LimitArgs {
    /// Sandboxes that may run at a time; paused ones do not count.
    #[arg(long, value_name = "N")]
    running: Option<u64>,
    /// Processors of the running sandboxes together, such as 16 or 2.5.
    #[arg(long, value_name = "N", value_parser = thousandths)]
    cpus: Option<u64>,
    /// Memory of the running sandboxes together, such as 64GiB.
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    memory: Option<u64>,
    /// Sandboxes that may be started within a minute.
    #[arg(long, value_name = "N")]
    starts_per_minute: Option<u64>,
    /// Snapshots that may be kept.
    #[arg(long, value_name = "N")]
    snapshots: Option<u64>,
    /// Images that may be used, as a pattern with * and ?; may be given several times.
    #[arg(long, value_name = "PATTERN")]
    allow_image: Vec<String>,
    /// A runtime class that may be used beside the usual one; may be given several times.
    #[arg(long, value_name = "NAME")]
    allow_class: Vec<String>,
    /// Largest resource factor of a sandbox.
    #[arg(long, value_name = "N")]
    largest_factor: Option<u64>,
    /// How long a sandbox may live, where the runtime can end it, such as 12h.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    longest_life: Option<Duration>,
    /// How long a sandbox may be idle, where the runtime can end it, such as 30m.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    longest_idle: Option<Duration>,
}

impl LimitArgs {
    /// Sets those that are given.
    fn apply(&self, limits: &mut Limits) {
        let set = |limit: &mut Option<u64>, given: Option<u64>| *limit = given.or(*limit);
        set(&mut limits.running, self.running);
        set(&mut limits.cpu_millis, self.cpus);
        set(&mut limits.memory_bytes, self.memory);
        set(&mut limits.starts_per_minute, self.starts_per_minute);
        set(&mut limits.snapshots, self.snapshots);
        set(&mut limits.largest_factor, self.largest_factor);
        set(&mut limits.longest_life, self.longest_life.map(|time| time.as_secs()));
        set(&mut limits.longest_idle, self.longest_idle.map(|time| time.as_secs()));
        for (list, given) in [(&mut limits.images, &self.allow_image), (&mut limits.classes, &self.allow_class)] {
            if !given.is_empty() {
                *list = Some(given.clone());
            }
        }
    }
}

/// A limit that is taken away.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Unlimited {
    Running,
    Cpus,
    Memory,
    StartsPerMinute,
    Snapshots,
    Images,
    Classes,
    Factor,
    Life,
    Idle,
}

impl Unlimited {
    fn apply(self, limits: &mut Limits) {
        match self {
            Self::Running => limits.running = None,
            Self::Cpus => limits.cpu_millis = None,
            Self::Memory => limits.memory_bytes = None,
            Self::StartsPerMinute => limits.starts_per_minute = None,
            Self::Snapshots => limits.snapshots = None,
            Self::Images => limits.images = None,
            Self::Classes => limits.classes = None,
            Self::Factor => limits.largest_factor = None,
            Self::Life => limits.longest_life = None,
            Self::Idle => limits.longest_idle = None,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// Its name: 1 to 32 of a-z, 0-9 and -, a letter first.
    name: String,
    #[command(flatten)]
    limits: LimitArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// Its name.
    name: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Debug, Args)]
pub(super) struct SetArgs {
    /// Its name.
    name: String,
    #[command(flatten)]
    limits: LimitArgs,
    /// Take a limit away; may be given several times.
    #[arg(long, value_name = "LIMIT", value_enum)]
    unlimited: Vec<Unlimited>,
    /// Let its keys open nothing. Its sandboxes go on.
    #[arg(long, conflicts_with = "enable")]
    disable: bool,
    /// Let its keys open again.
    #[arg(long)]
    enable: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Debug, Args)]
pub(super) struct DeleteArgs {
    /// Its name.
    name: String,
    /// Delete it though it has sandboxes or snapshots: its gateways end and delete them.
    #[arg(long, short)]
    force: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    database: DatabaseArgs,
}

pub(super) async fn tenant(command: TenantCommand) -> anyhow::Result<ExitCode> {
    match command {
        TenantCommand::Create(arguments) => {
            let store = arguments.database.open_or_make().await?;
            let mut limits = Limits::default();
            arguments.limits.apply(&mut limits);
            if !store.add_tenant(&arguments.name, &limits).await? {
                return Err(gloveport_gateway_store::StoreError::Exists(arguments.name).into());
            }
            noted(&store, "tenant create", &arguments.name, arguments.json).await?;
        }
        TenantCommand::List(arguments) => list(&arguments).await?,
        TenantCommand::Show(arguments) => show(&arguments).await?,
        TenantCommand::Set(arguments) => {
            let store = arguments.database.open().await?;
            let Tenant { mut limits, disabled, .. } = store.tenant(&arguments.name).await?;
            for limit in &arguments.unlimited {
                limit.apply(&mut limits);
            }
            arguments.limits.apply(&mut limits);
            let disabled = arguments.disable || (disabled && !arguments.enable);
            store.set_tenant(&arguments.name, &limits, disabled).await?;
            noted(&store, "tenant set", &arguments.name, arguments.json).await?;
        }
        TenantCommand::Delete(arguments) => {
            let store = arguments.database.open().await?;
            delete(&arguments, &store).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The sandboxes of a tenant.
async fn live(store: &Store, name: &str) -> anyhow::Result<Vec<String>> {
    let mut all: Vec<Session> = Vec::new();
    loop {
        let page = store.live(Some(name), all.last().map_or("", |row| &row.id)).await?;
        let is_last = page.len() < MOST_ROWS as usize;
        all.extend(page);
        if is_last {
            return Ok(all.into_iter().filter_map(|row| row.runtime).collect());
        }
    }
}

/// Deletes a tenant, and says what becomes of its sandboxes.
async fn delete(DeleteArgs { name, force, json, .. }: &DeleteArgs, store: &Store) -> anyhow::Result<()> {
    let left = if *force { live(store, name).await? } else { Vec::new() };
    store.delete_tenant(name, *force).await?;
    let detail = (!left.is_empty()).then(|| format!("its gateways end {} sandboxes", left.len()));
    note(store, "tenant delete", name, name, detail).await?;
    if *json {
        return print_json(&serde_json::json!({"name": name, "sandboxes": left}));
    }
    let ends = match left.as_slice() {
        [] => String::new(),
        left => format!(
            "a gateway over this database ends its sandboxes within a minute, or as soon as one is started:\n  {}\n",
            left.join("\n  ")
        ),
    };
    print(&format!("deleted the tenant {name}\n{ends}"))
}

/// Notes a change, and shows what has become of the tenant.
async fn noted(store: &Store, action: &str, name: &str, json: bool) -> anyhow::Result<()> {
    let tenant = store.tenant(name).await?;
    note(store, action, name, name, Some(serde_json::to_string(&tenant)?)).await?;
    if json {
        return print_json(&tenant);
    }
    print(&lines(&tenant))
}

async fn list(arguments: &ListArgs) -> anyhow::Result<()> {
    let store = arguments.database.open().await?;
    let mut tenants: Vec<Tenant> = Vec::new();
    loop {
        let page = store.tenants(tenants.last().map_or("", |tenant| &tenant.name)).await?;
        let is_last = page.len() < MOST_ROWS as usize;
        tenants.extend(page);
        if is_last {
            break;
        }
    }
    if arguments.json {
        return print_json(&tenants);
    }
    let rows: Vec<Vec<String>> = tenants
        .iter()
        .map(|tenant| {
            let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
            let limits = &tenant.limits;
            vec![
                tenant.name.clone(),
                if tenant.disabled { "disabled" } else { "enabled" }.to_owned(),
                number(limits.running),
                limits.cpu_millis.map_or_else(|| "-".to_owned(), processors),
                limits.memory_bytes.map_or_else(|| "-".to_owned(), gibibytes),
                number(limits.starts_per_minute),
            ]
        })
        .collect();
    print_painted(&table(&["NAME", "STATE", "RUNNING", "CPUS", "MEMORY", "STARTS/MIN"], &rows, Paint::for_stdout()))
}

async fn show(arguments: &ShowArgs) -> anyhow::Result<()> {
    let store = arguments.database.open().await?;
    let tenant = store.tenant(&arguments.name).await?;
    let usage = store.usage(&tenant.name).await?;
    if arguments.json {
        return print_json(&serde_json::json!({"tenant": tenant, "usage": usage}));
    }
    let used = format!(
        "in use             {} running, {} paused, {} processors, {}, {} starts within a minute, {} snapshots\n",
        usage.running,
        usage.paused,
        processors(usage.cpu_millis),
        gibibytes(usage.memory_bytes),
        usage.starts,
        usage.snapshots,
    );
    print(&(lines(&tenant) + &used))
}

fn processors(thousandths: u64) -> String {
    let (whole, rest) = (thousandths / 1000, thousandths % 1000);
    if rest == 0 { whole.to_string() } else { format!("{whole}.{rest:03}").trim_end_matches('0').to_owned() }
}

fn gibibytes(bytes: u64) -> String {
    let mib = bytes >> 20;
    if mib.is_multiple_of(1024) { format!("{}GiB", mib / 1024) } else { format!("{mib}MiB") }
}

/// A tenant as lines for people.
fn lines(tenant: &Tenant) -> String {
    let limits = &tenant.limits;
    let number = |number: Option<u64>| number.map_or_else(|| "unlimited".to_owned(), |number| number.to_string());
    let list = |list: &Option<Vec<String>>| match list {
        None => "all".to_owned(),
        Some(list) if list.is_empty() => "none".to_owned(),
        Some(list) => list.join(" "),
    };
    let time = |seconds: Option<u64>| seconds.map_or_else(|| "unlimited".to_owned(), |seconds| format!("{seconds} s"));
    let rows = [
        ("tenant", tenant.name.clone()),
        ("state", if tenant.disabled { "disabled" } else { "enabled" }.to_owned()),
        ("running", number(limits.running)),
        ("processors", limits.cpu_millis.map_or_else(|| "unlimited".to_owned(), processors)),
        ("memory", limits.memory_bytes.map_or_else(|| "unlimited".to_owned(), gibibytes)),
        ("starts per minute", number(limits.starts_per_minute)),
        ("snapshots", number(limits.snapshots)),
        ("images", list(&limits.images)),
        ("runtime classes", list(&limits.classes)),
        ("largest factor", number(limits.largest_factor)),
        ("longest life", time(limits.longest_life)),
        ("longest idle", time(limits.longest_idle)),
    ];
    rows.map(|(name, value)| format!("{name:<18} {value}\n")).concat()
}
