//! Headers of a tar stream, together with the extra entries that carry what does not fit into one.

use std::{
    fs::Metadata,
    io::{self, Read},
};

use gloveport_platform as platform;
use tar::{EntryType, Header, PaxExtensions};

use super::{BLOCK, padding};
use crate::{buffer::fill, error::ArchiveError};

/// Most bytes of a long name or of extended attributes.
const EXTRA: u64 = 1024 * 1024;
/// Bytes of a name in a header.
const NAME: usize = 100;

/// What an entry is and has.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    /// What a link points to.
    pub(super) link: Vec<u8>,
    pub(super) kind: EntryType,
    pub(super) size: u64,
    pub(super) mode: u32,
    pub(super) owner: (u32, u32),
    /// Seconds since 1970, and nanoseconds.
    pub(super) modified: (i64, u32),
}

impl Entry {
    /// An entry for something that exists.
    pub(super) fn of(name: Vec<u8>, kind: EntryType, metadata: &Metadata) -> Self {
        Self {
            name,
            link: Vec::new(),
            kind,
            size: if kind == EntryType::Regular { metadata.len() } else { 0 },
            mode: platform::mode(metadata),
            owner: platform::owner(metadata),
            modified: platform::modified(metadata),
        }
    }

    /// Writes the header, and before it what does not fit.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let (seconds, nanoseconds) = self.modified;
        if nanoseconds > 0 || seconds < 0 {
            extra(EntryType::XHeader, b"PaxHeaders", &pax_time(seconds, nanoseconds), out);
        }
        for (kind, text) in [(EntryType::GNULongLink, &self.link), (EntryType::GNULongName, &self.name)] {
            if text.len() > NAME {
                extra(kind, b"././@LongLink", &[text, b"\0".as_slice()].concat(), out);
            }
        }
        let mut header = Header::new_gnu();
        header.set_entry_type(self.kind);
        header.set_size(self.size);
        header.set_mode(self.mode);
        header.set_uid(self.owner.0.into());
        header.set_gid(self.owner.1.into());
        header.set_mtime(u64::try_from(seconds).unwrap_or(0));
        let old = header.as_old_mut();
        copy(&self.name, &mut old.name);
        copy(&self.link, &mut old.linkname);
        header.set_cksum();
        out.extend_from_slice(header.as_bytes());
    }

    /// Reads the next entry; `None` at the mark of the end.
    pub(super) fn read(input: &mut impl Read) -> Result<Option<Self>, ArchiveError> {
        let mut extras = Extras::default();
        loop {
            let mut block = [0; BLOCK];
            if fill(input, &mut block).map_err(ArchiveError::Input)? < BLOCK {
                return Err(damaged("it ends too early"));
            }
            if block == [0; BLOCK] {
                return Ok(None);
            }
            let header = Header::from_byte_slice(&block);
            check(header, &block)?;
            let size = header.entry_size().map_err(|_| damaged("the size of an entry is no number"))?;
            match header.entry_type() {
                EntryType::GNULongName => extras.name = Some(text(input, size)?),
                EntryType::GNULongLink => extras.link = Some(text(input, size)?),
                EntryType::XHeader => extras.take(&bytes(input, size)?)?,
                // Remarks about the whole archive.
                EntryType::XGlobalHeader => drop(bytes(input, size)?),
                _ => return extras.entry(header, size).map(Some),
            }
        }
    }
}

/// What stands before a header and belongs to it.
#[derive(Debug, Default)]
struct Extras {
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    user: Option<u32>,
    group: Option<u32>,
    modified: Option<(i64, u32)>,
    sparse: bool,
}

impl Extras {
    /// Takes what an extended header of POSIX says.
    fn take(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        for extension in PaxExtensions::new(bytes) {
            let extension = extension.map_err(|_| damaged("an extended header is not what it must be"))?;
            let value = extension.value_bytes();
            let wrong = || damaged("an extended header has a wrong number");
            match extension.key_bytes() {
                b"path" => self.name = Some(value.to_owned()),
                b"linkpath" => self.link = Some(value.to_owned()),
                b"size" => self.size = Some(number(value).ok_or_else(wrong)?),
                b"uid" => self.user = number(value).and_then(|id| u32::try_from(id).ok()),
                b"gid" => self.group = number(value).and_then(|id| u32::try_from(id).ok()),
                b"mtime" => self.modified = Some(time(value).ok_or_else(wrong)?),
                key if key.starts_with(b"GNU.sparse.") => self.sparse = true,
                _ => {}
            }
        }
        Ok(())
    }

