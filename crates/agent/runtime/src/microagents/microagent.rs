//! One microagent.

use std::path::{Path, PathBuf};

use super::{
    MicroagentError,
    data::Data,
    front_matter::{self, Document},
    metadata::{Metadata, Refused},
};

/// What is put behind the content of a task (runtime-interface 13.3).
const ASK_FOR_VARIABLES: &str = "\n\nIf the user didn't provide any of these variables, ask the user to provide them first \
                                 before the agent can proceed with the task.";

/// When a microagent is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MicroagentKind {
    /// Always.
    Repo,
    /// When a message contains one of its triggers.
    Knowledge,
    /// The same, and it needs inputs.
    Task,
}

impl MicroagentKind {
    /// The value of the wire: `repo`, `knowledge` or `task`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Repo => "repo",
            Self::Knowledge => "knowledge",
            Self::Task => "task",
        }
    }

    pub(super) fn from_wire(value: &Data) -> Option<Self> {
        let Data::Text(text) = value else { return None };
        [Self::Repo, Self::Knowledge, Self::Task].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A text that tells an agent how to work, and when it is used.
#[derive(Debug, Clone, PartialEq)]
pub struct Microagent {
    /// Its name: for a file of a directory its path there without the extension, `knowledge/foo`.
    pub name: String,
    /// When it is used.
    pub kind: MicroagentKind,
    /// The text.
    pub content: String,
    /// What its front matter says.
    pub metadata: Metadata,
    /// The file that it is from.
    pub source: PathBuf,
}

impl Microagent {
    /// Makes a microagent of the text of a file (runtime-interface 13.3).
    ///
    /// With a `directory` that the file is in, its path there gives the name; without one, the front matter does. Files
    /// with a special name have a fixed one and are taken as they are.
    pub fn parse(text: &str, path: &Path, directory: Option<&Path>) -> Result<Self, MicroagentError> {
        if let Some(name) = special_name(path) {
            return Ok(Self::instructions(name, text, path));
        }
        let path_name = directory.map(|directory| name_in(directory, path)).transpose()?;
        let Document { metadata, mut content } = front_matter::split(text)?;
        let mut metadata = Metadata::read(&metadata).map_err(|Refused { reason, kind }| MicroagentError::Metadata {
            file_name: file_name(path),
            reason,
            kind,
        })?;
        let kind = if !metadata.inputs.is_empty() {
            MicroagentKind::Task
        } else if !metadata.triggers.is_empty() {
            MicroagentKind::Knowledge
        } else {
            MicroagentKind::Repo
        };
        if kind == MicroagentKind::Task {
            let trigger = format!("/{}", metadata.name);
            if !metadata.triggers.contains(&trigger) {
                metadata.triggers.push(trigger);
            }
            // A task has inputs, so whether its content has variables makes no difference.
            content.push_str(ASK_FOR_VARIABLES);
        }
        let name = path_name.unwrap_or_else(|| metadata.name.clone());
        Ok(Self { name, kind, content, metadata, source: path.to_owned() })
    }

    /// The instructions of the old style: a microagent named `repo_legacy` (runtime-interface 13.1).
    pub fn legacy(text: &str) -> Self {
        Self::instructions("repo_legacy", text, Path::new(super::places::LEGACY_INSTRUCTIONS))
    }

    fn instructions(name: &str, text: &str, path: &Path) -> Self {
        Self {
            name: name.to_owned(),
            kind: MicroagentKind::Repo,
            content: text.to_owned(),
            metadata: Metadata::named(name),
            source: path.to_owned(),
        }
    }

    /// The first of its triggers that a message contains, in whichever case.
    pub fn matches(&self, message: &str) -> Option<&str> {
        let message = message.to_lowercase();
        self.metadata.triggers.iter().find(|trigger| message.contains(&trigger.to_lowercase())).map(String::as_str)
    }
}

/// The fixed name of a file with a special name.
fn special_name(path: &Path) -> Option<&'static str> {
    match file_name(path).to_lowercase().as_str() {
        ".openhands_instructions" => Some("repo_legacy"),
        ".cursorrules" => Some("cursorrules"),
        "agents.md" | "agent.md" => Some("agents"),
        _ => None,
    }
}

