//! Keys that servers on this machine have made for themselves, kept where their user's other commands find them.
//!
//! `gloveport serve` writes a file when it listens, and removes it when it ends. A command that is given the URL of this
//! machine and no key looks for it. A key that is sent to somebody else's server is lost, so it is sent only while the
//! process that made it lives: it keeps the port from everybody else.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Read as _, Write as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

/// Longest file that is read.
const LONGEST: u64 = 4096;
/// Path of the directory below the one that the system gives to the user.
const DIRECTORY: &str = "gloveport/servers";

/// What a file says.
#[derive(Debug, Serialize, Deserialize)]
struct Content {
    key: String,
    #[serde(flatten)]
    process: Process,
}

/// A process that has no equal, unlike its number.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Process {
    pid: u32,
    /// When it started, in ticks after the start of the system.
    started: u64,
    /// Which start of the system that was.
    boot: String,
}

/// A key that is in a file for as long as this lives.
#[derive(Debug)]
pub(crate) struct Kept {
    path: PathBuf,
}

impl Drop for Kept {
    fn drop(&mut self) {
        // Without its process the file is of no use to anybody.
        let _gone = fs::remove_file(&self.path);
    }
}

/// A key of 256 random bits, as hexadecimal digits.
pub(crate) fn random() -> anyhow::Result<String> {
    gloveport_ids::random::<32>().context("the system gives no random numbers for a key")
}

/// Keeps the key of the server that listens on this address.
pub(crate) fn keep(address: SocketAddr, key: &str) -> anyhow::Result<Kept> {
    keep_in(&home()?, address, key)
}

fn keep_in(home: &Path, address: SocketAddr, key: &str) -> anyhow::Result<Kept> {
    let directory = home.join(DIRECTORY);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&directory);
    made.with_context(|| format!("cannot make the directory {} for the key", directory.display()))?;
    anyhow::ensure!(
        is_private(&directory),
        "the directory {} is not this user's alone; remove it, or set its mode to 700",
        directory.display()
    );
    let content =
        Content { key: key.to_owned(), process: Process::of(std::process::id()).context("cannot read /proc")? };
    let path = directory.join(name(address));
    // It appears as a whole, and in the place of one that a server left that was killed.
    let partial = directory.join(format!(".{}.{}", name(address), std::process::id()));
    let _left_over = fs::remove_file(&partial);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial);
    let text = serde_json::to_vec(&content)?;
    let written = file.and_then(|mut file| file.write_all(&text)).and_then(|()| fs::rename(&partial, &path));
    written.with_context(|| format!("cannot keep the key in {}", path.display()))?;
    Ok(Kept { path })
}

/// The key of the server at this URL, if it is one of this user on this machine that has made it for itself.
pub(crate) fn known_key(url: &str) -> Option<String> {
    let places = places(url);
    homes().iter().find_map(|home| find_in(home, &places))
}

fn find_in(home: &Path, places: &[SocketAddr]) -> Option<String> {
    let directory = home.join(DIRECTORY);
    if !is_private(&directory) {
        return None;
    }
    places.iter().find_map(|place| {
        let content = read(&directory.join(name(*place))).ok()?;
        (Process::of(content.process.pid).ok()? == content.process).then_some(content.key)
    })
}

fn read(path: &Path) -> io::Result<Content> {
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed()).open(path)?;
    if !is_ours(&file.metadata()?) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// Where a server can listen that answers at this URL, if that is on this machine for sure.
fn places(url: &str) -> Vec<SocketAddr> {
    let after_scheme = url.strip_prefix("http://").or_else(|| (!url.contains("://")).then_some(url));
    let Some(rest) = after_scheme else { return Vec::new() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let Some((host, port)) = authority.rsplit_once(':') else { return Vec::new() };
    let Ok(port) = port.parse() else { return Vec::new() };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let (v4, v6): (IpAddr, IpAddr) = (Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into());
    let mut addresses = match host.parse::<IpAddr>() {
        Ok(address) if address.is_loopback() => vec![address],
        Err(_) if host.eq_ignore_ascii_case("localhost") => vec![v4, v6],
        _ => return Vec::new(),
    };
    // One that listens on all addresses answers there, too.
    addresses.extend([IpAddr::from(Ipv4Addr::UNSPECIFIED), Ipv6Addr::UNSPECIFIED.into()]);
    addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect()
}

fn name(address: SocketAddr) -> String {
    format!("{}_{}.json", address.ip(), address.port())
}

impl Process {
    /// A process of this user that lives.
    fn of(pid: u32) -> io::Result<Self> {
        let directory = PathBuf::from(format!("/proc/{pid}"));
        let text = fs::read_to_string(directory.join("stat"))?;
        // The name of the program may have blanks and parentheses in it. The start is the 22nd field.
        let started = text.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().nth(19)?.parse().ok());
        let started = started.ok_or(io::ErrorKind::InvalidData)?;
        let status = fs::read_to_string(directory.join("status"))?;
        let uid =
            status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_ascii_whitespace().next()?.parse().ok());
        if uid != Some(rustix::process::getuid().as_raw()) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        Ok(Self { pid, started, boot: boot.trim().to_owned() })
    }
}

