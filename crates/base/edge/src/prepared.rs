//! What a sandbox and its gate get for the secrets of the sandbox.

use std::collections::BTreeMap;

use gloveport_allow_list::Rules;
use zeroize::Zeroizing;

use crate::{Authority, AuthorityError, EdgeConfig, EdgeSecret};

/// The port that a host of a secret is meant at where it names none.
const HTTPS: u16 = 443;
/// What placeholders begin with.
const PLACEHOLDER: &str = "gloveport-secret-";

/// A secret, as somebody wants it.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// What people call it.
    pub name: &'a str,
    /// Its value.
    pub value: &'a str,
    /// The hosts that it goes to.
    pub hosts: &'a [String],
}

/// Why there is nothing to give.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// Whom a secret is for cannot be understood.
    #[error("{reason}")]
    Hosts {
        /// The secret.
        secret: String,
        /// What is wrong.
        reason: String,
    },
    /// There is no authority.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The system gives no random numbers.
    #[error("cannot get random numbers: {0}")]
    Random(String),
}

/// What a sandbox and its gate get.
#[derive(Debug)]
pub struct Prepared {
    /// What is for the gate alone.
    pub config: EdgeConfig,
    /// What stands for each secret, for the sandbox.
    pub placeholders: BTreeMap<String, String>,
    /// Whom the secrets are for, each with its port.
    pub rules: Vec<String>,
}

impl Prepared {
    /// Makes placeholders and an authority for one sandbox, whose people know it by this name. Certificates of targets are
    /// checked by `roots`.
    pub fn new<'a>(
        name: &str,
        wanted: impl IntoIterator<Item = Wanted<'a>>,
        roots: String,
    ) -> Result<Self, PrepareError> {
        let authority = Authority::make(&format!("gloveport: {name}"))?;
        let mut placeholders = BTreeMap::new();
        let (mut secrets, mut rules) = (Vec::new(), Vec::new());
        for Wanted { name, value, hosts } in wanted {
            let wrong = |reason: String| PrepareError::Hosts { secret: name.to_owned(), reason };
            let hosts = Rules::parse(hosts).map_err(|error| wrong(error.to_string()))?.at_port(HTTPS);
            rules.extend(hosts.texts());
            let random = gloveport_ids::random::<16>().map_err(|error| PrepareError::Random(error.to_string()))?;
            let placeholder = format!("{PLACEHOLDER}{random}");
            placeholders.insert(name.to_owned(), placeholder.clone());
            let value = Zeroizing::new(value.to_owned());
            secrets.push(EdgeSecret { name: name.to_owned(), placeholder, value, hosts });
        }
        Ok(Self { config: EdgeConfig { secrets, authority, roots }, placeholders, rules })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_secret_has_a_placeholder_and_its_hosts_have_ports() {
        let (one, other) = (["a.test".to_owned(), "b.test:8443".to_owned()], ["*.c.test".to_owned()]);
        let wanted = [
            Wanted { name: "ONE", value: "value of one", hosts: &one },
            Wanted { name: "OTHER", value: "value of other", hosts: &other },
        ];
        let made = Prepared::new("box", wanted, String::new()).unwrap();
        assert_eq!(made.rules, ["a.test:443", "b.test:8443", "*.c.test:443"]);
        let names: Vec<&str> = made.placeholders.keys().map(String::as_str).collect();
        assert_eq!(names, ["ONE", "OTHER"]);
        for secret in &made.config.secrets {
            let placeholder = &made.placeholders[&secret.name];
            assert_eq!((placeholder, placeholder.len()), (&secret.placeholder, PLACEHOLDER.len() + 32));
            assert!(placeholder.starts_with(PLACEHOLDER), "{placeholder}");
        }
        assert!(!format!("{made:?}").contains("value of"), "{made:?}");
        let again = Prepared::new("box", wanted, String::new()).unwrap();
        assert_ne!(again.placeholders, made.placeholders);
        assert_ne!(again.config.authority.certificate_pem(), made.config.authority.certificate_pem());
    }

    #[test]
    fn a_host_that_cannot_be_understood_is_told_with_its_secret() {
        let hosts = ["https://a.test".to_owned()];
        let wanted = Wanted { name: "TOKEN", value: "a long value", hosts: &hosts };
        let error = Prepared::new("box", [wanted], String::new()).unwrap_err();
        assert!(matches!(&error, PrepareError::Hosts { secret, .. } if secret == "TOKEN"), "{error:?}");
        assert!(error.to_string().contains("it is a URL"), "{error}");
    }
}
