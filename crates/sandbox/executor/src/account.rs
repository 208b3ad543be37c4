//! The user that the tools work as, made where it is missing (`action-execution-api` 1.5, `bash-session` §2).

use std::{
    fs,
    io::{self, Write as _},
    os::fd::OwnedFd,
    path::Path,
    process::Command,
};

use gloveport_sys::{
    Identity,
    held::{self, Given, Missing, NewOwner},
    users::{User, UserDatabase},
};
use gloveport_terminal::ShellOptions;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};

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
    /// Whether the shell becomes this user.
    pub switch: Switch,
    /// Group that the working directory is given to.
    pub group: String,
    /// Nothing is made or changed: the user is the one who runs this process.
    pub untouched: bool,
}

/// Whether the shells become the user of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// They stay what this process is.
    Never,
    /// They do if this process is root. The reference leaves them root then: it knows no other names than `root`,
    /// `openhands` and `RUNTIME_USERNAME`.
    FromRoot,
    /// They do; a process that cannot make them that does not start.
    Always,
}

impl Account {
    /// An account by the rules of the reference, but for what runs as root without having been asked to.
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
        let untouched = own_name == Some(name) && !known;
        let switch = match (may_switch, known || extra_name == Some(name)) {
            (true, true) => Switch::Always,
            (true, false) if !untouched => Switch::FromRoot,
            _ => Switch::Never,
        };
        Self { name: name.to_owned(), uid, switch, group: group.to_owned(), untouched }
    }
}

/// Makes the user and the directory, and sets the identity of the shells. Answers with the user id that new files get:
/// that of the user, but the one that was given for root and for a user that is left as it is (1.5).
pub(crate) fn prepare(account: &Account, directory: &Path, shells: &mut ShellOptions) -> Result<u32, ExecutorError> {
    let mut uid = account.uid;
    check_name(account)?;
    if !account.untouched {
        if account.name != "root" {
            if user(&account.name)?.is_none() {
                make_user(account)?;
            }
            uid = user(&account.name)?.map_or(uid, |user| user.uid);
        }
        prepare_directory(account, directory)?;
    }
    let is_root = rustix::process::geteuid().is_root();
    match account.switch {
        Switch::Always => switch(account, shells)?,
        Switch::FromRoot if is_root => switch(account, shells)?,
        Switch::FromRoot | Switch::Never => {}
    }
    let runs_as_root = is_root && shells.identity.as_ref().is_none_or(|identity| identity.uid == 0);
    if runs_as_root && account.name != "root" {
        tracing::warn!(
            user = account.name,
            "THE SHELLS RUN AS ROOT, and not as the user that was asked for: {}",
            if account.untouched {
                "USER says that this process is that user already, and it is root; unset USER, or start it as the user"
            } else {
                "SU_TO_USER forbids to become another user, or the user has the id 0"
            }
        );
    }
    Ok(uid)
}

/// Refuses a name that is an option or several fields to those who make users.
fn check_name(account: &Account) -> Result<(), ExecutorError> {
    let name = &account.name;
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, ':' | '/' | ',');
    if !name.is_empty() && !name.starts_with('-') && name.chars().all(plain) {
        return Ok(());
    }
    let reason = "a user's name is not empty, begins with no `-`, and has no blank, `:`, `/` or `,`".to_owned();
    Err(ExecutorError::User { name: name.clone(), uid: account.uid, reason })
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
    let home = held::directory(Path::new(home), Missing::Made(0o755))?;
    Ok(rustix::fs::chownat(&home, "", Some(Uid::from_raw(account.uid)), Some(Gid::ROOT), AtFlags::EMPTY_PATH)?)
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
    let held = match to_be_given(directory) {
        Ok(held) => held,
        Err(error) => {
            tracing::warn!(%error, directory = %directory.display(), "the working directory is left as it is");
            return Ok(());
        }
    };
    if uid.is_some() {
        give(&held, NewOwner { uid, gid }, directory);
    }
    if let Err(error) = open_to_group(&held) {
        tracing::warn!(%error, directory = %directory.display(), "the working directory's mode cannot be set");
    }
    Ok(())
}

/// The working directory, made if it is missing, unless it may not be anybody's.
fn to_be_given(directory: &Path) -> io::Result<OwnedFd> {
    // Whoever has been in this sandbox before may have left links there, and may still run.
    let held = held::directory(directory, Missing::Made(0o775))?;
    if held::is_root(&held)? {
        // All of the system would be the user's, and programs would lose the rights that they have by their owner.
        return Err(io::Error::other("the root of the file system is given to nobody"));
    }
    Ok(held)
}

