//! Paths of stores that are no directories.

use super::StoreError;

/// The parts of a path that name something, with `/` between them; nothing for the store itself.
pub(super) fn key(path: &str) -> Result<String, StoreError> {
    let refuse = |reason| StoreError::Path { path: path.to_owned(), reason };
    if path.contains('\0') {
        return Err(refuse("it contains a null character"));
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.contains(&"..") {
        return Err(refuse("'..' leads out of the store"));
    }
    Ok(parts.join("/"))
}

/// The same for a content, which is below the store.
pub(super) fn content_key(path: &str) -> Result<String, StoreError> {
    match key(path)? {
        key if key.is_empty() => Err(StoreError::Path { path: path.to_owned(), reason: "it names the store itself" }),
        key => Ok(key),
    }
}

/// What stands before the names in the list of a path: the path as it was given, with a slash at its end.
pub(super) fn list_prefix(path: &str) -> String {
    let separator = if path.is_empty() || path.ends_with('/') { "" } else { "/" };
    format!("{path}{separator}")
}

/// What all that is below a key begins with.
pub(super) fn below(key: &str) -> String {
    list_prefix(key)
}
