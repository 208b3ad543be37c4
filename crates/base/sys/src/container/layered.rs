//! A root directory with a system of its own: a layer that takes what is changed, above one that many can have.
//!
//! Nothing in it is trusted, its links least of all. So it becomes the root first, and what is put into it comes afterwards:
//! by then a link leads to what is inside, whatever it says.

use std::{
    collections::BTreeMap,
    fs, io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, FileType},
    io::Errno,
    mount::{MountAttrFlags, UnmountFlags, unmount},
};

use super::{
    mounts::{self, Change},
    plan::{ContainerError, Place, Root},
    tree::{LINKS, SAFE, STAGE, make_link, make_point, own_file_systems, turn},
};

/// Where the two layers are while the root is made.
const LOWER: &str = "/usr/lower";
const CHANGES: &str = "/usr/changes";
/// Bytes of `/dev`, which has only names in it.
const DEVICES_SIZE: &str = "1m";
/// What tells addresses and names of hosts, which images leave to who runs them.
const TOLD: [&str; 2] = ["/etc/resolv.conf", "/etc/hosts"];
/// Directories that have nothing of the system in them.
const OWN: [&str; 3] = ["/proc", "/dev", "/sys"];

/// The two layers, and the files of the machine that every system needs. They have the names that they have while the root is
/// made, or in the end.
pub(super) fn places(root: &Root) -> impl Iterator<Item = Place> {
    let layers = [(LOWER, &root.lower, false), (CHANGES, &root.changes, true)];
    let layers =
        layers.map(|(target, source, is_written)| Place { target: target.into(), source: source.clone(), is_written });
    let told = TOLD.iter().filter_map(|name| {
        let source = fs::canonicalize(name).ok()?;
        Some(Place { target: name.into(), source, is_written: false })
    });
    layers.into_iter().chain(told)
}

/// Whether a place is one of the layers.
pub(super) fn is_layer(place: &Place) -> bool {
    [LOWER, CHANGES].iter().any(|name| place.target == Path::new(name))
}

/// Makes the root directory of this process of the two layers, and goes into it. A new file system is at the stage.
pub(super) fn enter(
    places: &[Place],
    mut opened: BTreeMap<usize, OwnedFd>,
    memory: Option<u64>,
) -> Result<(), ContainerError> {
    let at = |step: &'static str| move |error: Errno| ContainerError::step(step, &error);
    for (number, place) in places.iter().enumerate().filter(|(_, place)| is_layer(place)) {
        let failed = |error: io::Error| ContainerError::Place { path: place.source.clone(), reason: error.to_string() };
        let Some(mount) = opened.remove(&number) else { continue };
        fs::create_dir(&place.target).map_err(failed)?;
        mounts::put(&mount, &place.target).map_err(|error| failed(error.into()))?;
    }
    let (upper, work) = (format!("{CHANGES}/{}", Root::UPPER), format!("{CHANGES}/{}", Root::WORK));
    let options = [("lowerdir", LOWER), ("upperdir", &upper), ("workdir", &work), ("userxattr", "")];
    let root = mounts::make("overlay", &options, SAFE).map_err(|error| match error {
        Errno::NODEV => ContainerError::Refused("this kernel has no overlay file system; load the module `overlay`".to_owned()),
        Errno::PERM => ContainerError::Refused("this kernel makes layers for root alone; use Linux 5.11 or later".to_owned()),
        error => {
            let reason = format!(
                "{error}; the state directory must be on a file system that can hold changes of layers, such as ext4, xfs or \
                 btrfs, and not in the root of another container"
            );
            ContainerError::step("putting the layers above each other", &reason)
        }
    })?;
    let own = own_file_systems(memory)?;
    let devices = [("size", DEVICES_SIZE), ("mode", "0755")];
    let devices =
        mounts::make("tmpfs", &devices, MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC);
    let devices = devices.map_err(at("making /dev"))?;
    // What is above it keeps the layers.
    unmount(STAGE, UnmountFlags::DETACH).map_err(at("clearing the stage"))?;
    mounts::put(&root, Path::new(STAGE)).map_err(at("putting the root to its place"))?;
    drop(root);
    turn()?;
    for name in OWN {
        let is_link = fs::symlink_metadata(name).is_ok_and(|found| !found.is_dir());
        if is_link {
            let reason = "it is no directory in the root of the image, which cannot be used";
            return Err(ContainerError::Place { path: name.into(), reason: reason.to_owned() });
        }
    }
    put(Path::new("/dev"), &devices, true)?;
    for own in own {
        put(Path::new(own.place), &own.mount, true)?;
    }
    for (number, place) in places.iter().enumerate() {
        let Some(mount) = opened.remove(&number) else { continue };
        let failed = |error: Errno| ContainerError::Place { path: place.source.clone(), reason: error.to_string() };
        let kind = rustix::fs::fstat(&mount).map_err(failed)?.st_mode;
        put(&place.target, &mount, FileType::from_raw_mode(kind) == FileType::Directory)?;
    }
    let names = LINKS.map(|(name, target)| (PathBuf::from(name), Path::new(target)));
    for (name, target) in names.iter().filter(|(name, _)| name.starts_with("/dev")) {
        make_link(name, target)?;
    }
    let closed = Change {
        set: MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_RDONLY,
        is_deep: false,
        users: None,
    };
    mounts::change(CWD, c"/dev", closed).map_err(|error| ContainerError::step("closing /dev", &error))
}

/// Puts a mount to its place in the root. A link that is there for a file makes room, since it leads to nothing.
fn put(target: &Path, mount: &OwnedFd, is_directory: bool) -> Result<(), ContainerError> {
    let failed = |error: io::Error| {
        let reason = format!("it cannot be put into the root of the image: {error}");
        ContainerError::Place { path: target.to_owned(), reason }
    };
    if !is_directory && fs::symlink_metadata(target).is_ok_and(|found| found.is_symlink()) {
        fs::remove_file(target).map_err(failed)?;
    }
    if !(is_directory && target.is_dir()) {
        make_point(target, is_directory).map_err(failed)?;
    }
    mounts::put(mount, target).map_err(|error| failed(error.into()))
}
