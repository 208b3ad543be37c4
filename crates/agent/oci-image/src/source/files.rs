//! Files of a layout, by their names: in a directory, or in a tar archive, where they are read in place.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use gloveport_platform as platform;

use crate::{error::ImageError, limits::DOCUMENT, unpack::index, words::shown};

/// Files by their names.
#[derive(Debug)]
pub(crate) enum Files {
    Directory(PathBuf),
    Archive { path: PathBuf, file: Arc<File>, entries: HashMap<Vec<u8>, index::Found> },
}

/// A part of a file.
#[derive(Debug)]
pub(crate) struct Part {
    file: Arc<File>,
    at: u64,
    left: u64,
}

impl Part {
    /// Bytes that are left of it.
    pub(crate) fn length(&self) -> u64 {
        self.left
    }
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let Some(buffer) = buffer.get_mut(..length) else { return Ok(0) };
        let read = platform::read_at(&self.file, buffer, self.at)?;
        self.at += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}

impl Files {
    /// Those of a directory.
    pub(crate) fn directory(path: &Path) -> Self {
        Self::Directory(path.to_owned())
    }

    /// Those of an archive, which is read over to find them.
    pub(crate) fn archive(path: &Path) -> Result<Self, ImageError> {
        let file = platform::open_regular(path).map_err(ImageError::source("open the archive", path))?;
        let entries = index::read(&file).map_err(|reason| ImageError::Source {
            what: "read the archive",
            path: path.to_owned(),
            source: io::Error::other(reason),
        })?;
        Ok(Self::Archive { path: path.to_owned(), file: Arc::new(file), entries })
    }

    /// Opens a file; `None` if there is none.
    pub(crate) fn open(&self, name: &str) -> Result<Option<Part>, ImageError> {
        match self {
            Self::Directory(directory) => {
                let path = directory.join(name);
                let file = match platform::open_regular(&path) {
                    Ok(file) => file,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                    Err(error) => return Err(ImageError::source("open the file", path)(error)),
                };
                let left = file.metadata().map_err(ImageError::source("read the file", path))?.len();
                Ok(Some(Part { file: Arc::new(file), at: 0, left }))
            }
            Self::Archive { file, entries, .. } => {
                // Layers that occur twice are links to the first one in older archives.
                let mut name = name.as_bytes().to_vec();
                for _ in 0..4 {
                    match entries.get(&name) {
                        Some(index::Found::File { at, length }) => {
                            return Ok(Some(Part { file: Arc::clone(file), at: *at, left: *length }));
                        }
                        Some(index::Found::Link(target)) => name.clone_from(target),
                        None => return Ok(None),
                    }
                }
                Ok(None)
            }
        }
    }

    /// Reads a small file whole.
    pub(crate) fn read(&self, name: &str, image: &str) -> Result<Vec<u8>, ImageError> {
        let part = self.open(name)?.ok_or_else(|| self.missing(name, image))?;
        if part.length() > DOCUMENT {
            return Err(ImageError::Bound { what: format!("`{}`", shown(name, 300)), limit: DOCUMENT, unit: "bytes" });
        }
        let mut bytes = Vec::new();
        let mut part = part;
        part.read_to_end(&mut bytes).map_err(ImageError::source("read the image", self.path()))?;
        Ok(bytes)
    }

    pub(crate) fn missing(&self, name: &str, image: &str) -> ImageError {
        ImageError::invalid(image, format!("`{}` has no file `{}`", self.path().display(), shown(name, 300)))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Directory(path) | Self::Archive { path, .. } => path,
        }
    }
}
