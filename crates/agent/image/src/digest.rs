//! Hashes in names: MD5 shortened to letters and digits, and the hash of a directory (`docker-runtime` 12.2).

use std::{
    fmt::Write as _,
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

use md5::{Digest as _, Md5};

/// Digits of the short form, least significant first.
const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
/// Most digits of it.
const LENGTH: usize = 16;
/// How deep a tree may be. Links are followed, so a loop would have no end.
const DEEPEST: usize = 64;

/// An MD5 hash of whatever a name stands for. It tells contents apart and protects nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(u128);

impl Fingerprint {
    /// Of the parts, one after the other.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hash = Md5::new();
        for part in parts {
            hash.update(part);
        }
        Self::finish(hash)
    }

    /// Of what a file contains.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let mut hash = Md5::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(Self::finish(hash)),
                read => hash.update(buffer.get(..read).unwrap_or_default()),
            }
        }
    }

    /// Of a directory: names and contents of its files, by version 1.0 of the Dirhash protocol. Links are followed;
    /// directories without files, hidden directories, `__pycache__` and `*.pyc` do not count.
    pub fn of_directory(path: &Path) -> io::Result<Self> {
        directory(path, 0)?.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the directory has no files"))
    }

    /// All 32 hexadecimal digits.
    pub fn hex(self) -> String {
        format!("{:032x}", self.0)
    }

    /// The number to the base 36, its lowest 16 digits, the lowest first.
    pub fn short(self) -> String {
        let mut rest = self.0;
        let mut text = String::new();
        while rest > 0 && text.len() < LENGTH {
            let digit = usize::try_from(rest % 36).ok().and_then(|digit| DIGITS.get(digit)).copied();
            text.push(char::from(digit.unwrap_or(b'0')));
            rest /= 36;
        }
        text
    }

    /// The fingerprint with these hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        u128::from_str_radix(text, 16).ok().map(Self)
    }

    fn finish(hash: Md5) -> Self {
        Self(u128::from_be_bytes(hash.finalize().into()))
    }
}

/// Nothing if there is no file in it.
fn directory(path: &Path, depth: usize) -> io::Result<Option<Fingerprint>> {
    if depth > DEEPEST {
        return Err(io::Error::other(format!("{} is deeper than {DEEPEST} directories", path.display())));
    }
    let mut entries = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_str().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{} has no name in UTF-8", entry.path().display()))
        })?;
        let mut descriptor = String::new();
        if fs::metadata(entry.path())?.is_dir() {
            if name.starts_with('.') || name == "__pycache__" || is_compiled(name) {
                continue;
            }
            let Some(inner) = directory(&entry.path(), depth + 1)? else { continue };
            let _infallible = write!(descriptor, "dirhash:{}\0name:{name}", inner.hex());
        } else {
            if is_compiled(name) {
                continue;
            }
            let data = Fingerprint::of_file(&entry.path())?;
            let _infallible = write!(descriptor, "data:{}\0name:{name}", data.hex());
        }
        entries.push(descriptor);
    }
    if entries.is_empty() {
        return Ok(None);
    }
    entries.sort();
    Ok(Some(Fingerprint::of([entries.join("\0\0").as_bytes()])))
}

#[expect(clippy::case_sensitive_file_extension_comparisons, reason = "the protocol compares exactly")]
fn is_compiled(name: &str) -> bool {
    name.ends_with(".pyc")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_hash_is_base_36_from_its_lowest_digit() {
        for (hex, short) in [
            ("b08f254d76b1c6a7ad924708c0032251", "pma2wc71uq3c9a85"),
            ("102aecc0cea025253c0278f54ebef078", "4titk6gquia3taj5"),
            ("24", "01"),
            ("0", ""),
        ] {
            assert_eq!(Fingerprint::from_hex(hex).unwrap().short(), short);
        }
    }

    #[test]
    fn a_directory_is_hashed_by_names_and_contents() {
        let folder = tempfile::tempdir().unwrap();
        let inside = |name: &str| folder.path().join(name);
        assert!(Fingerprint::of_directory(folder.path()).is_err());
        fs::write(inside("a"), "1").unwrap();
        let first = Fingerprint::of_directory(folder.path()).unwrap();
        assert_eq!(first, Fingerprint::of([b"data:c4ca4238a0b923820dcc509a6f75849b\0name:a".as_slice()]));
        for ignored in [".hidden", "__pycache__", "empty"] {
            fs::create_dir(inside(ignored)).unwrap();
        }
        fs::write(inside(".hidden/x"), "x").unwrap();
        fs::write(inside("__pycache__/x"), "x").unwrap();
        fs::write(inside("x.pyc"), "x").unwrap();
        assert_eq!(Fingerprint::of_directory(folder.path()).unwrap(), first);
        fs::write(inside(".file"), "x").unwrap();
        assert_ne!(Fingerprint::of_directory(folder.path()).unwrap(), first);
    }

    #[test]
    fn links_that_lead_into_themselves_are_an_error() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(".", folder.path().join("loop")).unwrap();
        assert!(Fingerprint::of_directory(folder.path()).is_err());
    }
}
