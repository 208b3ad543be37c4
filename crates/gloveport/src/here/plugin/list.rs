//! `gloveport plugin ls`.

use std::process::ExitCode;

use gloveport_contract::plugins::BUILT_IN;
use gloveport_plugin::registry::{Entry, Source};
use serde_json::{Value, json};

use super::registry;
use crate::{
    output::{print_json, print_painted},
    paint::Paint,
    plugin::LsArgs,
    session::table::table,
};

pub(super) fn list(arguments: &LsArgs) -> anyhow::Result<ExitCode> {
    let registry = registry();
    if arguments.json {
        let all = registry.entries().iter().map(view).collect();
        print_json(&Value::Array(all))?;
    } else {
        let rows: Vec<Vec<String>> = registry.entries().iter().map(row).collect();
        print_painted(&table(&["NAME", "FROM", "REQUIRES", "DESCRIPTION"], &rows, Paint::for_stdout()))?;
        for warning in registry.warnings() {
            tracing::warn!("{warning}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What is said of a built-in plugin.
fn built_in(name: &str) -> &'static str {
    BUILT_IN.iter().find(|known| known.name == name).map_or("", |known| known.description)
}

fn row(entry: &Entry) -> Vec<String> {
    let (from, requires, description) = match &entry.source {
        Source::BuiltIn(_) => ("built in".to_owned(), String::new(), built_in(&entry.name).to_owned()),
        Source::Manifest(manifest) => (
            manifest.path.display().to_string(),
            manifest.requires.join(", "),
            manifest.description.clone().unwrap_or_default(),
        ),
        Source::Broken(error) => {
            let what = format!("broken: see `gloveport plugin check {}`", entry.name);
            (error.path.display().to_string(), String::new(), what)
        }
    };
    vec![entry.name.clone(), from, requires, description]
}

fn view(entry: &Entry) -> Value {
    let name = &entry.name;
    match &entry.source {
        Source::BuiltIn(_) => {
            json!({"name": name, "built_in": true, "path": null, "requires": [], "description": built_in(name),
                   "error": null})
        }
        Source::Manifest(manifest) => {
            json!({"name": name, "built_in": false, "path": manifest.path, "requires": manifest.requires,
                   "description": manifest.description, "error": null})
        }
        Source::Broken(error) => {
            json!({"name": name, "built_in": false, "path": error.path, "requires": [], "description": null,
                   "error": error.to_string()})
        }
    }
}
