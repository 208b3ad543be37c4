//! The directory at the end of a zip file, read record by record.

use std::{fs::File, io};

use gloveport_platform as platform;

use super::records::{
    CENTRAL, CENTRAL_SIGNATURE, END, END_SIGNATURE, END64, END64_SIGNATURE, EXTENSION64, Fields, LARGE, LOCAL,
    LOCAL_SIGNATURE, LOCATOR64, LOCATOR64_SIGNATURE, MANY, UTF8,
};
use crate::error::ArchiveError;

/// Longest comment behind the end, and the end.
const TAIL: u64 = 65_535 + END as u64;

/// A part of a file in memory, for reading at any place with few calls.
#[derive(Debug)]
pub(super) struct Window {
    buffer: Vec<u8>,
    start: u64,
    filled: usize,
}

impl Window {
    pub(super) fn new(size: usize) -> Self {
        Self { buffer: vec![0; size], start: 0, filled: 0 }
    }

    /// At least `least` bytes from `at` on, if the file has them; `least` is smaller than the window.
    pub(super) fn at<'a>(&'a mut self, file: &File, at: u64, least: usize) -> io::Result<&'a [u8]> {
        let end = self.start + self.filled as u64;
        if at < self.start || at.saturating_add(least as u64) > end {
            self.start = at;
            self.filled = 0;
            while self.filled < self.buffer.len() {
                match platform::read_at(file, &mut self.buffer[self.filled..], at + self.filled as u64) {
                    Ok(0) => break,
                    Ok(read) => self.filled += read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        let from = usize::try_from(at - self.start).unwrap_or(usize::MAX).min(self.filled);
        Ok(&self.buffer[from..self.filled])
    }
}

/// Where the directory is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Directory {
    pub(super) entries: u64,
    pub(super) start: u64,
    pub(super) end: u64,
    /// What offsets in the archive have to be increased by, because something stands before it.
    shift: u64,
}

/// One record of the directory.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) name: Vec<u8>,
    pub(super) flags: u16,
    pub(super) method: u16,
    pub(super) crc: u32,
    pub(super) stored: u64,
    pub(super) size: u64,
    /// Where its local record begins.
    pub(super) offset: u64,
    /// Where the next record of the directory begins.
    next: u64,
}

fn damaged(text: impl Into<String>) -> ArchiveError {
    ArchiveError::Damaged(text.into())
}

impl Directory {
    /// Looks for the end of the archive.
    pub(super) fn find(file: &File) -> Result<Self, ArchiveError> {
        let length = file.metadata().map_err(ArchiveError::Input)?.len();
        let tail_start = length.saturating_sub(TAIL);
        let mut tail = vec![0; usize::try_from(length - tail_start).unwrap_or(0)];
        platform::read_exact_at(file, &mut tail, tail_start).map_err(ArchiveError::Input)?;
        let signature = END_SIGNATURE.to_le_bytes();
        // The last one that has room for itself and its comment.
        let found = (0..tail.len().saturating_sub(END - 1)).rev().find(|at| {
            let record = &tail[*at..];
            record.starts_with(&signature)
                && END + usize::from(u16::from_le_bytes([record[20], record[21]])) <= record.len()
        });
        let at = found.ok_or(ArchiveError::NotAZip)?;
        let mut fields = Fields(&tail[at..]);
        fields.skip(4);
        let (disk, first_disk, _on_this_disk) = (fields.two(), fields.two(), fields.two());
        let entries = u64::from(fields.two());
        let (size, offset) = (u64::from(fields.four()), u64::from(fields.four()));
        let end = tail_start + at as u64;
        let large = entries == MANY || size == LARGE || offset == LARGE;
        let end64 = if large { Self::find64(file, end)? } else { None };
        let (entries, size, offset, end) = match end64 {
            Some(values) => values,
            None if size == LARGE || offset == LARGE => return Err(damaged("its 64-bit end is missing")),
            None if disk != first_disk => return Err(damaged("it is a part of several")),
            None => (entries, size, offset, end),
        };
        // The directory stands right before the end; what its offset lacks stands before the archive.
        let start = end.checked_sub(size).ok_or_else(|| damaged("its directory is larger than itself"))?;
        let shift = start.checked_sub(offset).ok_or_else(|| damaged("its directory begins behind its end"))?;
        if entries.saturating_mul(CENTRAL as u64) > size {
            return Err(damaged("its directory is too short for its entries"));
        }
        Ok(Self { entries, start, end, shift })
    }

    /// The 64-bit end that stands before the end, if there is one: entries, size, offset, and where it begins.
    fn find64(file: &File, end: u64) -> Result<Option<(u64, u64, u64, u64)>, ArchiveError> {
        let Some(at) = end.checked_sub(LOCATOR64 as u64) else { return Ok(None) };
        let mut locator = [0; LOCATOR64];
        platform::read_exact_at(file, &mut locator, at).map_err(ArchiveError::Input)?;
        if !locator.starts_with(&LOCATOR64_SIGNATURE.to_le_bytes()) {
            return Ok(None);
        }
        let Some(at) = at.checked_sub(END64 as u64) else { return Ok(None) };
        let mut record = [0; END64];
        platform::read_exact_at(file, &mut record, at).map_err(ArchiveError::Input)?;
        if !record.starts_with(&END64_SIGNATURE.to_le_bytes()) {
            return Err(damaged("its 64-bit end is not where it must be"));
        }
        let mut fields = Fields(&record);
        fields.skip(32);
        Ok(Some((fields.eight(), fields.eight(), fields.eight(), at)))
    }

