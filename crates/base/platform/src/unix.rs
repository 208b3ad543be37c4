//! What every Unix has.

use std::{
    borrow::Cow,
    ffi::OsStr,
    fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions},
    io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Access, AtFlags, CWD, OFlags},
    io::Errno,
};

pub(crate) const HOME: &str = "HOME";

#[expect(clippy::unnecessary_wraps, reason = "not every family of systems has such numbers")]
pub(crate) fn user_id() -> Option<u32> {
    Some(rustix::process::getuid().as_raw())
}

pub(crate) fn state_directory(directory: &dyn Fn(&str) -> Option<PathBuf>) -> PathBuf {
    directory("XDG_RUNTIME_DIR")
        .or_else(|| directory("XDG_STATE_HOME"))
        .or_else(|| directory(HOME).map(|home| home.join(".local/state")))
        .unwrap_or_else(|| std::env::temp_dir().join(format!("gloveport-{}", rustix::process::getuid().as_raw())))
}

pub(crate) fn data_directory(directory: &dyn Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    directory("XDG_DATA_HOME").or_else(|| directory(HOME).map(|home| home.join(".local/share")))
}

pub(crate) fn device(path: &Path) -> Option<u64> {
    Some(fs::metadata(path).ok()?.dev())
}

pub(crate) fn free_space(path: &Path) -> Option<u64> {
    let space = rustix::fs::statvfs(path).ok()?;
    Some(space.f_bavail.saturating_mul(space.f_frsize))
}

pub(crate) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

pub(crate) fn private_directory() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

#[expect(clippy::unnecessary_wraps, reason = "not every family of systems has such permissions")]
pub(crate) fn usual_permissions() -> Option<Permissions> {
    Some(Permissions::from_mode(0o666))
}

pub(crate) fn may_run(metadata: &Metadata) -> bool {
    metadata.mode() & 0o111 != 0
}

pub(crate) fn names_of_program(program: &str) -> impl Iterator<Item = String> + use<> {
    std::iter::once(program.to_owned())
}

pub(crate) fn mode(metadata: &Metadata) -> u32 {
    metadata.mode() & 0o7777
}

pub(crate) fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
}

pub(crate) fn modified(metadata: &Metadata) -> (i64, u32) {
    (metadata.mtime(), u32::try_from(metadata.mtime_nsec()).unwrap_or(0))
}

pub(crate) fn link_to_file(target: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

pub(crate) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let (file, named) = (file.metadata()?, path.symlink_metadata()?);
    Ok((named.dev(), named.ino()) == (file.dev(), file.ino()))
}

pub(crate) fn owner(metadata: &Metadata) -> (u32, u32) {
    (metadata.uid(), metadata.gid())
}

#[expect(clippy::unnecessary_wraps, reason = "not every family of systems tells it")]
pub(crate) fn identity(metadata: &Metadata) -> Option<(u64, u64)> {
    Some((metadata.dev(), metadata.ino()))
}

pub(crate) fn has_other_names(metadata: &Metadata) -> bool {
    metadata.nlink() > 1
}

pub(crate) fn archived_name(path: &Path) -> Cow<'_, [u8]> {
    Cow::Borrowed(path.as_os_str().as_bytes())
}

pub(crate) fn path_of_name(name: &[u8]) -> Cow<'_, Path> {
    Cow::Borrowed(Path::new(OsStr::from_bytes(name)))
}

pub(crate) fn is_circle(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

pub(crate) fn may_read(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS)?)
}

pub(crate) fn open_at_once(path: &Path) -> io::Result<File> {
    // What these flags are in the type of the system's call differs between systems, and so does a cast's use.
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).map_err(io::Error::other)?;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(buffer, offset)
}

pub(crate) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(bytes, offset)
}

pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
