//! The root directory of a container.

use std::{
    collections::BTreeMap,
    fs, io,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::fs::symlink,
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, openat},
    io::Errno,
    mount::{MountAttrFlags, MountPropagationFlags, OpenTreeFlags, UnmountFlags, mount_change, open_tree, unmount},
    process::{Gid, Uid, pivot_root},
    thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid},
};

use super::{
    layered,
    mounts::{self, Change},
    plan::{Container, ContainerError, Place},
    users::{self, Users},
};
use crate::confined::system_places;

/// Where the new root is while it is made: a directory of every machine, which this process sees no more by then.
pub(super) const STAGE: &str = "/usr";
/// Devices of the machine that change nothing of it.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
/// Names that programs know.
pub(super) const LINKS: [(&str, &str); 8] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/ptmx", "pts/ptmx"),
    ("/var/tmp", "../tmp"),
    ("/var/run", "../run"),
    ("/etc/mtab", "../proc/self/mounts"),
];
/// Bytes in the directories that only have names in them.
const ROOT_SIZE: &str = "4m";
/// Most bytes and files of `/dev/shm`, where programs share memory; half of the memory that a container may have, if that is
/// less: what fills it up is nobody's, and another process would end for it.
const SHARED_SIZE: u64 = 512 << 20;
const SHARED_FILES: &str = "65536";

pub(super) const SAFE: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);

/// All places in the order in which they are put to theirs: what is in another one comes after it.
pub(super) fn places(container: &Container) -> Vec<Place> {
    let read = |place: &Path| Place { target: place.to_owned(), source: place.to_owned(), is_written: false };
    let mut found = BTreeMap::new();
    if let Some(root) = &container.root {
        found.extend(layered::places(root).map(|place| (place.target.clone(), place)));
    }
    let is_given = |place: &&Path| container.root.is_none() || *place == Path::new("/sys");
    for place in system_places().filter(|place| *place != Path::new("/proc")).filter(is_given) {
        if fs::symlink_metadata(place).is_ok_and(|found| !found.is_symlink()) {
            found.insert(place.to_owned(), read(place));
        }
    }
    for device in DEVICES.map(Path::new).into_iter().filter(|device| device.exists()) {
        found.insert(device.to_owned(), read(device));
    }
    // Who tells addresses is often told by a file elsewhere.
    let tells = fs::canonicalize("/etc/resolv.conf").ok().filter(|_| container.root.is_none());
    if let Some(file) = tells.filter(|file| !found.keys().any(|place| file.starts_with(place))) {
        found.insert(file.clone(), read(&file));
    }
    // What was asked for counts more, and what is written more than what is read.
    for place in container.places.iter().filter(|place| !place.is_written) {
        let is_in = |other: &&Place| {
            let has_its_name = other.source == other.target;
            has_its_name && *other != place && place.target.starts_with(&other.target)
        };
        // One with another name is not that of the machine.
        if place.source != place.target || !container.places.iter().any(|other| is_in(&other)) {
            found.insert(place.target.clone(), place.clone());
        }
    }
    for place in container.places.iter().filter(|place| place.is_written) {
        found.insert(place.target.clone(), place.clone());
    }
    found.into_values().collect()
}

/// Opens a place so that it can be put elsewhere, under the numbers of these users if it is written.
pub(super) fn open(place: &Place, users: Option<&OwnedFd>) -> Result<OwnedFd, ContainerError> {
    let failed = |reason: String| ContainerError::Place { path: place.source.clone(), reason };
    let io = |error: io::Error| failed(error.to_string());
    let opened = openat(CWD, &place.source, OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty());
    let opened = opened.map_err(|error| io(error.into()))?;
    // It was looked at under this name, which had no links on its way.
    let real = fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd())).map_err(io)?;
    if real != place.source {
        return Err(failed(format!("it leads to {} by now", real.display())));
    }
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    let tree = open_tree(&opened, "", flags).map_err(|error| match users::refusal_inside(users.is_some()) {
        Some(unsupported) if error == Errno::PERM => unsupported.into(),
        _ if error == Errno::NOSYS => users::TOO_OLD.into(),
        _ => io(error.into()),
    })?;
    let is_device = DEVICES.iter().any(|device| place.target == Path::new(device));
    let set = match (place.is_written, is_device) {
        (true, _) => SAFE,
        (false, true) => MountAttrFlags::MOUNT_ATTR_NOSUID,
        (false, false) => SAFE | MountAttrFlags::MOUNT_ATTR_RDONLY,
    };
    let users = users.filter(|_| place.is_written || layered::is_layer(place));
    mounts::change(&tree, c"", Change { set, is_deep: true, users }).map_err(|error| {
        if users.is_some() && error.raw_os_error() == Some(libc::EINVAL) {
            let place = place.source.display();
            return ContainerError::Refused(format!(
                "the file system of {place}, or one in it, cannot store files under the numbers that root has in a container; \
                 use a directory on ext4, xfs or btrfs, or another user than root"
            ));
        }
        if error.raw_os_error() == Some(libc::ENOSYS) { users::TOO_OLD.into() } else { io(error) }
    })?;
    Ok(tree)
}

