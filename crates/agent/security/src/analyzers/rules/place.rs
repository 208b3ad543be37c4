//! Where a path leads, as far as its text says.

use std::path::Path;

/// Stands in a text for what only a shell knows. No word of a shell can contain it.
pub(super) const UNKNOWN: char = '\0';

/// Where things are.
#[derive(Debug, Clone)]
pub(super) struct Map {
    /// The workspace, in the form of [`Map::path`].
    workspace: String,
}

/// A path without `.`, `..` and patterns at its end, and with `~` in place of home directories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Location {
    /// Begins with `/` or `~`; empty if nobody knows.
    pub(super) path: String,
    /// Whether everything in the directory is meant and not itself.
    pub(super) contents: bool,
}

/// What a path is to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Nobody knows before it runs.
    Unknown,
    /// The root of the file system.
    Root,
    /// A home directory, or all of them.
    Home,
    /// A directory that the system cannot do without.
    System,
    /// The workspace, or a directory above it.
    Workspace,
    /// In the workspace.
    Inside,
    /// For temporary files.
    Temporary,
    /// A device that stores nothing: `/dev/null` and the like.
    Sink,
    /// A disk.
    Disk,
    /// Anywhere else.
    Outside,
}

/// Directories at the root of a system.
const TOP: [&str; 29] = [
    "bin",
    "boot",
    "dev",
    "etc",
    "home",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "media",
    "mnt",
    "opt",
    "proc",
    "root",
    "run",
    "sbin",
    "srv",
    "sys",
    "usr",
    "var",
    "nix",
    "snap",
    "Applications",
    "Library",
    "System",
    "Users",
    "Volumes",
    "private",
    "lost+found",
];

/// Directories of which every part belongs to the system.
const WHOLE: [&str; 6] = ["/bin", "/boot", "/lib", "/lib64", "/sbin", "/sys"];

/// Directories whose direct entries belong to the system.
const PARTLY: [&str; 2] = ["/etc", "/usr"];

/// Beginnings of the names of disks below `/dev`.
const DISKS: [&str; 12] = ["sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "dm-", "mapper/", "md", "loop", "mem"];

impl Map {
    pub(super) fn new(workspace: &Path) -> Self {
        let text = workspace.to_string_lossy();
        let workspace = if text.starts_with('/') { normal(&text) } else { "/workspace".to_owned() };
        Self { workspace }
    }

    /// The workspace.
    pub(super) fn workspace(&self) -> &str {
        &self.workspace
    }

    /// Where a path leads that is used in this directory; none is a directory that nobody knows.
    pub(super) fn locate(path: &str, directory: Option<&str>) -> Location {
        let (path, contents) = without_pattern(path);
        let absolute = match path.chars().next() {
            Some('/' | '~') => path.to_owned(),
            None | Some(UNKNOWN) => return Location { path: String::new(), contents },
            Some(_) => match directory {
                Some(directory) => format!("{directory}/{path}"),
                None => return Location { path: String::new(), contents },
            },
        };
        Location { path: normal(&absolute), contents }
    }

    /// What a location is to the user.
    pub(super) fn place(&self, location: &Location) -> Place {
        let path = location.path.as_str();
        let workspace = self.workspace.as_str();
        if path.is_empty() {
            return Place::Unknown;
        }
        if path == "/" {
            return Place::Root;
        }
        if below(path, workspace).is_some_and(|rest| !rest.is_empty()) {
            return Place::Inside;
        }
        if path == "~" || path == "/home" || path == "/Users" {
            return Place::Home;
        }
        if below(workspace, path).is_some() {
            return Place::Workspace;
        }
        if let Some(name) = path.strip_prefix("/dev/") {
            return device(name);
        }
        if ["/tmp", "/var/tmp", "/private/tmp"].iter().any(|base| below(path, base).is_some()) {
            return Place::Temporary;
        }
        if is_system(path) { Place::System } else { Place::Outside }
    }
}

/// What of a path lies below a directory: nothing if it is the directory itself.
pub(super) fn below<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    if directory == "/" {
        return path.strip_prefix('/');
    }
    let rest = path.strip_prefix(directory)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}

fn device(name: &str) -> Place {
    if DISKS.iter().any(|disk| name.starts_with(disk)) {
        Place::Disk
    } else if name.starts_with("shm") || name.starts_with("mqueue") {
        Place::Temporary
    } else {
        Place::Sink
    }
}

