//! Secrets that are put into requests on their way out of a sandbox, as whoever hands them over and whoever puts them in
//! understand them.
//!
//! The sandbox has placeholders. What is here goes to its gate alone, through memory or a pipe: it has the values.

mod authority;
mod prepared;
pub mod trust;

use std::fmt;

use gloveport_allow_list::Rules;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use zeroize::Zeroizing;

pub use authority::{Authority, AuthorityError, valid_for};
pub use prepared::{PrepareError, Prepared, Wanted};

/// A secret that is put in.
#[derive(Clone, Serialize, Deserialize)]
pub struct EdgeSecret {
    /// What people call it.
    pub name: String,
    /// What the sandbox has in its place: letters, digits, `_` and `-`, at least 16 of them.
    pub placeholder: String,
    /// At least 8 bytes.
    pub value: Zeroizing<String>,
    /// The hosts that it goes to; port 443 of those that name none.
    #[serde(serialize_with = "write_rules", deserialize_with = "read_rules")]
    pub hosts: Rules,
}

impl fmt::Debug for EdgeSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EdgeSecret").field("name", &self.name).field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

/// What is done at the edge of one sandbox. It is written as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EdgeConfig {
    /// What is put in.
    pub secrets: Vec<EdgeSecret>,
    /// Whose certificates the sandbox trusts.
    pub authority: Authority,
    /// The certificates of the authorities that the machine trusts, as PEM, with words between them; hosts are checked by
    /// them. Empty for what the gate itself finds.
    #[serde(default)]
    pub roots: String,
}

fn write_rules<S: Serializer>(rules: &Rules, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(rules.texts())
}

fn read_rules<'de, D: Deserializer<'de>>(from: D) -> Result<Rules, D::Error> {
    Rules::parse(Vec::<String>::deserialize(from)?).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_shows_no_value() {
        let secret = EdgeSecret {
            name: "A".to_owned(),
            placeholder: "placeholder-of-a-1".to_owned(),
            value: Zeroizing::new("value-of-a".to_owned()),
            hosts: Rules::parse(["example.com"]).unwrap(),
        };
        let authority = Authority::make("box").unwrap();
        let config = EdgeConfig { secrets: vec![secret], authority, roots: String::new() };
        let text = serde_json::to_string(&config).unwrap();
        let read: EdgeConfig = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        assert!(text.contains(r#""hosts":["example.com"]"#), "{text}");
        let shown = format!("{read:?}");
        assert!(!shown.contains("value-of-a") && !shown.contains("PRIVATE"), "{shown}");
        let wrong = text.replace("example.com", "https://example.com");
        assert!(serde_json::from_str::<EdgeConfig>(&wrong).unwrap_err().to_string().contains("it is a URL"));
    }
}
