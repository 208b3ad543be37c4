//! Texts, and what was uploaded.

use std::{
    fs::{self, File},
    io::{self, Seek as _},
    path::Path,
    sync::atomic::AtomicBool,
};

use encoding_rs::{Encoding, UTF_8};
use gloveport_archive::{ArchiveError, ArchiveLimits, zip};
use gloveport_audit::{Event, Text, record};
use gloveport_sys::replace::{self, NewFile, Replacement};
use gloveport_text::python;

use crate::{
    exception::{Exception, repr},
    output,
    types::{FileContent, ReadFile},
};

/// Largest file that is read as a text.
const LARGEST: u64 = 64 * 1024 * 1024;

/// Reads a text, with `\n` at the ends of its lines.
pub(crate) fn read(request: &ReadFile, path: &Path) -> Result<FileContent, Exception> {
    let told = Path::new(&request.path);
    let bytes = replace::read(path, LARGEST).map_err(|error| Exception::os(&error, told))?;
    let name = request.encoding.as_deref().unwrap_or("utf-8");
    let errors = request.errors.as_deref().unwrap_or("strict");
    let text = decode(bytes, name, errors)?;
    Ok(FileContent { content: python::into_universal_newlines(text) })
}

fn decode(bytes: Vec<u8>, name: &str, errors: &str) -> Result<String, Exception> {
    let encoding = named(name).ok_or_else(|| Exception::lookup(format!("unknown encoding: {name}")))?;
    if !["strict", "replace", "ignore", "backslashreplace", "surrogateescape"].contains(&errors) {
        return Err(Exception::lookup(format!("unknown error handler name {}", repr(errors))));
    }
    let bytes = match encoding {
        Known::Ascii if bytes.is_ascii() => return Ok(output::text(&bytes)),
        Known::Latin => return Ok(bytes.into_iter().map(char::from).collect()),
        Known::Ascii | Known::Utf8 => bytes,
        Known::Other(encoding) => {
            let (text, _, faulty) = encoding.decode(&bytes);
            return match errors {
                _ if !faulty => Ok(text.into_owned()),
                "replace" => Ok(text.into_owned()),
                "ignore" => Ok(text.replace('\u{fffd}', "")),
                _ => Err(undecodable(name, "the content is not in this encoding")),
            };
        }
    };
    let bytes = match String::from_utf8(bytes) {
        Ok(text) if encoding == Known::Utf8 => return Ok(text),
        Ok(text) => text.into_bytes(),
        Err(error) => error.into_bytes(),
    };
    let mut text = String::with_capacity(bytes.len());
    let is_ascii = encoding == Known::Ascii;
    for chunk in bytes.utf8_chunks() {
        if is_ascii {
            for character in chunk.valid().chars() {
                let mut buffer = [0; 4];
                if character.is_ascii() {
                    text.push(character);
                } else {
                    faulty(&mut text, character.encode_utf8(&mut buffer).as_bytes(), name, errors, true)?;
                }
            }
        } else {
            text.push_str(chunk.valid());
        }
        faulty(&mut text, chunk.invalid(), name, errors, is_ascii)?;
    }
    Ok(text)
}

/// What becomes of bytes that are no character.
fn faulty(text: &mut String, bytes: &[u8], name: &str, errors: &str, each: bool) -> Result<(), Exception> {
    let Some(first) = bytes.first() else { return Ok(()) };
    match errors {
        "replace" => text.extend(std::iter::repeat_n('\u{fffd}', if each { bytes.len() } else { 1 })),
        "ignore" => {}
        "backslashreplace" => output::push_escaped(text, bytes),
        _ => {
            return Err(undecodable(
                name,
                &format!("it has the byte 0x{first:02x} where a character begins or goes on"),
            ));
        }
    }
    Ok(())
}

fn undecodable(name: &str, why: &str) -> Exception {
    Exception::undecodable(format!("'{name}' codec can't decode the file: {why}"))
}

/// An encoding that Python has.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Known {
    Utf8,
    Ascii,
    /// Each byte is the character of its number.
    Latin,
    Other(&'static Encoding),
}

fn named(name: &str) -> Option<Known> {
    let plain: String = name.to_ascii_lowercase().replace(['_', ' '], "-");
    Some(match plain.as_str() {
        "utf-8" | "utf8" | "u8" | "utf-8-sig" => Known::Utf8,
        "ascii" | "us-ascii" | "646" => Known::Ascii,
        "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" | "8859" | "cp819" | "l1" => Known::Latin,
        label => match Encoding::for_label(label.as_bytes())? {
            encoding if encoding == UTF_8 => Known::Utf8,
            encoding => Known::Other(encoding),
        },
    })
}

