//! Mode, owner and extended attributes of a file.

use std::{
    fs::File,
    io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown},
};

use rustix::{fs::XattrFlags, io::Errno};

use super::NewFile;

/// Most bytes of all names, and of one value (the kernel's own bound).
const XATTR_LIMIT: usize = 65_536;

/// Gives `to` what `from` has. False if something of it can not be kept.
pub(super) fn copy(from: &File, to: &File) -> io::Result<bool> {
    let (old, new) = (from.metadata()?, to.metadata()?);
    if (old.uid(), old.gid()) != (new.uid(), new.gid()) && fchown(to, Some(old.uid()), Some(old.gid())).is_err() {
        return Ok(false);
    }
    // Behind the owner, because a change of the owner clears bits of the mode.
    to.set_permissions(std::fs::Permissions::from_mode(old.mode() & 0o7777))?;
    copy_extended(from, to)
}

fn copy_extended(from: &File, to: &File) -> io::Result<bool> {
    let mut names = vec![0; 1024];
    let length = match rustix::fs::flistxattr(from, names.as_mut_slice()) {
        Err(Errno::RANGE) => {
            names.resize(XATTR_LIMIT, 0);
            rustix::fs::flistxattr(from, names.as_mut_slice())?
        }
        Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(true),
        other => other?,
    };
    if length == 0 {
        return Ok(true);
    }
    let mut value = vec![0; XATTR_LIMIT];
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let read = match rustix::fs::fgetxattr(from, name, value.as_mut_slice()) {
            Ok(read) => read,
            // Removed meanwhile.
            Err(Errno::NODATA) => continue,
            Err(_) => return Ok(false),
        };
        let mut present = vec![0; read];
        let same = rustix::fs::fgetxattr(to, name, present.as_mut_slice()) == Ok(read) && present == value[..read];
        if !same && rustix::fs::fsetxattr(to, name, &value[..read], XattrFlags::empty()).is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Gives a new file what it is to have.
pub(super) fn set(file: &File, new: NewFile) -> io::Result<()> {
    if let Some((user, group)) = new.owner {
        let has = file.metadata()?;
        if (has.uid(), has.gid()) != (user, group) {
            fchown(file, Some(user), Some(group))?;
        }
    }
    if let Some(mode) = new.mode {
        file.set_permissions(std::fs::Permissions::from_mode(mode & 0o7777))?;
    }
    Ok(())
}

/// Takes the set-user-ID and set-group-ID bits and the capabilities away. A name for somebody else's program must not become one for a
/// program of whoever writes to it.
pub(super) fn drop_privileges(file: &File) -> io::Result<()> {
    let mode = file.metadata()?.mode() & 0o7777;
    if mode & 0o6000 != 0 {
        file.set_permissions(std::fs::Permissions::from_mode(mode & 0o1777))?;
    }
    match rustix::fs::fremovexattr(file, "security.capability") {
        Err(error) if !matches!(error, Errno::NODATA | Errno::NOTSUP | Errno::NOSYS) => Err(error.into()),
        _ => Ok(()),
    }
}
