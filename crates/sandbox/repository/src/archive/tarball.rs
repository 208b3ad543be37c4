//! All files and directories of a directory, compressed.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, BufWriter, Read},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};
use serde::Serialize;
use tar::{Builder, EntryType, Header};
use tokio_util::sync::CancellationToken;

use super::{excludes::Excludes, open};

/// Most entries.
const ENTRIES: u64 = 1_000_000;
/// What tells of the archive in it.
const MANIFEST: &str = "archive_manifest.json";
/// Files of a repository that may have secrets, wherever they are in it.
const SECRET: [&str; 5] = ["config", "config.worktree", "credentials", ".git-credentials", "FETCH_HEAD"];

/// What tells of the archive in it, with its names in order.
#[derive(Debug, Serialize)]
struct Manifest<'a> {
    excludes: Vec<&'a str>,
    file_count: u64,
    format: &'static str,
    source: &'a str,
    total_bytes: u64,
}

/// Writes all that is below `root` into a file without a name, as entries below `name`. It blocks.
pub(super) fn write(root: &Path, name: &str, excludes: &Excludes, stop: &CancellationToken) -> io::Result<File> {
    let file = tempfile::tempfile()?;
    let encoder = GzEncoder::new(BufWriter::new(file), Compression::default());
    let mut packer = Packer {
        builder: Builder::new(encoder),
        excludes,
        stop,
        name,
        entries: 0,
        files: 0,
        bytes: 0,
        has_manifest: false,
    };
    packer.all(root)?;
    packer.manifest()?;
    packer.builder.into_inner()?.finish()?.into_inner().map_err(io::IntoInnerError::into_error)
}

struct Packer<'a> {
    builder: Builder<GzEncoder<BufWriter<File>>>,
    excludes: &'a Excludes,
    stop: &'a CancellationToken,
    name: &'a str,
    entries: u64,
    files: u64,
    bytes: u64,
    has_manifest: bool,
}

impl Packer<'_> {
    fn all(&mut self, root: &Path) -> io::Result<()> {
        self.directory(&fs::metadata(root)?, &[])?;
        let mut path: Vec<OsString> = Vec::new();
        // The error of the root is the caller's to know; below it what cannot be read is left out.
        let mut levels = vec![entries(root)?];
        while let Some(level) = levels.last_mut() {
            if self.stop.is_cancelled() {
                return Err(io::Error::other("nobody waits for it any more"));
            }
            let Some(entry) = level.next() else {
                levels.pop();
                path.pop();
                continue;
            };
            path.push(entry.file_name());
            match self.entry(&entry, &path)? {
                Some(below) => levels.push(below),
                None => {
                    path.pop();
                }
            }
        }
        Ok(())
    }

    /// Packs one entry, unless it is left out. What is below it is to come for a directory.
    fn entry(&mut self, entry: &fs::DirEntry, path: &[OsString]) -> io::Result<Option<Entries>> {
        let Ok(kind) = entry.file_type() else { return Ok(None) };
        if self.excludes.matches(path, kind.is_dir()) || is_secret(path, kind.is_dir()) {
            return Ok(None);
        }
        let place = entry.path();
        if kind.is_file() {
            self.file(&place, path)?;
        } else if kind.is_dir()
            && let (Ok(metadata), Ok(below)) = (fs::symlink_metadata(&place), entries(&place))
            && metadata.is_dir()
        {
            self.directory(&metadata, path)?;
            return Ok(Some(below));
        }
        Ok(None)
    }

    fn directory(&mut self, metadata: &fs::Metadata, path: &[OsString]) -> io::Result<()> {
        let mut header = self.header(metadata, EntryType::Directory, 0)?;
        let mut name = self.entry_name(path).into_os_string();
        name.push("/");
        self.builder.append_data(&mut header, name, io::empty())
    }

    /// Packs a file, unless it is gone or nobody may read it.
    fn file(&mut self, place: &Path, path: &[OsString]) -> io::Result<()> {
        let Ok((file, metadata)) = open(place) else { return Ok(()) };
        let size = metadata.len();
        let mut header = self.header(&metadata, EntryType::Regular, size)?;
        let name = self.entry_name(path);
        let content = Exactly { source: file, left: size, is_over: false, stop: self.stop };
        self.builder.append_data(&mut header, name, content)?;
        self.files += 1;
        self.bytes += size;
        self.has_manifest |= matches!(path, [only] if only == MANIFEST);
        Ok(())
    }

    fn manifest(&mut self) -> io::Result<()> {
        if self.has_manifest {
            return Ok(());
        }
        let manifest = Manifest {
            excludes: self.excludes.texts().collect(),
            file_count: self.files,
            format: "tar.gz",
            source: self.name,
            total_bytes: self.bytes,
        };
        let json = serde_json::to_vec_pretty(&manifest)?;
        let mut header = Header::new_gnu();
        header.set_size(json.len() as u64);
        header.set_mode(0o644);
        let name = format!("{}/{MANIFEST}", self.name);
        self.builder.append_data(&mut header, name, json.as_slice())
    }

    fn header(&mut self, metadata: &fs::Metadata, kind: EntryType, size: u64) -> io::Result<Header> {
        self.entries += 1;
        if self.entries > ENTRIES {
            return Err(io::Error::other(format!("there are more than {ENTRIES} files and directories")));
        }
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_mode(metadata.mode() & 0o7777);
        header.set_uid(metadata.uid().into());
        header.set_gid(metadata.gid().into());
        header.set_mtime(u64::try_from(metadata.mtime()).unwrap_or(0));
        Ok(header)
    }

    fn entry_name(&self, path: &[OsString]) -> PathBuf {
        Path::new(self.name).join(path.iter().collect::<PathBuf>())
    }
}

