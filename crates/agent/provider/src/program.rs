//! Which program goes into sandboxes: the small one, where it lies beside ours and is of the same build, else ours.
//!
//! The small program has the name of its build as the build id that linkers write into programs, so it is read from the
//! file, and nothing is started to ask. Programs of two builds could differ in what they tell each other.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

/// The name of the small program.
pub const SMALL: &str = "gloveport-sandbox";

/// Bytes of the longest table of segments that is read, and of the longest segment of notes.
const LONGEST: u64 = 4096;
/// The type of a segment of notes.
const NOTES: u32 = 4;
/// The type of the note with a build id, and its owner.
const BUILD_ID: (u32, &[u8]) = (3, b"GNU\0");

/// What lies beside our program.
#[derive(Debug)]
pub enum Beside {
    /// The small program of this build.
    Same(PathBuf),
    /// A program of that name which is of another build.
    Other(PathBuf),
    /// A file of that name that cannot be read, or is no program.
    Unusable(PathBuf, io::Error),
    /// Nothing of that name.
    Nothing,
}

impl Beside {
    /// Looks beside `own` for the small program of the build with this name (hexadecimal digits).
    pub fn of(own: &Path, build: &str) -> Self {
        let path = own.with_file_name(SMALL);
        let read = || -> io::Result<bool> {
            let mut file = File::open(&path)?;
            if !gloveport_platform::is_executable(&file.metadata()?) {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is not executable"));
            }
            let id = build_id(&mut file)?;
            let digits = |id: Vec<u8>| id.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
            Ok(id.is_some_and(|id| digits(id) == build))
        };
        match read() {
            Ok(true) => Self::Same(path),
            Ok(false) => Self::Other(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::Nothing,
            Err(error) => Self::Unusable(path, error),
        }
    }

    /// The program for sandboxes: the small one if it may be used, else this one.
    pub fn or(self, own: PathBuf) -> PathBuf {
        match self {
            Self::Same(small) => small,
            Self::Other(path) => {
                tracing::debug!(path = %path.display(), "it is of another build, so it goes into no sandbox");
                own
            }
            Self::Unusable(path, error) => {
                tracing::debug!(path = %path.display(), %error, "it cannot go into sandboxes");
                own
            }
            Self::Nothing => own,
        }
    }
}

/// Whether this program may run in a container. On Linux our own does; elsewhere the file itself must say that it is for
/// Linux.
///
/// # Errors
///
/// The file cannot be read.
pub fn is_for_containers(program: &Path) -> io::Result<bool> {
    Ok(cfg!(target_os = "linux") || is_for_linux(program)?)
}

fn is_for_linux(program: &Path) -> io::Result<bool> {
    let mut head = [0; 4];
    match File::open(program)?.read_exact(&mut head) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| head == *b"\x7fELF"),
    }
}

