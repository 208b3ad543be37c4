//! Reads a manifest from its file.

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use toml::de::DeTable;

use super::{
    Manifest, ManifestError, fields,
    value::{Problems, Section},
};

/// Longest file that is read.
const LIMIT: u64 = 256 * 1024;
/// Most problems that are told of one file.
const PROBLEMS: usize = 50;

/// Reads the manifest in a file.
pub(super) fn file(path: &Path) -> Result<Manifest, ManifestError> {
    let whole = |message: String, suggestion: &str| ManifestError::whole(path.to_owned(), message, suggestion);
    let unreadable =
        |error: std::io::Error| whole(format!("cannot read it: {error}"), "name a manifest that can be read");
    // Before it is opened: to open a FIFO would wait for ever.
    if !path.metadata().map_err(unreadable)?.is_file() {
        return Err(whole("it is not a regular file".into(), "name the manifest itself"));
    }
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(LIMIT + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LIMIT {
        return Err(whole(format!("it is longer than {LIMIT} bytes"), "manifests are short"));
    }
    let text = String::from_utf8(bytes).map_err(|_| whole("it is not UTF-8".into(), "save it as UTF-8"))?;
    self::text(path, &text)
}

/// Reads the text of a manifest.
pub(super) fn text(path: &Path, text: &str) -> Result<Manifest, ManifestError> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut problems = Problems::new(text);
    for error in &errors {
        let message = format!("this is no TOML: {}", error.message().trim().replace('\n', ", "));
        problems.add(&error.span().unwrap_or(0..0), message, None);
    }
    let root = Section::root(table.get_ref());
    // What cannot be read has values that nobody wrote, so only its name is looked for.
    let mut unused = Problems::new(text);
    let name = root.text("name", &mut unused).map(|name| name.value).filter(|name| Manifest::is_name(name));
    let read = if errors.is_empty() { fields::read(&root, path.to_owned(), folder(path), &mut problems) } else { None };
    let list = problems.finish(PROBLEMS);
    match read {
        Some(manifest) if list.is_empty() => Ok(manifest),
        _ => Err(ManifestError { path: path.to_owned(), name, problems: list }),
    }
}

/// The folder of a file, as an absolute path.
fn folder(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.parent().map_or_else(|| PathBuf::from("/"), Path::to_owned)
}
