//! The rights of one thread to files.
//!
//! The kernel keeps an identity for files apart from the one that decides about signals and tracing, and it keeps it for
//! each thread. So a thread of a server can work on files as a user, and that user can do nothing to the thread.

#![expect(unsafe_code, reason = "no safe library offers the identity of a thread for files")]

use std::io;

use rustix::{
    process::{Gid, getegid, geteuid},
    thread::{CapabilitySet, capabilities, set_capabilities, set_thread_groups},
};

use crate::spawn::Identity;

/// What such a thread keeps of its capabilities: to start programs as the user, and to end them.
const KEPT: CapabilitySet = CapabilitySet::SETUID.union(CapabilitySet::SETGID).union(CapabilitySet::KILL);

/// Gives the current thread, and those that it starts from now on, the rights of a user to files, for good. All other
/// threads keep what they have. Nothing changes if the process has this identity already.
///
/// # Errors
///
/// This process may not do that (`EPERM`). The thread may have lost rights then, and has gained none.
pub fn take_on(identity: &Identity) -> io::Result<()> {
    if (geteuid().as_raw(), getegid().as_raw()) == (identity.uid, identity.gid) {
        return Ok(());
    }
    let groups: Vec<Gid> = identity.groups.iter().map(|group| Gid::from_raw(*group)).collect();
    set_thread_groups(&groups)?;
    // SAFETY: both take a number and touch nothing but the credentials of this thread. What is no identity, as this
    // number, changes nothing; they return what was before.
    let (uid, gid) = unsafe {
        libc::setfsgid(identity.gid);
        libc::setfsuid(identity.uid);
        (libc::setfsuid(libc::uid_t::MAX), libc::setfsgid(libc::gid_t::MAX))
    };
    if (uid.cast_unsigned(), gid.cast_unsigned()) != (identity.uid, identity.gid) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    // The kernel takes those about files by itself, but not from a process that asked it not to.
    let mut sets = capabilities(None)?;
    sets.effective &= KEPT;
    sets.inheritable = CapabilitySet::empty();
    Ok(set_capabilities(None, sets)?)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{MetadataExt as _, PermissionsExt as _},
        thread,
    };

    use super::*;

    const NOBODY: u32 = 65_534;

    #[test]
    fn a_thread_has_the_rights_of_the_user_and_the_others_keep_theirs() {
        if !geteuid().is_root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let (secret, shared, made) =
            (directory.path().join("secret"), directory.path().join("shared"), directory.path().join("made"));
        for (path, mode) in [(&secret, 0o600), (&shared, 0o660)] {
            fs::write(path, "text").unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        std::os::unix::fs::chown(&shared, None, Some(4_242)).unwrap();
        let (its_secret, its_shared, its_made) = (secret.clone(), shared.clone(), made.clone());
        let user = Identity { uid: NOBODY, gid: NOBODY, groups: vec![NOBODY, 4_242] };
        let work = move || {
            take_on(&user).unwrap();
            fs::write(its_made, "text").unwrap();
            // A thread of a thread has the same rights.
            let inherited = thread::spawn({
                let secret = its_secret.clone();
                move || fs::read(secret).map_err(|error| error.kind())
            });
            (
                fs::read(its_secret).map_err(|error| error.kind()),
                inherited.join().unwrap(),
                fs::read(its_shared).unwrap(),
            )
        };
        let (own, inherited, by_group) = thread::spawn(work).join().unwrap();
        assert_eq!([own, inherited], [Err(io::ErrorKind::PermissionDenied), Err(io::ErrorKind::PermissionDenied)]);
        assert_eq!(by_group, b"text");
        let made = fs::metadata(made).unwrap();
        assert_eq!((made.uid(), made.gid()), (NOBODY, NOBODY));
        assert_eq!(fs::read(secret).unwrap(), b"text");
    }

    #[test]
    fn the_identity_of_the_process_changes_nothing() {
        let own = Identity { uid: geteuid().as_raw(), gid: getegid().as_raw(), groups: Vec::new() };
        let before = capabilities(None).unwrap();
        take_on(&own).unwrap();
        assert_eq!(capabilities(None).unwrap(), before);
    }
}
