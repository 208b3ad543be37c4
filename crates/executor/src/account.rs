//! The user that the tools work as, made where it is missing (`action-execution-api` 1.5, `bash-session` §2).

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, chown, lchown},
    path::Path,
    process::Command,
};

use gloveport_sys::{
    Identity,
    users::{User, UserDatabase},
};
use gloveport_terminal::ShellOptions;

use crate::error::ExecutorError;

/// Rule that lets the members of the group `sudo` become root without a password.
const SUDO_RULE: &str = "%sudo ALL=(ALL) NOPASSWD:ALL";

/// A user as the command line names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Login name.
    pub name: String,
    /// User id for a user that has to be made.
    pub uid: u32,
    /// The shell becomes this user.
    pub switch: bool,
    /// Group that the working directory is given to.
    pub group: String,
    /// Nothing is made or changed: the user is the one who runs this process.
    pub untouched: bool,
}

impl Account {
    /// An account by the rules of the reference.
    ///
    /// `own_name` is the value of `USER`, `extra_name` that of `RUNTIME_USERNAME`, `may_switch` that of `SU_TO_USER`.
    pub fn new(
        name: &str,
        uid: u32,
        own_name: Option<&str>,
        extra_name: Option<&str>,
        may_switch: bool,
        group: &str,
    ) -> Self {
        let known = ["root", "openhands"].contains(&name);
        Self {
            name: name.to_owned(),
            uid,
            switch: may_switch && (known || extra_name == Some(name)),
            group: group.to_owned(),
            untouched: own_name == Some(name) && !known,
        }
    }
}

/// Makes the user and the directory, and sets the identity of the shells. Answers with the user id that new files get:
/// that of the user, but the one that was given for root and for a user that is left as it is (1.5).
pub(crate) fn prepare(account: &Account, directory: &Path, shells: &mut ShellOptions) -> Result<u32, ExecutorError> {
    let mut uid = account.uid;
    if !account.untouched {
        if account.name != "root" {
            if user(&account.name)?.is_none() {
                make_user(account)?;
            }
            uid = user(&account.name)?.map_or(uid, |user| user.uid);
        }
        prepare_directory(account, directory)?;
    }
    if account.switch {
        switch(account, shells)?;
    }
    Ok(uid)
}

/// Makes the shells run as the user.
fn switch(account: &Account, shells: &mut ShellOptions) -> Result<(), ExecutorError> {
    let users = UserDatabase::load().map_err(ExecutorError::Users)?;
    let Some(user) = users.by_name(&account.name) else {
        // Only root can be missing here, in an image without a user database; its ids are known.
        return Ok(());
    };
    let own = rustix::process::geteuid();
    if !own.is_root() {
        return if own.as_raw() == user.uid {
            Ok(())
        } else {
            Err(ExecutorError::NotRoot { name: account.name.clone() })
        };
    }
    become_user(&users, user, shells);
    Ok(())
}

fn user(name: &str) -> Result<Option<User>, ExecutorError> {
    Ok(UserDatabase::load().map_err(ExecutorError::Users)?.by_name(name).cloned())
}

/// What `su NAME` changes: the ids, `HOME` and `SHELL`, and for others than root `USER` and `LOGNAME`.
fn become_user(users: &UserDatabase, user: &User, shells: &mut ShellOptions) {
    let mut set = vec![("HOME", user.home.clone().into_os_string()), ("SHELL", user.shell.clone().into_os_string())];
    if user.uid != 0 {
        set.push(("USER", user.name.clone().into()));
        set.push(("LOGNAME", user.name.clone().into()));
    }
    shells.environment.retain(|(key, _)| !set.iter().any(|(name, _)| key == name));
    shells.environment.extend(set.into_iter().map(|(key, value)| (key.into(), value)));
    shells.identity = Some(Identity { uid: user.uid, gid: user.gid, groups: users.groups_of(user) });
    shells.user_name.clone_from(&user.name);
}

fn make_user(account: &Account) -> Result<(), ExecutorError> {
    add_sudo_rule(Path::new("/etc/sudoers")).map_err(ExecutorError::Sudoers)?;
    let uid = account.uid.to_string();
    let failed = |reason: String| ExecutorError::User { name: account.name.clone(), uid: account.uid, reason };
    let users = UserDatabase::load().map_err(ExecutorError::Users)?;
    let mut arguments = vec!["-rm", "-d"];
    let home = format!("/home/{}", account.name);
    arguments.extend([home.as_str(), "-s", login_shell(), "-g", "root", "-u", uid.as_str()]);
    if users.group("sudo").is_some() {
        arguments.extend(["-G", "sudo"]);
    }
    arguments.push(&account.name);
    match Command::new("useradd").args(&arguments).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            write_user(account, &home, &users).map_err(|error| failed(error.to_string()))
        }
        Err(error) => Err(failed(format!("useradd: {error}"))),
    }
}

