//! The places of a confinement as Landlock has them.

#![expect(unsafe_code, reason = "the library does not tell the version of the kernel")]

use std::{
    fs, io,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreated, RulesetCreatedAttr as _, RulesetStatus, Scope, make_bitflags,
};
use rustix::{
    fs::{FileType, fstat},
    io::fcntl_dupfd_cloexec,
    process::geteuid,
};

use super::{ConfineError, Confinement};

/// What every program reads and runs. Places that are not there are left out.
pub(super) const SYSTEM: [&str; 18] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/gnu",
    "/snap",
    "/proc",
    "/sys",
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/var/lib/dpkg",
    "/var/cache/fontconfig",
];
/// Devices that every program may use.
const DEVICES: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"];
/// Where terminals are.
const TERMINALS: &str = "/dev/pts";
/// What is demanded of the kernel, and what it does beside that where it can.
const LEAST: ABI = ABI::V3;
const BEST: ABI = ABI::V7;
/// Entries of `/etc` that are looked at for those that not everybody may read.
const MOST_ENTRIES: usize = 10_000;
/// Descriptors below this may be given to a program.
const HIGH: RawFd = 64;

fn reading() -> BitFlags<AccessFs> {
    AccessFs::from_read(BEST)
}

/// All but making devices.
fn writing() -> BitFlags<AccessFs> {
    AccessFs::from_all(BEST) & !make_bitflags!(AccessFs::{MakeChar | MakeBlock})
}

fn using() -> BitFlags<AccessFs> {
    make_bitflags!(AccessFs::{ReadFile | WriteFile | IoctlDev})
}

/// That signals and abstract names reach those that have the same rules, and nobody else.
#[derive(Debug)]
pub(super) struct Scopes(RulesetCreated);

impl Scopes {
    /// `None` for a version of Landlock that has none.
    pub(super) fn new(version: u32) -> Result<Option<Self>, ConfineError> {
        if ABI::from(version.cast_signed()) < ABI::V6 {
            return Ok(None);
        }
        let made = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .scope(Scope::from_all(BEST))
            .and_then(Ruleset::create);
        made.map(|made| Some(Self(made))).map_err(|error| failed("making the rules for signals", &error))
    }

    /// Confines this thread for good.
    pub(super) fn enter(self) -> io::Result<()> {
        enter(self.0)
    }
}

/// The places that the server and all that comes from it have.
#[derive(Debug)]
pub(super) struct Rules(RulesetCreated);

impl Rules {
    pub(super) fn new(confinement: &Confinement) -> Result<Self, ConfineError> {
        let mut rules = Self(made().map_err(|error| failed("making the rules", &error))?);
        for place in SYSTEM {
            if place == "/etc" && geteuid().is_root() {
                // Root reads all of it, so what others may not read is left out.
                rules.add_public(Path::new(place))?;
            } else {
                rules.add_known(place, reading())?;
            }
        }
        for device in DEVICES.into_iter().chain([TERMINALS]) {
            rules.add_known(device, using() | make_bitflags!(AccessFs::{ReadDir}))?;
        }
        let given = [(&confinement.read, reading()), (&confinement.write, writing())];
        for (places, access) in given {
            for place in places {
                let opened = open(place).map_err(|source| ConfineError::Place { path: place.clone(), source })?;
                rules.add(opened, place, access)?;
            }
        }
        Ok(rules)
    }

    /// A place that may be missing.
    fn add_known(&mut self, place: &str, access: BitFlags<AccessFs>) -> Result<(), ConfineError> {
        match PathFd::new(place) {
            Ok(opened) => self.add(opened, Path::new(place), access),
            Err(_missing) => Ok(()),
        }
    }

    fn add(&mut self, opened: PathFd, place: &Path, access: BitFlags<AccessFs>) -> Result<(), ConfineError> {
        // A file has no directory's rights; the best effort leaves them out.
        let is_directory = fstat(&opened).is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_dir());
        let access = if is_directory { access } else { access & AccessFs::from_file(BEST) };
        let added = (&mut self.0).add_rule(PathBeneath::new(opened, access)).map(|_| ());
        added.map_err(|error| failed(&format!("adding {}", place.display()), &error))
    }

    /// All in a directory that everybody may read.
    fn add_public(&mut self, top: &Path) -> Result<(), ConfineError> {
        let mut count = 0;
        let found = public(top, &mut count);
        // With too many to look at, less is readable rather than more.
        for place in found.into_iter().take(MOST_ENTRIES) {
            if let Ok(opened) = PathFd::new(&place) {
                self.add(opened, &place, reading())?;
            }
        }
        let listing = make_bitflags!(AccessFs::{ReadDir});
        if let Ok(opened) = PathFd::new(top) { self.add(opened, top, listing) } else { Ok(()) }
    }

    /// Confines this thread for good.
    pub(super) fn enter(self) -> io::Result<()> {
        enter(self.0)
    }
}

/// All places that are no terminals.
#[derive(Debug)]
pub(crate) struct BesideTerminals(Vec<PathBuf>);

