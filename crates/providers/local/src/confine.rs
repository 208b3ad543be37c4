//! What a sandbox may do that is kept to a part of this machine ([`gloveport_sys::confined`]).
//!
//! ```text
//! sandboxes/ID/          the server alone: its record, its lock, its log
//!   own/
//!     home/              HOME of the tools
//!     tmp/               TMPDIR
//!     work/              where they work, if no directory is given
//! ```
//!
//! The directory has another name while the server starts. The kernel knows it by what it is, so the rules hold all the same.
//!
//! In a container the first two have the names that they have elsewhere: that of the user's home directory, and `/tmp`.

use std::{
    collections::BTreeMap,
    env, fs,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use gloveport_allow_list::Rules;
use gloveport_contract::local::directory::{GATE, OWN_CHANGES, OWN_ENGINE, OWN_HOME, OWN_TEMPORARY, OWN_WORK};
use gloveport_provider::{Capabilities, Confinement, Level, NetworkPolicy, ProviderError, SandboxSpec, Workspace};
use gloveport_sys::{amounts::Kept, confined, container::Root};

use crate::{
    audit,
    edge::{self, Edge},
    fault::{self, NAME},
    image::{Prepared, WORK_INSIDE},
    state::{PLACE, State},
};

/// What is wrong where the machine does not have a level.
pub(crate) const ISOLATION: &str = "isolation";
/// The home directory in a container, where the user has none that can be named there.
const HOME_INSIDE: &str = "/home/sandbox";
/// Temporary files in a container.
pub(crate) const TEMPORARY_INSIDE: &str = "/tmp";
/// Where tools are that people have installed for themselves, in their home directory. Nothing secret is in them.
const INSTALLED: [&str; 21] = [
    ".asdf",
    ".bun/bin",
    ".cargo/bin",
    ".cargo/git",
    ".cargo/registry",
    ".deno/bin",
    ".ghcup",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/uv/python",
    ".nvm",
    ".nix-profile",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman",
    ".volta",
    "anaconda3",
    "go/bin",
    "go/pkg",
    "miniconda3",
];

/// Of those what tools write as well, so that in a container, where the home directory has its own name, it is theirs.
const WRITTEN: [&str; 3] = [".cargo/git", ".cargo/registry", "go/pkg"];

/// Processes and threads of a container that are its server's.
const OWN_PROCESSES: u64 = 20;
/// Memory of a container that is its server's, and that of one on a kernel of its own.
const OWN_MEMORY: [u64; 2] = [32 << 20, 256 << 20];
/// All addresses.
const EVERYBODY: [&str; 2] = ["0.0.0.0/0", "::/0"];
/// Where programs are that choose a version, beside the directory of those that are named.
const VERSIONS: [&str; 2] = ["versions", "installs"];
/// The variable that names a virtual environment.
const VIRTUAL_ENVIRONMENT: &str = "VIRTUAL_ENV";
/// Where environments of IPython are, in the home directory.
const ENVIRONMENTS: &str = ".cache/gloveport/kernels";

/// What the server of a sandbox is started with.
#[derive(Debug)]
pub(crate) struct Confined {
    /// What its root directory is made from, if that is not this machine.
    pub(crate) image: Option<Arc<Prepared>>,
    /// The kernel of its own, if it is to have one: `runsc`.
    pub(crate) gvisor: Option<PathBuf>,
    /// The name of the home directory, in a container.
    pub(crate) home: Option<PathBuf>,
    /// Whether it works in a directory of its own.
    pub(crate) has_own_work: bool,
    pub(crate) read: Vec<PathBuf>,
    pub(crate) write: Vec<PathBuf>,
    pub(crate) network: Network,
    pub(crate) processes: Option<u64>,
    /// What all its processes together may use, in a container.
    pub(crate) memory: Option<u64>,
    pub(crate) cpu_thousandths: Option<u64>,
    /// The secrets that it uses and never has.
    pub(crate) edge: Option<Edge>,
    /// Where it is recorded what happens in it.
    pub(crate) audit: Option<PathBuf>,
}

/// Whom the tools of a sandbox can talk to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Network {
    Full,
    None,
    /// What these rules name.
    Only(Vec<String>),
}

/// What can be had with a level beside what can be had without.
pub(crate) fn capabilities(level: Level, without: &Capabilities) -> Capabilities {
    Capabilities { limit_cpus: level.has_root() && Kept::here().processors, ..without.clone().kept_apart(level) }
}

