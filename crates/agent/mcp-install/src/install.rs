//! What files become with an entry, and without it.

use std::path::Path;

use crate::{
    change::Change,
    edit,
    entry::Entry,
    error::{InstallError, Problem},
    file, json,
    program::{Format, Program},
    toml,
};

/// What the file becomes with the entry; nothing is written.
///
/// A file that is missing or empty is made whole. An entry of that name stays where it is, with all that this crate does not
/// write itself (`disabled`, `autoApprove`, …), but without what says how another kind of server is reached (`url`,
/// `headers`, …). Its environment becomes that of the entry.
///
/// # Errors
///
/// The entry cannot be used, the file cannot be read or parsed, or has something else where the servers belong.
pub fn install(program: Program, file: &Path, entry: &Entry) -> Result<Change, InstallError> {
    entry.check()?;
    let change = edited(file, |text| {
        if text.trim().is_empty() {
            return Ok(snippet(program, entry));
        }
        match program.format() {
            Format::Json { .. } => json::install(text, program.section(), &entry.name, &members(program, entry)),
            Format::Toml => toml::install(text, program.section(), entry),
        }
    })?;
    file::check_length(file, change.after.len())?;
    Ok(change)
}

/// What the file becomes without the entry of that name; nothing is written, and without such an entry nothing changes.
/// A section that gets empty stays.
///
/// # Errors
///
/// The file cannot be read or parsed, or has something else where the servers belong.
pub fn uninstall(program: Program, file: &Path, name: &str) -> Result<Change, InstallError> {
    edited(file, |text| {
        if text.trim().is_empty() {
            return Ok(text.to_owned());
        }
        match program.format() {
            Format::Json { .. } => json::uninstall(text, program.section(), name),
            Format::Toml => toml::uninstall(text, program.section(), name),
        }
    })
}

/// The smallest whole file with the entry, to be pasted by hand.
pub fn snippet(program: Program, entry: &Entry) -> String {
    match program.format() {
        Format::Json { .. } => json::document(program.section(), &entry.name, &members(program, entry)),
        Format::Toml => toml::document(program.section(), entry),
    }
}

fn edited(file: &Path, edit: impl FnOnce(&str) -> Result<String, Problem>) -> Result<Change, InstallError> {
    let before = file::read(file)?;
    let (mark, text) = edit::split_mark(before.as_deref().unwrap_or_default());
    let problem = |problem| InstallError::Content { path: file.to_owned(), problem };
    let after = format!("{mark}{}", edit(text).map_err(problem)?);
    Ok(Change { file: file.to_owned(), before, after })
}

/// The members of an entry in JSON.
fn members(program: Program, entry: &Entry) -> json::Members {
    let mut members = json::Members::new();
    if program.format() == (Format::Json { with_type: true }) {
        members.insert("type".to_owned(), "stdio".into());
    }
    members.insert("command".to_owned(), entry.command.as_str().into());
    members.insert("args".to_owned(), entry.args.as_slice().into());
    if !entry.env.is_empty() {
        let variables = entry.env.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
        members.insert("env".to_owned(), variables.collect::<json::Members>().into());
    }
    members
}