    /// The record at a place of the directory; `None` at its end.
    pub(super) fn record(&self, window: &mut Window, file: &File, at: u64) -> Result<Option<Record>, ArchiveError> {
        if at >= self.end {
            return Ok(None);
        }
        let bytes = window.at(file, at, CENTRAL).map_err(ArchiveError::Input)?;
        if bytes.len() < CENTRAL || !bytes.starts_with(&CENTRAL_SIGNATURE.to_le_bytes()) {
            return Err(damaged("a record of its directory is missing"));
        }
        let mut fields = Fields(bytes);
        fields.skip(8);
        let (flags, method) = (fields.two(), fields.two());
        fields.skip(4);
        let crc = fields.four();
        let (mut stored, mut size) = (u64::from(fields.four()), u64::from(fields.four()));
        let (name, extra, comment) = (usize::from(fields.two()), usize::from(fields.two()), usize::from(fields.two()));
        fields.skip(8);
        let mut offset = u64::from(fields.four());
        let next = at + (CENTRAL + name + extra + comment) as u64;
        if next > self.end {
            return Err(damaged("a record of its directory is cut off"));
        }
        let bytes = window.at(file, at, CENTRAL + name + extra).map_err(ArchiveError::Input)?;
        let variable = bytes.get(CENTRAL..CENTRAL + name + extra).unwrap_or_default();
        let (name, extra) = variable.split_at(name.min(variable.len()));
        extend([&mut size, &mut stored, &mut offset], extra)?;
        let offset = offset.checked_add(self.shift).ok_or_else(|| damaged("an entry begins behind its end"))?;
        let name = decoded(name, flags, bytes[5]);
        Ok(Some(Record { name, flags, method, crc, stored, size, offset, next }))
    }
}

impl Record {
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Where the contents begin.
    pub(super) fn contents(&self, window: &mut Window, file: &File) -> Result<u64, ArchiveError> {
        let bytes = window.at(file, self.offset, LOCAL).map_err(ArchiveError::Input)?;
        if bytes.len() < LOCAL || !bytes.starts_with(&LOCAL_SIGNATURE.to_le_bytes()) {
            return Err(damaged(format!("`{}` is not where it must be", String::from_utf8_lossy(&self.name))));
        }
        let mut fields = Fields(&bytes[26..]);
        Ok(self.offset + LOCAL as u64 + u64::from(fields.two()) + u64::from(fields.two()))
    }
}

/// Takes values from the 64-bit extension whose 32-bit fields say so.
fn extend(values: [&mut u64; 3], mut extra: &[u8]) -> Result<(), ArchiveError> {
    if values.iter().all(|value| **value != LARGE) {
        return Ok(());
    }
    while let [id0, id1, length0, length1, rest @ ..] = extra {
        let (id, length) = (u16::from_le_bytes([*id0, *id1]), usize::from(u16::from_le_bytes([*length0, *length1])));
        let Some((mut data, rest)) = rest.split_at_checked(length) else { break };
        if id == EXTENSION64 {
            for value in values {
                if *value == LARGE {
                    let (bytes, rest) =
                        data.split_first_chunk().ok_or_else(|| damaged("a 64-bit extension is too short"))?;
                    *value = u64::from_le_bytes(*bytes);
                    data = rest;
                }
            }
            return Ok(());
        }
        extra = rest;
    }
    // 4,294,967,295 may be meant as it stands.
    Ok(())
}

/// The bytes of a name. Archives of Unix have them as they are, even without saying that they are UTF-8; those of other
/// systems that say nothing use the code page 437.
fn decoded(name: &[u8], flags: u16, system: u8) -> Vec<u8> {
    const UNIX: u8 = 3;
    if flags & UTF8 != 0 || system == UNIX || std::str::from_utf8(name).is_ok() {
        return name.to_owned();
    }
    let high: Vec<char> = CODE_PAGE_437.chars().collect();
    let character = |byte: &u8| match byte.checked_sub(128) {
        Some(at) => high.get(usize::from(at)).copied().unwrap_or(char::REPLACEMENT_CHARACTER),
        None => char::from(*byte),
    };
    name.iter().map(character).collect::<String>().into_bytes()
}

/// What the bytes from 128 on mean on a PC.
const CODE_PAGE_437: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀\
    αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_systems_are_translated() {
        assert_eq!(CODE_PAGE_437.chars().count(), 128);
        for (name, flags, system, expected) in [
            (b"caf\x82".as_slice(), 0, 0, "café".as_bytes()),
            (b"caf\x82", 0, 3, b"caf\x82"),
            (b"caf\x82", UTF8, 0, b"caf\x82"),
            ("café".as_bytes(), 0, 0, "café".as_bytes()),
            (b"\xff\x80", 0, 0, "\u{a0}Ç".as_bytes()),
        ] {
            assert_eq!(decoded(name, flags, system), expected, "{name:?} {flags} {system}");
        }
    }
}
