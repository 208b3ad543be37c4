//! What is recorded.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

use serde::{Deserialize, Serialize};

/// Most bytes of a text that are kept.
const LONGEST: usize = 4096;
/// Most arguments of a program that are kept.
const MOST_ARGUMENTS: usize = 256;

/// What happened in a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The sandbox is about to start.
    Started {
        /// The level of isolation.
        isolation: String,
        /// The version of the program.
        version: String,
        /// Its workspace.
        workspace: Text,
        /// Whom it may talk to, if there is a gate: the rules it begins with.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        network: Vec<String>,
        /// The names of the secrets that its gate puts in.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        secrets: Vec<String>,
    },
    /// A command was given to a shell.
    Command {
        /// Its number in this sandbox.
        command: u64,
        /// The command.
        text: Text,
    },
    /// A command has ended.
    CommandEnded {
        /// Its number in this sandbox.
        command: u64,
        /// Its exit status.
        status: i32,
    },
    /// A cell was given to a kernel.
    Cell {
        /// The code.
        text: Text,
    },
    /// The server has started a program: a shell, what has pipes or a terminal, a kernel, its own helpers.
    Program {
        /// The program.
        program: Text,
        /// What it is given, its own name first.
        arguments: Vec<Text>,
        /// Where it starts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        directory: Option<Text>,
    },
    /// A file was written for a client, or by an editor. What programs write is not seen.
    Wrote {
        /// The file.
        path: Text,
        /// Its length in bytes.
        bytes: u64,
    },
    /// The files of an archive were written for a client.
    Unpacked {
        /// The directory that they are in.
        path: Text,
    },
    /// A directory was made for a client.
    MadeDirectory {
        /// The directory.
        path: Text,
    },
    /// A file or directory was removed for a client.
    Removed {
        /// What it was.
        path: Text,
    },
    /// A file or directory got another name for a client.
    Moved {
        /// The old name.
        from: Text,
        /// The new name.
        to: Text,
    },
    /// Somebody wanted to reach a host through the gate.
    Connection {
        /// The host and its port.
        target: String,
        /// Whether it was let through.
        allowed: bool,
    },
    /// The rules of the gate have changed.
    Network {
        /// What was let through.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        allow: Vec<String>,
        /// What was closed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        deny: Vec<String>,
    },
    /// The gate has put a secret into a request.
    Secret {
        /// Its name.
        name: String,
        /// Where it went.
        target: String,
        /// What the request asks for.
        method: String,
    },
    /// The server of the sandbox has ended.
    Ended {
        /// Why.
        reason: Text,
    },
    /// What a newer program has recorded.
    #[serde(other)]
    Unknown,
}

impl Event {
    /// Whether a server tells of it; of what a gate does only the gate itself knows.
    pub const fn is_of_server(&self) -> bool {
        match self {
            Self::Started { .. }
            | Self::Command { .. }
            | Self::CommandEnded { .. }
            | Self::Cell { .. }
            | Self::Program { .. }
            | Self::Wrote { .. }
            | Self::Unpacked { .. }
            | Self::MadeDirectory { .. }
            | Self::Removed { .. }
            | Self::Moved { .. }
            | Self::Ended { .. } => true,
            Self::Connection { .. } | Self::Network { .. } | Self::Secret { .. } | Self::Unknown => false,
        }
    }

    /// A program, as whoever starts it has it.
    pub fn program(program: &Path, arguments: &[OsString], directory: Option<&Path>) -> Self {
        let mut kept: Vec<Text> = arguments.iter().take(MOST_ARGUMENTS).map(Text::of).collect();
        if arguments.len() > MOST_ARGUMENTS {
            kept.push(Text::new(&format!("… {} more", arguments.len() - MOST_ARGUMENTS)));
        }
        Self::Program { program: Text::of(program), arguments: kept, directory: directory.map(Text::of) }
    }

    /// The same as it is kept: without these values, in whose place names stand, and then without what is too long.
    #[must_use]
    pub fn without(self, secrets: &[(String, String)]) -> Self {
        let text = |text: Text| text.without(secrets);
        match self {
            Self::Command { command, text: given } => Self::Command { command, text: text(given) },
            Self::Cell { text: given } => Self::Cell { text: text(given) },
            Self::Program { program, arguments, directory } => Self::Program {
                program: text(program),
                arguments: arguments.into_iter().map(text).collect(),
                directory: directory.map(text),
            },
            Self::Wrote { path, bytes } => Self::Wrote { path: text(path), bytes },
            Self::Unpacked { path } => Self::Unpacked { path: text(path) },
            Self::MadeDirectory { path } => Self::MadeDirectory { path: text(path) },
            Self::Removed { path } => Self::Removed { path: text(path) },
            Self::Moved { from, to } => Self::Moved { from: text(from), to: text(to) },
            Self::Ended { reason } => Self::Ended { reason: text(reason) },
            other @ (Self::Started { .. }
            | Self::CommandEnded { .. }
            | Self::Connection { .. }
            | Self::Network { .. }
            | Self::Secret { .. }
            | Self::Unknown) => other,
        }
    }
}

/// A text of a client; its beginning, where it is [kept](Event::without) and was longer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Text(String);

impl Text {
    /// The whole text.
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// A name of a file or an argument; what is not UTF-8 in it is replaced.
    pub fn of(name: impl AsRef<OsStr>) -> Self {
        Self::new(&name.as_ref().to_string_lossy())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn without(self, secrets: &[(String, String)]) -> Self {
        let mut text = self.0;
        for (name, value) in secrets {
            if text.contains(value.as_str()) {
                text = text.replace(value.as_str(), &format!("<secret {name}>"));
            }
        }
        // Only now: a part of a value would not be known as one.
        if text.len() > LONGEST {
            text = format!("{}… ({} bytes)", &text[..text.floor_char_boundary(LONGEST)], text.len());
        }
        Self(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_where_a_character_ends_and_say_how_long_they_were() {
        assert_eq!(Text::new("ls -l").without(&[]).as_str(), "ls -l");
        let long = format!("{}ä", "x".repeat(LONGEST - 1));
        let kept = Text::new(&long).without(&[]);
        assert_eq!(kept.as_str(), format!("{}… ({} bytes)", "x".repeat(LONGEST - 1), LONGEST + 1));
        let many: Vec<OsString> = (0..MOST_ARGUMENTS + 3).map(|number| number.to_string().into()).collect();
        let Event::Program { arguments, .. } = Event::program(Path::new("/bin/x"), &many, None) else { panic!() };
        assert_eq!((arguments.len(), arguments.last().unwrap().as_str()), (MOST_ARGUMENTS + 1, "… 3 more"));
    }

    #[test]
    fn values_of_secrets_are_not_recorded() {
        let secrets = [("TOKEN".to_owned(), "hunter22".to_owned())];
        let command = |text: &str| Event::Command { command: 1, text: Text::new(text) };
        assert_eq!(command("curl -u me:hunter22 x").without(&secrets), command("curl -u me:<secret TOKEN> x"));
        // Not even the part of one that is before the end of what is kept.
        let cut = command(&format!("{}hunter22", "x".repeat(LONGEST - 4))).without(&secrets);
        let Event::Command { text, .. } = cut else { panic!() };
        assert!(!text.as_str().contains("hunt") && text.as_str().contains("<sec…"), "{text:?}");
        let wrote = |path: &str| Event::Wrote { path: Text::new(path), bytes: 1 };
        assert_eq!(wrote("/w/hunter22.txt").without(&secrets), wrote("/w/<secret TOKEN>.txt"));
    }
}
