//! Copies into and out of the workspace, and what is in it (local-and-cli-runtime B10).

use std::{
    ffi::OsStr,
    fs::{self, File, FileTimes, Metadata},
    io::{self, Read as _, Write as _},
    os::{
        fd::AsFd as _,
        unix::fs::{MetadataExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

use gloveport_archive::zip::dos_time;
use gloveport_sys::{
    os_error::described,
    reach::Obstacle,
    replace::{self, NewFile},
};
use rustix::{
    fs::{FileType, Mode, OFlags, Timespec, Timestamps},
    io::Errno,
};
use tempfile::TempPath;
use zip::{CompressionMethod, DateTime, ZipWriter, write::SimpleFileOptions};

use crate::{CliRuntime, error::CliError, paths::Workspace};

/// Deepest tree that is copied; a tree with links in circles is deeper than any.
const DEPTH: usize = 256;
/// From this size on a zip needs its 64-bit form.
const LARGE: u64 = 0xffff_0000;

impl CliRuntime {
    /// Copies a file or, `recursive`, a tree of this machine into the workspace, with modes and times of change.
    /// What is there is merged and replaced. It blocks.
    ///
    /// # Errors
    ///
    /// The source is missing or of another kind, the destination is refused, or the copy fails.
    pub fn copy_to(&self, source: &Path, destination: &str, recursive: bool) -> Result<(), CliError> {
        let workspace = self.workspace()?;
        let metadata = fs::metadata(source).map_err(|_| CliError::SourceMissing(source.to_owned()))?;
        let target = match workspace.locate(destination) {
            Err(error @ CliError::Unresolved { .. }) => return Err(CliError::Copy(error.to_string())),
            located => located?,
        };
        let copy = Copy { workspace, destination };
        if metadata.is_dir() && recursive {
            // As with a slash behind it: the directory's name, if it has one.
            let has_name = !source.as_os_str().as_encoded_bytes().ends_with(b"/");
            let target = match source.file_name().filter(|_| has_name) {
                Some(name) => target.join(name),
                None => target,
            };
            let real = fs::canonicalize(source).map_err(|error| CliError::Copy(described(&error, source)))?;
            if real == target {
                return Ok(());
            }
            if target.starts_with(&real) {
                let reason = format!("{} cannot be copied into itself, to {}", source.display(), target.display());
                return Err(CliError::Copy(reason));
            }
            copy.directory(target.parent().filter(|_| has_name).unwrap_or(&target))?;
            return copy.tree(source, &metadata, &target, DEPTH);
        }
        if !metadata.is_file() {
            return Err(CliError::SourceInvalid(source.to_owned()));
        }
        copy.file(source, &copy.file_target(&target, source))
    }

    /// The regular files of a directory, or one file, as a compressed zip file that is removed with its path. Names are
    /// relative to the directory. Links to files in the workspace count as files; what else is not regular is left out.
    /// It blocks.
    ///
    /// # Errors
    ///
    /// There is nothing, the path is refused, or a file can not be read.
    pub fn copy_from(&self, path: &str) -> Result<TempPath, CliError> {
        let workspace = self.workspace()?;
        let root = match workspace.locate(path) {
            Err(CliError::Unresolved { .. }) => return Err(CliError::PathMissing(path.to_owned())),
            located => located?,
        };
        let metadata = match workspace.reach.metadata(&root) {
            Ok(metadata) => metadata,
            Err(error) => {
                let refusal = workspace.refusal(path, &error);
                return Err(refusal.unwrap_or_else(|| CliError::PathMissing(path.to_owned())));
            }
        };
        let failed = |error: io::Error| CliError::Zip(error.to_string());
        let made = tempfile::Builder::new().prefix("gloveport-").suffix(".zip").tempfile().map_err(failed)?;
        let (file, temporary) = made.into_parts();
        let mut pack = Pack { workspace, zip: ZipWriter::new(file) };
        if metadata.is_dir() {
            pack.tree(&root, Path::new(""))?;
        } else {
            let name = root.file_name().unwrap_or(root.as_os_str());
            pack.file(&root, Path::new(name))?;
        }
        pack.zip.finish().map_err(|error| CliError::Zip(error.to_string()))?;
        Ok(temporary)
    }

    /// Absolute paths of what is in a directory, in no order; of a file, its own; without a path, of the workspace. What
    /// is missing is empty. It blocks.
    ///
    /// # Errors
    ///
    /// The path is refused.
    pub fn list_files(&self, path: Option<&str>) -> Result<Vec<String>, CliError> {
        let workspace = self.workspace()?;
        let shown = |path: &Path| path.to_string_lossy().into_owned();
        let path = path.unwrap_or_default();
        let located = match workspace.locate(path) {
            Err(CliError::Unresolved { .. }) => return Ok(Vec::new()),
            located => located?,
        };
        let entries = workspace.reach.entries(&located).and_then(|entries| {
            entries.map(|entry| Ok(shown(&located.join(entry?.name)))).collect::<io::Result<Vec<_>>>()
        });
        match entries {
            Ok(entries) => Ok(entries),
            Err(error) if error.raw_os_error() == Some(Errno::NOTDIR.raw_os_error()) => {
                let exists = workspace.reach.metadata(&located).is_ok();
                Ok(if exists { vec![shown(&located)] } else { Vec::new() })
            }
            Err(error) => match workspace.refusal(path, &error) {
                Some(refusal) => Err(refusal),
                None => Ok(Vec::new()),
            },
        }
    }
}

/// One copy into the workspace.
struct Copy<'a> {
    workspace: &'a Workspace,
    /// As it was given.
    destination: &'a str,
}

impl Copy<'_> {
    /// Where a file goes.
    fn file_target(&self, target: &Path, source: &Path) -> PathBuf {
        let name = source.file_name().unwrap_or_default();
        let is_directory = match self.workspace.reach.metadata(target) {
            Ok(metadata) => metadata.is_dir(),
            Err(_) => !target.file_name().unwrap_or_default().as_encoded_bytes().contains(&b'.'),
        };
        if is_directory || self.destination.ends_with('/') { target.join(name) } else { target.to_owned() }
    }

    fn file(&self, source: &Path, target: &Path) -> Result<(), CliError> {
        let from = replace::open_to_read(source).map_err(|error| self.failed(&error, source))?;
        let metadata = from.metadata().map_err(|error| self.failed(&error, source))?;
        if self.workspace.reach.metadata(target).is_ok_and(|there| is_same(&there, &metadata)) {
            return Ok(());
        }
        if let Some(parent) = target.parent() {
            self.directory(parent)?;
        }
        let put = || {
            let mut replacement = self.workspace.reach.replace(target, NewFile::default())?;
            io::copy(&mut &from, &mut replacement)?;
            let file = replacement.file();
            file.set_permissions(fs::Permissions::from_mode(metadata.mode() & 0o7777))?;
            file.set_times(FileTimes::new().set_accessed(metadata.accessed()?).set_modified(metadata.modified()?))?;
            replacement.commit().map(drop)
        };
        put().map_err(|error| self.failed(&error, target))
    }

    fn tree(&self, source: &Path, metadata: &Metadata, target: &Path, depth: usize) -> Result<(), CliError> {
        if depth == 0 {
            return Err(self.failed(&Errno::LOOP.into(), source));
        }
        self.directory(target)?;
        for entry in fs::read_dir(source).map_err(|error| self.failed(&error, source))? {
            let path = entry.map_err(|error| self.failed(&error, source))?.path();
            let target = target.join(path.file_name().unwrap_or_default());
            let found = fs::metadata(&path).map_err(|error| self.failed(&error, &path))?;
            if found.is_dir() {
                self.tree(&path, &found, &target, depth - 1)?;
            } else {
                self.file(&path, &target)?;
            }
        }
        let keep = || -> io::Result<()> {
            let directory = self.workspace.bounds.open(target, OFlags::RDONLY | OFlags::DIRECTORY)?;
            rustix::fs::fchmod(directory.as_fd(), Mode::from_raw_mode(metadata.mode() & 0o7777))?;
            let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
            let times = Timestamps {
                last_access: time(metadata.atime(), metadata.atime_nsec()),
                last_modification: time(metadata.mtime(), metadata.mtime_nsec()),
            };
            Ok(rustix::fs::futimens(directory.as_fd(), &times)?)
        };
        keep().map_err(|error| self.failed(&error, target))
    }

    fn directory(&self, path: &Path) -> Result<(), CliError> {
        match self.workspace.bounds.make_directories(path) {
            Ok(_) => Ok(()),
            Err(Obstacle { path, source }) => Err(self.failed(&source, &path)),
        }
    }

    fn failed(&self, error: &io::Error, path: &Path) -> CliError {
        let refusal = self.workspace.refusal(self.destination, error);
        refusal.unwrap_or_else(|| CliError::Copy(described(error, path)))
    }
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// One zip file that is being made.
struct Pack<'a> {
    workspace: &'a Workspace,
    zip: ZipWriter<File>,
}

impl Pack<'_> {
    /// Adds what is in a directory. Links to directories are not followed.
    fn tree(&mut self, directory: &Path, name: &Path) -> Result<(), CliError> {
        let read = |error: io::Error| CliError::Zip(described(&error, directory));
        let entries = match self.workspace.reach.entries(directory) {
            // Removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound && name != Path::new("") => return Ok(()),
            entries => entries.map_err(read)?,
        };
        let mut entries = entries.collect::<io::Result<Vec<_>>>().map_err(read)?;
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        for entry in entries {
            let (path, name) = (directory.join(&entry.name), name.join(&entry.name));
            match entry.kind {
                FileType::Directory => self.tree(&path, &name)?,
                FileType::RegularFile => self.file(&path, &name)?,
                // To nothing, to a directory, or out of the workspace: no file.
                FileType::Symlink if self.workspace.reach.metadata(&path).is_ok_and(|found| found.is_file()) => {
                    self.file(&path, &name)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, name: &Path) -> Result<(), CliError> {
        let failed = |error: io::Error| CliError::Zip(described(&error, path));
        let mut file = match self.workspace.reach.open_to_read(path) {
            // Removed, or led out of the workspace, since the directory was read.
            Err(error) if is_gone(&error) => return Ok(()),
            file => file.map_err(failed)?,
        };
        let metadata = file.metadata().map_err(failed)?;
        let [time_low, time_high, date_low, date_high] = dos_time(metadata.mtime()).to_le_bytes();
        let (date, time) = (u16::from_le_bytes([date_low, date_high]), u16::from_le_bytes([time_low, time_high]));
        let mut options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .unix_permissions(metadata.mode() & 0o7777)
            .large_file(metadata.len() >= LARGE);
        if let Ok(modified) = DateTime::try_from_msdos(date, time) {
            options = options.last_modified_time(modified);
        }
        let zip = |error: zip::result::ZipError| CliError::Zip(error.to_string());
        self.zip.start_file(entry_name(name), options).map_err(zip)?;
        let mut piece = vec![0; 64 * 1024];
        loop {
            match file.read(&mut piece).map_err(failed)? {
                0 => return Ok(()),
                length => self.zip.write_all(&piece[..length]).map_err(failed)?,
            }
        }
    }
}

fn is_gone(error: &io::Error) -> bool {
    let errno = error.raw_os_error();
    errno == Some(Errno::NOENT.raw_os_error()) || errno == Some(Errno::XDEV.raw_os_error())
}

fn entry_name(name: &Path) -> String {
    OsStr::to_string_lossy(name.as_os_str()).into_owned()
}
