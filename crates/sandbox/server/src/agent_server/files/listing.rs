//! Directories, as a person who chooses one sees them.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use axum::{extract::State, response::Response};
use http::{StatusCode, Uri};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::{
    super::answers::{Parameters, failed, invalid, missing},
    absolute, is_absent,
};
use crate::{answer, app::App};

/// Most directories of the home that are shown.
const FAVORITES: usize = 50;
/// Most entries of a directory that are looked at.
const ENTRIES: usize = 100_000;

pub(super) async fn home(State(app): State<Arc<App>>, uri: Uri) -> Response {
    app.action_arrived();
    let hidden = match Parameters::of(&uri).boolean("include_hidden", false) {
        Ok(hidden) => hidden,
        Err(wrong) => return invalid(&[wrong]),
    };
    let home = app.executor.surroundings().home().unwrap_or_else(|| PathBuf::from("/"));
    let looked = home.clone();
    // A home that cannot be read has no favourites.
    let found = spawn_blocking(move || subdirectories(&looked, hidden)).await;
    let names = found.unwrap_or_else(|error| Err(io::Error::other(error))).unwrap_or_default();
    let favorites: Vec<Value> = names
        .iter()
        .take(FAVORITES)
        .map(|name| json!({"label": name, "path": home.join(name).to_string_lossy()}))
        .collect();
    let locations = [json!({"label": "/", "path": "/"})];
    let body = json!({"home": home.to_string_lossy(), "favorites": favorites, "locations": locations});
    answer::json(StatusCode::OK, &body)
}

pub(super) async fn search_subdirs(State(app): State<Arc<App>>, uri: Uri) -> Response {
    app.action_arrived();
    let parameters = Parameters::of(&uri);
    let path = parameters.get("path");
    let hidden = parameters.boolean("include_hidden", false);
    let limit = parameters.number("limit", 100, (1, 100), "greater_than");
    let (path, hidden, limit) = match (path, hidden, limit) {
        (Some(path), Ok(hidden), Ok(limit)) => (path, hidden, usize::try_from(limit).unwrap_or(1)),
        (path, hidden, limit) => {
            let absent = path.is_none().then(|| missing("query", "path"));
            let wrong: Vec<Value> = absent.into_iter().chain(hidden.err()).chain(limit.err()).collect();
            return invalid(&wrong);
        }
    };
    let path = match absolute(path) {
        Ok(path) => path,
        Err(refusal) => return *refusal,
    };
    let looked = path.clone();
    let found = spawn_blocking(move || subdirectories(&looked, hidden)).await;
    let names = match found.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            return answer::detail(StatusCode::BAD_REQUEST, "Path is not a directory");
        }
        Err(error) if is_absent(&error) => return answer::detail(StatusCode::NOT_FOUND, "Directory not found"),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return answer::detail(StatusCode::FORBIDDEN, format!("Permission denied: {error}"));
        }
        Err(error) => return failed(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    };
    let (page, next) = page(&names, parameters.get("page_id"), limit);
    let items: Vec<Value> =
        page.iter().map(|name| json!({"name": name, "path": path.join(name).to_string_lossy()})).collect();
    answer::json(StatusCode::OK, &json!({"items": items, "next_page_id": next}))
}

/// The names of the directories in a directory, without links, in the order of lower case.
fn subdirectories(path: &Path, hidden: bool) -> io::Result<Vec<String>> {
    let mut names: Vec<String> = fs::read_dir(path)?
        .take(ENTRIES)
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| hidden || !name.starts_with('.'))
        .collect();
    names.sort_by_cached_key(|name| (name.to_lowercase(), name.clone()));
    Ok(names)
}

/// The names from the first one of the page on, and the first one of the next page.
fn page<'a>(names: &'a [String], first: Option<&str>, limit: usize) -> (&'a [String], Option<&'a str>) {
    // One that is not there starts over.
    let is_first = |first: &str| names.iter().position(|name| name == first || name.to_lowercase() == first);
    let rest = names.get(first.and_then(is_first).unwrap_or(0)..).unwrap_or_default();
    let (page, next) = rest.split_at(limit.min(rest.len()));
    (page, next.first().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_begin_where_they_say_or_at_the_beginning() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["b", "A", "a", ".hidden", "C"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        fs::write(directory.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink("/", directory.path().join("link")).unwrap();
        let names = subdirectories(directory.path(), false).unwrap();
        assert_eq!(names, ["A", "a", "b", "C"]);
        assert_eq!(subdirectories(directory.path(), true).unwrap().len(), 5);
        let (first, next) = page(&names, None, 3);
        assert_eq!((first, next), (&names[..3], Some("C")));
        assert_eq!(page(&names, next, 3), (&names[3..], None));
        assert_eq!(page(&names, Some("c"), 3), (&names[3..], None));
        for unknown in ["zz", "bb", "B"] {
            assert_eq!(page(&names, Some(unknown), 3), (&names[..3], Some("C")), "{unknown}");
        }
    }
}
