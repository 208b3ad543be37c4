//! The enumerations of the wire (actions-and-observations 1.3).

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::error::describe_text;
use crate::fields::WireField;

/// Declares an enum whose values travel as strings.
macro_rules! wire_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $wire:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$variant_meta])* #[serde(rename = $wire)] $variant,)+
        }

        impl $name {
            /// All values, in the order of the specification.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The value on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $wire,)+ }
            }

            /// The value with this name on the wire.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl WireField for $name {
            fn expected() -> String {
                let names: Vec<_> = Self::ALL.iter().map(|value| format!("'{value}'")).collect();
                format!("one of {}", names.join(", "))
            }

            fn from_wire(value: &Value) -> Result<Self, String> {
                value.as_str().and_then(Self::parse).ok_or_else(|| describe_text(value))
            }

            fn to_wire(&self) -> Value {
                Value::from(self.as_str())
            }
        }
    };
}

wire_enum! {
    /// Who caused an event.
    EventSource {
        /// The agent.
        Agent = "agent",
        /// The person the agent works for.
        User = "user",
        /// The sandbox or the backend.
        Environment = "environment",
    }
}

wire_enum! {
    /// Whether the user let an action pass; the executing side ignores it.
    ConfirmationState {
        /// May be executed.
        Confirmed = "confirmed",
        /// Was refused by the user.
        Rejected = "rejected",
        /// Waits for the user.
        AwaitingConfirmation = "awaiting_confirmation",
    }
}

wire_enum! {
    /// Who performs an edit.
    FileEditSource {
        /// A model rewrites the file; done by the caller, never by the executing side.
        LlmBasedEdit = "llm_based_edit",
        /// The file editor of the executing side.
        OhAci = "oh_aci",
    }
}

wire_enum! {
    /// How a file is read.
    FileReadSource {
        /// As the file editor shows it, with line numbers.
        OhAci = "oh_aci",
        /// As it is.
        Default = "default",
    }
}

wire_enum! {
    /// What a recall asks for.
    RecallType {
        /// Facts about the repository and the sandbox.
        WorkspaceContext = "workspace_context",
        /// Texts of microagents.
        Knowledge = "knowledge",
    }
}

wire_enum! {
    /// What the agent's controller is doing.
    ///
    /// Actions and observations carry the state as free text, as the caller does not check it; this is the list of
    /// the names that it uses.
    AgentState {
        /// Being set up.
        Loading = "loading",
        /// At work.
        Running = "running",
        /// Waits for a message of the user.
        AwaitingUserInput = "awaiting_user_input",
        /// Halted, can go on.
        Paused = "paused",
        /// Halted for good.
        Stopped = "stopped",
        /// Completed its task.
        Finished = "finished",
        /// Refused its task.
        Rejected = "rejected",
        /// Failed.
        Error = "error",
        /// Waits for the user to let an action pass.
        AwaitingUserConfirmation = "awaiting_user_confirmation",
        /// The user let the action pass.
        UserConfirmed = "user_confirmed",
        /// The user refused the action.
        UserRejected = "user_rejected",
        /// Waits because the model's provider refuses more requests.
        RateLimited = "rate_limited",
    }
}

/// How dangerous the agent thinks an action is; the executing side ignores it.
///
/// Travels as an integer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SecurityRisk {
    /// Not rated: -1.
    #[default]
    Unknown,
    /// Rated as harmless: 0.
    Low,
    /// Rated as notable: 1.
    Medium,
    /// Rated as dangerous: 2.
    High,
}

impl SecurityRisk {
    /// The value on the wire.
    pub const fn as_i64(self) -> i64 {
        match self {
            Self::Unknown => -1,
            Self::Low => 0,
            Self::Medium => 1,
            Self::High => 2,
        }
    }

    /// The risk with this number on the wire.
    pub const fn from_i64(number: i64) -> Option<Self> {
        match number {
            -1 => Some(Self::Unknown),
            0 => Some(Self::Low),
            1 => Some(Self::Medium),
            2 => Some(Self::High),
            _ => None,
        }
    }
}

impl WireField for SecurityRisk {
    fn expected() -> String {
        "an integer from -1 to 2".to_owned()
    }

    fn from_wire(value: &Value) -> Result<Self, String> {
        value.as_i64().and_then(Self::from_i64).ok_or_else(|| describe_text(value))
    }

    fn to_wire(&self) -> Value {
        Value::from(self.as_i64())
    }
}

impl Serialize for SecurityRisk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.as_i64())
    }
}

impl<'de> Deserialize<'de> for SecurityRisk {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(deserializer)?;
        Self::from_i64(number)
            .ok_or_else(|| serde::de::Error::custom(format_args!("security risk {number} is not from -1 to 2")))
    }
}
