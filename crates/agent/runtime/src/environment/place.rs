//! Where variables of the tools are set.

/// Where variables could not be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvironmentPlace {
    /// The shell that runs.
    Shell,
    /// The file that later shells read.
    Bashrc,
}

impl EnvironmentPlace {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Shell => "environment",
            Self::Bashrc => ".bashrc",
        }
    }
}
