//! The server of a sandbox that only its `agent-server` can reach, and how commands there ask it.
//!
//! A backend puts our program into such a sandbox and starts both as commands of the `agent-server`. They meet in a directory
//! that only their user can enter.

pub(crate) mod call;
pub(crate) mod server;

use std::path::Path;

use anyhow::Context as _;
use gloveport_sys::replace::{self, NewFile};
use serde_json::{Value, json};

/// The file with the port and the key of the server. The server ends when it is gone.
const ADDRESS: &str = "address";
/// The ends of the names of files with the bodies of requests and answers.
const REQUEST: &str = ".request";
const ANSWER: &str = ".answer";

/// Where a server listens, and the key that it asks for.
#[derive(Clone, PartialEq, Eq)]
struct Address {
    port: u16,
    key: String,
}

impl Address {
    /// What a server has written.
    fn parse(text: &[u8]) -> anyhow::Result<Self> {
        let value: Value = serde_json::from_slice(text).context("the address of the server is broken")?;
        let port = value["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let (Some(port), Some(key)) = (port, value["key"].as_str()) else {
            anyhow::bail!("the address of the server is broken");
        };
        Ok(Self { port, key: key.to_owned() })
    }

    fn text(&self) -> String {
        json!({"port": self.port, "key": self.key}).to_string()
    }

    /// Writes it whole or not at all, for this user alone.
    fn write(&self, directory: &Path) -> anyhow::Result<()> {
        let path = directory.join(ADDRESS);
        replace::write(&path, self.text().as_bytes(), NewFile { mode: Some(0o600), owner: None })
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_was_written_and_a_broken_one_is_refused() {
        let address = Address { port: 40_000, key: "k \"".to_owned() };
        assert!(Address::parse(address.text().as_bytes()).unwrap() == address);
        for broken in ["", "{}", r#"{"port":70000,"key":"k"}"#, r#"{"port":1,"key":7}"#] {
            assert!(Address::parse(broken.as_bytes()).is_err(), "{broken}");
        }
    }
}
