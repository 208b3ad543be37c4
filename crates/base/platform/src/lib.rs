//! What the half beside the agent needs of the system that it runs on.
//!
//! Nothing else in that half asks which system it is (`crates/gloveport/tests/all/architecture.rs` checks it). What std
//! offers everywhere, such as locks of files, is used directly and is not here.
//!
//! | file | what |
//! |---|---|
//! | `unix` | what every Unix has |
//! | `linux` | what Linux has beyond that |
//! | `portable` | what is done instead where Linux's own is missing |
//! | `windows` | Windows |
//! | [`group`] | a program and all that it starts |
//! | [`replace`] | files written whole |
//!
//! What a system cannot do is an error of the kind [`Unsupported`](std::io::ErrorKind::Unsupported) that says so, unless
//! the function's documentation says what happens instead.

pub mod group;
pub mod replace;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(any(not(target_os = "linux"), test))]
#[cfg_attr(target_os = "linux", expect(dead_code, reason = "tests try on Linux what other systems use"))]
mod portable;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
use linux as own;
#[cfg(not(target_os = "linux"))]
use portable as own;
#[cfg(unix)]
use unix as family;
#[cfg(windows)]
use windows as family;

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fs::{DirBuilder, File, Metadata, OpenOptions, Permissions},
    io,
    path::{Path, PathBuf},
};

/// The variable that has the user's home.
pub const HOME: &str = family::HOME;

/// The number of this process's user; `None` where users have none.
pub fn user_id() -> Option<u32> {
    family::user_id()
}

/// Where programs of this user keep what others of them look for: below `XDG_RUNTIME_DIR` and the like, or the
/// directory for data of this machine on Windows.
pub fn state_directory(environment: &BTreeMap<String, String>) -> PathBuf {
    let directory = |name: &str| {
        let path = PathBuf::from(environment.get(name)?);
        path.is_absolute().then_some(path)
    };
    family::state_directory(&directory)
}

/// Where programs of this user keep what they must not lose: `XDG_DATA_HOME`, else `~/.local/share`, or the directory for
/// data of the user on Windows. `None` if the environment names none.
pub fn data_directory(environment: &BTreeMap<String, String>) -> Option<PathBuf> {
    let directory = |name: &str| {
        let path = PathBuf::from(environment.get(name)?);
        path.is_absolute().then_some(path)
    };
    family::data_directory(&directory)
}

/// A name of this machine since its start; `None` where the system has none.
pub fn boot_id() -> Option<String> {
    own::boot_id()
}

/// Whether containers of an engine of this machine can have IPv6 addresses. Elsewhere than on Linux the engine has a
/// system of its own, of which this is not known: it may.
pub fn has_ipv6() -> bool {
    own::has_ipv6()
}

/// The number of the device that the directory is on, or will be where it is made; `None` if that cannot be told, and on Windows.
/// A layer over other directories is a device of its own.
pub fn device(directory: &Path) -> Option<u64> {
    directory.ancestors().find_map(family::device)
}

/// Bytes that the user may still write where `path` is; `None` if that cannot be told, and on Windows.
pub fn free_space(path: &Path) -> Option<u64> {
    family::free_space(path)
}

/// Options to open a file that only its owner may use if it is made. On Windows it has the access of its directory,
/// which is the owner's alone below the profile.
pub fn private_file() -> OpenOptions {
    family::private_file()
}

/// What makes directories that only their owner may use; on Windows with the access of the one above.
pub fn private_directory() -> DirBuilder {
    family::private_directory()
}

/// The permissions of files that everybody may read if the user wants it so (the umask); `None` where a new file has
/// them anyway.
pub fn usual_permissions() -> Option<Permissions> {
    family::usual_permissions()
}

/// Whether this is a file that can be run, as far as its permissions tell. On Windows every file may be.
pub fn is_executable(metadata: &Metadata) -> bool {
    metadata.is_file() && family::may_run(metadata)
}

