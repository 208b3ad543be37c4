//! The types that a key can have.

/// Type of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Integer,
    Float,
    Text,
    /// A text that is never shown.
    Secret,
    List(&'static Kind),
    /// Any names, one type of values.
    Map(&'static Kind),
    /// Any names and values.
    Table,
    SseServers,
    ShttpServers,
    StdioServers,
    /// May be unset.
    Optional(&'static Kind),
}

impl Kind {
    /// The type itself, whether or not it may be unset.
    pub(crate) fn inner(self) -> Self {
        match self {
            Self::Optional(kind) => kind.inner(),
            kind => kind,
        }
    }

    /// Whether a value of it is one word or number, with no secret in it.
    pub(crate) fn is_open_scalar(self) -> bool {
        matches!(self.inner(), Self::Bool | Self::Integer | Self::Float)
    }

    /// What a value of it is, as in "must be …".
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Bool => "true or false",
            Self::Integer => "an integer",
            Self::Float => "a number",
            Self::Text | Self::Secret => "a text",
            Self::List(Self::Map(_)) => "a list of tables of texts",
            Self::List(_) => "a list of texts",
            Self::Map(_) => "a table of texts",
            Self::Table => "a table",
            Self::SseServers | Self::ShttpServers => "a list of URLs or tables with a `url`",
            Self::StdioServers => "a list of tables with `name` and `command`",
            Self::Optional(kind) => kind.describe(),
        }
    }

    /// Its name in tables of keys.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Bool => "bool".into(),
            Self::Integer => "int".into(),
            Self::Float => "float".into(),
            Self::Text => "str".into(),
            Self::Secret => "secret".into(),
            Self::List(element) => format!("list of {}", element.name()),
            Self::Map(value) => format!("map of {}", value.name()),
            Self::Table => "map".into(),
            Self::SseServers | Self::ShttpServers | Self::StdioServers => "list of servers".into(),
            Self::Optional(kind) => format!("{}?", kind.name()),
        }
    }
}
