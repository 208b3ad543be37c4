//! Contents that are plain files below a directory.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use gloveport_platform::{private_directory, sync_directory};

use super::{BoxFuture, FileStore, StoreError};

/// The end of the name of a file that is being written. Such files are not listed.
const TEMPORARY: &str = ".gloveport-tmp";

/// Files below a directory, for their owner only.
///
/// A write is durable when it is done, and whole: whoever reads finds the old content or the new one, also after the
/// machine has lost its power.
#[derive(Clone, Debug)]
pub struct LocalStore {
    root: PathBuf,
}

impl LocalStore {
    /// A store in a directory, which is created. A `~` at its start is `home`.
    pub fn new(root: &Path, home: Option<&Path>) -> Result<Self, StoreError> {
        let root = match (root.strip_prefix("~"), home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => root.to_owned(),
        };
        let failed = |source| StoreError::Io { operation: "create", path: root.clone(), source };
        create_directories(&root).map_err(failed)?;
        // A later change of the working directory does not move the store.
        let root = std::path::absolute(&root).map_err(failed)?;
        Ok(Self { root })
    }

    /// Where a path is on this machine.
    fn locate(&self, path: &str) -> Result<PathBuf, StoreError> {
        let refuse = |reason| StoreError::Path { path: path.to_owned(), reason };
        let mut place = self.root.clone();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => return Err(refuse("'..' leads out of the store")),
                part if part.contains('\0') => return Err(refuse("it contains a null character")),
                part => place.push(part),
            }
        }
        Ok(place)
    }

    /// Where a content is on this machine: below the root.
    fn locate_content(&self, path: &str) -> Result<PathBuf, StoreError> {
        let place = self.locate(path)?;
        if place == self.root {
            return Err(StoreError::Path { path: path.to_owned(), reason: "it names the store itself" });
        }
        Ok(place)
    }
}

impl FileStore for LocalStore {
    fn write<'a>(&'a self, path: &'a str, content: Bytes) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let place = self.locate_content(path)?;
            blocking("write", place, move |place| write(place, &content)).await
        })
    }

    fn read<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Bytes, StoreError>> {
        Box::pin(async move {
            let place = self.locate_content(path)?;
            blocking("read", place, |place| fs::read(place).map(Bytes::from))
                .await
                .map_err(|error| missing(error, path))
        })
    }

    fn list<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(async move {
            let place = self.locate(path)?;
            let separator = if path.is_empty() || path.ends_with('/') { "" } else { "/" };
            let prefix = format!("{path}{separator}");
            blocking("list", place, move |place| list(place, &prefix)).await.map_err(|error| missing(error, path))
        })
    }

    fn delete<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let place = self.locate(path)?;
            if place == self.root {
                blocking("empty", place, empty).await
            } else {
                blocking("delete", place, delete).await
            }
        })
    }

    fn directory(&self) -> Option<&Path> {
        Some(&self.root)
    }
}

/// Does something with a file where waiting for it harms nobody.
async fn blocking<T: Send + 'static>(
    operation: &'static str,
    place: PathBuf,
    action: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> Result<T, StoreError> {
    let path = place.clone();
    let result = tokio::task::spawn_blocking(move || action(&place)).await.unwrap_or_else(|error| Err(error.into()));
    result.map_err(|source| StoreError::Io { operation, path, source })
}

fn missing(error: StoreError, path: &str) -> StoreError {
    match error {
        StoreError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            StoreError::NotFound { path: path.to_owned(), detail: None }
        }
        error => error,
    }
}

/// Writes a file whole and durably, for its owner only.
fn write(place: &Path, content: &[u8]) -> io::Result<()> {
    let directory = place.parent().unwrap_or(Path::new("/"));
    create_directories(directory)?;
    // The library creates the file for its owner only, and removes it unless it takes its place.
    let mut file = tempfile::Builder::new().prefix(".").suffix(TEMPORARY).tempfile_in(directory)?;
    file.write_all(content)?;
    file.as_file().sync_data()?;
    file.persist(place).map_err(|error| error.error)?;
    sync_directory(directory)
}

/// Creates a directory for its owner only, with all above it, durably.
pub(crate) fn create_directories(directory: &Path) -> io::Result<()> {
    if directory.as_os_str().is_empty() || directory.is_dir() {
        return Ok(());
    }
    let above = directory.parent().unwrap_or(Path::new("/"));
    create_directories(above)?;
    match private_directory().create(directory) {
        Ok(()) => sync_directory(if above.as_os_str().is_empty() { Path::new(".") } else { above }),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

fn list(place: &Path, prefix: &str) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(place)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            tracing::warn!(path = %entry.path().display(), "a file is left out: its name is not UTF-8");
            continue;
        };
        if name.ends_with(TEMPORARY) {
            continue;
        }
        let kind = entry.file_type()?;
        let is_directory = kind.is_dir() || (kind.is_symlink() && entry.path().is_dir());
        found.push(format!("{prefix}{name}{}", if is_directory { "/" } else { "" }));
    }
    found.sort_unstable();
    Ok(found)
}

