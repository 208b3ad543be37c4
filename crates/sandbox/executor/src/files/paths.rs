//! Paths of actions and of the native API.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

/// A path of an action (`file-editor` 1.1): relative ones are joined to `directory`; repeated slashes, `.` and a
/// trailing slash go, `..` stays.
pub(super) fn resolve(path: &str, directory: &Path) -> PathBuf {
    let joined = if path.starts_with('/') { PathBuf::from(path) } else { directory.join(path) };
    let bytes = joined.as_os_str().as_bytes();
    // Exactly two slashes at the beginning are something of their own (POSIX).
    let root: &[u8] = if bytes.starts_with(b"//") && !bytes.starts_with(b"///") { b"//" } else { b"/" };
    let parts: Vec<&[u8]> = bytes.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b".")).collect();
    PathBuf::from(OsStr::from_bytes(&[root, &parts.join(&b'/')].concat()))
}

/// A path as text, and its bytes if they are not UTF-8 (base64 is the caller's).
pub fn shown(path: &Path) -> (String, Option<&[u8]>) {
    match path.to_str() {
        Some(text) => (text.to_owned(), None),
        None => (path.to_string_lossy().into_owned(), Some(path.as_os_str().as_bytes())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_and_tidied_as_the_reference_does_it() {
        for (path, expected) in [
            ("", "/w/cwd"),
            (".", "/w/cwd"),
            ("./a", "/w/cwd/a"),
            ("a//b", "/w/cwd/a/b"),
            ("../x", "/w/cwd/../x"),
            ("a/../b", "/w/cwd/a/../b"),
            ("/abs//x/./y/", "/abs/x/y"),
            ("~/x", "/w/cwd/~/x"),
            ("//a", "//a"),
            ("///a", "/a"),
            ("/", "/"),
        ] {
            assert_eq!(resolve(path, Path::new("/w/cwd")), Path::new(expected), "{path}");
            assert_eq!(resolve(path, Path::new("/w/cwd")).as_os_str(), expected, "{path}");
        }
    }
}
