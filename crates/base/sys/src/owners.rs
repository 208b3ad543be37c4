//! Owners of files beside the user: numbers that an ordinary user may give to others in user namespaces of its own
//! (`/etc/subuid`, `/etc/subgid`), as rootless engines do.
//!
//! ```text
//! in a namespace   on the machine
//! 0                the user, the user's group
//! 1…65535          numbers of the ranges that the files give the user
//! ```
//!
//! Two programs of the system, `newuidmap` and `newgidmap`, write such a map; they look into the files themselves. What they
//! have written is checked before anything is done in the namespace.
//!
//! Files of other numbers are given and removed by [`work`]: by a process in a namespace with the same map, which has an owner,
//! and a time limit.

#![expect(unsafe_code, reason = "clones a process, which no safe library offers")]

mod ranges;
pub mod work;

use std::{
    fs,
    io::{self, Read as _},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::{
    fs::StatVfsMountFlags,
    process::{getegid, geteuid},
};
use serde::{Deserialize, Serialize};

use crate::{child, host, users::UserDatabase};
pub use ranges::Range;

/// Numbers in a namespace, that of the user among them.
pub const COUNT: u32 = 65_536;
/// Programs of the system that write maps.
const PROGRAMS: [&str; 2] = ["newuidmap", "newgidmap"];
/// Who has which numbers, of users and of groups.
const FILES: [&str; 2] = ["/etc/subuid", "/etc/subgid"];
/// Most bytes of such a file.
const LONGEST: u64 = 1024 * 1024;
/// Time for such a program.
const LIMIT: Duration = Duration::from_secs(10);
/// Where a file has capabilities.
const CAPABILITIES: &str = "security.capability";

/// The numbers of a user, and how a namespace gets them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owners {
    /// The user and its group, who are 0 in a namespace.
    own: [u32; 2],
    /// The numbers of others, from 1 on, as many as [`COUNT`] needs.
    others: [Vec<Range>; 2],
    /// The programs that write maps, of users and of groups.
    programs: [PathBuf; 2],
}

/// Why an ordinary user has no other owners, and what helps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Missing {
    /// What is missing.
    pub reason: String,
    /// What to do.
    pub remedy: String,
}

impl Owners {
    /// Those of this user, with programs that are in this `PATH`.
    ///
    /// # Errors
    ///
    /// The user is root, the system has no such programs, or does not give the user enough numbers.
    pub fn of_this_user(path: &str) -> Result<Self, Missing> {
        let missing = |reason: String, remedy: &str| Missing { reason, remedy: remedy.to_owned() };
        if geteuid().is_root() {
            return Err(missing("root has owners of its own".to_owned(), "nothing has to be done"));
        }
        let mut programs = [PathBuf::new(), PathBuf::new()];
        for (place, name) in programs.iter_mut().zip(PROGRAMS) {
            *place = program(name, path)?;
        }
        if rustix::thread::no_new_privs().unwrap_or(false) {
            let reason = format!("nothing that this process starts may gain rights, as {} has to", PROGRAMS[0]);
            return Err(missing(reason, "start gloveport without no_new_privs"));
        }
        let own = [geteuid().as_raw(), getegid().as_raw()];
        let name = UserDatabase::load().ok().and_then(|users| users.by_uid(own[0]).map(|user| user.name.clone()));
        let mut others = [Vec::new(), Vec::new()];
        for (which, file) in FILES.into_iter().enumerate() {
            let text = read(Path::new(file)).unwrap_or_default();
            let given = ranges::given(&text, name.as_deref(), own[0], own[which]);
            others[which] = ranges::first(&given, COUNT - 1).ok_or_else(|| {
                let who = name.clone().unwrap_or_else(|| own[0].to_string());
                let count: u64 = given.iter().map(|range| u64::from(range.count)).sum();
                let reason = format!("{file} gives {who} {count} numbers that can be used, and {COUNT} are needed");
                missing(reason, &format!("usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {who}, as root, with numbers that nobody else has"))
            })?;
        }
        Ok(Self { own, others, programs })
    }