/// First executable file called `program` in the list of directories that `PATH` is; relative ones start at `directory`.
pub fn find_program(program: &str, path: &str, directory: &Path) -> Option<PathBuf> {
    let runs = |candidate: &PathBuf| std::fs::metadata(candidate).is_ok_and(|metadata| is_executable(&metadata));
    std::env::split_paths(path)
        .flat_map(|entry| family::names_of_program(program).map(move |name| entry.join(name)))
        .map(|candidate| directory.join(candidate))
        .find(runs)
}

/// The permission bits of a file as an archive for Linux has them; on Windows those that Docker's command line gives:
/// everybody may read and run it, and its owner may write.
pub fn mode(metadata: &Metadata) -> u32 {
    family::mode(metadata)
}

/// Gives a file permission bits. Windows has none: there, those that [`mode`] tells of every file are no error, and
/// others are.
pub fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    family::set_mode(path, mode)
}

/// When a file was changed, in seconds since 1970 and nanoseconds.
pub fn modified(metadata: &Metadata) -> (i64, u32) {
    family::modified(metadata)
}

/// Makes a link to a file.
///
/// # Errors
///
/// Windows allows that to administrators and in its developer mode only.
pub fn link_to_file(target: &Path, link: &Path) -> io::Result<()> {
    family::link_to_file(target, link)
}

/// Whether an open file is the one that has this path, which is no link.
pub fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    family::is_at(file, path)
}

/// The user and group that own a file; those of root where users have no numbers.
pub fn owner(metadata: &Metadata) -> (u32, u32) {
    family::owner(metadata)
}

/// What tells a file from all others of this machine: its device and number. `None` where metadata do not have it.
pub fn identity(metadata: &Metadata) -> Option<(u64, u64)> {
    family::identity(metadata)
}

/// Whether a file is known to have more than one name.
pub fn has_other_names(metadata: &Metadata) -> bool {
    family::has_other_names(metadata)
}

/// A relative path as archives have it: with slashes.
pub fn archived_name(path: &Path) -> Cow<'_, [u8]> {
    family::archived_name(path)
}

/// The path of a name that [`archived_name`] made.
pub fn path_of_name(name: &[u8]) -> Cow<'_, Path> {
    family::path_of_name(name)
}

/// Whether an error says that links lead in a circle.
pub fn is_circle(error: &io::Error) -> bool {
    family::is_circle(error)
}

/// Whether this process may read a file.
///
/// # Errors
///
/// It may not.
pub fn may_read(path: &Path) -> io::Result<()> {
    family::may_read(path)
}

/// Opens whatever has this path for reading, and never waits for it.
pub fn open_at_once(path: &Path) -> io::Result<File> {
    family::open_at_once(path)
}

/// Opens a regular file, and never waits for what has its path instead.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let file = open_at_once(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if metadata.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"))
    }
}

/// Reads at a place of a file; where the file's own place is afterwards is not defined.
pub fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    family::read_at(file, buffer, offset)
}

/// Fills the buffer from a place of a file.
///
/// # Errors
///
/// The file ends before ([`UnexpectedEof`](io::ErrorKind::UnexpectedEof)).
pub fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match read_at(file, buffer, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => {
                buffer = &mut buffer[length..];
                offset += length as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes everything at a place of a file; where the file's own place is afterwards is not defined.
pub fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    family::write_all_at(file, bytes, offset)
}

/// Takes room on the disk for a part of a file; it cannot be done everywhere.
pub fn reserve(file: &File, offset: u64, length: u64) -> io::Result<()> {
    own::reserve(file, offset, length)
}

/// Makes zeros of a part of a file, whose length stays; it cannot be done everywhere.
pub fn zero(file: &File, offset: u64, length: u64) -> io::Result<()> {
    own::zero(file, offset, length)
}

/// Makes the whole file system of a directory durable, where that is known to be durable for each of its files; says
/// whether it did.
pub fn sync_file_system(directory: &Path) -> io::Result<bool> {
    own::sync_file_system(directory)
}

/// Makes the names in a directory durable. Windows does that itself, in the order in which they were made.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    family::sync_directory(directory)
}

