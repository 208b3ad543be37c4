//! Whom a request is for: names and addresses, in one spelling each.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
};

/// Most characters of a name (RFC 1035).
const LONGEST_NAME: usize = 253;
/// Most characters between two dots of a name.
const LONGEST_LABEL: usize = 63;

/// Why a text is neither a name nor an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// There is nothing.
    #[error("there is no host")]
    Missing,
    /// It is too long, or one of its parts is.
    #[error("a name has at most {LONGEST_NAME} characters, and at most {LONGEST_LABEL} between two dots")]
    TooLong,
    /// A part is empty.
    #[error("a part of the name between two dots is empty")]
    EmptyLabel,
    /// A character that names do not have.
    #[error("a name has only letters, digits, `-`, `_` and dots (write other letters as `xn--…`)")]
    Character,
    /// It would be read as an address by some and as a name by others.
    #[error(
        "the last part of a name is not a number; write an IPv4 address as four decimal numbers without leading zeros"
    )]
    Numeric,
    /// What is in brackets is no IPv6 address.
    #[error("what is in brackets is not an IPv6 address")]
    Brackets,
    /// The port is missing.
    #[error("there is no port")]
    NoPort,
    /// The port is none.
    #[error("the port is not a number from 1 to 65535")]
    Port,
    /// Something with `@`.
    #[error("it has a user name or a password, which a proxy does not pass on")]
    UserInfo,
}

/// A name in lower case, without a dot at its end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name(String);

