//! Who is who in a container.

use std::{fs, io};

use rustix::process::{getegid, geteuid};

use super::plan::{ContainerError, Root};
use crate::{confined::Unsupported, owners::Owners, private};

/// Users and groups that root has in a container, from 0 on.
const MOST: u32 = 65_536;
/// Numbers on the machine from which they are taken: nobody gives them to people.
const FIRST: u32 = 0x4000_0000;
const LAST: u32 = 0x7fff_0000;

/// A kernel without the calls that change a mount which is open.
pub(super) const TOO_OLD: Unsupported =
    Unsupported { reason: "this kernel cannot change mounts that are open", remedy: "use Linux 5.12 or later" };

/// The users of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Users {
    /// The user and group of this process, under their own numbers or as root.
    Own { user: u32, group: u32, is_root: bool },
    /// These many from 0 on, which are those from `first` on outside.
    Mapped { first: u32, count: u32 },
    /// The user of this process as root, and others that the system gives it.
    Owners(Owners),
}

impl Users {
    /// Root gets users that are nobody's, everybody else is who they are, or is called root.
    pub(super) fn of_this_process(root: Option<&Root>) -> Result<Self, ContainerError> {
        let (user, group) = (geteuid(), getegid());
        if !user.is_root() {
            if let Some(owners) = root.and_then(|root| root.owners.as_ref()) {
                return Ok(Self::Owners(owners.clone()));
            }
            let is_root = root.is_some();
            return Ok(Self::Own { user: user.as_raw(), group: group.as_raw(), is_root });
        }
        let read = |which: &str| fs::read_to_string(format!("/proc/self/{which}")).unwrap_or_default();
        let known = known(&read("uid_map")).min(known(&read("gid_map")));
        let random = private::random().map_err(|error| ContainerError::step("choosing users", &error))?;
        chosen(known, random).ok_or_else(|| {
            let reason = "this machine knows too few users to give root in a container numbers of its own";
            let remedy = "it is a container itself, most likely: give that more of them, or be another user than root";
            Unsupported { reason, remedy }.into()
        })
    }

    /// Whether files have to be given under other numbers.
    pub(super) const fn are_mapped(&self) -> bool {
        matches!(self, Self::Mapped { .. })
    }

    /// Whether processes become other users, so that each of these has to be told who it is.
    pub(super) const fn are_many(&self) -> bool {
        matches!(self, Self::Owners(_))
    }

    /// Gives them to a process in new namespaces.
    pub(super) fn give(&self, pid: u32) -> Result<(), ContainerError> {
        let write = |file: &str, text: String| {
            fs::write(format!("/proc/{pid}/{file}"), text)
                .map_err(|error| ContainerError::step(&format!("writing {file} of the container"), &error))
        };
        match self {
            Self::Own { user, group, is_root } => {
                let inside = |own: &u32| if *is_root { 0 } else { *own };
                write("uid_map", format!("{} {user} 1", inside(user)))?;
                // Groups could be given up that files deny something to.
                write("setgroups", "deny".to_owned())?;
                write("gid_map", format!("{} {group} 1", inside(group)))
            }
            Self::Owners(owners) => owners
                .give(pid)
                .map_err(|error| ContainerError::step("giving the container its owners of files", &error)),
            Self::Mapped { first, count } => {
                write("uid_map", format!("0 {first} {count}"))?;
                write("gid_map", format!("0 {first} {count}"))
            }
        }
    }
}

/// How many users from 0 on a process knows, by its map.
fn known(map: &str) -> u32 {
    map.lines()
        .filter_map(|line| {
            let numbers: Vec<u32> = line.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect();
            (numbers.len() == 3 && numbers[0] == 0).then(|| numbers[2])
        })
        .max()
        .unwrap_or(0)
}

/// Numbers of which no user of the machine has one, or at least not root.
fn chosen(known: u32, random: u64) -> Option<Users> {
    if known > LAST {
        let places = u64::from((LAST - FIRST) / MOST);
        let place = u32::try_from(random % places).ok()?;
        return Some(Users::Mapped { first: FIRST + place * MOST, count: MOST });
    }
    // In a container that knows few, those at the end.
    let count = (known / 2).min(MOST);
    (count > 1).then(|| Users::Mapped { first: known - count, count })
}

/// Why namespaces are refused.
pub(super) fn refusal(error: &io::Error) -> Unsupported {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default().trim().to_owned();
    if read("/proc/sys/user/max_user_namespaces") == "0" {
        return Unsupported {
            reason: "user namespaces are turned off on this machine",
            remedy: "set the kernel's parameter user.max_user_namespaces to 10000 with sysctl",
        };
    }
    if read("/proc/sys/kernel/unprivileged_userns_clone") == "0" && !geteuid().is_root() {
        return Unsupported {
            reason: "user namespaces are for root alone on this machine",
            remedy: "set the kernel's parameter kernel.unprivileged_userns_clone to 1 with sysctl",
        };
    }
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EUSERS) => Unsupported {
            reason: "there are too many user namespaces, or they are in each other too deep",
            remedy: "raise the kernel's parameter user.max_user_namespaces with sysctl",
        },
        Some(libc::EINVAL) => Unsupported {
            reason: "this kernel has no user namespaces",
            remedy: "use one that was built with CONFIG_USER_NS",
        },
        _ => Unsupported {
            reason: "namespaces are refused to this process",
            remedy: "in a container, its engine forbids them: give it the right (for Docker a seccomp profile that allows \
                     clone and mount, or --privileged)",
        },
    }
}

/// What forbids mounts though namespaces can be made: root has no right to them, or a rule of AppArmor takes all rights in
/// namespaces.
pub(super) fn refusal_inside(is_root: bool) -> Option<Unsupported> {
    if is_root {
        return Some(Unsupported {
            reason: "root may not make mounts here",
            remedy: "in a container, its engine forbids them: give it CAP_SYS_ADMIN, or be another user than root",
        });
    }
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default().trim().to_owned();
    (read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1").then_some(Unsupported {
        reason: "AppArmor keeps programs that it does not know from user namespaces",
        remedy: "set the kernel's parameter kernel.apparmor_restrict_unprivileged_userns to 0 with sysctl, or give this \
                 program a profile with the rule `userns,`",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_gets_numbers_that_are_nobodys_and_where_there_are_few_those_at_the_end() {
        let Some(Users::Mapped { first, count }) = chosen(u32::MAX, u64::MAX) else { panic!() };
        assert!(count == MOST && first >= FIRST && first + count - 1 < LAST + MOST && first % MOST == 0);
        assert_eq!(chosen(65_536, 7), Some(Users::Mapped { first: 32_768, count: 32_768 }));
        assert_eq!(chosen(1, 7), None);
        assert_eq!(known("         0          0 4294967295\n"), u32::MAX);
        assert_eq!(known("0 1000 1\n1 100000 65536\n"), 1);
        assert_eq!(known("nothing"), 0);
    }
}
