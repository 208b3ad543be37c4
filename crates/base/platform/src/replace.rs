//! Files written whole: a reader, and whoever looks after a crash, finds the old content or the new one.
//!
//! On Linux that is `gloveport_sys::replace`, with all that it keeps of an old file. Elsewhere the new content goes into a
//! file beside the old one, which gets its permissions and then its name.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(any(not(target_os = "linux"), test))]
mod portable;

use std::{fs::File, io, path::Path};

#[cfg(target_os = "linux")]
use self::linux as own;
#[cfg(not(target_os = "linux"))]
use self::portable as own;

/// A file that is about to get new content. Dropping it leaves the file as it was.
#[derive(Debug)]
pub struct Replacement(own::Replacement);

impl Replacement {
    /// Begins to write `path`, with these permission bits if it is new and the system has some. Links are followed.
    ///
    /// # Errors
    ///
    /// `path` is no regular file, may not be written, or its directory does not exist. Nothing is changed then.
    pub fn begin(path: &Path, mode: Option<u32>) -> io::Result<Self> {
        own::Replacement::begin(path, mode).map(Self)
    }

    /// The file that the new content is written to, from its beginning on.
    pub fn file(&mut self) -> &mut File {
        self.0.file()
    }

    /// Takes the rights away that a program has from its file, and that the new content would have from the old one.
    ///
    /// # Errors
    ///
    /// The file system refuses it.
    pub fn drop_privileges(&self) -> io::Result<()> {
        self.0.drop_privileges()
    }

    /// Puts the new content into the place of the old.
    ///
    /// # Errors
    ///
    /// The file is as it was.
    pub fn commit(self) -> io::Result<()> {
        self.0.commit()
    }
}

/// Opens a regular file to be read. Never waits, whatever `path` is.
///
/// # Errors
///
/// `path` is a directory, or something else that is no regular file.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    own::open_to_read(path)
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write as _};

    use super::*;
    use crate::{mode, set_mode};

    /// One way to write, with the words of tests.
    trait Way: Sized {
        fn start(path: &Path, mode: Option<u32>) -> io::Result<Self>;
        fn write(&mut self, content: &str);
        fn unprivileged(&self);
        fn done(self);
    }

    macro_rules! way {
        ($kind:ty) => {
            impl Way for $kind {
                fn start(path: &Path, mode: Option<u32>) -> io::Result<Self> {
                    Self::begin(path, mode)
                }
                fn write(&mut self, content: &str) {
                    self.file().write_all(content.as_bytes()).unwrap();
                }
                fn unprivileged(&self) {
                    self.drop_privileges().unwrap();
                }
                fn done(self) {
                    self.commit().unwrap();
                }
            }
        };
    }
    way!(linux::Replacement);
    way!(portable::Replacement);

    fn a_file_has_the_old_content_or_the_new_one<T: Way>() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let mut first = T::start(&path, Some(0o640)).unwrap();
        first.write("first");
        assert!(!path.exists());
        first.done();
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        assert_eq!(mode(&path.metadata().unwrap()), 0o640);

        let mut given_up = T::start(&path, None).unwrap();
        given_up.write("given up");
        drop(given_up);
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");

        // It keeps what it has, through a link, but for the rights of a program.
        set_mode(&path, 0o4750).unwrap();
        let link = directory.path().join("link");
        crate::link_to_file(&path, &link).unwrap();
        let mut second = T::start(&link, Some(0o600)).unwrap();
        second.unprivileged();
        second.write("second");
        second.done();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(mode(&path.metadata().unwrap()), 0o750);

        assert!(T::start(directory.path(), None).is_err());
        let missing = T::start(&directory.path().join("a/b"), None);
        assert_eq!(missing.err().map(|error| error.kind()), Some(io::ErrorKind::NotFound));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_file_is_written_whole_in_the_way_of_each_system() {
        a_file_has_the_old_content_or_the_new_one::<linux::Replacement>();
        a_file_has_the_old_content_or_the_new_one::<portable::Replacement>();
    }

    #[test]
    fn only_a_regular_file_is_opened_to_be_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "").unwrap();
        for open in [open_to_read, portable::open_to_read] {
            open(&path).unwrap();
            assert_eq!(open(directory.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
            assert_eq!(open(&directory.path().join("x")).unwrap_err().kind(), io::ErrorKind::NotFound);
        }
    }
}
