//! How a client starts a server.

use std::{collections::BTreeMap, fmt};

use crate::error::InstallError;

/// The longest name of a server, in bytes.
const NAME: usize = 128;
/// The most that a whole entry may have, in bytes.
const ENTRY: usize = 64 * 1024;

/// A server as its client starts it.
///
/// `Debug` hides the arguments and the values of the environment, which often are secrets.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Entry {
    /// What the client calls the server.
    pub name: String,
    /// The program that is started.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables that it has beyond those of the client.
    pub env: BTreeMap<String, String>,
}

impl Entry {
    /// Whether a client could start this and show its name.
    pub(crate) fn check(&self) -> Result<(), InstallError> {
        let refuse = |what, why| Err(InstallError::Entry { what, why });
        let has_nul = |text: &String| text.contains('\0');
        if self.name.is_empty() || self.name.len() > NAME {
            return refuse("the name of the server", "must have between 1 and 128 bytes");
        }
        if self.name.chars().any(char::is_control) {
            return refuse("the name of the server", "has a control character");
        }
        if self.command.is_empty() {
            return refuse("the command", "is empty");
        }
        if has_nul(&self.command) || self.args.iter().any(has_nul) {
            return refuse("the command", "has a NUL character, which no program can be given");
        }
        if self.env.keys().any(|name| name.is_empty() || name.contains(['=', '\0'])) || self.env.values().any(has_nul) {
            return refuse("the environment", "has a variable that no program can be given");
        }
        let variables = self.env.iter().map(|(name, value)| name.len() + value.len());
        if self.command.len() + self.args.iter().map(String::len).chain(variables).sum::<usize>() > ENTRY {
            return refuse("the entry", "is larger than 65536 bytes");
        }
        Ok(())
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Entry")
            .field("name", &self.name)
            .field("command", &self.command)
            .field("args", &self.args.len())
            .field("env", &self.env.keys())
            .finish()
    }
}
