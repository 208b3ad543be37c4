//! The two ends of a copy, where it goes, and what was copied.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use gloveport_archive::ArchiveLimits;
use gloveport_platform::{archived_name, path_of_name};
use serde::Serialize;

/// Bytes that are handed on at once.
pub(crate) const PIECE: usize = 256 * 1024;

/// One end of a copy.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Standard input or output.
    Stream,
    /// A path in the sandbox.
    Sandbox(PathBuf),
    /// A path on this machine.
    Here(PathBuf),
}

/// What was copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Copied {
    /// Where it is now; nowhere if it was a stream.
    destination: Option<String>,
    /// Files, links included.
    files: u64,
    /// Bytes of their contents.
    bytes: u64,
}

impl Copied {
    pub(crate) fn file(destination: &Path, bytes: u64) -> Self {
        Self::tree(destination, 1, bytes)
    }

    pub(crate) fn tree(destination: &Path, files: u64, bytes: u64) -> Self {
        Self { destination: Some(destination.to_string_lossy().into_owned()), files, bytes }
    }

    /// To a stream, which tells how much it was itself.
    pub(crate) const fn printed() -> Self {
        Self { destination: None, files: 0, bytes: 0 }
    }
}

impl End {
    /// What is wrong with a summary of a copy that goes here, if anything.
    pub(crate) fn mixes_with_json(&self) -> Option<clap::Error> {
        let text = "the argument '--json' cannot be used with the destination '-': both go to standard output\n";
        (*self == Self::Stream).then(|| clap::Error::raw(clap::error::ErrorKind::ArgumentConflict, text))
    }

    pub(crate) fn parse(path: &Path) -> Self {
        match &*archived_name(path) {
            b"-" => Self::Stream,
            [b':', rest @ ..] => Self::Sandbox(path_of_name(rest).into_owned()),
            _ => Self::Here(path.to_owned()),
        }
    }

    /// Without a server the sandbox is this machine.
    pub(crate) fn here(self) -> Self {
        match self {
            Self::Sandbox(path) => Self::Here(path),
            other => other,
        }
    }
}

/// Whether a path ends as only those of directories do.
pub(crate) fn means_directory(path: &Path) -> bool {
    archived_name(path).ends_with(b"/")
}

/// Where something called like `source` goes: into `destination` if that is a directory, else to that very name.
pub(crate) fn target(source: &Path, destination: &Path, destination_is_directory: bool) -> anyhow::Result<PathBuf> {
    if !destination_is_directory && !means_directory(destination) {
        return Ok(destination.to_owned());
    }
    // `DIRECTORY/.` means what is in it.
    if archived_name(source).ends_with(b"/.") || source == Path::new(".") {
        return Ok(destination.to_owned());
    }
    let name = source.file_name().with_context(|| format!("{} has no name to copy it by", source.display()))?;
    Ok(destination.join(name))
}

/// What a tree that comes from elsewhere may take up: only the disk is the limit.
pub(crate) fn limits() -> ArchiveLimits {
    ArchiveLimits { bytes: u64::MAX, files: u64::MAX, ..ArchiveLimits::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colon_marks_the_sandbox_and_a_dash_a_stream() {
        for (text, expected) in [
            ("-", End::Stream),
            (":/a", End::Sandbox("/a".into())),
            (":a", End::Sandbox("a".into())),
            ("a:b", End::Here("a:b".into())),
            ("./-", End::Here("./-".into())),
        ] {
            assert_eq!(End::parse(Path::new(text)), expected, "{text}");
        }
    }

    #[test]
    fn a_copy_goes_into_a_directory_or_to_the_name() {
        for (source, destination, is_directory, expected) in [
            ("/a/file", "/b", true, "/b/file"),
            ("/a/file", "/b", false, "/b"),
            ("/a/file", "/b/", false, "/b/file"),
            ("/a/dir/", "/b", true, "/b/dir"),
            ("/a/dir/.", "/b", true, "/b"),
            (".", "/b", true, "/b"),
        ] {
            let found = target(Path::new(source), Path::new(destination), is_directory).unwrap();
            assert_eq!(found, Path::new(expected), "{source} {destination}");
        }
        assert!(target(Path::new("/"), Path::new("/b"), true).is_err());
    }
}
