//! What a gate lets through.

use std::{fmt, net::IpAddr};

use crate::{
    address::Network,
    host::{HostError, Name, Target, port_number},
};

/// A text that is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{rule}` says no host that a sandbox may reach: {reason}; write a host (`example.com`), all below one \
     (`*.example.com`), an address (`10.1.2.3`, `2001:db8::1`) or a network (`10.0.0.0/8`), and a port if only that is \
     meant (`example.com:443`, `[2001:db8::1]:443`)"
)]
pub struct RuleError {
    /// The text.
    pub rule: String,
    /// What is wrong with it.
    pub reason: String,
}

/// The hosts and networks that may be reached; what none of them names may not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(Vec<Rule>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    pattern: Pattern,
    /// `None` is every port.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Name(Name),
    /// All names below one.
    Below(Name),
    Network(Network),
}

impl Rules {
    /// Reads rules: `host`, `*.host`, an address or a network, each also with `:port`.
    pub fn parse<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Result<Self, RuleError> {
        texts.into_iter().map(|text| Rule::parse(text.as_ref())).collect::<Result<_, _>>().map(Self)
    }

    /// These, and those of the others that are not among them.
    #[must_use]
    pub fn with(mut self, others: &Self) -> Self {
        for rule in &others.0 {
            if !self.0.contains(rule) {
                self.0.push(rule.clone());
            }
        }
        self
    }

    /// These but for those of the others that are the same.
    #[must_use]
    pub fn without(mut self, others: &Self) -> Self {
        self.0.retain(|rule| !others.0.contains(rule));
        self
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The same, where rules that name no port mean this one.
    #[must_use]
    pub fn at_port(mut self, port: u16) -> Self {
        for rule in &mut self.0 {
            rule.port.get_or_insert(port);
        }
        self
    }

    /// Whether nothing may be reached.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rules as they are read.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(Rule::to_string)
    }

    /// The networks and ports of the rules for addresses, for what enforces addresses alone.
    pub fn networks(&self) -> impl Iterator<Item = (Network, Option<u16>)> {
        self.0.iter().filter_map(|rule| match &rule.pattern {
            Pattern::Network(network) => Some((*network, rule.port)),
            Pattern::Name(_) | Pattern::Below(_) => None,
        })
    }

    /// Whether a rule names a host, which takes somebody who looks names up.
    pub fn name_hosts(&self) -> bool {
        self.0.iter().any(|rule| matches!(rule.pattern, Pattern::Name(_) | Pattern::Below(_)))
    }

    /// Whether a rule names this name.
    pub fn allow_name(&self, name: &Name, port: u16) -> bool {
        self.of_port(port).any(|pattern| match pattern {
            Pattern::Name(allowed) => allowed == name,
            Pattern::Below(parent) => name.is_below(parent),
            Pattern::Network(_) => false,
        })
    }

    /// Whether a rule names this address.
    pub fn allow_address(&self, address: IpAddr, port: u16) -> bool {
        self.of_port(port).any(|pattern| match pattern {
            Pattern::Network(network) => network.contains(address),
            Pattern::Name(_) | Pattern::Below(_) => false,
        })
    }

    /// Whether what a name resolves to can matter. If not, names that no rule names are never looked up, so that
    /// looking up cannot carry anything out.
    pub fn have_addresses(&self, port: u16) -> bool {
        self.of_port(port).any(|pattern| matches!(pattern, Pattern::Network(_)))
    }

    fn of_port(&self, port: u16) -> impl Iterator<Item = &Pattern> {
        self.0.iter().filter(move |rule| rule.port.is_none_or(|own| own == port)).map(|rule| &rule.pattern)
    }
}

impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, rule) in self.0.iter().enumerate() {
            write!(f, "{}{rule}", if index == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match &self.pattern {
            Pattern::Name(name) => name.to_string(),
            Pattern::Below(parent) => format!("*.{parent}"),
            Pattern::Network(network) => network.to_string(),
        };
        match self.port {
            Some(port) if text.contains(':') => write!(f, "[{text}]:{port}"),
            Some(port) => write!(f, "{text}:{port}"),
            None => write!(f, "{text}"),
        }
    }
}

impl Rule {
    fn parse(text: &str) -> Result<Self, RuleError> {
        Self::read(text.trim()).map_err(|reason| RuleError { rule: text.to_owned(), reason })
    }

    fn read(text: &str) -> Result<Self, String> {
        if text.contains("://") {
            return Err("it is a URL, and a gate sees hosts and ports only".to_owned());
        }
        let told = |error: HostError| error.to_string();
        if let Some(rest) = text.strip_prefix('[') {
            let (network, rest) = rest.split_once(']').ok_or("the bracket is not closed")?;
            let port = match rest.strip_prefix(':') {
                Some(port) => Some(port_number(port).map_err(told)?),
                None if rest.is_empty() => None,
                None => return Err("after the bracket there is only a colon and a port".to_owned()),
            };
            return Ok(Self { pattern: Pattern::Network(network.parse()?), port });
        }
        // More than one colon is an IPv6 address, which has its port after brackets.
        let (host, port) = match text.split_once(':') {
            Some((_, rest)) if rest.contains(':') => (text, None),
            Some((host, port)) => (host, Some(port_number(port).map_err(told)?)),
            None => (text, None),
        };
        let pattern = if let Some(parent) = host.strip_prefix("*.") {
            Pattern::Below(Name::parse(parent).map_err(told)?)
        } else if host.contains(['/', ':']) || host.parse::<IpAddr>().is_ok() {
            Pattern::Network(host.parse()?)
        } else if host.contains('*') {
            return Err("`*` stands only at the beginning, before a dot".to_owned());
        } else {
            Pattern::Name(Name::parse(host).map_err(told)?)
        };
        Ok(Self { pattern, port })
    }
}