fn give(held: &OwnedFd, owner: NewOwner, directory: &Path) {
    match held::give(held, owner) {
        Ok(Given { with_other_names: 0, lost_bits: 0, refused: 0, too_deep: 0, .. }) => {}
        Ok(given) => tracing::warn!(
            directory = %directory.display(),
            changed = given.changed,
            kept_because_of_other_names = given.with_other_names,
            lost_set_id_bits = given.lost_bits,
            refused = given.refused,
            too_deep = given.too_deep,
            "not all of the working directory could be given to its user as it was"
        ),
        Err(error) => tracing::warn!(%error, directory = %directory.display(), "the owner cannot be changed"),
    }
}

/// Lets the group of a directory write into it.
fn open_to_group(held: &OwnedFd) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(held, ".", flags, Mode::empty())?;
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode) | Mode::RGRP | Mode::WGRP;
    Ok(rustix::fs::fchmod(&opened, mode)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_rules_of_switching_and_of_creation_hold() {
        let account = |name, own, extra, switch| Account::new(name, 1000, own, extra, switch, "root");
        for (name, own, extra, may, switch, untouched) in [
            ("openhands", Some("root"), None, true, Switch::Always, false),
            ("root", Some("root"), None, true, Switch::Always, false),
            ("root", Some("root"), None, false, Switch::Never, false),
            ("ann", Some("ann"), None, true, Switch::Never, true),
            ("ann", Some("ann"), Some("ann"), true, Switch::Always, true),
            ("ann", Some("root"), None, true, Switch::FromRoot, false),
            ("ann", Some("root"), None, false, Switch::Never, false),
            ("ann", None, None, true, Switch::FromRoot, false),
            ("ann", Some("root"), Some("ann"), true, Switch::Always, false),
        ] {
            let made = account(name, own, extra, may);
            assert_eq!((made.switch, made.untouched), (switch, untouched), "{name} {own:?} {extra:?} {may}");
        }
    }

    #[test]
    fn shells_of_a_root_server_become_the_user_that_was_asked_for_whatever_its_name_is() {
        let users = UserDatabase::load().unwrap();
        let Some(nobody) = users.by_name("nobody").filter(|_| rustix::process::geteuid().is_root()) else {
            println!("skipped: it needs root, and the user nobody");
            return;
        };
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("workspace");
        let mut shells = ShellOptions::inherited(directory.clone());
        let account = Account::new("nobody", 1000, Some("root"), None, true, "root");
        assert_eq!(prepare(&account, &directory, &mut shells).unwrap(), nobody.uid);
        assert_eq!(shells.identity.map(|identity| identity.uid), Some(nobody.uid));
        assert_eq!(shells.user_name, "nobody");
        assert_eq!(std::os::unix::fs::MetadataExt::uid(&fs::metadata(&directory).unwrap()), nobody.uid);
        let mut shells = ShellOptions::inherited(directory.clone());
        let forbidden = Account { switch: Switch::Never, ..account };
        prepare(&forbidden, &directory, &mut shells).unwrap();
        assert_eq!(shells.identity, None);
    }

    #[test]
    fn a_name_that_is_more_than_a_name_is_refused() {
        for name in ["", "-o", "a b", "a:0", "../a", "a\n", "a,b", "a\0"] {
            let account = Account::new(name, 1000, None, None, true, "root");
            let mut shells = ShellOptions::inherited("/".into());
            assert!(prepare(&account, Path::new("/nowhere"), &mut shells).is_err(), "{name:?}");
        }
        assert!(!Path::new("/nowhere").exists());
    }

    #[test]
    fn a_working_directory_behind_a_link_of_its_user_is_left_as_it_is() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: it needs root");
            return;
        }
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("f"), "x").unwrap();
        let link = root.path().join("workspace");
        std::os::unix::fs::symlink(outside.path(), &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(4_242), None).unwrap();
        let before = fs::metadata(outside.path()).unwrap();
        let account = Account::new("nobody", 65_534, None, None, true, "root");
        prepare_directory(&account, &link).unwrap();
        for path in [outside.path(), &outside.path().join("f")] {
            assert_eq!(std::os::unix::fs::MetadataExt::uid(&fs::metadata(path).unwrap()), 0);
        }
        assert_eq!(fs::metadata(outside.path()).unwrap().permissions(), before.permissions());
    }

    #[test]
    fn the_root_of_the_file_system_is_given_to_nobody() {
        let root = tempfile::tempdir().unwrap();
        let link = root.path().join("link");
        std::os::unix::fs::symlink("/", &link).unwrap();
        for path in [Path::new("/"), Path::new("/proc/.."), Path::new("//"), &link] {
            let refused = to_be_given(path).unwrap_err().to_string();
            assert_eq!(refused, "the root of the file system is given to nobody", "{}", path.display());
        }
        assert!(to_be_given(&root.path().join("workspace")).is_ok());
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