    /// What tells these numbers from others: files that were given by others are of no use with them.
    pub fn numbers(&self) -> String {
        let of = |which: usize| {
            let others: Vec<String> = self.others[which].iter().map(ToString::to_string).collect();
            format!("{}+{}", self.own[which], others.join("+"))
        };
        format!("{}:{}", of(0), of(1))
    }

    /// The lines of a map: the first number inside, the first one outside, and how many there are.
    fn map(&self, which: usize) -> Vec<[u32; 3]> {
        let mut lines = vec![[0, self.own[which], 1]];
        let mut inside = 1;
        for range in &self.others[which] {
            lines.push([inside, range.first, range.count]);
            inside += range.count;
        }
        lines
    }

    /// Maps of a namespace in the one that has them, in which all have the same numbers: of users, and of groups. The kernel
    /// wants lines that each lie in one of those that it has.
    pub(crate) fn same_maps(&self) -> [String; 2] {
        let same = |which: usize| {
            let lines: Vec<String> =
                self.map(which).iter().map(|[inside, _, count]| format!("{inside} {inside} {count}")).collect();
            lines.join("\n")
        };
        [same(0), same(1)]
    }

    /// Gives them to a process of this user that is in a new namespace.
    ///
    /// # Errors
    ///
    /// A program cannot be started, fails, takes too long, or has written something else.
    pub(crate) fn give(&self, pid: u32) -> io::Result<()> {
        let start = |which: usize| {
            let program = self.programs.get(which).ok_or(io::ErrorKind::NotFound)?;
            let numbers = self.map(which).into_iter().flatten().map(|number| number.to_string());
            let mut command = Command::new(program);
            command.arg(pid.to_string()).args(numbers).env_clear().current_dir("/");
            let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
            started.map_err(|error| io::Error::other(format!("cannot start {}: {error}", program.display())))
        };
        let users = start(0)?;
        let groups = match start(1) {
            Ok(groups) => finish(groups, &self.programs[1]),
            Err(error) => Err(error),
        };
        finish(users, &self.programs[0])?;
        groups?;
        for (which, file) in ["uid_map", "gid_map"].into_iter().enumerate() {
            let written = fs::read_to_string(format!("/proc/{pid}/{file}"))?;
            if !is_map(&written, &self.map(which)) {
                let program = self.programs[which].display();
                return Err(io::Error::other(format!(
                    "{program} has written another map than it was told to: {written}"
                )));
            }
        }
        Ok(())
    }
}

/// Waits for such a program, which is ended when its time is over.
fn finish(mut child: Child, program: &Path) -> io::Result<()> {
    let is_in_time = child::ends_within(child.id(), LIMIT);
    if !is_in_time {
        child.kill()?;
    }
    let status = child.wait()?;
    if status.success() {
        return Ok(());
    }
    let mut complaint = Vec::new();
    if let Some(pipe) = child.stderr.take() {
        pipe.take(1000).read_to_end(&mut complaint)?;
    }
    let complaint = String::from_utf8_lossy(&complaint).trim().to_owned();
    let why = if is_in_time { complaint } else { format!("it took longer than {LIMIT:?}") };
    Err(io::Error::other(format!("{} failed: {why}", program.display())))
}

/// Whether the kernel has a map of these lines, which it may show in another order.
fn is_map(text: &str, lines: &[[u32; 3]]) -> bool {
    let numbers =
        |line: &str| line.split_ascii_whitespace().map(|number| number.parse().ok()).collect::<Option<Vec<u32>>>();
    let Some(mut found) = text.lines().map(numbers).collect::<Option<Vec<_>>>() else { return false };
    found.sort();
    let mut wanted: Vec<Vec<u32>> = lines.iter().map(|line| line.to_vec()).collect();
    wanted.sort();
    found == wanted
}

