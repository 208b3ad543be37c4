//! What Linux has beyond every Unix.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use rustix::{
    fs::{CWD, FallocateFlags, RenameFlags, fallocate, renameat_with},
    io::Errno,
};

/// File systems of which it is known that a sync of the whole is one of every file: ext4, XFS, Btrfs, F2FS, tmpfs and
/// overlays.
const SYNCED_WHOLE: [i64; 6] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994, 0x794C_7630];

pub(crate) fn boot_id() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

pub(crate) fn has_ipv6() -> bool {
    Path::new("/proc/sys/net/ipv6").exists()
}

pub(crate) fn reserve(file: &File, offset: u64, length: u64) -> io::Result<()> {
    Ok(fallocate(file, FallocateFlags::empty(), offset, length)?)
}

pub(crate) fn zero(file: &File, offset: u64, length: u64) -> io::Result<()> {
    Ok(fallocate(file, FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE, offset, length)?)
}

/// A thousand files one by one are a thousand commits of the file system, which take seconds on a busy machine; this is
/// one.
pub(crate) fn sync_file_system(directory: &Path) -> io::Result<bool> {
    let file = File::open(directory)?;
    let kind = rustix::fs::fstatfs(&file)?.f_type;
    if !SYNCED_WHOLE.contains(&kind) {
        return Ok(false);
    }
    rustix::fs::syncfs(&file)?;
    Ok(true)
}

pub(crate) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // The file system does not know the flag.
        Err(Errno::INVAL | Errno::NOSYS) => match to.symlink_metadata() {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => fs::rename(from, to),
        },
        other => Ok(other?),
    }
}