/// Makes the root directory of this process, which has namespaces and users of its own, and goes into it. What was given is
/// open already, by its number among the [`places`].
pub(super) fn enter(
    places: &[Place],
    given: Vec<(usize, OwnedFd)>,
    users: &Users,
    container: &Container,
) -> Result<(), ContainerError> {
    let is_layered = container.root.is_some();
    let at = |step: &'static str| move |error: Errno| ContainerError::step(step, &error);
    let mut opened: BTreeMap<usize, OwnedFd> = given.into_iter().collect();
    if !users.are_mapped() {
        for (number, place) in places.iter().enumerate() {
            opened.insert(number, open(place, None)?);
        }
    }
    let links: Vec<(PathBuf, PathBuf)> =
        system_places().filter_map(|place| Some((place.to_owned(), fs::read_link(place).ok()?))).collect();
    if users.are_mapped() || users.are_many() {
        let (user, group) = (Uid::ROOT, Gid::ROOT);
        set_thread_groups(&[]).map_err(at("giving up groups"))?;
        set_thread_res_gid(group, group, group).map_err(at("becoming root of the container"))?;
        set_thread_res_uid(user, user, user).map_err(at("becoming root of the container"))?;
    }
    let quiet = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", quiet).map_err(|error| match users::refusal_inside(false) {
        Some(unsupported) if !users.are_mapped() && matches!(error, Errno::PERM | Errno::ACCESS) => unsupported.into(),
        _ => at("making mounts its own")(error),
    })?;
    let root = mounts::make("tmpfs", &[("size", ROOT_SIZE), ("mode", "0755")], SAFE).map_err(at("making a root"))?;
    mounts::put(&root, Path::new(STAGE)).map_err(at("putting the root to its place"))?;
    drop(root);
    if is_layered {
        return layered::enter(places, opened, container.amounts.memory);
    }
    for (number, place) in places.iter().enumerate() {
        let Some(mount) = opened.remove(&number) else { continue };
        let failed = |error: io::Error| ContainerError::Place { path: place.source.clone(), reason: error.to_string() };
        let target = staged(&place.target).ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        let kind = rustix::fs::fstat(&mount).map_err(|error| failed(error.into()))?.st_mode;
        let is_directory = FileType::from_raw_mode(kind) == FileType::Directory;
        make_point(&target, is_directory).map_err(failed)?;
        mounts::put(&mount, &target).map_err(|error| failed(error.into()))?;
    }
    for own in own_file_systems(container.amounts.memory)? {
        let failed = |error: &dyn std::fmt::Display| ContainerError::step(&format!("making {}", own.place), error);
        let Some(target) = staged(Path::new(own.place)) else { continue };
        make_point(&target, true).map_err(|error| failed(&error))?;
        mounts::put(&own.mount, &target).map_err(|error| failed(&error))?;
    }
    for (name, target) in links.iter().map(|(name, target)| (name.as_path(), target.as_path())) {
        link(name, target)?;
    }
    for (name, target) in LINKS {
        link(Path::new(name), Path::new(target))?;
    }
    for directory in ["/run", "/home", "/var/lib", "/mnt"] {
        if let Some(directory) = staged(Path::new(directory)) {
            fs::create_dir_all(directory).map_err(|error| ContainerError::step("making a directory", &error))?;
        }
    }
    turn()?;
    let closed = Change { set: SAFE | MountAttrFlags::MOUNT_ATTR_RDONLY, is_deep: false, users: None };
    mounts::change(CWD, c"/", closed).map_err(|error| ContainerError::step("closing the root", &error))
}

/// Makes what is staged the root directory, and leaves the old one.
pub(super) fn turn() -> Result<(), ContainerError> {
    let at = |step: &'static str| move |error: Errno| ContainerError::step(step, &error);
    rustix::process::chdir(STAGE).map_err(at("going to the root"))?;
    pivot_root(".", ".").map_err(at("pivot_root"))?;
    // The old one is above the new one now.
    unmount(".", UnmountFlags::DETACH).map_err(at("leaving the old root"))?;
    rustix::process::chdir("/").map_err(at("going to the root"))
}

/// A file system of the container that is nowhere yet.
pub(super) struct Own {
    pub(super) place: &'static str,
    pub(super) mount: OwnedFd,
}