/// The shell of a new user.
fn login_shell() -> &'static str {
    if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" }
}

/// Makes the user by hand, in an image without `useradd`.
fn write_user(account: &Account, home: &str, users: &UserDatabase) -> io::Result<()> {
    if let Some(taken) = users.by_uid(account.uid) {
        return Err(io::Error::other(format!("UID {} is already taken by `{}`", account.uid, taken.name)));
    }
    let shell = login_shell();
    append(Path::new("/etc/passwd"), &format!("{}:x:{}:0::{home}:{shell}", account.name, account.uid))?;
    fs::create_dir_all(home)?;
    chown(home, Some(account.uid), Some(0))
}

/// Appends the rule once: a restarted server does not add it again.
fn add_sudo_rule(path: &Path) -> io::Result<()> {
    match fs::read_to_string(path) {
        Ok(text) if text.lines().any(|line| line.trim() == SUDO_RULE) => Ok(()),
        Ok(_) => append(path, SUDO_RULE),
        Err(error) if error.kind() == io::ErrorKind::NotFound => append(path, SUDO_RULE),
        Err(error) => Err(error),
    }
}

fn append(path: &Path, line: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path)?;
    writeln!(file, "{line}")
}

/// Makes the directory, gives all of it to the user, and lets its group write into it. What cannot be changed is left
/// as it is, as in the reference.
fn prepare_directory(account: &Account, directory: &Path) -> Result<(), ExecutorError> {
    let users = UserDatabase::load().map_err(ExecutorError::Users)?;
    let uid = users.by_name(&account.name).map(|user| user.uid).or((account.name == "root").then_some(0));
    let gid = users.group(&account.group).map(|group| group.gid).or((account.group == "root").then_some(0));
    if let Err(error) = fs::DirBuilder::new().recursive(true).mode(0o775).create(directory) {
        tracing::warn!(%error, directory = %directory.display(), "the working directory can not be made");
        return Ok(());
    }
    if uid.is_some() {
        give(directory, uid, gid);
    }
    if let Ok(metadata) = fs::metadata(directory) {
        let mode = metadata.permissions().mode() | 0o060;
        if let Err(error) = fs::set_permissions(directory, fs::Permissions::from_mode(mode)) {
            tracing::warn!(%error, directory = %directory.display(), "the working directory's mode can not be set");
        }
    }
    Ok(())
}

/// Changes the owner of a tree, links themselves and not their targets; what has the right owner is not touched.
fn give(root: &Path, uid: Option<u32>, gid: Option<u32>) {
    let mut queue = vec![root.to_owned()];
    while let Some(path) = queue.pop() {
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        let other = uid.is_some_and(|uid| uid != metadata.uid()) || gid.is_some_and(|gid| gid != metadata.gid());
        if other && let Err(error) = lchown(&path, uid, gid) {
            tracing::debug!(%error, path = %path.display(), "the owner can not be changed");
        }
        if metadata.is_dir()
            && let Ok(entries) = fs::read_dir(&path)
        {
            queue.extend(entries.flatten().map(|entry| entry.path()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_of_switching_and_of_creation_hold() {
        let account = |name, own, extra, switch| Account::new(name, 1000, own, extra, switch, "root");
        for (name, own, extra, may, switch, untouched) in [
            ("openhands", Some("root"), None, true, true, false),
            ("root", Some("root"), None, true, true, false),
            ("root", Some("root"), None, false, false, false),
            ("ann", Some("ann"), None, true, false, true),
            ("ann", Some("root"), None, true, false, false),
            ("ann", Some("root"), Some("ann"), true, true, false),
        ] {
            let made = account(name, own, extra, may);
            assert_eq!((made.switch, made.untouched), (switch, untouched), "{name} {own:?} {extra:?} {may}");
        }
    }

    #[test]
    fn the_sudo_rule_is_added_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sudoers");
        for _restart in 0..3 {
            add_sudo_rule(&path).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{SUDO_RULE}\n"));
    }

    #[test]
    fn a_directory_is_made_and_becomes_writable_for_its_group() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("a/b");
        let account = Account::new("root", 0, None, None, true, "root");
        prepare_directory(&account, &directory).unwrap();
        assert_eq!(fs::metadata(&directory).unwrap().permissions().mode() & 0o060, 0o060);
    }
}