fn name_in(directory: &Path, path: &Path) -> Result<String, MicroagentError> {
    match path.strip_prefix(directory) {
        Ok(relative) => Ok(relative.with_extension("").to_string_lossy().into_owned()),
        Err(_) => Err(MicroagentError::Outside { path: path.to_owned(), directory: directory.to_owned() }),
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::microagents::Input;

    fn parse(text: &str) -> Result<Microagent, MicroagentError> {
        Microagent::parse(text, Path::new("/m/dir/a.b.md"), Some(Path::new("/m")))
    }

    #[test]
    fn a_text_without_front_matter_is_always_used() {
        let expected = Microagent {
            name: "dir/a.b".to_owned(),
            kind: MicroagentKind::Repo,
            content: "Be kind.".to_owned(),
            metadata: Metadata::named("default"),
            source: PathBuf::from("/m/dir/a.b.md"),
        };
        assert_eq!(parse("\nBe kind.\n").unwrap(), expected);
    }

    #[test]
    fn all_keys_are_read_and_unknown_ones_are_not() {
        let text = "---\nname: deploy\ntype: knowledge\nversion: 2\nagent: Other\ntriggers: [ship it]\nauthor: x\n\
                    inputs:\n  - {name: target, description: Where to, more: 1}\n\
                    mcp_tools:\n  stdio_servers: [{name: t, command: uvx, args: [a]}]\n  shttp_servers: ['http://h/']\n---\nGo to ${target}.";
        let expected = Microagent {
            name: "dir/a.b".to_owned(),
            kind: MicroagentKind::Task,
            content: format!("Go to ${{target}}.{ASK_FOR_VARIABLES}"),
            metadata: Metadata {
                name: "deploy".to_owned(),
                kind: MicroagentKind::Knowledge,
                version: "2".to_owned(),
                agent: "Other".to_owned(),
                triggers: vec!["ship it".to_owned(), "/deploy".to_owned()],
                inputs: vec![Input { name: "target".to_owned(), description: "Where to".to_owned() }],
                mcp_tools: Some(json!({
                    "stdio_servers": [{"name": "t", "command": "uvx", "args": ["a"]}],
                    "sse_servers": [],
                    "shttp_servers": [{"url": "http://h/"}],
                })),
            },
            source: PathBuf::from("/m/dir/a.b.md"),
        };
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn the_kind_follows_from_inputs_and_triggers_alone() {
        for (front, kind, triggers) in [
            ("type: task", MicroagentKind::Repo, vec![]),
            ("type: repo\ntriggers: [a]", MicroagentKind::Knowledge, vec!["a"]),
            ("inputs: [{name: a, description: b}]", MicroagentKind::Task, vec!["/default"]),
            ("name: n\ntriggers: [/n]\ninputs: [{name: a, description: b}]", MicroagentKind::Task, vec!["/n"]),
            ("triggers: []\ninputs: []", MicroagentKind::Repo, vec![]),
        ] {
            let microagent = parse(&format!("---\n{front}\n---\n")).unwrap();
            assert_eq!(
                (microagent.kind, microagent.metadata.triggers),
                (kind, triggers.into_iter().map(str::to_owned).collect()),
                "{front}"
            );
        }
    }

    #[test]
    fn special_files_have_a_fixed_name_and_are_taken_as_they_are() {
        for (path, name) in [
            (".openhands_instructions", "repo_legacy"),
            ("/r/.cursorrules", "cursorrules"),
            ("/r/AGENTS.md", "agents"),
            ("/r/agent.md", "agents"),
            ("/r/Agents.MD", "agents"),
        ] {
            let microagent =
                Microagent::parse(" ---\nname: x\n---\n ", Path::new(path), Some(Path::new("/m"))).unwrap();
            let expected = Microagent {
                name: name.to_owned(),
                kind: MicroagentKind::Repo,
                content: " ---\nname: x\n---\n ".to_owned(),
                metadata: Metadata::named(name),
                source: PathBuf::from(path),
            };
            assert_eq!(microagent, expected);
        }
        assert_eq!(
            Microagent::legacy("x"),
            Microagent::parse("x", Path::new(".openhands_instructions"), None).unwrap()
        );
    }

    #[test]
    fn without_a_directory_the_front_matter_gives_the_name() {
        let name = |text| Microagent::parse(text, Path::new("x.md"), None).unwrap().name;
        assert_eq!((name("---\nname: n\n---\n"), name("text")), ("n".to_owned(), "default".to_owned()));
        let outside = Microagent::parse("", Path::new("/other/x.md"), Some(Path::new("/m"))).unwrap_err();
        assert_eq!(outside.to_string(), "/other/x.md is not in /m");
    }

    #[test]
    fn the_first_trigger_that_a_message_contains_matches() {
        let microagent = parse("---\ntriggers: [Zebra, GIT hub, git]\n---\n").unwrap();
        for (message, trigger) in [
            ("use git", Some("git")),
            ("Git Hub and git", Some("GIT hub")),
            ("digital", Some("git")),
            ("nothing", None),
            ("", None),
        ] {
            assert_eq!(microagent.matches(message), trigger, "{message}");
        }
        assert_eq!(parse("text").unwrap().matches("text"), None);
    }

    #[test]
    fn wrong_metadata_is_refused_with_all_that_is_wrong() {
        for (front, reason) in [
            ("name: 1", "`name` must be a text, not a number (put quotes around it)"),
            (
                "name: yes\nagent: ~",
                "`name` must be a text, not a boolean (put quotes around it); `agent` must be a text, not nothing (put quotes around it)",
            ),
            ("triggers: git", "`triggers` must be a list, not a text"),
            ("triggers: [a, 2024-01-01]", "`triggers[1]` must be a text, not a date (put quotes around it)"),
            ("inputs: [a]", "`inputs[0]` must be a map, not a text"),
            ("inputs: [{name: a}]", "`inputs[0].description` is missing"),
            (
                "type: agent",
                "`type` names no type. Invalid \"type\" value: \"agent\". Valid types are: \"knowledge\", \"repo\", \"task\"",
            ),
            (
                "type:",
                "`type` names no type. Invalid \"type\" value: \"None\". Valid types are: \"knowledge\", \"repo\", \"task\"",
            ),
            (
                "type: [1, a]",
                "`type` names no type. Invalid \"type\" value: \"[1, 'a']\". Valid types are: \"knowledge\", \"repo\", \"task\"",
            ),
            ("mcp_tools: {}", "`mcp_tools` has no `stdio_servers`, and no others are used"),
            ("mcp_tools: x", "`mcp_tools` must be a map, not a text"),
            ("mcp_tools: {sse_servers: [http://h]}", "`mcp_tools` has no `stdio_servers`, and no others are used"),
            (
                "mcp_tools: {servers: []}",
                "`mcp_tools.servers` is not known; there are `stdio_servers`, `sse_servers` and `shttp_servers`",
            ),
            ("mcp_tools: {stdio_servers: [{name: a}]}", "`mcp_tools.stdio_servers[0].command` is missing"),
            ("mcp_tools: {stdio_servers: [a]}", "`mcp_tools.stdio_servers[0]` must be a map, not a text"),
        ] {
            let error = parse(&format!("---\n{front}\n---\n")).unwrap_err();
            assert!(error.is_validation());
            assert_eq!(
                error.to_string(),
                format!("Error validating microagent metadata in a.b.md: {reason}"),
                "{front}"
            );
        }
    }

    #[test]
    fn a_version_may_be_anything_and_becomes_a_text() {
        for (version, expected) in [
            ("1.10", "1.1"),
            ("'1.10'", "1.10"),
            ("2", "2"),
            ("1.0.0", "1.0.0"),
            ("true", "True"),
            ("~", "None"),
            ("2024-01-31", "2024-01-31"),
            ("[1, a]", "[1, 'a']"),
        ] {
            assert_eq!(
                parse(&format!("---\nversion: {version}\n---\n")).unwrap().metadata.version,
                expected,
                "{version}"
            );
        }
    }
}
