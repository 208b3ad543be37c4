//! A file's text: read within the bound, judged, decoded, and written back as it was stored.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use gloveport_sys::{os_error, reach::Reach, replace::NewFile};

use crate::{
    binary,
    encoding::{self, TextEncoding},
    error::{EditorError, Reason},
    python,
};

/// Bytes of the largest file that is shown or edited.
pub(crate) const FILE_LIMIT: u64 = 10 * 1024 * 1024;

/// Paths whose encoding is remembered.
const REMEMBERED: usize = 1_000;

/// A file's text as text mode reads it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// With LF between lines.
    pub(crate) text: String,
    /// How it is stored.
    pub(crate) encoding: TextEncoding,
}

/// Reads a text file.
pub(crate) fn read(reach: &Reach, path: &str, known: &Encodings) -> Result<Source, EditorError> {
    let (bytes, version) = read_bytes(reach, path)?;
    if binary::is_binary(&bytes) {
        return Err(EditorError::Validation { path: path.to_owned(), reason: Reason::Binary });
    }
    let (text, encoding) = encoding::decode(bytes, known.get(path, version))
        .map_err(|error| EditorError::Read { path: path.to_owned(), reason: error.to_string() })?;
    known.remember(path, version, encoding);
    Ok(Source { text: python::into_universal_newlines(text), encoding })
}

/// Opens a file of a size that can be shown, whatever is in it.
pub(crate) fn open(reach: &Reach, path: &str) -> Result<File, EditorError> {
    let file = reach.open_to_read(Path::new(path)).map_err(|error| match reach.special_kind(Path::new(path)) {
        Some(kind) => EditorError::Validation { path: path.to_owned(), reason: Reason::Special(kind) },
        None => unread(path, &error),
    })?;
    let length = file.metadata().map_err(|error| unread(path, &error))?.len();
    check_length(path, length)?;
    Ok(file)
}

/// Reads such a file.
fn read_bytes(reach: &Reach, path: &str) -> Result<(Vec<u8>, Version), EditorError> {
    let (bytes, length, version) = read_open(open(reach, path)?).map_err(|error| unread(path, &error))?;
    check_length(path, length)?;
    Ok((bytes, version))
}

fn check_length(path: &str, length: u64) -> Result<(), EditorError> {
    if length > FILE_LIMIT {
        return Err(EditorError::Validation { path: path.to_owned(), reason: Reason::Size(length) });
    }
    Ok(())
}

fn unread(path: &str, error: &io::Error) -> EditorError {
    EditorError::Read { path: path.to_owned(), reason: os_error::described(error, path) }
}

/// The content, its length and its version; of a file that has grown, a byte more than is shown.
fn read_open(file: File) -> io::Result<(Vec<u8>, u64, Version)> {
    let metadata = file.metadata()?;
    let version = Version::of(&metadata);
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len().min(FILE_LIMIT)).unwrap_or(0) + 1);
    // A file of the kernel has content but no length, and any other may grow meanwhile.
    file.take(FILE_LIMIT + 1).read_to_end(&mut bytes)?;
    let length = bytes.len() as u64;
    Ok((bytes, length, version))
}

/// Writes a file whole; it is encoded before anything is touched.
pub(crate) fn write(
    reach: &Reach,
    path: &str,
    text: &str,
    encoding: TextEncoding,
    new: NewFile,
    known: &Encodings,
) -> Result<(), EditorError> {
    let failed = |reason: String| EditorError::Write { path: path.to_owned(), reason };
    let bytes = encoding::encode(text, encoding).map_err(|error| failed(error.to_string()))?;
    reach.write(Path::new(path), &bytes, new).map_err(|error| failed(os_error::described(&error, path)))?;
    if matches!(encoding, TextEncoding::Legacy(_))
        && let Ok(metadata) = reach.metadata(Path::new(path))
    {
        known.remember(path, Version::of(&metadata), encoding);
    }
    Ok(())
}

/// Tells one content of a file from another: the time of its last change in seconds and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version(i64, i64);

impl Version {
    fn of(metadata: &std::fs::Metadata) -> Self {
        Self(metadata.mtime(), metadata.mtime_nsec())
    }
}

/// The legacy encodings of files: a guess over a megabyte takes longer than the edit.
#[derive(Debug, Default)]
pub(crate) struct Encodings {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    files: HashMap<String, (Version, TextEncoding, u64)>,
    used: u64,
}

impl Encodings {
    fn get(&self, path: &str, version: Version) -> Option<TextEncoding> {
        let mut known = self.lock();
        known.used += 1;
        let now = known.used;
        let (at, encoding, used) = known.files.get_mut(path)?;
        *used = now;
        (*at == version).then_some(*encoding)
    }

    fn remember(&self, path: &str, version: Version, encoding: TextEncoding) {
        let mut known = self.lock();
        // Unicode is known by itself.
        if !matches!(encoding, TextEncoding::Legacy(_)) {
            known.files.remove(path);
            return;
        }
        if known.files.len() >= REMEMBERED && !known.files.contains_key(path) {
            let oldest = known.files.iter().min_by_key(|(_, (_, _, used))| *used).map(|(path, _)| path.clone());
            if let Some(oldest) = oldest {
                known.files.remove(&oldest);
            }
        }
        known.used += 1;
        let used = known.used;
        known.files.insert(path.to_owned(), (version, encoding, used));
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_encodings_are_remembered_and_the_least_used_goes() {
        let encodings = Encodings::default();
        let version = Version(1, 2);
        let legacy = TextEncoding::Legacy(encoding_rs::KOI8_R);
        (0..REMEMBERED).for_each(|file| encodings.remember(&file.to_string(), version, legacy));
        assert_eq!(encodings.get("0", version), Some(legacy));
        encodings.remember("more", version, legacy);
        assert_eq!([encodings.get("0", version), encodings.get("1", version)], [Some(legacy), None]);
        assert_eq!(encodings.lock().files.len(), REMEMBERED);
    }

    #[test]
    fn an_encoding_is_known_for_one_version_of_a_file() {
        let encodings = Encodings::default();
        encodings.remember("/a", Version(1, 2), TextEncoding::Legacy(encoding_rs::KOI8_R));
        assert_eq!(encodings.get("/a", Version(1, 3)), None);
        encodings.remember("/a", Version(1, 3), TextEncoding::Utf8);
        assert!(encodings.lock().files.is_empty());
    }
}
