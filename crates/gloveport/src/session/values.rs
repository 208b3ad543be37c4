//! Values of flags: times, sizes, labels, ports, secrets, networks.

use std::{
    fmt,
    path::{Component, Path, PathBuf},
    time::Duration,
};

use gloveport_allow_list::Rules;
use gloveport_protocol::seconds;
use gloveport_provider::{ExposedPort, Level, Mount, MountSource, NetworkPolicy, RunAs};

/// Longest time: about 30 years.
const LONGEST: f64 = 1e9;

/// Least memory of a sandbox, as container engines have it.
const LEAST_MEMORY: u64 = 6 << 20;

/// A time: `90`, `90s`, `0.5s`, `300ms`, `15m`, `1h30m`, `2d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds = if is_plain { text.parse().ok() } else { seconds::written(text) };
    seconds
        .filter(|seconds| (f64::MIN_POSITIVE..=LONGEST).contains(seconds))
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "it must be a time such as 2.5, 90s, 15m, 1h30m or 2d".to_owned())
}

/// A time limit, in seconds.
pub(crate) fn limit(text: &str) -> Result<f64, String> {
    duration(text).map(|limit| limit.as_secs_f64())
}

/// A number of seconds or GiB, as a number alone.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value < 1e9 => Ok(value),
        _ => Err("it must be a positive number".into()),
    }
}

/// A number of bytes: `1073741824`, `512m`, `1.5g`, `2GiB`. Units are multiples of 1,024.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number is checked to be positive and below 2^63"
)]
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || "it must be a size such as 512m, 1.5g or 2GiB".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit: f64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" | "kib" => 1024.0,
        "m" | "mb" | "mib" => 1024.0 * 1024.0,
        "g" | "gb" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "t" | "tb" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return Err(wrong()),
    };
    match number.parse::<f64>() {
        Ok(number) if number * unit >= 1.0 && number * unit < 9e18 => Ok((number * unit) as u64),
        _ => Err(wrong()),
    }
}

/// A limit of memory, in which a shell can live.
pub(crate) fn memory(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        enough @ LEAST_MEMORY.. => Ok(enough),
        _ => Err(format!("a shell and its server need at least {}m", LEAST_MEMORY >> 20)),
    }
}

/// A number of processors.
pub(crate) fn processors(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number <= 4096.0 => Ok(number),
        _ => Err("it must be a positive number of processors, such as 1.5".to_owned()),
    }
}

/// `NAME=VALUE`.
pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("it must have the form NAME=VALUE".to_owned()),
    }
}

/// A variable: `NAME=VALUE`, or `NAME` for the value that it has for us.
pub(crate) fn variable(text: &str) -> Result<(String, String), String> {
    if text.contains('=') {
        return pair(text)
            .map_err(|_| "it must have the form NAME=VALUE, or NAME for a variable of this environment".to_owned());
    }
    match std::env::var(text) {
        Ok(value) => Ok((text.to_owned(), value)),
        Err(std::env::VarError::NotPresent) => {
            Err(format!("this environment has no variable {text}; give it a value: NAME=VALUE"))
        }
        Err(std::env::VarError::NotUnicode(_)) => Err(format!("the value of {text} is not UTF-8")),
    }
}

/// `NAME` or `NAME:PORT`.
pub(super) fn port(text: &str) -> Result<ExposedPort, String> {
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (text, None),
    };
    let port = match port.map(str::parse) {
        None => None,
        Some(Ok(port)) if port > 0 => Some(port),
        Some(_) => return Err("the port must be a number from 1 to 65535".to_owned()),
    };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || !name.bytes().all(allowed) || name.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("it must have the form NAME or NAME:PORT, the name of letters, digits, `-`, `_`, `.`".to_owned());
    }
    Ok(ExposedPort { name: name.to_owned(), port })
}

/// `/DIRECTORY:/PATH[:ro|:overlay]` or `VOLUME:/PATH[:ro]`.
pub(super) fn mount(text: &str) -> Result<Mount, String> {
    let wrong = || "it must have the form /DIRECTORY:/PATH or VOLUME:/PATH, perhaps with :ro or :overlay".to_owned();
    // The colon behind a drive of Windows separates nothing.
    let drive = match Path::new(text).components().next() {
        Some(Component::Prefix(prefix)) => prefix.as_os_str().len(),
        _ => 0,
    };
    let (drive, rest) = text.split_at(drive);
    let parts: Vec<&str> = rest.split(':').collect();
    let (source, target, mode) = match parts.as_slice() {
        [source, target] => (*source, *target, "rw"),
        [source, target, mode @ ("ro" | "rw" | "overlay")] => (*source, *target, *mode),
        _ => return Err(wrong()),
    };
    let source = format!("{drive}{source}");
    if source.is_empty() || !target.starts_with('/') {
        return Err(wrong());
    }
    let source = match (Path::new(&source).is_absolute(), mode) {
        (true, "overlay") => MountSource::Overlay(source.into()),
        (true, _) => MountSource::Directory(source.into()),
        (false, "overlay") => {
            return Err("only a directory can be below a layer, and its path must be absolute".to_owned());
        }
        (false, _) if source.contains(std::path::is_separator) => {
            return Err("the path of a directory must be absolute".to_owned());
        }
        (false, _) => MountSource::Volume(source),
    };
    Ok(Mount { source, target: target.to_owned(), read_only: mode == "ro" })
}

