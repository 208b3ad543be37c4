//! Names of entries, which are paths within the tree, and what of them is a sign that something is gone.

use super::error::LayerError;

/// Most bytes of a path, and of a part of it.
const LONGEST_PATH: usize = 4096;
const LONGEST_PART: usize = 255;
/// What names begin with that say that something of earlier layers is gone.
const MARK: &[u8] = b".wh.";

/// What an entry is about.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum About<'a> {
    /// The tree itself.
    Root,
    /// Something in a directory.
    Entry(Vec<&'a [u8]>, &'a [u8]),
    /// Something in a directory that is gone.
    Gone(Vec<&'a [u8]>, &'a [u8]),
    /// All that earlier layers have in a directory is gone.
    AllGone(Vec<&'a [u8]>),
    /// Notes of a file system for itself.
    Nothing,
}

/// What a name says.
///
/// # Errors
///
/// It leads up, is too long, or can be no name.
pub(super) fn about(name: &[u8]) -> Result<About<'_>, LayerError> {
    let mut parts = parts(name)?;
    let Some(last) = parts.pop() else { return Ok(About::Root) };
    let is_note = |part: &&[u8]| part.starts_with(b".wh..wh.");
    if parts.iter().any(is_note) {
        return Ok(About::Nothing);
    }
    if parts.iter().any(|part| part.starts_with(MARK)) {
        return Err(LayerError::damaged("a directory has a name that says that something is gone"));
    }
    match last.strip_prefix(MARK) {
        None => Ok(About::Entry(parts, last)),
        Some(b".wh..opq") => Ok(About::AllGone(parts)),
        Some(_) if is_note(&last) => Ok(About::Nothing),
        Some(b"" | b"." | b"..") => Err(LayerError::damaged("it says that something is gone that has no name")),
        Some(gone) => Ok(About::Gone(parts, gone)),
    }
}

/// The parts of a path, which begins at the root of the tree.
pub(super) fn parts(path: &[u8]) -> Result<Vec<&[u8]>, LayerError> {
    let refused = |reason| Err(LayerError::damaged(reason));
    if path.is_empty() {
        return refused("an entry has no name");
    }
    if path.contains(&0) {
        return refused("its name has a NUL");
    }
    if path.len() > LONGEST_PATH {
        return refused("its name is longer than 4096 bytes");
    }
    let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b".")).collect();
    if parts.contains(&b"..".as_slice()) {
        return refused("its name leads up (`..`)");
    }
    if parts.iter().any(|part| part.len() > LONGEST_PART) {
        return refused("a part of its name is longer than 255 bytes");
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_is_there_and_what_is_gone() {
        let a: &[u8] = b"a";
        for (name, expected) in [
            ("./", About::Root),
            ("/", About::Root),
            ("a", About::Entry(vec![], a)),
            ("/./a//b/", About::Entry(vec![a], b"b")),
            ("a/.wh.b", About::Gone(vec![a], b"b")),
            (".wh.b", About::Gone(vec![], b"b")),
            (".wh....", About::Gone(vec![], b"...")),
            ("a/.wh..wh..opq", About::AllGone(vec![a])),
            (".wh..wh.plnk/1.2", About::Nothing),
            (".wh..wh.aufs", About::Nothing),
        ] {
            assert_eq!(about(name.as_bytes()).unwrap(), expected, "{name}");
        }
        let (long, deep) = ("x".repeat(256), "x/".repeat(2049));
        for name in ["", "..", "a/../b", "a/..", ".wh.", ".wh..", ".wh...", "a/.wh.b/c", "a\0b", &long, &deep] {
            about(name.as_bytes()).unwrap_err();
        }
    }
}
