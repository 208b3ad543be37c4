//! What is in the directory of a sandbox, and how that ends: by a rename to where it is garbage, so that it has lost its
//! name before anything of it goes.

use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};
use serde::{Deserialize, Serialize};

/// What a sandbox is.
pub const RECORD: &str = "sandbox.json";
/// The form of that file.
pub const VERSION: u32 = 1;
/// The lock of a sandbox.
pub const LOCK: &str = "lock";
/// The log of its server.
pub const LOG: &str = "log";
/// The part of the log before it.
pub const EARLIER_LOG: &str = "log.1";
/// Made by the server while it is paused.
pub const PAUSED: &str = "paused";
/// Made by the server when it ends without being deleted; holds the reason.
pub const ENDED: &str = "ended";
/// Directory, beside that of the sandboxes, of what is being removed.
pub const OLD: &str = "old";
/// What a sandbox that is kept to a part of the machine has for itself: its home, its temporary files, and the work in it.
/// Its name is short, as sockets in it have long ones.
pub const PLACE: &str = "own";
/// In that place: the home directory of the tools.
pub const OWN_HOME: &str = "home";
/// Their temporary files.
pub const OWN_TEMPORARY: &str = "tmp";
/// Where they work, if no directory is given.
pub const OWN_WORK: &str = "work";
/// What is changed in a root directory that others have as well.
pub const OWN_CHANGES: &str = "changes";
/// What its engine needs, where programs run on a kernel of their own. They do not see it.
pub const OWN_ENGINE: &str = "engine";
/// In that place: what programs trust ([`TRUST`]).
pub const OWN_TRUST: &str = "trust";
/// The name of that directory in a container.
pub const TRUST: &str = "/run/gloveport/trust";
/// The port of the loopback interface of a container's own network on which its way out is.
pub const GATE: u16 = 3128;

/// The part of [`RECORD`] that both sides read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedWorkspace {
    /// The directory that tools start in.
    pub workspace: PathBuf,
    /// It ends with the sandbox.
    pub temporary: bool,
}

impl RecordedWorkspace {
    /// Reads it from the directory of a sandbox; `None` if there is no record.
    ///
    /// # Errors
    ///
    /// The record cannot be read, or has another form.
    pub fn read(directory: &Path) -> io::Result<Option<Self>> {
        #[derive(Deserialize)]
        struct Form {
            version: u32,
            #[serde(flatten)]
            workspace: RecordedWorkspace,
        }
        let path = directory.join(RECORD);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let form: Form = serde_json::from_str(&text)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display())))?;
        if form.version == VERSION {
            return Ok(Some(form.workspace));
        }
        let reason = format!("{} has the form {}, and not {VERSION}", path.display(), form.version);
        Err(io::Error::new(io::ErrorKind::InvalidData, reason))
    }
}

/// Gives a directory another path at which nothing is; whether nothing was.
///
/// # Errors
///
/// The directory cannot be renamed.
pub fn move_unless_there(from: &Path, to: &Path) -> io::Result<bool> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST | Errno::NOTEMPTY) => Ok(false),
        // A file system without that flag: a directory with something in it is not replaced by a plain rename either.
        Err(Errno::INVAL | Errno::NOSYS) => match fs::rename(from, to) {
            Ok(()) => Ok(true),
            Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty) => {
                Ok(false)
            }
            Err(error) => Err(error),
        },
        Err(error) => Err(error.into()),
    }
}

/// 32 random hexadecimal digits.
///
/// # Errors
///
/// The system gives no random numbers.
pub fn random_name() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

/// Takes the name of a sandbox away: its directory becomes one among what is being removed, in `old`. `None` if it has
/// gone meanwhile.
///
/// # Errors
///
/// The directory cannot be renamed.
pub fn unpublish(directory: &Path, old: &Path) -> io::Result<Option<PathBuf>> {
    let old = old.join(random_name()?);
    match move_unless_there(directory, &old) {
        Ok(_) => Ok(Some(old)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Removes a tree, also one with directories that forbid it. One that is gone already is no error.
///
/// # Errors
///
/// Something in it cannot be removed.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            allow(path)?;
            fs::remove_dir_all(path)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // Somebody else removes it at the same time.
        Err(_) if !path.exists() => Ok(()),
        result => result,
    }
}

/// Lets the owner change all directories of a tree. Links are not followed.
fn allow(directory: &Path) -> io::Result<()> {
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        fs::set_permissions(&directory, Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_replaced_by_a_move() {
        let root = tempfile::tempdir().unwrap();
        let (from, to) = (root.path().join("from"), root.path().join("to"));
        for directory in [&from, &to] {
            fs::create_dir(directory).unwrap();
        }
        assert!(!move_unless_there(&from, &to).unwrap());
        fs::remove_dir(&to).unwrap();
        assert!(move_unless_there(&from, &to).unwrap());
        assert!(!from.exists() && to.exists());
    }

    #[test]
    fn a_tree_with_closed_directories_goes_and_what_its_links_lead_to_stays() {
        let root = tempfile::tempdir().unwrap();
        let (tree, outside) = (root.path().join("tree"), root.path().join("outside"));
        fs::create_dir_all(tree.join("a/b")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("f"), "x").unwrap();
        fs::write(tree.join("a/b/f"), "x").unwrap();
        std::os::unix::fs::symlink(&outside, tree.join("a/link")).unwrap();
        for closed in ["a/b", "a"] {
            fs::set_permissions(tree.join(closed), Permissions::from_mode(0o500)).unwrap();
        }
        allow(&tree).unwrap();
        remove_tree(&tree).unwrap();
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
        assert_eq!(fs::read_to_string(outside.join("f")).unwrap(), "x");
    }

    #[test]
    fn the_workspace_is_read_from_a_record_of_this_form_only() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(RecordedWorkspace::read(directory.path()).unwrap(), None);
        let write = |text: &str| fs::write(directory.path().join(RECORD), text).unwrap();
        write(r#"{"version": 1, "url": "http://x", "workspace": "/w", "temporary": true}"#);
        let expected = RecordedWorkspace { workspace: "/w".into(), temporary: true };
        assert_eq!(RecordedWorkspace::read(directory.path()).unwrap(), Some(expected));
        for text in [r#"{"version": 2, "workspace": "/w", "temporary": true}"#, "{}", "no JSON"] {
            write(text);
            let error = RecordedWorkspace::read(directory.path()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{text}");
        }
    }
}