/// The directory of the user that a new file goes to.
fn home() -> anyhow::Result<PathBuf> {
    homes().into_iter().next().context(
        "there is no directory for the key: set XDG_RUNTIME_DIR, XDG_STATE_HOME or HOME, give a key with GLOVEPORT_KEY or \
         --key-file, or serve without one with --no-key",
    )
}

/// The directories of the user, the best one first. None is below a directory where others can make one before.
fn homes() -> Vec<PathBuf> {
    let directory = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let runtime = directory("XDG_RUNTIME_DIR").filter(|path| is_private(path));
    let state = directory("XDG_STATE_HOME").or_else(|| directory("HOME").map(|home| home.join(".local/state")));
    runtime.into_iter().chain(state).collect()
}

/// Whether a directory is this user's, and others may not do anything in it.
fn is_private(directory: &Path) -> bool {
    // The directory itself, not what a link leads to.
    fs::symlink_metadata(directory).is_ok_and(|metadata| metadata.is_dir() && is_ours(&metadata))
}

fn is_ours(metadata: &fs::Metadata) -> bool {
    const OTHERS: u32 = 0o077;
    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & OTHERS == 0
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn file(home: &Path) -> PathBuf {
        home.join(DIRECTORY).join("127.0.0.1_8000.json")
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    const ADDRESS: &str = "127.0.0.1:8000";

    #[test]
    fn a_key_is_found_while_its_server_lives_and_by_its_user_alone() {
        let home = tempfile::tempdir().unwrap();
        let found = |url| find_in(home.path(), &places(url));
        let kept = keep_in(home.path(), ADDRESS.parse().unwrap(), "secret").unwrap();
        assert_eq!((mode(&file(home.path())), mode(&home.path().join(DIRECTORY))), (0o600, 0o700));
        for (url, expected) in [
            ("http://127.0.0.1:8000", true),
            ("http://localhost:8000/x", true),
            ("127.0.0.1:8000", true),
            ("http://127.0.0.1:8001", false),
            ("http://127.0.0.2:8000", false),
            ("http://127.0.0.1", false),
            ("https://127.0.0.1:8000", false),
            ("http://example.org:8000", false),
            ("http://127.0.0.1:8000@example.org", false),
            ("http://127.0.0.1.example.org:8000", false),
            ("", false),
        ] {
            assert_eq!(found(url).as_deref(), expected.then_some("secret"), "{url}");
        }
        fs::set_permissions(file(home.path()), fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(found("http://localhost:8000"), None);
        fs::set_permissions(file(home.path()), fs::Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(home.path().join(DIRECTORY), fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(found("http://localhost:8000"), None);
        fs::set_permissions(home.path().join(DIRECTORY), fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(found("http://localhost:8000").as_deref(), Some("secret"));
        drop(kept);
        assert!(!file(home.path()).exists());
    }

    #[test]
    fn a_key_that_a_dead_server_left_is_not_sent_and_the_next_one_replaces_it() {
        let home = tempfile::tempdir().unwrap();
        let kept = keep_in(home.path(), ADDRESS.parse().unwrap(), "old").unwrap();
        let text = fs::read_to_string(file(home.path())).unwrap();
        let Content { process, .. } = serde_json::from_str(&text).unwrap();
        for (field, value) in [
            ("started", serde_json::json!(process.started + 1)),
            ("pid", serde_json::json!(u32::MAX)),
            ("boot", serde_json::json!("another")),
            // Of another user, unless this is root's.
            ("pid", serde_json::json!(1)),
        ] {
            let mut changed: serde_json::Value = serde_json::from_str(&text).unwrap();
            changed[field] = value;
            fs::write(file(home.path()), changed.to_string()).unwrap();
            assert_eq!(find_in(home.path(), &places("http://localhost:8000")), None, "{changed}");
        }
        let _next = keep_in(home.path(), ADDRESS.parse().unwrap(), "new").unwrap();
        assert_eq!(find_in(home.path(), &places("http://localhost:8000")).as_deref(), Some("new"));
        std::mem::forget(kept);
    }

    #[test]
    fn a_directory_or_file_that_somebody_else_prepared_is_not_used() {
        let (home, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(home.path().join("gloveport")).unwrap();
        symlink(elsewhere.path(), home.path().join(DIRECTORY)).unwrap();
        let error = keep_in(home.path(), ADDRESS.parse().unwrap(), "secret").unwrap_err().to_string();
        assert!(error.contains("is not this user's alone"), "{error}");
        assert!(fs::read_dir(elsewhere.path()).unwrap().next().is_none());

        let home = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let _kept = keep_in(other.path(), ADDRESS.parse().unwrap(), "theirs").unwrap();
        DirBuilder::new().recursive(true).mode(0o700).create(home.path().join(DIRECTORY)).unwrap();
        symlink(file(other.path()), file(home.path())).unwrap();
        assert_eq!(find_in(home.path(), &places("http://localhost:8000")), None);
        // A link is replaced, not followed.
        let _own = keep_in(home.path(), ADDRESS.parse().unwrap(), "own").unwrap();
        assert_eq!(find_in(other.path(), &places("http://localhost:8000")).as_deref(), Some("theirs"));
    }

    #[test]
    fn keys_have_256_bits_and_there_is_none_like_another() {
        let (one, other) = (random().unwrap(), random().unwrap());
        assert!(one.len() == 64 && one.bytes().all(|digit| digit.is_ascii_hexdigit()), "{one}");
        assert_ne!(one, other);
    }
}