/// Renames a file unless something has the new name ([`AlreadyExists`](io::ErrorKind::AlreadyExists)).
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    own::rename_new(from, to)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_renamed_only_where_nothing_is() {
        for rename in [rename_new, portable::rename_new] {
            let directory = tempfile::tempdir().unwrap();
            let (from, to) = (directory.path().join("from"), directory.path().join("to"));
            fs::write(&from, "new").unwrap();
            fs::write(&to, "old").unwrap();
            assert_eq!(rename(&from, &to).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            assert_eq!((fs::read(&from).unwrap(), fs::read(&to).unwrap()), (b"new".to_vec(), b"old".to_vec()));
            fs::remove_file(&to).unwrap();
            rename(&from, &to).unwrap();
            assert_eq!(fs::read(&to).unwrap(), b"new");
            assert!(!from.exists());
        }
    }

    #[test]
    fn a_file_is_told_from_another_one_at_its_path() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let file = File::create(&path).unwrap();
        assert!(is_at(&file, &path).unwrap());
        fs::rename(&path, directory.path().join("other")).unwrap();
        assert_eq!(is_at(&file, &path).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::write(&path, "").unwrap();
        assert!(!is_at(&file, &path).unwrap());
    }

    #[test]
    fn bytes_are_read_and_written_at_their_place() {
        let file = tempfile::tempfile().unwrap();
        write_all_at(&file, b"0123456789", 0).unwrap();
        write_all_at(&file, b"ab", 4).unwrap();
        let mut part = [0; 4];
        read_exact_at(&file, &mut part, 3).unwrap();
        assert_eq!(&part, b"3ab6");
        let error = read_exact_at(&file, &mut part, 8).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(read_at(&file, &mut part, 10).unwrap(), 0);
    }

    #[test]
    fn a_program_is_the_first_executable_of_its_name() {
        let directory = tempfile::tempdir().unwrap();
        for (folder, mode) in [("a", 0o644), ("b", 0o755), ("c", 0o755)] {
            let folder = directory.path().join(folder);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("tool"), "").unwrap();
            set_mode(&folder.join("tool"), mode).unwrap();
        }
        let path = std::env::join_paths(["a", "b", "c"]).unwrap().into_string().unwrap();
        assert_eq!(find_program("tool", &path, directory.path()), Some(directory.path().join("b/tool")));
        assert_eq!(find_program("other", &path, directory.path()), None);
    }

    #[test]
    fn only_regular_files_are_opened() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "").unwrap();
        open_regular(&path).unwrap();
        assert_eq!(open_regular(directory.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        let socket = directory.path().join("socket");
        let _listens = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        open_regular(&socket).unwrap_err();
    }

    #[test]
    fn state_is_where_the_environment_says() {
        let of = |pairs: &[(&str, &str)]| {
            state_directory(&pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
        };
        let all = [("XDG_RUNTIME_DIR", "/run/me"), ("XDG_STATE_HOME", "/state"), ("HOME", "/home/me")];
        assert_eq!(of(&all), Path::new("/run/me"));
        assert_eq!(of(&all[1..]), Path::new("/state"));
        assert_eq!(of(&all[2..]), Path::new("/home/me/.local/state"));
        let data = |pairs: &[(&str, &str)]| {
            data_directory(&pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
        };
        assert_eq!(data(&[("XDG_DATA_HOME", "/data"), ("HOME", "/home/me")]).unwrap(), Path::new("/data"));
        assert_eq!(data(&[("HOME", "/home/me")]).unwrap(), Path::new("/home/me/.local/share"));
        assert_eq!(data(&[("HOME", "relative")]), None);
        assert_eq!(of(&[("HOME", "relative")]), std::env::temp_dir().join(format!("gloveport-{}", user_id().unwrap())));
    }
}