/// A program that may write maps, by its absolute name.
fn program(name: &str, path: &str) -> Result<PathBuf, Missing> {
    let remedy = "install the package uidmap (Debian, Ubuntu) or shadow-utils (Fedora)";
    let absolute: Vec<&str> = path.split(':').filter(|place| place.starts_with('/')).collect();
    let found = host::find_program(name, &absolute.join(":"), Path::new("/"));
    let found = found.and_then(|found| fs::canonicalize(found).ok());
    let found =
        found.ok_or_else(|| Missing { reason: format!("there is no `{name}` in PATH"), remedy: remedy.to_owned() })?;
    let is_of_root = fs::metadata(&found).is_ok_and(|file| file.uid() == 0 && file.permissions().mode() & 0o4000 != 0);
    let has_capabilities =
        rustix::fs::getxattr(&found, CAPABILITIES, &mut [0_u8; 0][..]).is_ok_and(|length| length > 0);
    let is_on_nosuid =
        rustix::fs::statvfs(&found).is_ok_and(|system| system.f_flag.contains(StatVfsMountFlags::NOSUID));
    if is_on_nosuid || !(is_of_root || has_capabilities) {
        let why = if is_on_nosuid {
            "the file system that it is on gives programs no rights"
        } else {
            "it is neither set-user-ID nor has capabilities"
        };
        return Err(Missing { reason: format!("{} has no rights: {why}", found.display()), remedy: remedy.to_owned() });
    }
    Ok(found)
}

fn read(file: &Path) -> io::Result<String> {
    let mut text = Vec::new();
    fs::File::open(file)?.take(LONGEST).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners() -> Owners {
        let range = |first, count| Range { first, count };
        Owners {
            own: [1000, 100],
            others: [vec![range(100_000, 40_000), range(500_000, 25_535)], vec![range(200_000, 65_535)]],
            programs: ["/bin/true".into(), "/bin/true".into()],
        }
    }

    #[test]
    fn the_user_is_root_and_the_ranges_follow_each_other() {
        assert_eq!(owners().map(0), [[0, 1000, 1], [1, 100_000, 40_000], [40_001, 500_000, 25_535]]);
        assert_eq!(owners().map(1), [[0, 100, 1], [1, 200_000, 65_535]]);
        assert_eq!(owners().same_maps(), ["0 0 1\n1 1 40000\n40001 40001 25535", "0 0 1\n1 1 65535"]);
        assert_eq!(owners().numbers(), "1000+100000-40000+500000-25535:100+200000-65535");
    }

    #[test]
    fn a_map_is_the_one_that_was_asked_for_or_it_is_refused() {
        let lines = owners().map(1);
        assert!(is_map("         0        100          1\n         1     200000      65535\n", &lines));
        assert!(is_map("1 200000 65535\n0 100 1\n", &lines));
        for other in [
            "",
            "0 100 1\n",
            "0 100 1\n1 200000 65534\n",
            "0 0 1\n1 200000 65535\n",
            "0 100 1\n1 200000 65535\n2 0 1\n",
            "x",
        ] {
            assert!(!is_map(other, &lines), "{other}");
        }
    }

    #[test]
    fn a_program_that_writes_nothing_is_found_out_and_one_that_fails_tells_why() {
        let error = owners().give(std::process::id()).unwrap_err().to_string();
        assert!(error.contains("another map"), "{error}");
        let failing = Owners { programs: ["/bin/ls".into(), "/bin/ls".into()], ..owners() };
        let error = failing.give(u32::MAX).unwrap_err().to_string();
        assert!(error.starts_with("/bin/ls failed: ") && error.contains("4294967295"), "{error}");
    }

    #[test]
    fn a_program_without_rights_is_none() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().to_str().unwrap();
        assert_eq!(program("newuidmap", path).unwrap_err().reason, "there is no `newuidmap` in PATH");
        let file = place.path().join("newuidmap");
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        let reason = program("newuidmap", path).unwrap_err().reason;
        assert!(
            reason.ends_with("neither set-user-ID nor has capabilities") || reason.contains("file system"),
            "{reason}"
        );
        // A name that is not from the root is none, wherever this runs.
        assert!(program("newuidmap", ".:bin").unwrap_err().reason.contains("there is no"));
    }
}