/// Why there is no limit on processors.
pub(crate) fn no_processors(level: Level) -> ProviderError {
    let what = if level.has_root() {
        format!(
            "a limit on processors here: no control group with the controller `cpu` is this user's ({})",
            Kept::remedy()
        )
    } else {
        "a limit on processors without the level `container` (`--isolation container`) or `gvisor`".to_owned()
    };
    ProviderError::Unsupported { provider: NAME.to_owned(), what }
}

/// Processors in thousandths of one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is positive and bounded")]
fn thousandths(cpus: f64) -> u64 {
    (cpus * 1000.0).round().clamp(1.0, 1e9) as u64
}

/// How far the sandbox is kept apart.
pub(crate) fn level(spec: &SandboxSpec) -> Level {
    spec.confinement.as_ref().map_or(Level::None, |confinement| confinement.level)
}

/// The same sandbox on each level that it may have, in the order in which they are tried. Each says in a label which it is.
pub(crate) fn candidates(spec: &SandboxSpec) -> Vec<SandboxSpec> {
    let Some(wanted) = &spec.confinement else { return vec![spec.clone()] };
    let is_meant = |level: &Level| if wanted.or_weaker { *level <= wanted.level } else { *level == wanted.level };
    let at = |level: Level| {
        let mut spec = spec.clone();
        spec.confinement = Some(Confinement { level, or_weaker: false, ..wanted.clone() });
        spec.labels.insert(Level::LABEL.to_owned(), level.name().to_owned());
        if let Some(file) = &spec.audit {
            spec.labels.insert(audit::LABEL.to_owned(), file.display().to_string());
        }
        spec
    };
    Level::ALL.into_iter().rev().filter(is_meant).map(at).collect()
}

/// Whether an error says that the machine does not have the level that was tried.
pub(crate) fn is_missing(error: &ProviderError) -> bool {
    matches!(error, ProviderError::Spec { field, .. } if field == ISOLATION)
}

/// Whom its tools can talk to.
fn network(spec: &SandboxSpec, edge: Option<&Edge>) -> Result<Network, ProviderError> {
    Ok(match &spec.network {
        NetworkPolicy::None if edge.is_some() => {
            let reason =
                "a secret is put in on the way to its hosts, and there is no way; name the hosts, or leave it out";
            return Err(wrong("network", reason.to_owned()));
        }
        // Whoever is to put them in stands between the sandbox and everybody.
        NetworkPolicy::Full if edge.is_some() => Network::Only(EVERYBODY.map(str::to_owned).into()),
        NetworkPolicy::Full => Network::Full,
        NetworkPolicy::None => Network::None,
        NetworkPolicy::Only(_) if level(spec) == Level::Files => {
            let reason = "at the level `files` it is `full` or `none`; the level `container` knows hosts";
            return Err(wrong("network", reason.to_owned()));
        }
        NetworkPolicy::Only(hosts) => {
            let of_secrets = edge.into_iter().flat_map(|edge| &edge.rules);
            let rules =
                Rules::parse(hosts.iter().chain(of_secrets)).map_err(|error| wrong("network", error.to_string()))?;
            if rules.is_empty() { Network::None } else { Network::Only(rules.texts().collect()) }
        }
    })
}

fn wrong(field: &str, reason: String) -> ProviderError {
    ProviderError::Spec { field: field.to_owned(), reason }
}

