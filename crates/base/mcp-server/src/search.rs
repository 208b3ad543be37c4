//! `search_files`.

use std::fmt::Write as _;

use gloveport_protocol::files::{FileKind, GlobRequest, GrepRequest};
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    answer::Answer,
    arguments::{absolute, parse},
    computer::{Computer, Failure},
    schema::{FOUND, MOST_FOUND},
    tool::Tool,
};

/// Most lines around a match.
const MOST_CONTEXT: usize = 20;
/// Most bytes of the found lines in an answer.
const MOST_TEXT: usize = 60_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    pattern: Option<String>,
    glob: Option<String>,
    path: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    context: usize,
    limit: Option<usize>,
}

pub(crate) async fn search(computer: &dyn Computer, arguments: JsonObject) -> Result<Answer, Failure> {
    let SearchArguments { pattern, glob, path, ignore_case, context, limit } = parse(Tool::SearchFiles, arguments)?;
    let path = absolute(computer.directory(), path.as_deref().unwrap_or("."))?;
    let limit = limit.unwrap_or(FOUND);
    if !(1..=MOST_FOUND).contains(&limit) || context > MOST_CONTEXT {
        return Err(Failure::new(format!(
            "limit must be between 1 and {MOST_FOUND}, and context between 0 and {MOST_CONTEXT}"
        )));
    }
    // As in a .gitignore, a pattern without a slash is for names at any depth.
    let anywhere = |glob: String| if glob.contains('/') { glob } else { format!("**/{glob}") };
    let Some(pattern) = pattern else {
        let Some(glob) = glob else {
            return Err(Failure::new("give `pattern` to find lines, `glob` to find files, or both"));
        };
        let request = GlobRequest {
            path: Some(path),
            globs: vec![anywhere(glob)],
            hidden: false,
            respect_ignore: true,
            limit: Some(limit),
        };
        let found = computer.glob(request).await?;
        let name = |entry: gloveport_protocol::files::FileEntry| {
            if entry.kind == FileKind::Directory { entry.path + "/" } else { entry.path }
        };
        let files: Vec<String> = found.entries.into_iter().map(name).collect();
        let text = ended(files.join("\n"), files.len(), found.truncated, "files");
        return Ok(Answer::new(text, json!({"files": files, "truncated": found.truncated})));
    };
    let request = GrepRequest {
        path: Some(path),
        pattern,
        literal: false,
        ignore_case,
        globs: glob.into_iter().collect(),
        hidden: false,
        respect_ignore: true,
        context,
        limit: Some(limit),
    };
    let found = computer.grep(request).await?;
    let (mut text, mut matches, mut truncated) = (String::new(), Vec::new(), found.truncated);
    for line in found.lines {
        if text.len() > MOST_TEXT {
            truncated = true;
            break;
        }
        let sign = if line.is_match { ':' } else { '-' };
        // Writing into a string cannot fail.
        let _written = writeln!(text, "{}{sign}{}{sign}{}", line.path, line.line, line.text);
        matches.push(json!({"path": line.path, "line": line.line, "text": line.text, "is_match": line.is_match}));
    }
    let count = matches.len();
    let text = ended(text.trim_end_matches('\n').to_owned(), count, truncated, "lines");
    Ok(Answer::new(text, json!({"matches": Value::Array(matches), "truncated": truncated})))
}

fn ended(text: String, count: usize, truncated: bool, what: &str) -> String {
    match (count, truncated) {
        (0, _) => format!("[no {what} found]"),
        (_, true) => format!("{text}\n[there are more {what}; narrow the search]"),
        (_, false) => text,
    }
}
