//! The directories below which clients keep their files.

use std::{ffi::OsString, path::PathBuf};

/// A family of systems, as clients tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Linux, and whatever else keeps to the XDG directories.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl System {
    /// That of this process.
    pub fn this() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else if cfg!(target_os = "macos") {
            Self::MacOs
        } else {
            Self::Linux
        }
    }

    /// The variable that has the user's home.
    pub(crate) fn home_variable(self) -> &'static str {
        match self {
            Self::Linux | Self::MacOs => "HOME",
            Self::Windows => "USERPROFILE",
        }
    }
}

/// The directories that the environment names. A variable that is empty is not set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Homes {
    pub(crate) system: System,
    pub(crate) home: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`, where it is one: relative ones are to be ignored.
    pub(crate) xdg_config: Option<PathBuf>,
    /// `APPDATA`.
    pub(crate) app_data: Option<PathBuf>,
    /// `CLAUDE_CONFIG_DIR`.
    pub(crate) claude: Option<PathBuf>,
    /// `CODEX_HOME`.
    pub(crate) codex: Option<PathBuf>,
}

impl Homes {
    /// Those of this system, with variables by their names.
    pub fn new(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        Self::of(System::this(), variable)
    }

    /// Those that another system would have.
    pub fn of(system: System, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let path = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let absolute = |name: &str| path(name).filter(|path| path.is_absolute());
        Self {
            system,
            home: absolute(system.home_variable()),
            xdg_config: absolute("XDG_CONFIG_HOME"),
            app_data: absolute("APPDATA"),
            claude: path("CLAUDE_CONFIG_DIR"),
            codex: path("CODEX_HOME"),
        }
    }
}