fn delete(place: &Path) -> io::Result<()> {
    let result = match fs::symlink_metadata(place) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(place),
        Ok(_) => fs::remove_file(place),
        Err(error) => Err(error),
    };
    match result {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(()),
        other => other,
    }
}

fn empty(root: &Path) -> io::Result<()> {
    fs::read_dir(root)?.try_for_each(|entry| delete(&entry?.path()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn store() -> (tempfile::TempDir, LocalStore) {
        let directory = tempfile::tempdir().unwrap();
        let store = LocalStore::new(&directory.path().join("a/b"), None).unwrap();
        (directory, store)
    }

    #[tokio::test]
    async fn contents_are_listed_and_deleted_as_the_reference_does() {
        let (_directory, store) = store();
        store.write("foo/bar/baz.txt", Bytes::from("x")).await.unwrap();
        assert_eq!(store.list("").await.unwrap(), ["foo/"]);
        assert_eq!(store.list("foo").await.unwrap(), ["foo/bar/"]);
        assert_eq!(store.list("foo/bar").await.unwrap(), ["foo/bar/baz.txt"]);
        assert_eq!(store.list("foo/").await.unwrap(), ["foo/bar/"]);
        store.write("/foo/other.txt", Bytes::from("y")).await.unwrap();
        store.delete("foo/bar").await.unwrap();
        assert_eq!(store.list("foo").await.unwrap(), ["foo/other.txt"]);
        store.delete("foo").await.unwrap();
        assert_eq!(store.list("").await.unwrap(), Vec::<String>::new());
        store.delete("foo").await.unwrap();
        store.delete("foo/bar/baz.txt").await.unwrap();
    }

    #[tokio::test]
    async fn a_content_is_replaced_whole() {
        let (_directory, store) = store();
        store.write("a/b", Bytes::from("long content")).await.unwrap();
        store.write("a/b", Bytes::from("é\0")).await.unwrap();
        assert_eq!(store.read("/a/b").await.unwrap(), "é\0");
        assert_eq!(store.list("a").await.unwrap(), ["a/b"]);
    }

    #[tokio::test]
    async fn what_is_missing_is_not_found() {
        let (_directory, store) = store();
        for result in [store.read("a/b").await.map(drop), store.list("a/b").await.map(drop)] {
            assert!(matches!(result, Err(StoreError::NotFound { path, detail: None }) if path == "a/b"));
        }
    }

    #[tokio::test]
    async fn no_path_leads_out_of_the_store() {
        let (_directory, store) = store();
        for path in ["..", "../x", "a/../../x", "/../x", "a/.."] {
            let text = format!("'{path}' cannot be a path in the file store: '..' leads out of the store");
            assert_eq!(store.read(path).await.unwrap_err().to_string(), text);
            assert_eq!(store.write(path, Bytes::new()).await.unwrap_err().to_string(), text);
            assert_eq!(store.list(path).await.unwrap_err().to_string(), text);
            assert_eq!(store.delete(path).await.unwrap_err().to_string(), text);
        }
        for path in ["", "/", "."] {
            let error = store.write(path, Bytes::new()).await.unwrap_err();
            assert!(matches!(error, StoreError::Path { reason: "it names the store itself", .. }));
        }
    }

    #[tokio::test]
    async fn a_failure_names_the_operation_the_file_and_the_reason() {
        let (directory, store) = store();
        store.write("a", Bytes::new()).await.unwrap();
        let root = directory.path().join("a/b");
        assert_eq!(
            store.write("a/b", Bytes::new()).await.unwrap_err().to_string(),
            format!("cannot write '{}': File exists (os error 17)", root.join("a/b").display())
        );
        assert_eq!(
            store.list("a").await.unwrap_err().to_string(),
            format!("cannot list '{}': Not a directory (os error 20)", root.join("a").display())
        );
    }

    #[tokio::test]
    async fn files_and_directories_are_for_their_owner_only() {
        let (directory, store) = store();
        store.write("x/y", Bytes::new()).await.unwrap();
        let mode = |path: &str| fs::metadata(directory.path().join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!([mode("a"), mode("a/b"), mode("a/b/x"), mode("a/b/x/y")], [0o700, 0o700, 0o700, 0o600]);
    }

    #[tokio::test]
    async fn deleting_everything_leaves_an_empty_store_and_links_are_not_followed() {
        let (directory, store) = store();
        let outside = directory.path().join("outside");
        fs::write(&outside, "kept").unwrap();
        std::os::unix::fs::symlink(&outside, directory.path().join("a/b/link")).unwrap();
        store.write("x/y", Bytes::new()).await.unwrap();
        store.delete("").await.unwrap();
        assert_eq!(store.list("").await.unwrap(), Vec::<String>::new());
        assert_eq!(fs::read(&outside).unwrap(), b"kept");
    }

    #[test]
    fn a_tilde_is_the_home_directory() {
        let home = tempfile::tempdir().unwrap();
        for (root, expected) in [("~/.openhands", ".openhands"), ("~", "")] {
            let store = LocalStore::new(Path::new(root), Some(home.path())).unwrap();
            assert_eq!(store.directory(), Some(home.path().join(expected).as_path()));
        }
    }
}
