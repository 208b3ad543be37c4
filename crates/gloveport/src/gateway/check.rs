//! `gloveport gateway check`: what is wrong with a gateway, before it is started.

use std::process::ExitCode;

use gloveport_gateway_store::{Location, Store};
use gloveport_provider::Capabilities;

use super::{database::DatabaseArgs, front, serve::RUNTIME, settings::Settings};
use crate::{
    doctor::{Check, Verdict, table},
    key_file,
    output::{print_json, print_painted},
    providers,
};

/// Examples, and exit codes.
pub(super) const HELP: &str = "Example:\n  gloveport gateway check --config gateway.toml\n\nExit codes: 0 nothing is wrong, 1 \
    something is, 2 wrong command line.";

pub(super) async fn check(runtime: Option<&str>, json: bool, database: &DatabaseArgs) -> anyhow::Result<ExitCode> {
    let mut checks = Vec::new();
    let settings = match database.settings() {
        Ok(settings) => {
            if let Some(file) = &database.config {
                checks.push(Check::ok("configuration", file.display().to_string()));
            }
            settings
        }
        Err(error) => {
            checks.push(Check::failed("configuration", format!("{error:#}"), "correct the file"));
            Settings::default()
        }
    };
    checks.push(keys(&settings));
    checks.extend(self::database(database, &settings).await);
    let runtime = runtime.or(settings.runtime.as_deref()).unwrap_or(RUNTIME);
    let (of_runtime, can) = provider(runtime).await;
    checks.extend(front::checks(&settings, runtime, can.as_ref()));
    checks.extend(of_runtime);
    if json {
        print_json(&checks)?;
    } else {
        print_painted(&table(&checks))?;
    }
    let is_wrong = checks.iter().any(|check| check.verdict == Verdict::Failed);
    Ok(if is_wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn keys(settings: &Settings) -> Check {
    const NAME: &str = "key file";
    let Some(file) = &settings.key_file else { return Check::ok(NAME, "none is in the configuration file") };
    match key_file::given(file) {
        Ok(key) if key.len() >= gloveport_gateway::Gateway::SHORTEST_KEY => Check::ok(NAME, file.display().to_string()),
        Ok(_) => Check::failed(NAME, "the key is too short", "write one with `openssl rand -hex 32 > FILE`"),
        Err(error) => Check::failed(NAME, format!("{error:#}"), "write one with `openssl rand -hex 32 > FILE`"),
    }
}

async fn database(arguments: &DatabaseArgs, settings: &Settings) -> Vec<Check> {
    const NAME: &str = "database";
    let location = match arguments.location(settings) {
        Ok(Some(location)) => location,
        Ok(None) => return vec![Check::ok(NAME, "none: there is one tenant, with the key of --key-file")],
        Err(error) => return vec![Check::failed(NAME, format!("{error:#}"), "name a file, or a URL of PostgreSQL")],
    };
    if let Location::File(path) = &location
        && !path.exists()
    {
        let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
        return vec![match directory {
            Some(directory) if !directory.is_dir() => {
                let found = format!("there is no directory {}", directory.display());
                Check::failed(NAME, found, "make it, or name another file")
            }
            _ => Check::ok(NAME, format!("{location} will be made")),
        }];
    }
    let failed = |error: &dyn std::fmt::Display| {
        Check::failed(NAME, error.to_string(), "start the database, and check its address, user, password and rights")
    };
    let store = match Store::connect(&location).await {
        Ok(store) => store,
        Err(error) => return vec![failed(&error)],
    };
    match store.schema().await {
        Ok((found, known)) if found > known => {
            let found = format!("{location} has the schema {found}, and this version knows those up to {known}");
            vec![Check::failed(NAME, found, "use the version that the other gateways have")]
        }
        Ok((found, known)) if found < known => {
            let found = format!("{location} has the schema {found}, and will have {known} when the gateway starts");
            vec![Check::ok(NAME, found)]
        }
        Ok(_) => match store.tenants("").await {
            Ok(tenants) if tenants.is_empty() => {
                let remedy = "make one with `gloveport gateway tenant create`";
                vec![Check::ok(NAME, location.to_string()), Check::warning("tenants", "there are none", remedy)]
            }
            Ok(tenants) => {
                vec![Check::ok(NAME, location.to_string()), Check::ok("tenants", tenants.len().to_string())]
            }
            Err(error) => vec![failed(&error)],
        },
        Err(error) => vec![failed(&error)],
    }
}

async fn provider(name: &str) -> (Vec<Check>, Option<Capabilities>) {
    const NAME: &str = "runtime";
    let made = providers::context().and_then(|context| Ok(providers::registry().make(name, &context)?));
    let provider = match made {
        Ok(provider) => provider,
        Err(error) => {
            let failed = Check::failed(NAME, format!("{error:#}"), "name one that `gloveport provider ls` lists");
            return (vec![failed], None);
        }
    };
    let (checks, can) = (provider.check().await, provider.capabilities());
    provider.close().await;
    let of = |check: gloveport_provider::Check| Check {
        name: format!("{name}: {}", check.name).into(),
        verdict: if check.works { Verdict::Ok } else { Verdict::Failed },
        found: check.found,
        remedy: check.remedy.map(Into::into),
    };
    (checks.into_iter().map(of).collect(), Some(can))
}
