//! Why an MCP server is refused, in the words of configuration 6.

use gloveport_protocol::http::McpServerEntryError;

use crate::mask::MASK;

/// Why an entry of `[mcp]` is refused.
///
/// Parts of a text form of variables are masked: a comma inside of a secret makes its end look like a variable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// The URL is empty.
    #[error("URL cannot be empty")]
    EmptyUrl,
    /// The URL has no scheme.
    #[error("URL must include a scheme (http:// or https://)")]
    NoScheme,
    /// The URL has no host.
    #[error("URL must include a valid domain/host")]
    NoHost,
    /// The scheme is of another kind.
    #[error("URL scheme must be http, https, ws, or wss")]
    WrongScheme,
    /// Two servers have the same URL.
    #[error("Duplicate MCP server URLs are not allowed")]
    DuplicateUrl,
    /// The limit is not positive.
    #[error("Timeout must be positive")]
    TimeoutNotPositive,
    /// The limit is longer than an hour.
    #[error("Timeout cannot exceed 3600 seconds")]
    TimeoutTooLong,
    /// The name is empty.
    #[error("Server name cannot be empty")]
    EmptyName,
    /// The name has other characters than allowed.
    #[error("Server name can only contain letters, numbers, hyphens, and underscores")]
    InvalidName,
    /// The command is empty.
    #[error("Command cannot be empty")]
    EmptyCommand,
    /// The command has a blank.
    #[error("Command should be a single executable without spaces (use arguments field for parameters)")]
    CommandWithSpace,
    /// The text form of the arguments does not end its quotation.
    #[error("Invalid argument format: No closing quotation")]
    OpenQuote,
    /// The text form of the arguments ends in a backslash.
    #[error("Invalid argument format: No escaped character")]
    OpenEscape,
    /// A part of the text form of the variables has no `=`.
    #[error("Environment variable '{MASK}' must be in KEY=VALUE format")]
    NoEqualsSign,
    /// A part of the text form of the variables has no name.
    #[error("Environment variable key cannot be empty")]
    EmptyVariable,
    /// A name in the text form of the variables is none.
    #[error("Invalid environment variable name '{MASK}': letters, digits and underscores, and no digit first")]
    InvalidVariable,
    /// A member is absent.
    #[error("`{field}` is missing")]
    Missing {
        /// The member.
        field: &'static str,
    },
    /// A member, or the entry itself, has another type.
    #[error("must be {expected}, not {found}")]
    WrongType {
        /// The member; nothing for the entry itself.
        field: Option<&'static str>,
        /// What it holds.
        expected: &'static str,
        /// What was there.
        found: &'static str,
    },
}

impl McpError {
    /// The same refusal in the words of the configuration.
    pub(super) fn from_entry(error: McpServerEntryError) -> Self {
        match error {
            McpServerEntryError::NotAnObject { .. } => {
                Self::WrongType { field: None, expected: "a table", found: "something else" }
            }
            McpServerEntryError::Missing { field } => Self::Missing { field },
            McpServerEntryError::WrongType { field, expected, .. } => {
                Self::WrongType { field: Some(field), expected, found: "something else" }
            }
            McpServerEntryError::EmptyName => Self::EmptyName,
            McpServerEntryError::InvalidName { .. } => Self::InvalidName,
            McpServerEntryError::EmptyCommand => Self::EmptyCommand,
            McpServerEntryError::CommandWithSpace { .. } => Self::CommandWithSpace,
            McpServerEntryError::OpenQuote => Self::OpenQuote,
            McpServerEntryError::OpenEscape => Self::OpenEscape,
            McpServerEntryError::NoEqualsSign { .. } => Self::NoEqualsSign,
            McpServerEntryError::InvalidVariable { key } if key.is_empty() => Self::EmptyVariable,
            McpServerEntryError::InvalidVariable { .. } => Self::InvalidVariable,
        }
    }

    /// The member that it is about.
    pub(super) fn field(&self) -> Option<&'static str> {
        match self {
            Self::EmptyUrl | Self::NoScheme | Self::NoHost | Self::WrongScheme | Self::DuplicateUrl => Some("url"),
            Self::TimeoutNotPositive | Self::TimeoutTooLong => Some("timeout"),
            Self::EmptyName | Self::InvalidName => Some("name"),
            Self::EmptyCommand | Self::CommandWithSpace => Some("command"),
            Self::OpenQuote | Self::OpenEscape => Some("args"),
            Self::NoEqualsSign | Self::EmptyVariable | Self::InvalidVariable => Some("env"),
            Self::Missing { .. } => None,
            Self::WrongType { field, .. } => *field,
        }
    }
}
