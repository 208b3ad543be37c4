//! Users and groups, read from `/etc/passwd` and `/etc/group` directly.
//!
//! A static binary must not ask the name-service switch: it would load shared libraries of another C library.

use std::{fs, io, path::PathBuf};

/// One line of `/etc/passwd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Login name.
    pub name: String,
    /// User id.
    pub uid: u32,
    /// Primary group id.
    pub gid: u32,
    /// Home directory.
    pub home: PathBuf,
    /// Login shell; `/bin/sh` where the field is empty.
    pub shell: PathBuf,
}

/// One line of `/etc/group`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Group name.
    pub name: String,
    /// Group id.
    pub gid: u32,
    /// Names of the members that do not have it as their primary group.
    pub members: Vec<String>,
}

/// The users and groups of one root file system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserDatabase {
    users: Vec<User>,
    groups: Vec<Group>,
}

impl UserDatabase {
    /// Reads `/etc/passwd` and `/etc/group`. A missing file counts as an empty one: minimal images have neither.
    pub fn load() -> io::Result<Self> {
        Ok(Self::parse(&read("/etc/passwd")?, &read("/etc/group")?))
    }

    /// Parses the two texts. Lines that are not entries are passed over, as the C library does.
    pub fn parse(passwd: &str, group: &str) -> Self {
        Self {
            users: passwd.lines().filter_map(parse_user).collect(),
            groups: group.lines().filter_map(parse_group).collect(),
        }
    }

    /// The user with this login name.
    pub fn by_name(&self, name: &str) -> Option<&User> {
        self.users.iter().find(|user| user.name == name)
    }

    /// The first user with this id.
    pub fn by_uid(&self, uid: u32) -> Option<&User> {
        self.users.iter().find(|user| user.uid == uid)
    }

    /// The group with this name.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// All group ids of a user, the primary one first.
    pub fn groups_of(&self, user: &User) -> Vec<u32> {
        let mut ids = vec![user.gid];
        for group in &self.groups {
            if group.members.contains(&user.name) && !ids.contains(&group.gid) {
                ids.push(group.gid);
            }
        }
        ids
    }
}

fn read(path: &str) -> io::Result<String> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error),
    }
}

fn parse_user(line: &str) -> Option<User> {
    let mut fields = line.split(':');
    let (name, _password) = (fields.next()?, fields.next()?);
    let (uid, gid) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let (_comment, home, shell) = (fields.next()?, fields.next()?, fields.next().unwrap_or_default());
    let shell = if shell.is_empty() { "/bin/sh" } else { shell };
    (!name.is_empty()).then(|| User { name: name.into(), uid, gid, home: home.into(), shell: shell.into() })
}

fn parse_group(line: &str) -> Option<Group> {
    let mut fields = line.split(':');
    let (name, _password, gid) = (fields.next()?, fields.next()?, fields.next()?.parse().ok()?);
    let members = fields.next().unwrap_or_default().split(',').filter(|name| !name.is_empty());
    Some(Group { name: name.into(), gid, members: members.map(str::to_owned).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_by_name_and_id_and_broken_lines_are_passed_over() {
        let database = UserDatabase::parse(
            "root:x:0:0:root:/root:/bin/bash\nbroken\n+::::::\nann:x:1000:100:Ann,,,:/home/ann:\nbad:x:many:0::/:/bin/sh\n",
            "root:x:0:\nusers:x:100:ann\nsudo:x:27:bob,ann\n",
        );
        let ann = database.by_name("ann").unwrap();
        assert_eq!(
            *ann,
            User { name: "ann".into(), uid: 1000, gid: 100, home: "/home/ann".into(), shell: "/bin/sh".into() }
        );
        assert_eq!(database.by_uid(0).unwrap().name, "root");
        assert_eq!(database.by_name("bad"), None);
        assert_eq!(database.groups_of(ann), vec![100, 27]);
        assert_eq!(database.group("sudo").unwrap().gid, 27);
    }
}
