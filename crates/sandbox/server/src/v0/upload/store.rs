//! Where an upload goes, and how it gets there.

use std::{
    io::{self, Write as _},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use gloveport_archive::{ArchiveError, ArchiveLimits, zip};
use gloveport_audit::{Event, Text, record};
use gloveport_sys::{
    held::{self, Missing},
    os_error::described,
    replace::{NewFile, Replacement},
};

use super::UploadError;
use crate::transfer::Source;

/// Where an upload goes.
#[derive(Debug)]
pub(super) struct Target {
    destination: PathBuf,
    filename: String,
    limits: ArchiveLimits,
}

impl Target {
    pub(super) fn new(
        destination: &str,
        filename: &str,
        recursive: bool,
        limits: ArchiveLimits,
    ) -> Result<Self, UploadError> {
        // Only the last part of a name counts, so that it does not lead elsewhere.
        let name = filename.rsplit('/').next().unwrap_or_default();
        if matches!(name, "" | "." | "..") || name.contains('\0') {
            return Err(UploadError::Invalid(format!("{filename:?} is no name for a file")));
        }
        if !destination.starts_with('/') {
            return Err(UploadError::Failed("400: Destination must be an absolute path".into()));
        }
        if recursive && !is_zip(name) {
            return Err(UploadError::Failed("400: Recursive uploads must be zip files".into()));
        }
        Ok(Self { destination: destination.into(), filename: name.to_owned(), limits })
    }

    /// The name without what stood before it.
    pub(super) fn filename(&self) -> &str {
        &self.filename
    }

    /// Stores everything that comes, or nothing. The error is the text for the client.
    ///
    /// The programs of the sandbox may rename and link where the file goes, and this process may have more rights than
    /// they: the directory is held, and a link with the name of the file is replaced, never followed.
    pub(super) fn store(&self, source: Source, stop: &AtomicBool) -> Result<(), String> {
        let destination = &self.destination;
        let held =
            held::directory(destination, Missing::Made(0o777)).map_err(|error| described(&error, destination))?;
        let path = destination.join(&self.filename);
        if is_zip(&self.filename) {
            self.unpack(source, &held, &path, stop)
        } else {
            replace(source, held, &self.filename, &path).map_err(|error| described(&error, &path))
        }
    }

    fn unpack(&self, mut source: Source, held: &OwnedFd, path: &Path, stop: &AtomicBool) -> Result<(), String> {
        let destination = held::path_of(held);
        // A file without a name, where there must be room for its contents as well.
        let mut file = tempfile::tempfile_in(&destination).map_err(|error| described(&error, path))?;
        let mut spool = || -> io::Result<()> {
            while let Some(piece) = source.next()? {
                file.write_all(&piece)?;
            }
            Ok(())
        };
        spool().map_err(|error| described(&error, path))?;
        record(|| Event::Unpacked { path: Text::of(&destination) });
        match zip::unpack_until(&file, &destination, &self.limits, stop) {
            Ok(_) => Ok(()),
            Err(ArchiveError::NotAZip) => Err(format!("{} is not a zip file", path.display())),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn is_zip(name: &str) -> bool {
    Path::new(name).as_os_str().as_encoded_bytes().ends_with(b".zip")
}

fn replace(mut source: Source, directory: OwnedFd, name: &str, path: &Path) -> io::Result<()> {
    let mut replacement = Replacement::begin_over(directory, name.into(), path.to_owned(), NewFile::default())?;
    while let Some(piece) = source.next()? {
        replacement.write_all(&piece)?;
    }
    replacement.commit().map(drop)
}
