//! Answers questions about names, one JSON object a line; `tests/reference/images.py` asks them.
//!
//! | question | answer |
//! |---|---|
//! | `{"short": HEX}` | the short form |
//! | `{"directory": PATH}` | its hash |
//! | `{"base": NAME, "repository": NAME}` | `[repository, generic tag, versioned tag]` |
//! | `{"lock": NAME, "browser": BOOL, "inputs": [TEXT, …]}` | the lock tag |
//!
//! What cannot be answered is `{"error": TEXT}`.

use std::{
    io::{self, BufRead as _, Write as _},
    path::Path,
};

use gloveport_image::{Fingerprint, ImageName, Naming};
use serde_json::{Value, json};

fn main() -> io::Result<()> {
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let answer = answer(&line?).unwrap_or_else(|error| json!({ "error": error }));
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(())
}

fn answer(line: &str) -> Result<Value, String> {
    let question: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let text = |name: &str| question.get(name).and_then(Value::as_str);
    let parsed = |name: &str| name.parse::<ImageName>().map_err(|error| error.to_string());
    let naming = || Naming::new(text("repository")).map_err(|error| error.to_string());
    if let Some(hex) = text("short") {
        return Ok(json!(Fingerprint::from_hex(hex).ok_or("no hexadecimal number")?.short()));
    }
    if let Some(path) = text("directory") {
        return Ok(json!(Fingerprint::of_directory(Path::new(path)).map_err(|error| error.to_string())?.hex()));
    }
    if let Some(base) = text("base") {
        let (naming, base) = (naming()?, parsed(base)?);
        let generic = naming.generic(&base);
        return Ok(json!([generic.repository, generic.tag, naming.versioned_tag(&base)]));
    }
    let base = parsed(text("lock").ok_or("an unknown question")?)?;
    let inputs = question.get("inputs").and_then(Value::as_array).cloned().unwrap_or_default();
    let inputs: Vec<&[u8]> = inputs.iter().filter_map(Value::as_str).map(str::as_bytes).collect();
    let browser = question.get("browser") != Some(&Value::Bool(false));
    Ok(json!(naming()?.lock_tag(&base, browser, &inputs)))
}
