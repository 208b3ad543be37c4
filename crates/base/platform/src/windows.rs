//! Windows.

use std::{
    borrow::Cow,
    fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions},
    io,
    os::windows::fs::FileExt as _,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use same_file::Handle;

pub(crate) const HOME: &str = "USERPROFILE";

/// What the name of a program may lack.
const EXTENSIONS: [&str; 2] = ["", ".exe"];
/// The permissions of every file, as Docker's command line gives them to what it sends from here.
const MODE: u32 = 0o755;

pub(crate) fn user_id() -> Option<u32> {
    None
}

pub(crate) fn state_directory(directory: &dyn Fn(&str) -> Option<PathBuf>) -> PathBuf {
    directory("LOCALAPPDATA")
        .or_else(|| directory(HOME).map(|home| home.join("AppData").join("Local")))
        // That of the user, too.
        .unwrap_or_else(std::env::temp_dir)
}

pub(crate) fn data_directory(directory: &dyn Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    directory("APPDATA").or_else(|| directory(HOME).map(|home| home.join("AppData").join("Roaming")))
}

pub(crate) fn device(_path: &Path) -> Option<u64> {
    None
}

pub(crate) fn free_space(_path: &Path) -> Option<u64> {
    None
}

pub(crate) fn private_file() -> OpenOptions {
    OpenOptions::new()
}

pub(crate) fn private_directory() -> DirBuilder {
    DirBuilder::new()
}

pub(crate) fn usual_permissions() -> Option<Permissions> {
    None
}

pub(crate) fn may_run(_metadata: &Metadata) -> bool {
    true
}

pub(crate) fn names_of_program(program: &str) -> impl Iterator<Item = String> + use<> {
    let program = program.to_owned();
    EXTENSIONS.into_iter().map(move |extension| format!("{program}{extension}"))
}

pub(crate) fn mode(_metadata: &Metadata) -> u32 {
    MODE
}

pub(crate) fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::metadata(path)?;
    if mode == MODE {
        return Ok(());
    }
    let text = format!("files of Windows cannot have the mode {mode:o}; do this on Linux or macOS");
    Err(io::Error::new(io::ErrorKind::Unsupported, text))
}

pub(crate) fn modified(metadata: &Metadata) -> (i64, u32) {
    let Ok(modified) = metadata.modified() else { return (0, 0) };
    match modified.duration_since(UNIX_EPOCH) {
        Ok(after) => (i64::try_from(after.as_secs()).unwrap_or(i64::MAX), after.subsec_nanos()),
        Err(before) => {
            let before = before.duration();
            let seconds = i64::try_from(before.as_secs()).map_or(i64::MIN, |seconds| -seconds);
            match before.subsec_nanos() {
                0 => (seconds, 0),
                nanoseconds => (seconds.saturating_sub(1), 1_000_000_000 - nanoseconds),
            }
        }
    }
}

pub(crate) fn link_to_file(target: &Path, link: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_file(target, link).map_err(|error| {
        let text = format!("{error}; Windows allows links to administrators, and to everybody in its developer mode");
        io::Error::new(error.kind(), text)
    })
}

pub(crate) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    if path.symlink_metadata()?.is_symlink() {
        return Ok(false);
    }
    Ok(Handle::from_file(file.try_clone()?)? == Handle::from_path(path)?)
}

pub(crate) fn owner(_metadata: &Metadata) -> (u32, u32) {
    (0, 0)
}

pub(crate) fn identity(_metadata: &Metadata) -> Option<(u64, u64)> {
    None
}

pub(crate) fn has_other_names(_metadata: &Metadata) -> bool {
    false
}

/// What of a name is no Unicode is replaced: no archive for Linux could say it.
pub(crate) fn archived_name(path: &Path) -> Cow<'_, [u8]> {
    Cow::Owned(path.to_string_lossy().replace('\\', "/").into_bytes())
}

pub(crate) fn path_of_name(name: &[u8]) -> Cow<'_, Path> {
    Cow::Owned(PathBuf::from(String::from_utf8_lossy(name).into_owned()))
}

/// `ERROR_CANT_RESOLVE_FILENAME`.
pub(crate) fn is_circle(error: &io::Error) -> bool {
    error.raw_os_error() == Some(1921)
}

pub(crate) fn may_read(path: &Path) -> io::Result<()> {
    File::open(path).map(drop)
}

/// Nothing that has a path here makes its reader wait before it is opened.
pub(crate) fn open_at_once(path: &Path) -> io::Result<File> {
    File::open(path)
}

pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek_read(buffer, offset)
}

pub(crate) fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.seek_write(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(length) => {
                bytes = &bytes[length..];
                offset += length as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    // The directory must be there; a handle of it cannot be synced.
    fs::metadata(directory).map(drop)
}