impl BesideTerminals {
    pub(super) fn new(confinement: &Confinement) -> Result<Self, ConfineError> {
        let top = fs::read_dir("/").map_err(|error| failed("looking for what is in /", &error))?;
        let places = top.flatten().map(|entry| entry.path()).filter(|place| place != Path::new("/dev"));
        let devices = DEVICES.into_iter().map(PathBuf::from);
        // All terminals, too, where somebody has named their directory.
        let given = confinement.read.iter().chain(&confinement.write).cloned();
        Ok(Self(places.chain(devices).chain(given).collect()))
    }

    /// The layer of a session with this terminal, which is made for each.
    pub(crate) fn and(&self, terminal: Option<BorrowedFd<'_>>) -> Result<Layer, ConfineError> {
        let told = |error: &dyn std::fmt::Display| failed("making the rules of a session", error);
        let mut rules = Rules(with_terminals_judged().map_err(|error| told(&error))?);
        for place in &self.0 {
            if let Ok(opened) = PathFd::new(place) {
                rules.add(opened, place, using())?;
            }
        }
        if let Some(terminal) = terminal {
            let added = (&mut rules.0).add_rule(PathBeneath::new(terminal, using())).map(|_| ());
            added.map_err(|error| told(&error))?;
        }
        let made: Option<OwnedFd> = rules.0.into();
        let made = made.ok_or_else(|| told(&"the kernel made none"))?;
        fcntl_dupfd_cloexec(&made, HIGH).map(Layer).map_err(|error| told(&error))
    }
}

/// The layer of one session: everything as before, and of the terminals its own.
#[derive(Debug)]
pub(crate) struct Layer(OwnedFd);

impl Layer {
    /// For the new process, which puts it on.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// The version of Landlock that the kernel has.
pub(super) fn version() -> io::Result<i32> {
    const VERSION: u32 = 1;
    // SAFETY: without rules, which this flag asks for, the kernel reads no memory.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0, VERSION) };
    if version < 0 { Err(io::Error::last_os_error()) } else { i32::try_from(version).map_err(io::Error::other) }
}

fn made() -> Result<RulesetCreated, landlock::RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LEAST))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(BEST))?
        .create()
}

fn enter(rules: RulesetCreated) -> io::Result<()> {
    let status = rules.restrict_self().map_err(io::Error::other)?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err(io::Error::other("the kernel does not enforce it")),
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(()),
    }
}

fn with_terminals_judged() -> Result<RulesetCreated, landlock::RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(make_bitflags!(AccessFs::{ReadFile | WriteFile}))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::IoctlDev)?
        .create()
}

fn failed(step: &str, error: &dyn std::fmt::Display) -> ConfineError {
    ConfineError::Step { step: step.to_owned(), reason: error.to_string() }
}

/// The largest places in a directory in which everything may be read by everybody.
fn public(directory: &Path, count: &mut usize) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let (mut found, mut is_whole) = (Vec::new(), true);
    for entry in entries.flatten() {
        *count += 1;
        // Links are left out, so nothing else is asked of them: most of what is in `/etc` is links.
        if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            continue;
        }
        let (path, Ok(metadata)) = (entry.path(), entry.metadata()) else { continue };
        let mode = metadata.permissions().mode();
        if metadata.is_symlink() {
            continue;
        }
        let is_open = if metadata.is_dir() { mode & 0o005 == 0o005 } else { mode & 0o004 != 0 };
        if !is_open || *count > MOST_ENTRIES {
            is_whole = false;
        } else if metadata.is_dir() {
            let below = public(&path, count);
            is_whole &= below == [path.clone()];
            found.extend(below);
        } else {
            found.push(path);
        }
    }
    if is_whole { vec![directory.to_owned()] } else { found }
}

/// Opens a place that was looked at under this name, which has no links on its way.
fn open(place: &Path) -> io::Result<PathFd> {
    let denied = || fs::metadata(place).err().unwrap_or_else(|| io::ErrorKind::PermissionDenied.into());
    let opened = PathFd::new(place).map_err(|_| denied())?;
    let real = fs::read_link(format!("/proc/self/fd/{}", opened.as_fd().as_raw_fd()))?;
    if real == place { Ok(opened) } else { Err(io::Error::other(format!("it leads to {} by now", real.display()))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_not_everybody_may_read_is_left_out_and_the_rest_is_as_large_as_can_be() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        fs::create_dir_all(at("all/of/it")).unwrap();
        fs::create_dir_all(at("some")).unwrap();
        for (name, mode) in [("all/of/it/a", 0o644), ("some/open", 0o644), ("some/secret", 0o640), ("b", 0o444)] {
            fs::write(at(name), "").unwrap();
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::create_dir(at("closed")).unwrap();
        fs::set_permissions(at("closed"), fs::Permissions::from_mode(0o700)).unwrap();
        let mut found = public(top.path(), &mut 0);
        found.sort();
        assert_eq!(found, [at("all"), at("b"), at("some/open")]);
    }

    #[test]
    fn a_place_whose_name_leads_elsewhere_by_now_is_not_given() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let (place, link) = (top.join("place"), top.join("link"));
        fs::create_dir(&place).unwrap();
        std::os::unix::fs::symlink(&place, &link).unwrap();
        open(&place).unwrap();
        for name in [link.clone(), link.join("..").join("place")] {
            let error = open(&name).unwrap_err().to_string();
            assert!(error.contains("leads to"), "{error}");
        }
        assert_eq!(open(&top.join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
