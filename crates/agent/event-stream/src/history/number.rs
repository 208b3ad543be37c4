//! The numbers of events in the names of their files (event-stream 3).

use std::{fs, io, path::Path};

/// The number in the name of an event's file. A name without one is a warning.
pub(crate) fn of_path(path: &str) -> Option<i64> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.split('.').next().unwrap_or(name);
    let id = stem.parse().ok().filter(|id| *id >= 0);
    if id.is_none() {
        tracing::warn!(path, "a file among the events is left out: its name is not a number");
    }
    id
}

/// The highest number in a directory, which is looked through one by one: a long history needs no more memory than a
/// short one.
pub(crate) fn highest_in(directory: &Path) -> io::Result<Option<i64>> {
    let mut highest = None;
    for entry in fs::read_dir(directory)? {
        highest = highest.max(of_path(&entry?.file_name().to_string_lossy()));
    }
    Ok(highest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_what_stands_before_the_first_dot() {
        for (path, id) in [
            ("sessions/s/events/7.json", Some(7)),
            ("12", Some(12)),
            ("3.json.bak", Some(3)),
            ("x.json", None),
            ("-3.json", None),
            (".json", None),
            ("", None),
            ("events/", None),
        ] {
            assert_eq!(of_path(path), id, "{path}");
        }
    }
}
