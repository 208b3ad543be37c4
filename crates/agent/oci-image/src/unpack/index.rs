//! Where the files of an archive are in it, without reading them.

use std::{
    collections::HashMap,
    fs::File,
    io::{BufReader, Read},
};

use super::{
    error::{LayerError, shown},
    header::{self, Kind},
    names,
    stream::Input,
};

/// Most files of an archive of images.
const MOST: usize = 100_000;

/// What has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// A file: where its contents begin, and their length, in bytes.
    File { at: u64, length: u64 },
    /// A link to this name.
    Link(Vec<u8>),
}

struct Archive<'a> {
    file: BufReader<&'a File>,
    at: u64,
}

impl Input for Archive<'_> {
    fn fill(&mut self, mut buffer: &mut [u8]) -> usize {
        let whole = buffer.len();
        while !buffer.is_empty() {
            match self.file.read(buffer) {
                Ok(length) if length > 0 => buffer = buffer.get_mut(length..).unwrap_or_default(),
                // What cannot be read is missing, and is an error where it is missed.
                Ok(_) | Err(_) => break,
            }
        }
        let done = whole - buffer.len();
        self.at += done as u64;
        done
    }
}

/// Finds all files of an archive, by their names without `./`.
pub(crate) fn read(file: &File) -> Result<HashMap<Vec<u8>, Found>, String> {
    let words = |error| match error {
        LayerError::Refused { entry: None, reason } => reason,
        LayerError::Refused { entry: Some(entry), reason } => format!("at `{entry}`: {reason}"),
        LayerError::Full | LayerError::Image(_) => "it cannot be read".to_owned(),
    };
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    let mut archive = Archive { file: BufReader::new(file), at: 0 };
    let mut first = [0; 4];
    let known = gloveport_platform::read_exact_at(file, &mut first, 0);
    if known.is_ok() && matches!(first, [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd]) {
        return Err("it is compressed as a whole; decompress it first".into());
    }
    let mut found = HashMap::new();
    while let Some(entry) = header::next(&mut archive).map_err(words)? {
        let name = names::parts(&entry.name).map_err(|error| words(error.at(&entry.name)))?.join(&b'/');
        let skipped = entry.size.checked_next_multiple_of(header::BLOCK as u64).filter(|skipped| *skipped <= length);
        let next = skipped.and_then(|skipped| archive.at.checked_add(skipped)).filter(|next| *next <= length);
        let next = next.ok_or_else(|| format!("at `{}`: it ends too early", shown(&entry.name)))?;
        match entry.kind {
            Kind::File if entry.sparse.is_none() => {
                found.insert(name, Found::File { at: archive.at, length: entry.size });
            }
            Kind::SymbolicLink => {
                found.insert(name.clone(), Found::Link(beside(&name, &entry.link)));
            }
            Kind::HardLink => {
                let target = names::parts(&entry.link).map_err(|error| words(error.at(&entry.name)))?;
                found.insert(name, Found::Link(target.join(&b'/')));
            }
            _ => {}
        }
        if found.len() > MOST {
            return Err(format!("it has more than {MOST} files"));
        }
        let skipped = i64::try_from(next - archive.at).map_err(|_| "it is too long")?;
        archive.file.seek_relative(skipped).map_err(|error| error.to_string())?;
        archive.at = next;
    }
    Ok(found)
}

/// What a link in the directory of `name` leads to, within the archive.
fn beside(name: &[u8], target: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = name.split(|byte| *byte == b'/').collect();
    parts.pop();
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join(&b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_names_of_the_archive() {
        assert_eq!(beside(b"two/layer.tar", b"../one/layer.tar"), b"one/layer.tar");
        assert_eq!(beside(b"a", b"../../../etc/passwd"), b"etc/passwd");
    }
}
