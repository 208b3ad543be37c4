//! The server's files for its user (`ipython-and-plugins` 4.2, step 1).

use std::{io, os::fd::OwnedFd, path::Path};

use gloveport_sys::Identity;
use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Uid, chownat, openat, statat},
    io::Errno,
};
use tokio_util::sync::CancellationToken;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Deepest directory that is entered; each one on the way is open.
const DEEPEST: usize = 64;

/// Gives a directory and all beneath it to a user, unless it is the user's already or may not be given away. No link is
/// followed, so nothing outside is given away whatever happens meanwhile.
pub(crate) fn give(path: &Path, identity: &Identity, stop: &CancellationToken) -> io::Result<()> {
    let root = match openat(CWD, path, DIRECTORY, Mode::empty()) {
        Ok(root) => root,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if !rustix::process::geteuid().is_root() || rustix::fs::fstat(&root)?.st_uid == identity.uid {
        return Ok(());
    }
    let owner = (Some(Uid::from_raw(identity.uid)), Some(Gid::from_raw(identity.gid)));
    give_entries(&root, owner, DEEPEST, stop)?;
    // Last, as it tells the next start that all is done.
    rustix::fs::fchown(&root, owner.0, owner.1)?;
    Ok(())
}

fn give_entries(
    directory: &OwnedFd,
    owner: (Option<Uid>, Option<Gid>),
    depth: usize,
    stop: &CancellationToken,
) -> io::Result<()> {
    for entry in Dir::read_from(directory)? {
        if stop.is_cancelled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let found = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(found.st_mode) == FileType::Directory && depth > 0 {
            give_entries(&openat(directory, name, DIRECTORY, Mode::empty())?, owner, depth - 1, stop)?;
        }
        chownat(directory, name, owner.0, owner.1, AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{MetadataExt as _, symlink},
    };

    use super::*;

    #[test]
    fn all_beneath_a_directory_is_given_and_nothing_that_links_lead_to() {
        if !rustix::process::geteuid().is_root() {
            // Only root can give files away; that they stay is the whole promise for everybody else.
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let (root, outside) = (directory.path().join("root"), directory.path().join("outside"));
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(root.join("a/b/file"), "").unwrap();
        fs::write(outside.join("file"), "").unwrap();
        symlink(&outside, root.join("a/link")).unwrap();
        let identity = Identity { uid: 54321, gid: 54322, groups: Vec::new() };
        let stop = CancellationToken::new();
        give(&root, &identity, &stop).unwrap();
        for path in [root.clone(), root.join("a"), root.join("a/b"), root.join("a/b/file"), root.join("a/link")] {
            let found = fs::symlink_metadata(&path).unwrap();
            assert_eq!((found.uid(), found.gid()), (54321, 54322), "{}", path.display());
        }
        for path in [outside.clone(), outside.join("file")] {
            assert_eq!(fs::metadata(&path).unwrap().uid(), 0, "{}", path.display());
        }
        // What is the user's already is left alone.
        fs::write(root.join("a/later"), "").unwrap();
        give(&root, &identity, &stop).unwrap();
        assert_eq!(fs::metadata(root.join("a/later")).unwrap().uid(), 0);
        give(&directory.path().join("none"), &identity, &stop).unwrap();
    }
}
