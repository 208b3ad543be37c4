//! A directory and what is in it, two levels deep (file-editor 3.5).
//!
//! Links are followed. Of a directory of any size no more is held than what is shown.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs, io,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use gloveport_sys::reach::Reach;
use rustix::{fs::FileType, io::Errno};

use crate::{error::EditorError, output};

/// How long a listing may take.
const TIME_LIMIT: Duration = Duration::from_mins(2);

/// How deep it goes.
const DEPTH: usize = 2;

/// What is in a directory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Listing {
    /// A path a line, in bytewise order; the beginning of it, if it is longer than what is shown.
    pub(crate) paths: String,
    /// How many entries of the directory itself are hidden.
    pub(crate) hidden: usize,
}

/// Lists a directory.
pub(crate) fn list(reach: &Reach, path: &str) -> Result<Listing, EditorError> {
    list_until(reach, path, Instant::now() + TIME_LIMIT)
}

fn list_until(reach: &Reach, path: &str, deadline: Instant) -> Result<Listing, EditorError> {
    let mut walk =
        Walk { reach, first: First::default(), hidden: 0, complaints: String::new(), deadline, ancestors: Vec::new() };
    walk.first.insert(Path::new(path), true);
    walk.descend(Path::new(path))?;
    if !walk.complaints.is_empty() {
        return Err(EditorError::Listing(walk.complaints));
    }
    Ok(Listing { paths: walk.first.text(), hidden: walk.hidden })
}

struct Walk<'a> {
    reach: &'a Reach,
    first: First,
    hidden: usize,
    /// What can not be listed, a line each.
    complaints: String,
    deadline: Instant,
    /// Device and inode of the directories that lead to the current one, and their paths.
    ancestors: Vec<((u64, u64), PathBuf)>,
}

impl Walk<'_> {
    fn descend(&mut self, directory: &Path) -> Result<(), EditorError> {
        let entries = match self.reach.metadata(directory).and_then(|metadata| {
            self.ancestors.push(((metadata.dev(), metadata.ino()), directory.to_owned()));
            self.reach.entries(directory)
        }) {
            Ok(entries) => entries,
            Err(error) => {
                self.complain(directory, &error);
                self.ancestors.pop();
                return Ok(());
            }
        };
        let depth = self.ancestors.len();
        for (count, entry) in entries.enumerate() {
            if count % 256 == 0 && Instant::now() >= self.deadline {
                let shown = self.ancestors[0].1.display();
                return Err(EditorError::Listing(format!(
                    "Listing {shown} took longer than {} seconds.",
                    TIME_LIMIT.as_secs()
                )));
            }
            match entry {
                Ok(entry) if entry.name.as_bytes().starts_with(b".") => self.hidden += usize::from(depth == 1),
                Ok(entry) => self.visit(&directory.join(&entry.name), entry.kind, depth)?,
                Err(error) => {
                    self.complain(directory, &error);
                    break;
                }
            }
        }
        self.ancestors.pop();
        Ok(())
    }

    fn visit(&mut self, path: &Path, kind: FileType, depth: usize) -> Result<(), EditorError> {
        let mut is_directory = kind == FileType::Directory;
        if is_directory || kind == FileType::Symlink {
            match self.reach.metadata(path) {
                Ok(metadata) if metadata.is_dir() => {
                    is_directory = true;
                    if self.complain_of_circle(path, &metadata) {
                        return Ok(());
                    }
                }
                // A link to nothing, or to what is out of reach, is shown as it is.
                Ok(_) => {}
                Err(error) if error.raw_os_error() != Some(Errno::LOOP.raw_os_error()) => {}
                Err(error) => {
                    self.complain(path, &error);
                    return Ok(());
                }
            }
        }
        self.first.insert(path, is_directory);
        if is_directory && depth < DEPTH {
            self.descend(path)?;
        }
        Ok(())
    }

    /// Notes that a directory leads back to one that it is in, if it does.
    fn complain_of_circle(&mut self, path: &Path, metadata: &fs::Metadata) -> bool {
        let id = (metadata.dev(), metadata.ino());
        let Some((_, ancestor)) = self.ancestors.iter().find(|(known, _)| *known == id) else { return false };
        let (path, ancestor) = (path.display(), ancestor.display());
        let complaint = format!(
            "find: File system loop detected; ‘{path}’ is part of the same file system loop as ‘{ancestor}’.\n"
        );
        self.add_complaint(&complaint);
        true
    }

    /// Notes an error in the words of `find`, which callers of the reference see.
    fn complain(&mut self, path: &Path, error: &io::Error) {
        let text = error.to_string();
        let text = text.split(" (os error").next().unwrap_or_default();
        self.add_complaint(&format!("find: ‘{}’: {text}\n", path.display()));
    }

    fn add_complaint(&mut self, complaint: &str) {
        if self.complaints.len() < output::list_limit() {
            self.complaints.push_str(complaint);
        }
    }
}

