//! The protocols that a server can be checked for.

/// A protocol between a sandbox's server and its clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wire {
    /// That of OpenHands 0.62.
    #[default]
    V0,
    /// The workspaces of OpenHands' SDK 1.x, whose server is the agent-server.
    Sdk,
    /// SWE-ReX, whose server is `swerex-remote`.
    Swerex,
}

impl Wire {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::V0, Self::Sdk, Self::Swerex];

    /// The name that a command line has for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V0 => "v0",
            Self::Sdk => "sdk",
            Self::Swerex => "swerex",
        }
    }

    /// What it is, in the middle of a sentence.
    pub const fn title(self) -> &'static str {
        match self {
            Self::V0 => "the protocol of OpenHands 0.62",
            Self::Sdk => "the workspace API of OpenHands' SDK 1.x",
            Self::Swerex => "the API of SWE-ReX",
        }
    }

    /// The header that holds the key.
    pub(crate) const fn key_header(self) -> &'static str {
        match self {
            Self::V0 | Self::Sdk => gloveport_protocol::SESSION_KEY_HEADER,
            Self::Swerex => "x-api-key",
        }
    }
}
