//! Does what each line of standard input says, in the workspace that is the argument, and answers a line for each.
//!
//! A line is an action as JSON, or `["list", PATH]`, `["copy_to", SOURCE, DESTINATION, RECURSIVE]`, `["copy_from", PATH]`
//! or `["close"]`. The answer is the observation, what was asked for, or `{"error": TEXT}`.

use std::{
    fs::File,
    io::{self, BufRead as _, Write as _},
    path::Path,
    sync::Arc,
};

use gloveport_cli_runtime::{CliError, CliOptions, CliRuntime};
use gloveport_protocol::{ActionEvent, ActionExecutor as _, ObservationEvent};
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let workspace = std::env::args_os().nth(1).ok_or("give the workspace as the argument")?;
    let runtime = CliRuntime::open(CliOptions::new(workspace))?;
    for line in io::stdin().lock().lines() {
        let answer = answer(&runtime, serde_json::from_str(&line?)?).await?;
        writeln!(io::stdout(), "{answer}")?;
    }
    runtime.close().await;
    Ok(())
}

async fn answer(runtime: &Arc<CliRuntime>, asked: Value) -> Result<Value, Failure> {
    let Value::Array(parts) = &asked else {
        let event = ActionEvent::from_value(asked)?;
        return Ok(match runtime.execute(&event).await {
            Ok(observation) => ObservationEvent::from(observation).to_value(),
            Err(error) => json!({"error": error.to_string()}),
        });
    };
    let text = |index: usize| parts.get(index).and_then(Value::as_str);
    let result = match text(0).unwrap_or_default() {
        "list" => runtime.list_files(text(1)).map(Value::from),
        "copy_to" => {
            let recursive = parts.get(3).and_then(Value::as_bool).unwrap_or_default();
            let source = Path::new(text(1).unwrap_or_default());
            runtime.copy_to(source, text(2).unwrap_or_default(), recursive).map(|()| Value::Null)
        }
        "copy_from" => packed(runtime, text(1).unwrap_or_default())?,
        "close" => {
            runtime.close().await;
            Ok(Value::Null)
        }
        other => return Err(format!("`{other}` is nothing that can be asked").into()),
    };
    Ok(result.unwrap_or_else(|error| json!({"error": error.to_string()})))
}

/// Name, method and mode of each entry.
fn packed(runtime: &CliRuntime, path: &str) -> Result<Result<Value, CliError>, Failure> {
    let file = match runtime.copy_from(path) {
        Ok(file) => file,
        Err(error) => return Ok(Err(error)),
    };
    let mut zip = zip::ZipArchive::new(File::open(&file)?)?;
    let mut entries = Vec::new();
    for index in 0..zip.len() {
        let entry = zip.by_index(index)?;
        let deflated = entry.compression() == zip::CompressionMethod::Deflated;
        entries.push(json!([entry.name()?, deflated, entry.unix_mode().map(|mode| mode & 0o777)]));
    }
    Ok(Ok(Value::Array(entries)))
}
