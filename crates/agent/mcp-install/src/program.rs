//! The clients: what they are called, where their files are, and what an entry looks like in them.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use crate::{
    error::InstallError,
    homes::{Homes, System},
};

/// A program that starts MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Program {
    /// Claude Code.
    Claude,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    VsCode,
    /// Zed.
    Zed,
    /// Codex.
    Codex,
}

/// For whom a server is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// For all projects of the user.
    User,
    /// For the project in this directory.
    Project(PathBuf),
}

/// A name that no program has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no MCP client is called {0:?}: use one of {names}", names = Program::ALL.map(Program::name).join(", "))]
pub struct UnknownProgram(pub String);

/// How a program writes its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// JSON, with comments and trailing commas where somebody wrote them.
    Json {
        /// Whether an entry says that the server is reached over its standard input and output.
        with_type: bool,
    },
    /// TOML.
    Toml,
}

impl Program {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Claude, Self::ClaudeDesktop, Self::Cursor, Self::VsCode, Self::Zed, Self::Codex];

    /// What commands call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Zed => "zed",
            Self::Codex => "codex",
        }
    }

    /// What people call it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Zed => "Zed",
            Self::Codex => "Codex",
        }
    }

    /// The file that has the servers of this scope.
    ///
    /// # Errors
    ///
    /// A variable that says where it is, is missing, or the program has no file for projects.
    pub fn file(self, scope: &Scope, homes: &Homes) -> Result<PathBuf, InstallError> {
        match scope {
            Scope::User => self.user_file(homes),
            Scope::Project(directory) => self.project_file(directory),
        }
    }

    fn project_file(self, directory: &Path) -> Result<PathBuf, InstallError> {
        let file = match self {
            Self::Claude => ".mcp.json",
            Self::Cursor => ".cursor/mcp.json",
            Self::VsCode => ".vscode/mcp.json",
            Self::Zed => ".zed/settings.json",
            Self::ClaudeDesktop | Self::Codex => return Err(InstallError::NoProjectFile(self)),
        };
        Ok(directory.join(file))
    }

    fn user_file(self, homes: &Homes) -> Result<PathBuf, InstallError> {
        match self {
            Self::Claude => Ok(self.own(homes, homes.claude.as_ref(), "CLAUDE_CONFIG_DIR", "")?.join(".claude.json")),
            Self::Codex => Ok(self.own(homes, homes.codex.as_ref(), "CODEX_HOME", ".codex")?.join("config.toml")),
            Self::Cursor => Ok(self.home(homes)?.join(".cursor/mcp.json")),
            Self::ClaudeDesktop => Ok(self.data(homes)?.join("Claude/claude_desktop_config.json")),
            Self::VsCode => Ok(self.data(homes)?.join("Code/User/mcp.json")),
            Self::Zed => match homes.system {
                System::Windows => Ok(self.data(homes)?.join("Zed/settings.json")),
                System::Linux => Ok(self.config(homes)?.join("zed/settings.json")),
                System::MacOs => Ok(self.home(homes)?.join(".config/zed/settings.json")),
            },
        }
    }

    fn home(self, homes: &Homes) -> Result<&Path, InstallError> {
        let missing = InstallError::NoHome { program: self, variable: homes.system.home_variable() };
        homes.home.as_deref().ok_or(missing)
    }

    /// The directory that a variable of the program's own names, or one below the home.
    fn own(
        self,
        homes: &Homes,
        named: Option<&PathBuf>,
        variable: &'static str,
        usual: &str,
    ) -> Result<PathBuf, InstallError> {
        match named {
            // The program takes it from where it is started, which nobody knows here.
            Some(named) if !named.is_absolute() => Err(InstallError::NoHome { program: self, variable }),
            Some(named) => Ok(named.clone()),
            None if usual.is_empty() => Ok(self.home(homes)?.to_owned()),
            None => Ok(self.home(homes)?.join(usual)),
        }
    }

    fn config(self, homes: &Homes) -> Result<PathBuf, InstallError> {
        match &homes.xdg_config {
            Some(directory) => Ok(directory.clone()),
            None => Ok(self.home(homes)?.join(".config")),
        }
    }

    /// Where the system has the files of desktop programs.
    fn data(self, homes: &Homes) -> Result<PathBuf, InstallError> {
        match homes.system {
            System::Linux => self.config(homes),
            System::MacOs => Ok(self.home(homes)?.join("Library/Application Support")),
            System::Windows => {
                homes.app_data.clone().ok_or(InstallError::NoHome { program: self, variable: "APPDATA" })
            }
        }
    }

    /// The member of the file that has the servers.
    pub(crate) fn section(self) -> &'static str {
        match self {
            Self::Claude | Self::ClaudeDesktop | Self::Cursor => "mcpServers",
            Self::VsCode => "servers",
            Self::Zed => "context_servers",
            Self::Codex => "mcp_servers",
        }
    }

    pub(crate) fn format(self) -> Format {
        match self {
            Self::Claude | Self::VsCode => Format::Json { with_type: true },
            Self::ClaudeDesktop | Self::Cursor | Self::Zed => Format::Json { with_type: false },
            Self::Codex => Format::Toml,
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Program {
    type Err = UnknownProgram;

    fn from_str(name: &str) -> Result<Self, UnknownProgram> {
        Self::ALL.into_iter().find(|program| program.name() == name).ok_or_else(|| UnknownProgram(name.to_owned()))
    }
}