fn is_system(path: &str) -> bool {
    let Some(relative) = path.strip_prefix('/') else { return false };
    let depth = relative.split('/').count();
    let top = relative.split('/').next().unwrap_or_default();
    // A pattern at the root can mean any directory there.
    if depth == 1 && (TOP.contains(&top) || top.contains(['*', '?', '[', UNKNOWN])) {
        return true;
    }
    let in_whole = WHOLE.iter().any(|base| below(path, base).is_some());
    let in_part = depth == 2 && PARTLY.iter().any(|base| below(path, base).is_some());
    in_whole || in_part || path == "/var/lib"
}

/// Splits off a pattern at the end that means everything in the directory.
fn without_pattern(path: &str) -> (&str, bool) {
    for pattern in ["/*", "/**", "/.*", "/.[!.]*", "/{*,.*}"] {
        if let Some(directory) = path.strip_suffix(pattern) {
            return (if directory.is_empty() { "/" } else { directory }, true);
        }
    }
    match path {
        "*" | ".*" | "**" => (".", true),
        _ => (path, false),
    }
}

/// An absolute path without `.`, `..` and double slashes; home directories are `~`.
fn normal(path: &str) -> String {
    let (root, rest) = match path.strip_prefix('~') {
        // `~name` is a home directory like any other.
        Some(rest) => ("~", rest.split_once('/').map_or("", |(_, rest)| rest)),
        None => ("/", path),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in rest.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let homes = match (root, parts.as_slice()) {
        ("/", ["root", ..]) => Some(1),
        ("/", ["home" | "Users", _name, ..]) => Some(2),
        _ => None,
    };
    match homes {
        Some(count) => join("~", parts.get(count..).unwrap_or_default()),
        None => join(root, &parts),
    }
}

fn join(root: &str, parts: &[&str]) -> String {
    match (root, parts) {
        (root, []) => root.to_owned(),
        ("/", parts) => format!("/{}", parts.join("/")),
        (root, parts) => format!("{root}/{}", parts.join("/")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_where_its_text_says() {
        let map = Map::new(Path::new("/workspace/project"));
        let rows = [
            ("/", Place::Root),
            ("//", Place::Root),
            ("/*", Place::Root),
            ("/usr/../..", Place::Root),
            ("~", Place::Home),
            ("~/*", Place::Home),
            ("~other", Place::Home),
            ("/root", Place::Home),
            ("/home/somebody/", Place::Home),
            ("/home", Place::Home),
            ("/etc", Place::System),
            ("/usr/lib", Place::System),
            ("/lib/modules/x", Place::System),
            ("/h*", Place::System),
            ("/var/lib", Place::System),
            ("/var/lib/apt/lists", Place::Outside),
            ("/usr/local/bin/x", Place::Outside),
            ("~/.cache/x", Place::Outside),
            (".", Place::Workspace),
            ("*", Place::Workspace),
            ("..", Place::Workspace),
            ("/workspace", Place::Workspace),
            ("src/main.rs", Place::Inside),
            ("./src/../target", Place::Inside),
            ("/workspace/project/a", Place::Inside),
            ("/workspace/project2", Place::Outside),
            ("../other", Place::Outside),
            ("../../etc", Place::System),
            ("/tmp", Place::Temporary),
            ("/tmp/a", Place::Temporary),
            ("/tmp/../etc", Place::System),
            ("/dev/null", Place::Sink),
            ("/dev/shm/a", Place::Temporary),
            ("/dev/sda1", Place::Disk),
            ("\0/a", Place::Unknown),
            ("", Place::Unknown),
        ];
        for (path, place) in rows {
            assert_eq!(map.place(&Map::locate(path, Some("/workspace/project"))), place, "{path:?}");
        }
        assert_eq!(map.place(&Map::locate("a", None)), Place::Unknown);
    }

    #[test]
    fn a_workspace_in_a_home_directory_is_the_workspace() {
        let map = Map::new(Path::new("/home/somebody/project"));
        for (path, place) in [
            ("/home/somebody/project/a", Place::Inside),
            ("~/project/a", Place::Inside),
            ("~", Place::Home),
            ("~/other", Place::Outside),
            ("..", Place::Home),
        ] {
            assert_eq!(map.place(&Map::locate(path, Some(map.workspace()))), place, "{path:?}");
        }
    }
}