/// What the server is told; `None` where nothing keeps it. What cannot be had is refused.
pub(crate) fn wanted(
    spec: &SandboxSpec,
    image: Option<Arc<Prepared>>,
    state: &State,
    environment: &BTreeMap<String, String>,
) -> Result<Option<Confined>, ProviderError> {
    let Some(confinement) = &spec.confinement else { return Ok(None) };
    match confinement.level {
        Level::None if confinement.read.is_empty() && confinement.write.is_empty() => return Ok(None),
        Level::None => {
            let reason = "places are given to sandboxes that are kept from others; choose a level other than `none`";
            return Err(wrong(ISOLATION, reason.to_owned()));
        }
        Level::Files => {
            let support = confined::support();
            support.map_err(|missing| {
                wrong(ISOLATION, not_here(Level::Files, &format!("{}; {}", missing.reason, missing.remedy)))
            })?;
        }
        // The server tells whether it can be had, when it makes one.
        Level::Container | Level::Gvisor => {}
    }
    let gvisor = (confinement.level == Level::Gvisor).then(|| {
        let path = environment.get("PATH").map_or("", String::as_str);
        runsc(path).ok_or_else(|| {
            let reason = "there is no `runsc` in PATH; install gVisor (https://gvisor.dev/docs/user_guide/install, or Debian's package `runsc`)";
            wrong(ISOLATION, not_here(Level::Gvisor, reason))
        })
    });
    let gvisor = gvisor.transpose()?;
    let edge = Edge::prepare(spec, environment)?;
    let network = network(spec, edge.as_ref())?;
    let home = environment.get("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let check = |field: &str, place: &Path, is_written: bool| {
        let real = fs::canonicalize(place)
            .map_err(|error| wrong(field, format!("{} cannot be used: {error}", place.display())))?;
        let holds = |other: &Path| fs::canonicalize(other).unwrap_or_else(|_| other.to_owned()).starts_with(&real);
        let is_home = home.as_deref().is_some_and(holds);
        if is_written && is_home {
            let reason = "your home directory is in it, which is what is to be protected; name a directory with the work alone, or \
                 choose --isolation none";
            return Err(wrong(field, format!("{}: {reason}", place.display())));
        }
        if is_home || holds(state.root()) {
            let reason = "the keys of other sandboxes are in it; name what is needed of it";
            return Err(wrong(field, format!("{}: {reason}", place.display())));
        }
        Ok(real)
    };
    let mut write = Vec::new();
    if let Workspace::Directory(directory) = &spec.workspace {
        fs::create_dir_all(directory).map_err(fault::file("make the workspace", directory))?;
        write.push(check("workspace", directory, true)?);
    }
    for place in &confinement.write {
        write.push(check("allow-write", place, true)?);
    }
    let mut read =
        confinement.read.iter().map(|place| check("allow-read", place, false)).collect::<Result<Vec<_>, _>>()?;
    let home = if let Some(image) = &image {
        Some(image.home())
    } else {
        read.extend(programs(home.as_deref(), state.root(), environment));
        read.extend(active(&spec.environment).and_then(|place| check("environment", &place, false).ok()));
        confinement.level.has_root().then(|| home_inside(home.as_deref()))
    };
    if let Some(name) = &home {
        if image.is_none() {
            read.retain(|place| !WRITTEN.iter().any(|name| place.ends_with(name)));
            read.extend(environments(name));
        }
        for place in read.iter().chain(&write) {
            if let Some(own) = ["/proc", "/dev", "/sys"].into_iter().find(|own| place.starts_with(own)) {
                let reason = format!("a container has its own {own}, so {} cannot be given", place.display());
                return Err(wrong(ISOLATION, reason));
            }
        }
    }
    let audit = spec.audit.as_deref().map(|path| audit::place(path, &write)).transpose()?;
    let has_own_work = !matches!(spec.workspace, Workspace::Directory(_));
    let processes = spec.limits.processes.map(|count| count.saturating_add(OWN_PROCESSES));
    let own_memory = OWN_MEMORY[usize::from(gvisor.is_some())];
    let memory = spec.limits.memory.filter(|_| home.is_some()).map(|bytes| bytes.saturating_add(own_memory));
    let cpu_thousandths = spec.limits.cpus.map(thousandths);
    Ok(Some(Confined {
        image,
        gvisor,
        home,
        has_own_work,
        read,
        write,
        network,
        processes,
        memory,
        cpu_thousandths,
        edge,
        audit,
    }))
}

/// Environments of IPython that were made on this machine, each by itself: others are made beside them.
fn environments(home: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(home.join(ENVIRONMENTS)).into_iter().flatten().flatten();
    let found = all.filter(|entry| entry.path().join("pyvenv.cfg").is_file());
    // A link is not what it seems.
    found.filter_map(|entry| fs::canonicalize(entry.path()).ok().filter(|real| *real == entry.path())).collect()
}