/// Rules that a refusal shows.
const SHOWN: usize = 20;

/// What rules let through, in words.
pub fn in_words(rules: &Rules) -> String {
    match rules.0.len() {
        0 => "nothing".to_owned(),
        count if count > SHOWN => {
            format!("only {} and {} more", Rules(rules.0[..SHOWN].to_vec()), count - SHOWN)
        }
        _ => format!("only {rules}"),
    }
}

/// The rule that would let a target through.
pub fn rule_for(target: &Target) -> String {
    target.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Rules {
        Rules::parse(text.split(' ')).unwrap()
    }

    #[test]
    fn names_are_allowed_by_rules_for_names_alone() {
        let rules = rules("example.com *.Example.ORG. api.test:443 10.0.0.0/8");
        for (name, port, expected) in [
            ("example.com", 80, true),
            ("EXAMPLE.com.", 22, true),
            ("www.example.com", 80, false),
            ("a.example.org", 80, true),
            ("a.b.example.org", 80, true),
            ("example.org", 80, false),
            ("notexample.org", 80, false),
            ("api.test", 443, true),
            ("api.test", 80, false),
        ] {
            assert_eq!(rules.allow_name(&Name::parse(name).unwrap(), port), expected, "{name}:{port}");
        }
    }

    #[test]
    fn addresses_are_allowed_by_rules_for_addresses_alone() {
        let rules = rules("example.com 10.0.0.0/8:443 192.0.2.7 [2001:db8::1]:22 2001:db8:1::/48 [2001:db8:2::/48]:1");
        for (address, port, expected) in [
            ("10.1.2.3", 443, true),
            ("10.1.2.3", 80, false),
            ("192.0.2.7", 1, true),
            ("::ffff:192.0.2.7", 1, true),
            ("192.0.2.8", 1, false),
            ("2001:db8::1", 22, true),
            ("2001:db8::1", 23, false),
            ("2001:db8:1::9", 23, true),
            ("2001:db8:2::9", 1, true),
            ("2001:db8:2::9", 2, false),
        ] {
            assert_eq!(rules.allow_address(address.parse().unwrap(), port), expected, "{address}:{port}");
        }
        assert!(rules.have_addresses(443));
        assert!(!Rules::parse(["a", "10.0.0.1:5"]).unwrap().have_addresses(443));
    }

    #[test]
    fn errors_name_the_rule_and_what_is_wrong() {
        for (rule, part) in [
            ("", "no host"),
            ("https://example.com/", "URL"),
            ("example.com/path", "no address"),
            ("example.com:http", "port"),
            ("example.com:0", "port"),
            ("*", "beginning"),
            ("a.*.com", "beginning"),
            ("*.", "no host"),
            ("10.0.0.7/8", "`10.0.0.0/8`"),
            ("127.1", "four decimal numbers"),
            ("[::1", "closed"),
            ("[::1]80", "after the bracket"),
            ("[example.com]:80", "no address"),
            ("user@example.com", "letters"),
        ] {
            let error = Rules::parse([rule]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{rule}`")) && error.contains(part), "{rule}: {error}");
        }
    }

    #[test]
    fn a_rule_is_shown_as_it_is_read() {
        let text = "example.com, *.example.org:443, 10.0.0.0/8:22, 192.0.2.7, [2001:db8::/32]:443, 2001:db8::1";
        let parsed = Rules::parse(text.split(", ")).unwrap();
        assert_eq!(parsed.to_string(), text);
        assert_eq!(
            Rules::parse([rule_for(&Target::parse("[::1]:80", None).unwrap())]).unwrap().to_string(),
            "[::1]:80"
        );
    }

    #[test]
    fn rules_for_addresses_are_networks_and_the_others_name_hosts() {
        let view = |texts: &[&str]| {
            let rules = Rules::parse(texts).unwrap();
            let networks: Vec<_> = rules.networks().map(|(network, port)| (network.cidr(), port)).collect();
            (networks, rules.name_hosts())
        };
        let network = |cidr: &str, port| (cidr.to_owned(), port);
        let expected = [("10.0.0.0/8", None), ("192.0.2.1/32", Some(443)), ("2001:db8::1/128", Some(53))];
        assert_eq!(
            view(&["10.0.0.0/8", "192.0.2.1:443", "[2001:db8::1]:53"]),
            (expected.map(|(cidr, port)| network(cidr, port)).to_vec(), false)
        );
        assert_eq!(view(&["10.0.0.0/8", "*.example.org:443"]), (vec![network("10.0.0.0/8", None)], true));
        assert_eq!(view(&["example.org"]), (vec![], true));
        assert_eq!(view(&[]), (vec![], false));
    }

    #[test]
    fn rules_are_added_once_taken_away_and_given_a_port() {
        let rules = |text: &[&str]| Rules::parse(text).unwrap();
        let both = rules(&["a.test", "10.0.0.0/8"]).with(&rules(&["a.test", "b.test:80", "b.test:80"]));
        assert_eq!(both.to_string(), "a.test, 10.0.0.0/8, b.test:80");
        assert_eq!(both.clone().without(&rules(&["a.test", "b.test:80", "c.test"])).to_string(), "10.0.0.0/8");
        let ports = rules(&["a.test", "2001:db8::1", "*.b.test:80"]).at_port(443);
        assert_eq!(ports.to_string(), "a.test:443, [2001:db8::1]:443, *.b.test:80");
        assert_eq!(ports.len(), 3);
    }
}
