//! What references stood for when they were asked for last: a small file for each.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use gloveport_platform::{self as platform, replace::Replacement};
use serde::{Deserialize, Serialize};

use crate::{
    digest::Digest,
    error::ImageError,
    reference::{Form, Local, Reference},
};

/// Most bytes of such a file.
const LONGEST: u64 = 64 * 1024;

/// What a reference stood for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    pub(crate) reference: String,
    /// The digest of the configuration.
    pub(crate) digest: Digest,
    /// The digest of the manifest or list that the registry had.
    pub(crate) origin: Option<Digest>,
    /// What the file was like that it was read from.
    pub(crate) stamp: Option<Stamp>,
}

/// What changes when a file is written or replaced: device, number, length, and time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp(u64, u64, u64, i64, u32);

impl Stamp {
    /// Of the file that says what an image consists of; `None` if there is none, or for images of registries.
    pub(crate) fn of(reference: &Reference) -> Option<Self> {
        let Reference::Local(Local { form, path, .. }) = reference else { return None };
        let metadata = match form {
            Form::Layout => fs::metadata(path.join("index.json")),
            Form::LayoutArchive | Form::DockerArchive => fs::metadata(path),
        }
        .ok()?;
        let (device, number) = platform::identity(&metadata)?;
        let (seconds, nanoseconds) = platform::modified(&metadata);
        Some(Self(device, number, metadata.len(), seconds, nanoseconds))
    }
}

/// The names of a store.
#[derive(Debug)]
pub(crate) struct Names(pub(crate) PathBuf);

impl Names {
    fn file(&self, reference: &str) -> PathBuf {
        self.0.join(format!("{}.json", Digest::of(reference.as_bytes()).hex()))
    }

    /// What a reference stood for. A damaged file counts as none.
    pub(crate) fn find(&self, reference: &str) -> Result<Option<Known>, ImageError> {
        let path = self.file(reference);
        let known: Option<Known> = read(&path).map_err(ImageError::store("read", path))?;
        Ok(known.filter(|known| known.reference == reference))
    }

    /// All that are known.
    pub(crate) fn all(&self) -> Result<Vec<Known>, ImageError> {
        let failed = || ImageError::store("list", &self.0);
        let mut all: Vec<Known> = Vec::new();
        for entry in fs::read_dir(&self.0).map_err(failed())? {
            let path = entry.map_err(failed())?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                all.extend(read(&path).map_err(ImageError::store("read", path))?);
            }
        }
        all.sort_by(|one, other| one.reference.cmp(&other.reference));
        Ok(all)
    }

    /// Notes what a reference stands for.
    pub(crate) fn note(&self, known: &Known) -> Result<(), ImageError> {
        let path = self.file(&known.reference);
        write(&path, known).map_err(ImageError::store("write", path))
    }

    /// Forgets a reference.
    pub(crate) fn forget(&self, reference: &str) -> Result<(), ImageError> {
        let path = self.file(reference);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ImageError::store("remove", path)(error)),
            _ => Ok(()),
        }
    }
}

/// Reads a small file in JSON; `None` if there is none, or it has something else.
pub(crate) fn read<T: serde::de::DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let file = match platform::open_regular(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(LONGEST.max(crate::limits::DOCUMENT * 2)).read_to_end(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes).ok())
}

/// Writes a small file in JSON whole.
pub(crate) fn write(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let mut replacement = Replacement::begin(path, Some(0o600))?;
    replacement.file().write_all(&serde_json::to_vec(value)?)?;
    replacement.commit()
}