/// The build id of a program for Linux of 64 bits, lowest byte first; `None` if it has none.
fn build_id(file: &mut File) -> io::Result<Option<Vec<u8>>> {
    let no_program = || io::Error::new(io::ErrorKind::InvalidData, "it is no program for Linux");
    let mut head = [0; 64];
    match file.read_exact(&mut head) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(no_program()),
        read => read?,
    }
    // Class of 64 bits, lowest byte first, current version.
    if !head.starts_with(b"\x7fELF\x02\x01\x01") {
        return Err(no_program());
    }
    let (offset, size, count) = (number(&head, 32, 8), number(&head, 54, 2), number(&head, 56, 2));
    let (Some(offset), Some(size), Some(count)) = (offset, size, count) else { return Err(no_program()) };
    let length = size.saturating_mul(count);
    if size < 56 || length > LONGEST {
        return Err(no_program());
    }
    let table = part(file, offset, length)?;
    for segment in table.chunks_exact(usize::try_from(size).unwrap_or(usize::MAX)) {
        if number(segment, 0, 4) != Some(NOTES.into()) {
            continue;
        }
        let (Some(offset), Some(length)) = (number(segment, 8, 8), number(segment, 32, 8)) else { continue };
        if length <= LONGEST
            && let Some(id) = find(&part(file, offset, length)?)
        {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// Bytes of the file; fewer if it ends before.
fn part(file: &mut File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The build id among notes: lengths of owner and content, type, owner, content, each a multiple of four bytes long.
fn find(mut notes: &[u8]) -> Option<Vec<u8>> {
    let word = |bytes: &[u8], at| usize::try_from(number(bytes, at, 4)?).ok();
    loop {
        let (owner, content) = (word(notes, 0)?, word(notes, 4)?);
        let kind = number(notes, 8, 4)?;
        let begin = owner.checked_next_multiple_of(4)?.checked_add(12)?;
        let end = begin.checked_add(content)?;
        if kind == u64::from(BUILD_ID.0) && notes.get(12..12_usize.checked_add(owner)?) == Some(BUILD_ID.1) {
            return notes.get(begin..end).map(<[u8]>::to_vec);
        }
        notes = notes.get(end.checked_next_multiple_of(4)?..)?;
    }
}

/// A number of so many bytes, lowest first.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    const BUILD: &str = "00c0ffee";

    fn note(owner: &[u8], kind: u32, content: &[u8]) -> Vec<u8> {
        let padded = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap().to_le_bytes();
        [&length(owner)[..], &length(content), &kind.to_le_bytes(), &padded(owner), &padded(content)].concat()
    }

    /// A program that has nothing but notes.
    fn program(notes: &[u8]) -> Vec<u8> {
        let mut file = vec![0; 64 + 56];
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        file[32] = 64;
        file[54] = 56;
        file[56] = 1;
        file[64] = 4;
        file[64 + 8] = 120;
        file[64 + 32..64 + 40].copy_from_slice(&(notes.len() as u64).to_le_bytes());
        file.extend_from_slice(notes);
        file
    }

    #[test]
    fn a_program_for_linux_is_told_by_its_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("program");
        for (content, expected) in [
            (program(b""), true),
            // Programs of macOS and of Windows.
            (b"\xcf\xfa\xed\xfe\x0c\0\0\x01".to_vec(), false),
            (b"MZ\x90\0".to_vec(), false),
            (b"\x7fE".to_vec(), false),
        ] {
            fs::write(&file, &content).unwrap();
            assert_eq!(is_for_linux(&file).unwrap(), expected, "{content:x?}");
        }
        fs::remove_file(&file).unwrap();
        is_for_linux(&file).unwrap_err();
    }

    #[test]
    fn the_small_program_is_used_if_it_is_of_the_same_build() {
        let folder = tempfile::tempdir().unwrap();
        let (own, small) = (folder.path().join("gloveport"), folder.path().join(SMALL));
        let same = note(b"GNU\0", 3, &[0, 0xc0, 0xff, 0xee]);
        let other = note(b"GNU\0", 3, &[0, 0xc0, 0xff, 0xef]);
        let foreign = note(b"Go\0", 3, &[0, 0xc0, 0xff, 0xee]);
        for (content, mode, expected) in [
            (program(&same), 0o755, "same"),
            (program(&[foreign.clone(), same.clone()].concat()), 0o755, "same"),
            (program(&same), 0o644, "unusable"),
            (program(&other), 0o755, "other"),
            (program(&foreign), 0o755, "other"),
            (program(&same[..18]), 0o755, "other"),
            (program(b""), 0o755, "other"),
            (program(&[0xff; 64]), 0o755, "other"),
            (b"#!/bin/sh\nexit 0\n".to_vec(), 0o755, "unusable"),
            (b"#!/bin/sh\n".repeat(100), 0o755, "unusable"),
            (b"\x7fELF\x02\x01\x01".repeat(100), 0o755, "unusable"),
            (Vec::new(), 0o755, "unusable"),
        ] {
            fs::write(&small, &content).unwrap();
            fs::set_permissions(&small, fs::Permissions::from_mode(mode)).unwrap();
            let beside = Beside::of(&own, BUILD);
            let found = match &beside {
                Beside::Same(path) => ("same", Some(path)),
                Beside::Other(path) => ("other", Some(path)),
                Beside::Unusable(path, _) => ("unusable", Some(path)),
                Beside::Nothing => ("nothing", None),
            };
            assert_eq!(found, (expected, Some(&small)), "{content:x?} {mode:o}");
            let chosen = if expected == "same" { &small } else { &own };
            assert_eq!(&beside.or(own.clone()), chosen);
        }
        fs::remove_file(&small).unwrap();
        assert!(matches!(Beside::of(&own, BUILD), Beside::Nothing));
        fs::create_dir(&small).unwrap();
        assert!(matches!(Beside::of(&own, BUILD), Beside::Unusable(..)));
    }
}