/// `USER` or `USER:GROUP`, numbers.
pub(super) fn user(text: &str) -> Result<RunAs, String> {
    let number = |text: &str| {
        text.parse::<u32>().map_err(|_| "it must be a user id, or user and group ids: 1000:1000".to_owned())
    };
    let (user, group) = match text.split_once(':') {
        Some((user, group)) => (number(user)?, Some(number(group)?)),
        None => (number(text)?, None),
    };
    Ok(RunAs { user, group, files_group: None })
}

/// `full`, `none`, or hosts and networks with commas between them.
pub(super) fn network(text: &str) -> Result<NetworkPolicy, String> {
    match text {
        "full" => Ok(NetworkPolicy::Full),
        "none" => Ok(NetworkPolicy::None),
        hosts if hosts.split(',').all(|host| !host.trim().is_empty()) => {
            Ok(NetworkPolicy::Only(hosts.split(',').map(|host| host.trim().to_owned()).collect()))
        }
        _ => Err("it must be `full`, `none`, or hosts and networks with commas between them".to_owned()),
    }
}

/// How far a sandbox is kept apart from the machine that it is on.
pub(crate) fn level(text: &str) -> Result<Level, String> {
    Level::named(text).ok_or_else(|| "it must be `none`, `files`, `container` or `gvisor`".to_owned())
}

/// Where the value of a secret variable comes from.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum SecretFrom {
    /// The variable of that name of our own environment.
    Environment(String),
    /// A file; a line end at its end is not part of it.
    File(String, PathBuf),
}

impl fmt::Debug for SecretFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Environment(name) | Self::File(name, _)) = self;
        f.debug_tuple("SecretFrom").field(name).finish()
    }
}

/// A secret variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SecretGiven {
    pub(super) from: SecretFrom,
    /// The hosts that get it, while the sandbox has a placeholder; none if the sandbox has it itself.
    pub(super) hosts: Vec<String>,
}