    fn entry(self, header: &Header, size: u64) -> Result<Entry, ArchiveError> {
        let name = self.name.unwrap_or_else(|| header.path_bytes().into_owned());
        let link = self.link.unwrap_or_else(|| header.link_name_bytes().unwrap_or_default().into_owned());
        if self.sparse || header.entry_type() == EntryType::GNUSparse {
            let entry = String::from_utf8_lossy(&name).into_owned();
            return Err(ArchiveError::Unsupported { entry, what: "a sparse file" });
        }
        let id = |field: io::Result<u64>| field.ok().and_then(|id| u32::try_from(id).ok()).unwrap_or(0);
        let modified = header.mtime().map_or(0, u64::cast_signed);
        Ok(Entry {
            kind: match header.entry_type() {
                // Old archives mark directories by their names only.
                EntryType::Regular if name.ends_with(b"/") => EntryType::Directory,
                EntryType::Continuous => EntryType::Regular,
                kind => kind,
            },
            link,
            size: self.size.unwrap_or(size),
            mode: header.mode().map_or(0o644, |mode| mode & 0o7777),
            owner: (self.user.unwrap_or_else(|| id(header.uid())), self.group.unwrap_or_else(|| id(header.gid()))),
            modified: self.modified.unwrap_or((modified, 0)),
            name,
        })
    }
}

pub(super) fn damaged(text: &str) -> ArchiveError {
    ArchiveError::Damaged(text.to_owned())
}

fn check(header: &Header, block: &[u8; BLOCK]) -> Result<(), ArchiveError> {
    // The field itself counts as blanks.
    let sum: u32 =
        block.iter().enumerate().map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u32::from(*byte) }).sum();
    if header.cksum().is_ok_and(|expected| expected == sum) {
        Ok(())
    } else {
        Err(damaged("it is no tar stream, or a header of it is damaged"))
    }
}

/// A name in an entry of its own, which ends with a NUL.
fn text(input: &mut impl Read, size: u64) -> Result<Vec<u8>, ArchiveError> {
    let mut text = bytes(input, size)?;
    if text.last() == Some(&0) {
        text.pop();
    }
    Ok(text)
}

/// The contents of a small entry, within a bound.
fn bytes(input: &mut impl Read, size: u64) -> Result<Vec<u8>, ArchiveError> {
    if size > EXTRA {
        return Err(damaged("a name or an extended header is too long"));
    }
    let length = usize::try_from(size).unwrap_or(0);
    let mut bytes = vec![0; length + padding(size)];
    if fill(input, &mut bytes).map_err(ArchiveError::Input)? < bytes.len() {
        return Err(damaged("it ends too early"));
    }
    bytes.truncate(length);
    Ok(bytes)
}

fn extra(kind: EntryType, name: &[u8], content: &[u8], out: &mut Vec<u8>) {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    copy(name, &mut header.as_old_mut().name);
    header.set_cksum();
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(content);
    out.resize(out.len() + padding(content.len() as u64), 0);
}

fn copy(text: &[u8], field: &mut [u8]) {
    let length = text.len().min(field.len());
    field[..length].copy_from_slice(&text[..length]);
}

/// `25 mtime=1234567890.5\n`, where the number in front counts itself.
fn pax_time(seconds: i64, nanoseconds: u32) -> Vec<u8> {
    // Before 1970 the fraction counts away from 0.
    let value = if seconds < 0 && nanoseconds > 0 {
        format!("-{}.{:09}", (seconds + 1).unsigned_abs(), 1_000_000_000 - nanoseconds)
    } else {
        format!("{seconds}.{nanoseconds:09}")
    };
    let rest = format!(" mtime={value}\n");
    let mut length = rest.len() + 1;
    while length.to_string().len() + rest.len() != length {
        length = length.to_string().len() + rest.len();
    }
    format!("{length}{rest}").into_bytes()
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn time(text: &[u8]) -> Option<(i64, u32)> {
    let text = std::str::from_utf8(text).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds: i64 = whole.parse().ok()?;
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let nanoseconds: u32 = digits.parse().ok()?;
    if whole.starts_with('-') && nanoseconds > 0 {
        Some((seconds.checked_sub(1)?, 1_000_000_000 - nanoseconds))
    } else {
        Some((seconds, nanoseconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_travel_exactly() {
        for time_in in [(0, 1), (1, 0), (1_700_000_000, 999_999_999), (-1, 0), (-1, 1), (-5, 250_000_000)] {
            let record = pax_time(time_in.0, time_in.1);
            let text = String::from_utf8(record.clone()).unwrap();
            let (length, rest) = text.split_once(' ').unwrap();
            assert_eq!(length.parse::<usize>().unwrap(), record.len(), "{text}");
            let value = rest.trim_end().strip_prefix("mtime=").unwrap();
            assert_eq!(time(value.as_bytes()), Some(time_in), "{text}");
        }
        for (text, expected) in [("12", Some((12, 0))), ("12.5", Some((12, 500_000_000))), ("x", None), ("1.x", None)] {
            assert_eq!(time(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        for (name, link) in
            [("a".repeat(100), String::new()), ("b".repeat(101), "c".repeat(300)), ("d".into(), "e".into())]
        {
            let kind = if link.is_empty() { EntryType::Regular } else { EntryType::Symlink };
            let entry = Entry {
                name: name.clone().into_bytes(),
                link: link.clone().into_bytes(),
                kind,
                size: 1 << 40,
                mode: 0o4755,
                owner: (4_000_000_000, 7),
                modified: (1_700_000_000, 5),
            };
            let mut stream = Vec::new();
            entry.write(&mut stream);
            let read = Entry::read(&mut stream.as_slice()).unwrap().unwrap();
            assert_eq!(format!("{read:?}"), format!("{entry:?}"));
        }
    }
}