/// gVisor's program.
pub fn runsc(path: &str) -> Option<PathBuf> {
    let found = env::split_paths(path).filter(|place| place.is_absolute()).map(|place| place.join("runsc"));
    let is_program = |file: &PathBuf| {
        fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    found.into_iter().find(is_program).and_then(|file| fs::canonicalize(file).ok())
}

/// That a level cannot be had, why, and what helps.
pub(crate) fn not_here(level: Level, reason: &str) -> String {
    format!("the level `{}` cannot be had here: {reason}", level.name())
}

/// The name of the home directory in a container: the user's own, so that what is installed there finds itself.
fn home_inside(home: Option<&Path>) -> PathBuf {
    let is_free = |home: &&Path| {
        let is_of_system = confined::system_places().any(|place| home.starts_with(place) || place.starts_with(home));
        let is_taken = [TEMPORARY_INSIDE, "/dev", "/run"].iter().any(|place| Path::new(place) == *home);
        let is_plain = home.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        !is_of_system && !is_taken && is_plain
    };
    home.filter(is_free).map_or_else(|| HOME_INSIDE.into(), Path::to_owned)
}

/// The virtual environment that variables name, whose programs use what is beside them.
fn active(environment: &BTreeMap<String, String>) -> Option<PathBuf> {
    let named = environment.get(VIRTUAL_ENVIRONMENT).map(PathBuf::from);
    named.filter(|place| place.is_absolute() && place.join("pyvenv.cfg").is_file())
}

/// Names it as it is named inside, where no link leads there.
pub(crate) fn name_active(environment: &mut BTreeMap<String, String>) {
    if let Some(real) = active(environment).and_then(|place| fs::canonicalize(place).ok()) {
        environment.insert(VIRTUAL_ENVIRONMENT.to_owned(), real.display().to_string());
    }
}

/// Where programs are, beside those of the system: what `PATH` names, and what people install for themselves. A place that
/// holds the home directory or the state of sandboxes is none.
fn programs(home: Option<&Path>, state: &Path, environment: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let path = environment.get("PATH").map_or("", String::as_str);
    // Programs that start those of the version that is chosen, which are beside their directory.
    let with_versions = |place: PathBuf| match place.parent() {
        // Whatever else has such a directory is not given with it.
        Some(parent) if place.ends_with("shims") && VERSIONS.iter().any(|name| parent.join(name).is_dir()) => {
            parent.to_owned()
        }
        _ => place,
    };
    let named = env::split_paths(path).filter(|place| place.is_absolute()).map(with_versions);
    let installed = home.into_iter().flat_map(|home| INSTALLED.iter().map(|name| home.join(name)));
    // An editor that has no other name.
    let editor = environment.get("OPENVSCODE_SERVER_ROOT").map(PathBuf::from).filter(|place| place.is_absolute());
    let is_of_system = |place: &Path| confined::system_places().any(|system| place.starts_with(system));
    let truly = |place: &Path| fs::canonicalize(place).unwrap_or_else(|_| place.to_owned());
    let kept: Vec<PathBuf> = home.into_iter().chain([state]).map(truly).collect();
    let mut found = Vec::new();
    for place in named.chain(installed).chain(active(environment)).chain(editor) {
        let Ok(real) = fs::canonicalize(place) else { continue };
        let is_closed = kept.iter().any(|closed| closed.starts_with(&real));
        if real.is_dir() && !is_closed && !is_of_system(&real) && !found.contains(&real) {
            found.push(real);
        }
    }
    found
}

/// Makes what the sandbox has for itself in the directory of its server.
pub(crate) fn make_place(directory: &Path, is_layered: bool, has_kernel: bool) -> Result<PathBuf, ProviderError> {
    let place = directory.join(PLACE);
    let make = |part: &Path, mode: u32| {
        let made = fs::DirBuilder::new().mode(mode).create(part);
        made.map_err(fault::file("make the directory", part))
    };
    for part in [place.clone(), place.join(OWN_HOME), place.join(OWN_TEMPORARY), place.join(OWN_WORK)] {
        make(&part, 0o700)?;
    }
    if has_kernel {
        make(&place.join(OWN_ENGINE), 0o700)?;
    }
    if is_layered {
        let changes = place.join(OWN_CHANGES);
        make(&changes, 0o700)?;
        make(&changes.join(Root::WORK), 0o700)?;
        let upper = changes.join(Root::UPPER);
        make(&upper, 0o755)?;
        // The root directory has what this one has, whatever is taken off of new ones here.
        fs::set_permissions(&upper, fs::Permissions::from_mode(0o755)).map_err(fault::file("open", &upper))?;
    }
    // As `/tmp` is everywhere. Who is not of the sandbox does not get this far.
    let temporary = place.join(OWN_TEMPORARY);
    let open = fs::set_permissions(&temporary, fs::Permissions::from_mode(0o1777));
    open.map_err(fault::file("open", &temporary))?;
    // By its own name, as all places.
    let place = fs::canonicalize(&place).map_err(fault::file("look at", &place))?;
    Ok(place)
}

/// Where it works if nothing else is asked for, once its directory has the last of its names.
pub(crate) fn workspace(directory: &Path, has_image: bool) -> PathBuf {
    if has_image { WORK_INSIDE.into() } else { directory.join(PLACE).join(OWN_WORK) }
}

/// Where its temporary files are.
pub(crate) fn temporary(directory: &Path, level: Level) -> PathBuf {
    if level.has_root() { TEMPORARY_INSIDE.into() } else { directory.join(PLACE).join(OWN_TEMPORARY) }
}

/// Programs that look in the home directory for what is installed, and the variables that tell them where it is.
const TOLD: [(&str, &str); 2] = [("RUSTUP_HOME", ".rustup"), ("PYENV_ROOT", ".pyenv")];

/// Variables that lead tools through the gate, where there is one.
pub(crate) fn way_out(spec: &SandboxSpec, environment: &mut BTreeMap<String, String>) {
    let has_secrets = !spec.edge_secrets.is_empty();
    if !has_secrets && !matches!(spec.network, NetworkPolicy::Only(_)) {
        return;
    }
    if has_secrets {
        edge::trust(environment);
    }
    let proxy = format!("http://127.0.0.1:{GATE}");
    for (name, value) in [("HTTP_PROXY", &*proxy), ("HTTPS_PROXY", &proxy), ("NO_PROXY", "localhost,127.0.0.1,::1")] {
        environment.insert(name.to_owned(), value.to_owned());
        environment.insert(name.to_lowercase(), value.to_owned());
    }
    // Node does not look at these otherwise.
    environment.insert("NODE_USE_ENV_PROXY".to_owned(), "1".to_owned());
    for name in ["ALL_PROXY", "all_proxy"] {
        environment.remove(name);
    }
}

/// Variables that lead tools to what is theirs, and to what is installed.
pub(crate) fn environment(directory: &Path, level: Level, environment: &mut BTreeMap<String, String>) {
    let home = environment.get("HOME").map(PathBuf::from);
    if let Some(home) = &home {
        for (name, place) in TOLD.map(|(name, place)| (name, home.join(place))) {
            if place.is_dir() {
                environment.entry(name.to_owned()).or_insert_with(|| place.display().to_string());
            }
        }
    }
    // The directories of the user that these name are closed.
    environment.retain(|name, _| !name.starts_with("XDG_"));
    let home = match level {
        Level::Container | Level::Gvisor => home_inside(home.as_deref()),
        Level::None | Level::Files => directory.join(PLACE).join(OWN_HOME),
    };
    for (name, place) in [("HOME", home), ("TMPDIR", temporary(directory, level))] {
        environment.insert(name.to_owned(), place.display().to_string());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn programs_are_read_and_what_holds_the_home_directory_or_keys_is_not_whatever_leads_there() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let at = |name: &str| top.join(name);
        for directory in [
            "pyenv/shims",
            "pyenv/versions",
            "data/shims",
            "users/me/shims",
            "users/me/versions",
            "users/me/.rustup",
            "users/me/go/bin",
            "users/me/go/src",
            "tools",
            "state/local",
        ] {
            fs::create_dir_all(at(directory)).unwrap();
        }
        symlink(at("users"), at("link")).unwrap();
        let named = [
            "pyenv/shims",
            "data/shims",
            "users/me/shims",
            "tools",
            "users",
            "users/me",
            "link",
            "link/me",
            "state",
            "",
            "none",
        ]
        .map(at);
        let path = env::join_paths(named).unwrap().into_string().unwrap();
        let environment = [("PATH".to_owned(), format!("{path}:relative:/usr/bin"))].into();
        let expected = ["data/shims", "pyenv", "tools", "users/me/.rustup", "users/me/go/bin"].map(at);
        for home in ["users/me", "link/me"] {
            let mut found = programs(Some(&at(home)), &at("state/local"), &environment);
            found.sort();
            assert_eq!(found, expected, "{home}");
        }
    }

    #[test]
    fn a_home_directory_has_its_own_name_in_a_container_unless_that_is_of_the_system() {
        for home in ["/home/me", "/root", "/var/lib/me", "/tmp/home"] {
            assert_eq!(home_inside(Some(Path::new(home))), Path::new(home));
        }
        for home in ["/", "/usr/me", "/var", "/nix", "/tmp", "/home/../usr"] {
            assert_eq!(home_inside(Some(Path::new(home))), Path::new(HOME_INSIDE), "{home}");
        }
        assert_eq!(home_inside(None), Path::new(HOME_INSIDE));
    }
}