/// `NAME[@HOST,…]` or `NAME[@HOST,…]=@FILE`. The value itself is refused: everybody on the machine sees the arguments of
/// processes.
pub(super) fn secret(text: &str) -> Result<SecretGiven, String> {
    let name_is_good = |name: &str| {
        let first = name.bytes().next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_');
        first && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let (target, file) = text.split_once("=@").map_or((text, None), |(target, file)| (target, Some(file)));
    let (name, hosts) = target.split_once('@').map_or((target, None), |(name, hosts)| (name, Some(hosts)));
    if !name_is_good(name) || file.is_some_and(str::is_empty) {
        return Err(
            "it must have the form NAME, for a variable of this environment, or NAME=@FILE, each with @HOST behind \
                    NAME if only that host is to get it; a value itself would be seen by everybody on this machine"
                .to_owned(),
        );
    }
    let hosts: Vec<String> = hosts.into_iter().flat_map(|hosts| hosts.split(',')).map(str::to_owned).collect();
    Rules::parse(&hosts).map_err(|error| error.to_string())?;
    let from = match file {
        Some(file) => SecretFrom::File(name.to_owned(), file.into()),
        None => SecretFrom::Environment(name.to_owned()),
    };
    Ok(SecretGiven { from, hosts })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_are_seconds_without() {
        for (text, expected) in [
            ("90", Some(90)),
            ("1.5h", Some(5400)),
            ("90s", Some(90)),
            ("15m", Some(900)),
            ("1h30m", Some(5400)),
            ("", None),
            ("0", None),
            ("0s", None),
            ("-1", None),
            (".", None),
            ("inf", None),
            ("1e3", None),
            ("99999999999999999999d", None),
            ("999999999999d", None),
        ] {
            assert_eq!(duration(text).ok(), expected.map(Duration::from_secs), "{text}");
        }
        for (text, expected) in [("0.5", 500), ("300ms", 300)] {
            assert_eq!(duration(text).ok(), Some(Duration::from_millis(expected)), "{text}");
        }
    }

    #[test]
    fn sizes_have_units_and_are_bytes_without() {
        for (text, expected) in [
            ("1024", Some(1024)),
            ("512m", Some(512 << 20)),
            ("1.5g", Some(3 << 29)),
            ("2GiB", Some(2 << 30)),
            ("1kb", Some(1024)),
            ("1T", Some(1 << 40)),
            ("0", None),
            ("m", None),
            ("1x", None),
            ("-1m", None),
            ("1.2.3m", None),
            ("99999999999t", None),
        ] {
            assert_eq!(bytes(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn a_limit_of_memory_leaves_room_for_a_shell() {
        assert_eq!(memory("6m"), Ok(6 << 20));
        assert!(memory("10k").is_err_and(|told| told.contains("at least 6m")));
    }

    #[test]
    fn ports_networks_and_labels_are_parsed_at_the_edge() {
        let exposed = |name: &str, port| Some(ExposedPort { name: name.to_owned(), port });
        for (text, expected) in [
            ("web", exposed("web", None)),
            ("web:8080", exposed("web", Some(8080))),
            ("8080", None),
            (":8080", None),
            ("web:0", None),
            ("web:65536", None),
            ("a b", None),
        ] {
            assert_eq!(port(text).ok(), expected, "{text}");
        }
        let only = |hosts: &[&str]| Some(NetworkPolicy::Only(hosts.iter().map(|host| (*host).to_owned()).collect()));
        for (text, expected) in [
            ("full", Some(NetworkPolicy::Full)),
            ("none", Some(NetworkPolicy::None)),
            ("example.com,10.0.0.0/8", only(&["example.com", "10.0.0.0/8"])),
            ("a, b", only(&["a", "b"])),
            ("", None),
            ("a,,b", None),
        ] {
            assert_eq!(network(text).ok(), expected, "{text}");
        }
        assert_eq!((level("none"), level("files")), (Ok(Level::None), Ok(Level::Files)));
        assert_eq!(level("all").unwrap_err(), "it must be `none`, `files`, `container` or `gvisor`");
        assert_eq!(pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert!(pair("a").is_err() && pair("=b").is_err());
        assert_eq!(variable("a=b=c"), pair("a=b=c"));
        assert_eq!(variable("PATH").ok(), std::env::var("PATH").ok().map(|path| ("PATH".to_owned(), path)));
        assert!(variable("=b").is_err() && variable("").is_err() && variable("GLOVEPORT_NO_SUCH_VARIABLE").is_err());
    }

    #[test]
    fn mounts_and_users_are_parsed_at_the_edge() {
        let mounted = |source, read_only| Some(Mount { source, target: "/b".to_owned(), read_only });
        for (text, expected) in [
            ("/a:/b", mounted(MountSource::Directory("/a".into()), false)),
            ("/a:/b:ro", mounted(MountSource::Directory("/a".into()), true)),
            ("/a:/b:overlay", mounted(MountSource::Overlay("/a".into()), false)),
            ("a:/b:rw", mounted(MountSource::Volume("a".to_owned()), false)),
            ("a/c:/b", None),
            ("a:/b:overlay", None),
            ("/a:b", None),
            ("/a", None),
            (":/b", None),
            ("/a:/b:x", None),
        ] {
            assert_eq!(mount(text).ok(), expected, "{text}");
        }
        assert_eq!(user("1000:7").unwrap().group, Some(7));
        assert_eq!(user("0").unwrap().user, 0);
        assert!(user("root").is_err() && user("1:").is_err() && user("-1").is_err());
    }

    #[test]
    fn the_value_of_a_secret_is_not_taken_from_the_command_line() {
        let (token, file) =
            (SecretFrom::Environment("T".to_owned()), SecretFrom::File("T".to_owned(), "/f=x@y".into()));
        for (text, from, hosts) in [
            ("T", &token, &[][..]),
            ("T=@/f=x@y", &file, &[]),
            ("T@a.test,*.b.test:8443", &token, &["a.test", "*.b.test:8443"]),
            ("T@a.test=@/f=x@y", &file, &["a.test"]),
        ] {
            let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
            assert_eq!(secret(text), Ok(SecretGiven { from: from.clone(), hosts }), "{text}");
        }
        for text in ["", "T=hunter2", "T=", "T=@", "=@f", "1T", "a b", "a-b", "T@", "T@a,,b", "T@a=hunter2", "@a"] {
            assert!(secret(text).is_err(), "{text}");
        }
        assert!(!format!("{:?}", secret("T=@/secret/file")).contains("file"));
    }
}