/// The first paths in bytewise order, as many as are shown and one more.
#[derive(Default)]
struct First {
    /// The bytes of a path, and whether it is a directory.
    paths: BTreeSet<(Vec<u8>, bool)>,
    /// How many characters they have together.
    characters: usize,
}

impl First {
    fn insert(&mut self, path: &Path, is_directory: bool) {
        let entry = (path.as_os_str().as_bytes().to_vec(), is_directory);
        if self.characters > output::list_limit() && self.paths.last().is_some_and(|last| entry > *last) {
            return;
        }
        self.characters += characters(&entry);
        self.paths.insert(entry);
        while let Some(last) = self.paths.last()
            && self.characters - characters(last) > output::list_limit()
        {
            self.characters -= characters(last);
            self.paths.pop_last();
        }
    }

    fn text(&self) -> String {
        let lines = self.paths.iter().map(|(path, is_directory)| {
            let path = OsStr::from_bytes(path).to_string_lossy();
            let slash = if *is_directory && path != "/" { "/" } else { "" };
            format!("{path}{slash}")
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// How many characters of the list an entry takes, with its line's end.
fn characters((path, is_directory): &(Vec<u8>, bool)) -> usize {
    String::from_utf8_lossy(path).chars().count() + 1 + usize::from(*is_directory)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_listing_that_takes_too_long_is_given_up() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("file"), "").unwrap();
        let path = directory.path().to_str().unwrap();
        let error = list_until(&Reach::Anywhere, path, Instant::now()).unwrap_err();
        assert_eq!(error, EditorError::Listing(format!("Listing {path} took longer than 120 seconds.")));
    }

    #[test]
    fn what_is_not_shown_is_not_held_and_the_first_paths_are_shown() {
        let mut first = First::default();
        for number in (0..100_000).rev() {
            first.insert(Path::new(&format!("/directory/{number:06}")), number % 2 == 0);
            assert!(first.paths.len() < 1_000);
        }
        let text = first.text();
        assert!(text.chars().count() >= output::list_limit());
        assert!(text.starts_with("/directory/000000/\n/directory/000001\n/directory/000002/\n"));
    }

    #[test]
    fn links_that_lead_nowhere_or_in_circles_are_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let path = root.to_str().unwrap();
        symlink("nothing", root.join("broken")).unwrap();
        assert_eq!(list(&Reach::Anywhere, path).unwrap().paths, format!("{path}/\n{path}/broken"));
        symlink("self", root.join("self")).unwrap();
        let complaint = format!("find: ‘{path}/self’: Too many levels of symbolic links\n");
        assert_eq!(list(&Reach::Anywhere, path).unwrap_err(), EditorError::Listing(complaint));
        fs::remove_file(root.join("self")).unwrap();
        symlink(".", root.join("circle")).unwrap();
        let complaint = format!(
            "find: File system loop detected; ‘{path}/circle’ is part of the same file system loop as ‘{path}’.\n"
        );
        assert_eq!(list(&Reach::Anywhere, path).unwrap_err(), EditorError::Listing(complaint));
    }
}
