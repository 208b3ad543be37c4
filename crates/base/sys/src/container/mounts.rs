//! System calls for mounts that the library does not have, and the loopback interface.

use std::{
    ffi::CStr,
    fs::File,
    io,
    os::fd::{AsFd, AsRawFd as _, OwnedFd},
    path::Path,
};

use libc::{c_long, c_uint};
use rustix::{
    fs::CWD,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, fsconfig_create, fsconfig_set_flag,
        fsconfig_set_string, fsmount, fsopen, move_mount,
    },
    net::{AddressFamily, SocketFlags, SocketType, socket_with},
};

/// What of a mount is changed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change<'a> {
    pub(super) set: MountAttrFlags,
    /// All mounts below it as well.
    pub(super) is_deep: bool,
    /// Files are stored under the numbers that these users see.
    pub(super) users: Option<&'a OwnedFd>,
}

/// Changes a mount that is open, or that has a name if the second is not empty.
pub(super) fn change(mount: impl AsFd, name: &CStr, change: Change<'_>) -> io::Result<()> {
    let mut attributes = libc::mount_attr {
        attr_set: u64::from(change.set.bits()),
        attr_clr: 0,
        propagation: libc::MS_PRIVATE,
        userns_fd: 0,
    };
    if let Some(users) = change.users {
        attributes.attr_set |= libc::MOUNT_ATTR_IDMAP;
        attributes.userns_fd = u64::try_from(users.as_raw_fd()).map_err(io::Error::other)?;
    }
    let mut flags = libc::AT_EMPTY_PATH.cast_unsigned();
    if change.is_deep {
        flags |= c_uint::try_from(libc::AT_RECURSIVE).map_err(io::Error::other)?;
    }
    // SAFETY: the name ends with a zero and the attributes are of the size that is told; both live until the end of the call.
    let changed = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            c_long::from(mount.as_fd().as_raw_fd()),
            name.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if changed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A new file system that is nowhere yet. An option without a value is a flag.
pub(super) fn make(kind: &str, options: &[(&str, &str)], attributes: MountAttrFlags) -> rustix::io::Result<OwnedFd> {
    let made = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        match *value {
            "" => fsconfig_set_flag(made.as_fd(), *name)?,
            value => fsconfig_set_string(made.as_fd(), *name, value)?,
        }
    }
    fsconfig_create(made.as_fd())?;
    fsmount(made.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Puts a mount that is nowhere yet to a place.
pub(super) fn put(mount: impl AsFd, place: &Path) -> rustix::io::Result<()> {
    move_mount(mount.as_fd(), "", CWD, place, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

/// The users of a process.
pub(super) fn open_users_of(pid: u32) -> io::Result<OwnedFd> {
    File::open(format!("/proc/{pid}/ns/user")).map(OwnedFd::from)
}

/// Turns on the loopback interface of a network that has nothing else.
pub(super) fn loopback_up() -> io::Result<()> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: all-zero bytes are a valid value of this structure of numbers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(libc::IFF_UP).map_err(io::Error::other)?;
    // SAFETY: the request is complete and lives until the end of the call.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