/// `/proc`, terminals, shared memory and queues. They are made while those of the machine are still to be seen, which the
/// kernel asks for.
pub(super) fn own_file_systems(memory: Option<u64>) -> Result<Vec<Own>, ContainerError> {
    let no_programs = SAFE | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let size = memory.map_or(SHARED_SIZE, |bytes| SHARED_SIZE.min(bytes / 2)).to_string();
    let shared = [("size", &*size), ("nr_inodes", SHARED_FILES), ("mode", "1777")];
    let terminals = [("mode", "0620"), ("ptmxmode", "0666")];
    let mut made = Vec::new();
    for (kind, place, options, attributes) in [
        ("proc", "/proc", &[][..], no_programs),
        // Terminals are devices.
        ("devpts", "/dev/pts", &terminals, MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC),
        ("tmpfs", "/dev/shm", &shared, SAFE),
        ("mqueue", "/dev/mqueue", &[], no_programs),
    ] {
        match mounts::make(kind, options, attributes) {
            Ok(mount) => made.push(Own { place, mount }),
            // A kernel may be built without them.
            Err(Errno::NODEV) if kind == "mqueue" => {}
            Err(Errno::PERM) if kind == "proc" => {
                return Err(crate::confined::Unsupported {
                    reason: "this process sees a part of /proc only, so that it may not make a whole one",
                    remedy: "it is in a container, most likely, whose engine hides the rest (Docker's --privileged and \
                             Podman's --security-opt unmask=ALL show it)",
                }
                .into());
            }
            Err(error) => return Err(ContainerError::step(&format!("making {place}"), &error)),
        }
    }
    Ok(made)
}

fn link(name: &Path, target: &Path) -> Result<(), ContainerError> {
    staged(name).map_or(Ok(()), |name| make_link(&name, target))
}

/// The same, where the name is the last one.
pub(super) fn make_link(name: &Path, target: &Path) -> Result<(), ContainerError> {
    let made = name.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| symlink(target, name));
    match made {
        // What the machine has itself.
        Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::ReadOnlyFilesystem) => {
            Ok(())
        }
        made => made.map_err(|error| ContainerError::step(&format!("making {}", name.display()), &error)),
    }
}

/// Makes what a mount is put on, unless it is there.
pub(super) fn make_point(place: &Path, is_directory: bool) -> io::Result<()> {
    if fs::symlink_metadata(place).is_ok_and(|found| found.is_dir() == is_directory && !found.is_symlink()) {
        return Ok(());
    }
    if is_directory {
        return fs::create_dir_all(place);
    }
    if let Some(directory) = place.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::OpenOptions::new().write(true).create_new(true).open(place).map(|_| ())
}

/// Where a place is while the root is made; `None` for one that is not named from the root, or leads upwards.
fn staged(place: &Path) -> Option<PathBuf> {
    let mut staged = PathBuf::from(STAGE);
    for part in place.components() {
        match part {
            Component::RootDir => {}
            Component::Normal(name) => staged.push(name),
            Component::CurDir | Component::ParentDir | Component::Prefix(_) => return None,
        }
    }
    place.is_absolute().then_some(staged)
}

#[cfg(test)]
mod tests {
    use super::{super::plan::Network, *};
    use crate::amounts::Amounts;

    #[test]
    fn what_is_in_another_place_comes_after_it_and_what_is_written_counts_more() {
        let place =
            |target: &str, source: &str, is_written| Place { target: target.into(), source: source.into(), is_written };
        let container = Container {
            root: None,
            places: vec![
                place("/home/me/work/in", "/home/me/work/in", false),
                place("/home/me/work", "/home/me/work", true),
                place("/home/me/.cargo/bin", "/home/me/.cargo/bin", false),
                place("/home/me", "/state/own/home", true),
                place("/usr/local/work", "/usr/local/work", true),
            ],
            network: Network::Machine,
            processes: None,
            amounts: Amounts::default(),
            nests: false,
        };
        let found = places(&container);
        let at = |target: &str| found.iter().position(|place| place.target == Path::new(target));
        assert!(at("/home/me").unwrap() < at("/home/me/.cargo/bin").unwrap());
        assert!(at("/home/me").unwrap() < at("/home/me/work").unwrap());
        assert!(at("/usr").unwrap() < at("/usr/local/work").unwrap());
        assert_eq!((at("/home/me/work/in"), at("/proc")), (None, None));
        assert!(!found[at("/usr").unwrap()].is_written && found[at("/home/me/work").unwrap()].is_written);
    }

    #[test]
    fn places_have_names_from_the_root_that_lead_nowhere_else() {
        assert_eq!(staged(Path::new("/a/b")), Some("/usr/a/b".into()));
        assert_eq!(staged(Path::new("/a/../b")), None);
        assert_eq!(staged(Path::new("a")), None);
    }
}
