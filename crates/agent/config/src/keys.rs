//! All sections and their keys, for what is made of them.

use crate::{
    key::{Key, Section},
    mcp::McpConfig,
    model::{AgentConfig, CliConfig, Config, KubernetesConfig, LlmConfig, SandboxConfig, SecurityConfig},
};

/// A section of the file, or of the environment alone.
pub(crate) struct SectionKeys {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) keys: &'static [Key],
    /// What the names of its variables start with.
    pub(crate) prefix: &'static str,
    /// Whether the file has it.
    pub(crate) in_file: bool,
    /// Whether tables inside of it are named groups.
    pub(crate) groups: bool,
}

const fn section<S: Section>(prefix: &'static str) -> SectionKeys {
    SectionKeys { name: S::NAME, about: S::ABOUT, keys: S::KEYS, prefix, in_file: true, groups: false }
}

/// The sections in the order in which they are shown.
pub(crate) const SECTIONS: [SectionKeys; 8] = [
    section::<Config>(""),
    section::<SandboxConfig>("SANDBOX_"),
    section::<SecurityConfig>("SECURITY_"),
    section::<McpConfig>("MCP_"),
    section::<KubernetesConfig>("KUBERNETES_"),
    SectionKeys { groups: true, ..section::<AgentConfig>("AGENT_") },
    SectionKeys { groups: true, ..section::<LlmConfig>("LLM_") },
    SectionKeys { in_file: false, ..section::<CliConfig>("CLI_") },
];

/// Sections whose members gloveport does not know.
pub(crate) const FREE_SECTIONS: [(&str, &str); 3] = [
    ("extended", "Settings of your own; any keys."),
    ("condenser", "How long histories are shortened. Accepted, not used by gloveport."),
    ("model_routing", "How models are chosen. Accepted, not used by gloveport."),
];

impl SectionKeys {
    /// The variable of a key, if it has one (configuration 2).
    pub(crate) fn variable(&self, key: &Key) -> Option<String> {
        key.file_only.is_none().then(|| format!("{}{}", self.prefix, key.name.to_ascii_uppercase()))
    }
}

/// The section that has a key of this name.
pub(crate) fn section_of(key: &str) -> Option<&'static str> {
    SECTIONS
        .iter()
        .find(|section| {
            section.in_file && section.keys.iter().any(|known| known.name == key && known.file_only.is_none())
        })
        .map(|section| section.name)
}

/// Names of the sections that a file can have.
pub(crate) fn file_sections() -> impl Iterator<Item = &'static str> {
    let typed = SECTIONS.iter().filter(|section| section.in_file).map(|section| section.name);
    typed.chain(FREE_SECTIONS.iter().map(|(name, _)| *name))
}
