//! Which sandbox a host means (remote-runtime-api 4, sub-domain form): `{runtime_id}.example.org`.

use gloveport_provider::SandboxId;

/// Longest part of a host name.
const LABEL: usize = 63;
/// Longest host name.
const NAME: usize = 253;
/// The ports that have hosts of their own, by their names.
const PORTS: [&str; 3] = ["vscode", "work-1", "work-2"];
/// What the name of a sandbox begins with in hosts where its id is spelled out.
const SPELLED: &str = "x-";

/// The domain whose sub-domains are sandboxes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Domain(String);

/// What a host means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// The gateway itself.
    Gateway,
    /// The server of a sandbox, or a port of it.
    Sandbox { id: SandboxId, port: Option<&'static str> },
    /// A host of the domain that no sandbox can have.
    Nobody,
}

impl Domain {
    /// Takes a name like `example.org`.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let name = plain(text);
        let is_label = |label: &str| {
            let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
            edge(label.bytes().next())
                && edge(label.bytes().last())
                && label.len() <= LABEL
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        // An address has no sub-domains.
        let is_address = name.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
        let fits = name.len() + LABEL < NAME && !is_address && name.split('.').all(is_label);
        fits.then_some(Self(name))
    }

    /// What a host, without its port, means.
    pub(crate) fn aim(&self, host: &str) -> Host {
        let host = plain(host);
        let Some(label) = host.strip_suffix(&self.0) else { return Host::Gateway };
        // The domain itself; and `badexample.org` ends with `example.org`, too.
        let Some(label) = label.strip_suffix('.') else { return Host::Gateway };
        if label.len() > LABEL {
            return Host::Nobody;
        }
        let named = PORTS.iter().find_map(|port| Some((*port, label.strip_prefix(port)?.strip_prefix('-')?)));
        let (port, name) = named.map_or((None, label), |(port, name)| (Some(port), name));
        match read(name) {
            Some(id) => Host::Sandbox { id, port },
            None => Host::Nobody,
        }
    }

    /// The name of a host right below the domain.
    pub(crate) fn label(&self, host: &str) -> Option<String> {
        let host = plain(host);
        let label = host.strip_suffix(&self.0)?.strip_suffix('.')?;
        (label.len() <= LABEL && !label.contains('.')).then(|| label.to_owned())
    }

    /// The host of a sandbox or of a port of it; none where its id is too long for one, or the name of the port is none of ours.
    pub(crate) fn host(&self, id: &SandboxId, port: Option<&str>) -> Option<String> {
        let (name, domain) = (write(id)?, &self.0);
        match port {
            None => Some(format!("{name}.{domain}")),
            Some(port) => PORTS.contains(&port).then(|| format!("{port}-{name}.{domain}")),
        }
    }
}