/// Writes a text. Directories that are missing are made.
pub(crate) fn write(told: &str, path: &Path, content: &str) -> Result<(), Exception> {
    let written = parents(path).and_then(|()| replace::write(path, content.as_bytes(), NewFile::default()));
    written.map_err(|error| Exception::os(&error, Path::new(told)))
}

fn parents(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

/// An upload, which is a file or the archive of a tree.
pub(crate) struct Upload<'a> {
    /// What has come.
    pub(crate) file: &'a mut File,
    /// How the client calls it.
    pub(crate) name: &'a str,
    /// Where it goes.
    pub(crate) target: &'a Path,
    /// It is an archive.
    pub(crate) unzip: bool,
}

impl Upload<'_> {
    /// Puts it where it goes.
    pub(crate) fn store(self, limits: &ArchiveLimits, stop: &AtomicBool) -> Result<(), Exception> {
        let of_target = |error: io::Error| Exception::os(&error, self.target);
        if self.unzip {
            fs::create_dir_all(self.target).map_err(of_target)?;
            record(|| Event::Unpacked { path: Text::of(self.target) });
            return match zip::unpack_until(self.file, self.target, limits, stop) {
                Ok(_) => Ok(()),
                Err(ArchiveError::NotAZip) => {
                    Err(Exception::value(format!("the upload for {} is no zip file", self.target.display())))
                }
                Err(error) => Err(Exception::failed(error.to_string())),
            };
        }
        let path = match Path::new(self.name).file_name() {
            Some(name) if self.target.is_dir() => self.target.join(name),
            _ => self.target.to_owned(),
        };
        let mut stored = || {
            parents(&path)?;
            self.file.rewind()?;
            let mut replacement = Replacement::begin(&path, NewFile::default())?;
            io::copy(self.file, &mut replacement)?;
            replacement.commit().map(drop)
        };
        stored().map_err(|error: io::Error| Exception::os(&error, &path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_python_reads_them() {
        for (bytes, encoding, errors, expected) in [
            (&b"a\r\nb\rc\n"[..], None, None, "a\nb\nc\n"),
            (b"gr\xfcn", Some("latin-1"), None, "gr\u{fc}n"),
            (b"\x80", Some("cp1252"), None, "\u{20ac}"),
            (b"a\xffb", None, Some("ignore"), "ab"),
            (b"a\xffb", None, Some("replace"), "a\u{fffd}b"),
            (b"a\xffb", None, Some("backslashreplace"), "a\\xffb"),
            (b"\xc3\xa9", Some("ascii"), Some("replace"), "\u{fffd}\u{fffd}"),
            (b"a", Some("ASCII"), None, "a"),
            (b"\xff\xfea\0", Some("utf-16"), None, "a"),
        ] {
            let text = decode(bytes.to_vec(), encoding.unwrap_or("utf-8"), errors.unwrap_or("strict")).unwrap();
            assert_eq!(python::into_universal_newlines(text), expected, "{bytes:?} {encoding:?}");
        }
        for (bytes, encoding, errors, class) in [
            (&b"\xff"[..], "utf-8", "strict", "builtins.UnicodeDecodeError"),
            (b"\xc3\xa9", "ascii", "strict", "builtins.UnicodeDecodeError"),
            (b"", "no-such", "strict", "builtins.LookupError"),
            (b"", "utf-8", "no-such", "builtins.LookupError"),
        ] {
            assert_eq!(decode(bytes.to_vec(), encoding, errors).unwrap_err().class_path, class, "{encoding} {errors}");
        }
    }

    #[test]
    fn uploads_go_where_they_are_sent_and_make_what_is_missing() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let store = |content: &[u8], target: &Path, unzip: bool| {
            let mut file = tempfile::tempfile().unwrap();
            io::Write::write_all(&mut file, content).unwrap();
            let upload = Upload { file: &mut file, name: "its name", target, unzip };
            upload.store(&ArchiveLimits::default(), &AtomicBool::new(false))
        };
        store(b"one", &root.join("a/b/file"), false).unwrap();
        assert_eq!(fs::read(root.join("a/b/file")).unwrap(), b"one");
        store(b"two", &root.join("a/b/file"), false).unwrap();
        assert_eq!(fs::read(root.join("a/b/file")).unwrap(), b"two");
        store(b"three", &root.join("a"), false).unwrap();
        assert_eq!(fs::read(root.join("a/its name")).unwrap(), b"three");
        assert_eq!(store(b"none", &root.join("c"), true).unwrap_err().class_path, "builtins.ValueError");
        let under = store(b"", &root.join("a/b/file/below"), false).unwrap_err();
        assert_eq!(under.class_path, "builtins.FileExistsError", "{under:?}");
    }
}