type Entries = std::vec::IntoIter<fs::DirEntry>;

/// What is in a directory: files by name, then directories by name.
fn entries(path: &Path) -> io::Result<Entries> {
    let limit = usize::try_from(ENTRIES).unwrap_or(usize::MAX);
    let mut found: Vec<fs::DirEntry> = fs::read_dir(path)?.filter_map(Result::ok).take(limit).collect();
    found.sort_by_cached_key(|entry| (entry.file_type().is_ok_and(|kind| kind.is_dir()), entry.file_name()));
    Ok(found.into_iter())
}

/// Whether this is something of a repository that may have secrets.
fn is_secret(path: &[OsString], is_directory: bool) -> bool {
    let Some(start) = path.iter().position(|name| name == ".git") else { return false };
    let below = path.get(start + 1..).unwrap_or_default();
    if is_directory {
        return below.last().is_some_and(|name| name == "logs");
    }
    below.last().is_some_and(|name| SECRET.iter().any(|secret| name == secret))
}

/// So many bytes of a file, whatever becomes of it meanwhile: zeros stand for what is no more.
struct Exactly<'a> {
    source: File,
    left: u64,
    is_over: bool,
    stop: &'a CancellationToken,
}

impl Read for Exactly<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_cancelled() {
            return Err(io::Error::other("nobody waits for it any more"));
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let part = buffer.get_mut(..most).unwrap_or_default();
        let mut count = 0;
        if !self.is_over {
            // One that cannot be read any further counts as one that became shorter.
            count = self.source.read(part).unwrap_or(0);
            self.is_over = count == 0;
        }
        if self.is_over {
            part.fill(0);
            count = part.len();
        }
        self.left -= count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_becomes_shorter_is_filled_up() {
        let mut source = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut source, b"abc").unwrap();
        io::Seek::rewind(&mut source).unwrap();
        let stop = CancellationToken::new();
        let mut all = Vec::new();
        let mut exactly = Exactly { source, left: 5, is_over: false, stop: &stop };
        exactly.read_to_end(&mut all).unwrap();
        assert_eq!(all, b"abc\0\0");
        stop.cancel();
        assert!(exactly.read(&mut [0; 1]).is_err());
    }

    #[test]
    fn secrets_of_a_repository_are_known_wherever_they_are_in_it() {
        for (path, is_directory, expected) in [
            (".git/config", false, true),
            ("a/.git/modules/b/config", false, true),
            ("a/.git/logs", true, true),
            ("a/logs", true, false),
            ("config", false, false),
            (".git/HEAD", false, false),
            (".git", true, false),
        ] {
            let path: Vec<OsString> = path.split('/').map(OsString::from).collect();
            assert_eq!(is_secret(&path, is_directory), expected, "{path:?}");
        }
    }
}