/// A host name as names are compared: in lower case, without the dot that may end it.
fn plain(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// The name of a sandbox in hosts: its id, or, where that cannot be one, the id spelled out.
fn write(id: &SandboxId) -> Option<String> {
    let name = if is_plain(id.as_str()) { id.to_string() } else { spell(id.as_str()) };
    // There is room for the name of a port before it.
    let longest = PORTS.iter().map(|port| port.len() + 1).max().unwrap_or_default();
    (name.len() + longest <= LABEL && !name.ends_with('-')).then_some(name)
}

/// The sandbox of this name. Each has only one, so that it is one origin in browsers.
fn read(name: &str) -> Option<SandboxId> {
    let id = match name.strip_prefix(SPELLED) {
        Some(rest) => unspell(rest)?,
        None => name.to_owned(),
    };
    let id = SandboxId::new(id).ok()?;
    (write(&id)? == name).then_some(id)
}

/// Whether an id stands for itself: in lower case, and neither like the port of another sandbox nor like one that is spelled out.
fn is_plain(id: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_port = PORTS.iter().any(|port| id.strip_prefix(port).is_some_and(|rest| rest.starts_with('-')));
    id.bytes().all(allowed) && !is_port && !id.starts_with(SPELLED)
}

/// With a dash before each letter that was a capital one, and dashes, underscores and dots as `--`, `-0` and `-1`.
fn spell(id: &str) -> String {
    let mut name = SPELLED.to_owned();
    for letter in id.chars() {
        match letter {
            '-' => name.push_str("--"),
            '_' => name.push_str("-0"),
            '.' => name.push_str("-1"),
            capital if capital.is_ascii_uppercase() => name.extend(['-', capital.to_ascii_lowercase()]),
            other => name.push(other),
        }
    }
    name
}

fn unspell(rest: &str) -> Option<String> {
    let mut id = String::with_capacity(rest.len());
    let mut letters = rest.chars();
    while let Some(letter) = letters.next() {
        id.push(match letter {
            '-' => match letters.next()? {
                '-' => '-',
                '0' => '_',
                '1' => '.',
                small if small.is_ascii_lowercase() => small.to_ascii_uppercase(),
                _ => return None,
            },
            other => other,
        });
    }
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_means_one_sandbox_or_none() {
        let domain = Domain::new("Example.org.").unwrap();
        let sandbox = |id: &str, port| Host::Sandbox { id: SandboxId::new(id).unwrap(), port };
        let longest = "a".repeat(56);
        for (host, expected) in [
            ("example.org", Host::Gateway),
            ("EXAMPLE.ORG.", Host::Gateway),
            ("badexample.org", Host::Gateway),
            ("127.0.0.1", Host::Gateway),
            ("example.org.evil.com", Host::Gateway),
            ("abc.example.org", sandbox("abc", None)),
            ("ABC.Example.Org.", sandbox("abc", None)),
            ("vscode-abc.example.org", sandbox("abc", Some("vscode"))),
            ("work-1-abc.example.org", sandbox("abc", Some("work-1"))),
            ("work-2-a-b.example.org", sandbox("a-b", Some("work-2"))),
            ("work-3-abc.example.org", sandbox("work-3-abc", None)),
            ("vscode.example.org", sandbox("vscode", None)),
            (&format!("{longest}.example.org"), sandbox(&longest, None)),
            (&format!("vscode-{longest}.example.org"), sandbox(&longest, Some("vscode"))),
            (&format!("a{longest}.example.org"), Host::Nobody),
            (&format!("{}.example.org", "a".repeat(64)), Host::Nobody),
            ("vscode-work-1-abc.example.org", Host::Nobody),
            ("x-work--1--abc.example.org", sandbox("work-1-abc", None)),
            ("vscode-.example.org", Host::Nobody),
            (".example.org", Host::Nobody),
            ("a.b.example.org", Host::Nobody),
            ("a..example.org", Host::Nobody),
            ("a_b.example.org", Host::Nobody),
            ("x--a-b-0c-1d--e.example.org", sandbox("AB_c.d-e", None)),
            ("vscode-x--a1.example.org", sandbox("A1", Some("vscode"))),
            ("x-abc.example.org", Host::Nobody),
            ("x-a-2.example.org", Host::Nobody),
            ("x-a-.example.org", Host::Nobody),
            ("x-.example.org", Host::Nobody),
            ("-a.example.org", Host::Nobody),
            ("a-.example.org", Host::Nobody),
            ("%61.example.org", Host::Nobody),
        ] {
            assert_eq!(domain.aim(host), expected, "{host}");
        }
    }

    #[test]
    fn what_is_told_means_the_same_sandbox_again() {
        let domain = Domain::new("example.org").unwrap();
        let id = |text: &str| SandboxId::new(text).unwrap();
        for name in ["abc", "a-b", "0", "openhands-runtime-0b1c", "2Zb9KxYq", "a.b", "a_b", "vscode-a", "x-a", "x"] {
            for port in [None, Some("vscode"), Some("work-1"), Some("work-2")] {
                let host = domain.host(&id(name), port).unwrap();
                assert_eq!(domain.aim(&host), Host::Sandbox { id: id(name), port }, "{host}");
            }
        }
        for name in ["work-2-", "a-", "A-", &"a".repeat(57), &"A".repeat(28)] {
            assert_eq!(domain.host(&id(name), None), None, "{name}");
        }
        assert_eq!(domain.host(&id("abc"), Some("mine")), None);
    }

    #[test]
    fn a_domain_is_a_name_and_no_address() {
        for (text, is_one) in [
            ("example.org", true),
            ("localhost", true),
            ("a-b.example", true),
            ("", false),
            (".", false),
            ("*.example.org", false),
            ("127.0.0.1", false),
            ("example.org:80", false),
            ("https://example.org", false),
            ("-a.org", false),
            ("a..org", false),
        ] {
            assert_eq!(Domain::new(text).is_some(), is_one, "{text}");
        }
    }
}
