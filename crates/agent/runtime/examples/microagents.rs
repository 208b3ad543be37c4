//! Prints what microagents say, one line of JSON for each argument: `dir:PATH` loads a directory, `file:PATH` one file.
//!
//! `tests/reference/microagents.py` compares the lines with what the reference makes of the same files.

use std::{
    env,
    error::Error,
    fs,
    io::{self, Write as _},
    path::Path,
};

use gloveport_runtime::microagents::{Microagent, MicroagentError, load_directory};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    for argument in env::args().skip(1) {
        let answer = match argument.split_once(':') {
            Some(("dir", path)) => load_directory(Path::new(path)).map(|microagents| {
                json!({
                    "repo": microagents.repo.values().map(shown).collect::<Vec<_>>(),
                    "knowledge": microagents.knowledge.values().map(shown).collect::<Vec<_>>(),
                })
            }),
            Some(("file", path)) => Microagent::parse(&fs::read_to_string(path)?, Path::new(path), None)
                .map(|microagent| shown(&microagent)),
            _ => return Err(format!("`{argument}` is neither dir:PATH nor file:PATH").into()),
        };
        writeln!(out, "{}", answer.unwrap_or_else(|error| failed(&error)))?;
    }
    Ok(())
}

fn shown(microagent: &Microagent) -> Value {
    let metadata = &microagent.metadata;
    let inputs = metadata.inputs.iter().map(|input| json!({"name": input.name, "description": input.description}));
    let matches = ["Use GIT here", "ask /default or /deploy now", ""].map(|message| microagent.matches(message));
    json!({
        "name": microagent.name,
        "kind": microagent.kind.as_str(),
        "content": microagent.content,
        "source": microagent.source,
        "metadata": {
            "name": metadata.name,
            "type": metadata.kind.as_str(),
            "version": metadata.version,
            "agent": metadata.agent,
            "triggers": metadata.triggers,
            "inputs": inputs.collect::<Vec<_>>(),
            "mcp_tools": metadata.mcp_tools,
        },
        "matches": matches
    })
}

fn failed(error: &MicroagentError) -> Value {
    json!({"error": error.to_string(), "validation": error.is_validation()})
}