impl Name {
    /// Reads a name. Numbers that some programs take for addresses (`127.1`, `0x7f000001`, `2130706433`) are none.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        let name = text.strip_suffix('.').unwrap_or(text);
        if name.is_empty() {
            return Err(HostError::Missing);
        }
        if name.len() > LONGEST_NAME || name.split('.').any(|label| label.len() > LONGEST_LABEL) {
            return Err(HostError::TooLong);
        }
        if name.split('.').any(str::is_empty) {
            return Err(HostError::EmptyLabel);
        }
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')) {
            return Err(HostError::Character);
        }
        let name = name.to_ascii_lowercase();
        if name.rsplit('.').next().is_some_and(is_numeric) {
            return Err(HostError::Numeric);
        }
        Ok(Self(name))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is a name below `parent`, and not `parent` itself.
    pub fn is_below(&self, parent: &Self) -> bool {
        self.0.strip_suffix(&parent.0).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether the last part of a name makes programs take all of it for an IPv4 address.
fn is_numeric(label: &str) -> bool {
    match label.strip_prefix("0x") {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

/// A name or an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name, which must be looked up.
    Name(Name),
    /// An address. An IPv4 address in IPv6 form is an IPv4 address.
    Address(IpAddr),
}

impl Host {
    /// Reads a host as it stands in a URL: IPv6 addresses are in brackets.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if let Some(inside) = text.strip_prefix('[') {
            let address = inside.strip_suffix(']').and_then(|inside| inside.parse::<Ipv6Addr>().ok());
            return address.map(|address| Self::Address(address.to_canonical())).ok_or(HostError::Brackets);
        }
        match text.parse() {
            Ok(address) => Ok(Self::Address(IpAddr::V4(address))),
            Err(_) => Name::parse(text).map(Self::Name),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "{name}"),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// The host.
    pub host: Host,
    /// The port; never 0.
    pub port: u16,
}

impl Target {
    /// Reads `host:port`. Without a port it is `default`; if there is none, that is an error.
    pub fn parse(text: &str, default: Option<u16>) -> Result<Self, HostError> {
        if text.contains('@') {
            return Err(HostError::UserInfo);
        }
        // In brackets there are colons too.
        let (host, port) = match text.rfind(']') {
            Some(end) => match &text[end + 1..] {
                "" => (text, None),
                rest => (&text[..=end], Some(rest.strip_prefix(':').ok_or(HostError::Brackets)?)),
            },
            None => match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        let port = match port {
            Some(text) => port_number(text)?,
            None => default.ok_or(HostError::NoPort)?,
        };
        Ok(Self { host: Host::parse(host)?, port })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// A port in decimal digits alone: `+80` is none.
pub fn port_number(text: &str) -> Result<u16, HostError> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(HostError::Port);
    }
    match text.parse() {
        Ok(0) | Err(_) => Err(HostError::Port),
        Ok(port) => Ok(port),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_one_spelling() {
        for (text, expected) in [
            ("Example.COM", Ok("example.com")),
            ("example.com.", Ok("example.com")),
            ("a_b.example-1.com", Ok("a_b.example-1.com")),
            ("localhost", Ok("localhost")),
            ("10.0.0.1", Ok("10.0.0.1")),
            ("[::1]", Ok("[::1]")),
            ("[2001:DB8:0:0::1]", Ok("[2001:db8::1]")),
            ("[::ffff:127.0.0.1]", Ok("127.0.0.1")),
            ("[::ffff:7f00:1]", Ok("127.0.0.1")),
            ("", Err(HostError::Missing)),
            (".", Err(HostError::Missing)),
            ("a..b", Err(HostError::EmptyLabel)),
            ("example.com..", Err(HostError::EmptyLabel)),
            ("b\u{fc}cher.de", Err(HostError::Character)),
            ("%6c%6fcalhost", Err(HostError::Character)),
            ("a b", Err(HostError::Character)),
            ("::1", Err(HostError::Character)),
            ("[::1", Err(HostError::Brackets)),
            ("[fe80::1%25eth0]", Err(HostError::Brackets)),
            ("[127.0.0.1]", Err(HostError::Brackets)),
            ("2130706433", Err(HostError::Numeric)),
            ("0x7f000001", Err(HostError::Numeric)),
            ("0X7F.1", Err(HostError::Numeric)),
            ("127.1", Err(HostError::Numeric)),
            ("0177.0.0.1", Err(HostError::Numeric)),
            ("127.0.0.1.", Err(HostError::Numeric)),
            ("127.0.0.0x1", Err(HostError::Numeric)),
            ("example.0x", Err(HostError::Numeric)),
        ] {
            let found = Host::parse(text).map(|host| host.to_string());
            assert_eq!(found, expected.map(str::to_owned), "{text}");
        }
        assert_eq!(Host::parse(&"a".repeat(64)), Err(HostError::TooLong));
        assert_eq!(Host::parse(&"a.".repeat(127)), Host::parse(&format!("{}a", "a.".repeat(126))));
        assert_eq!(Host::parse(&"a.".repeat(128)), Err(HostError::TooLong));
    }

    #[test]
    fn targets_have_a_host_and_a_port() {
        for (text, default, expected) in [
            ("example.com:443", None, Ok("example.com:443")),
            ("example.com", None, Err(HostError::NoPort)),
            ("example.com", Some(80), Ok("example.com:80")),
            ("example.com:", Some(80), Err(HostError::Port)),
            ("example.com:0", Some(80), Err(HostError::Port)),
            ("example.com:+80", Some(80), Err(HostError::Port)),
            ("example.com:65536", Some(80), Err(HostError::Port)),
            ("example.com:80:90", Some(80), Err(HostError::Port)),
            ("[::1]:22", None, Ok("[::1]:22")),
            ("[::1]", Some(80), Ok("[::1]:80")),
            ("[::1]22", Some(80), Err(HostError::Brackets)),
            ("::1:22", None, Err(HostError::Port)),
            (":80", None, Err(HostError::Missing)),
            ("user@example.com:80", None, Err(HostError::UserInfo)),
            ("user:word@example.com", Some(80), Err(HostError::UserInfo)),
        ] {
            let found = Target::parse(text, default).map(|target| target.to_string());
            assert_eq!(found, expected.map(str::to_owned), "{text}");
        }
    }

    #[test]
    fn a_name_is_below_another_only_at_a_dot() {
        let name = |text| Name::parse(text).unwrap();
        let parent = name("example.com");
        assert!(name("a.example.com").is_below(&parent));
        assert!(name("a.b.example.com").is_below(&parent));
        for other in ["example.com", "badexample.com", "example.com.evil.org", "com"] {
            assert!(!name(other).is_below(&parent), "{other}");
        }
    }
}
