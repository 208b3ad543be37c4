//! What is done where Linux's own is missing.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

/// The bits of a mode that are permissions, and no rights of the file's owner for whoever runs it.
const PERMISSIONS: u32 = 0o777;

#[derive(Debug)]
pub(super) struct Replacement {
    file: NamedTempFile,
    target: PathBuf,
}

impl Replacement {
    pub(super) fn begin(path: &Path, mode: Option<u32>) -> io::Result<Self> {
        // Behind all links.
        let target = match fs::canonicalize(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
            found => found?,
        };
        let old = match fs::metadata(&target) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            found => Some(found?),
        };
        if let Some(old) = &old {
            if old.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            if !old.is_file() {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
            }
            if old.permissions().readonly() {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
        }
        let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        builder.prefix(".gloveport-");
        if let Some(permissions) = crate::usual_permissions() {
            builder.permissions(permissions);
        }
        let file = builder.tempfile_in(directory)?;
        match (old, mode) {
            (Some(old), _) => fs::set_permissions(file.path(), old.permissions())?,
            (None, Some(mode)) => set_if_it_has_modes(file.path(), mode)?,
            (None, None) => {}
        }
        Ok(Self { file, target })
    }

    pub(super) fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    pub(super) fn drop_privileges(&self) -> io::Result<()> {
        let mode = crate::mode(&self.file.as_file().metadata()?);
        if mode & PERMISSIONS == mode { Ok(()) } else { crate::set_mode(self.file.path(), mode & PERMISSIONS) }
    }

    pub(super) fn commit(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        Ok(self.file.persist(self.target).map(drop)?)
    }
}

fn set_if_it_has_modes(path: &Path, mode: u32) -> io::Result<()> {
    match crate::set_mode(path, mode) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
        other => other,
    }
}

pub(super) fn open_to_read(path: &Path) -> io::Result<File> {
    crate::open_regular(path)
}
