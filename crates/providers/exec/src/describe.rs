//! What a program tells about itself, and the verbs.

use std::{collections::BTreeMap, time::Duration};

use gloveport_provider::{Capabilities, ProviderError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{PROTOCOLS, answer::Unknown};

/// What is asked of a program: its first argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verb {
    Describe,
    Create,
    Find,
    FindSession,
    List,
    Pause,
    Resume,
    Delete,
    Logs,
    CollectGarbage,
    Check,
    Hold,
    Release,
    Warm,
    Close,
}

impl Verb {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Describe => "describe",
            Self::Create => "create",
            Self::Find => "find",
            Self::FindSession => "find-session",
            Self::List => "list",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Delete => "delete",
            Self::Logs => "logs",
            Self::CollectGarbage => "collect-garbage",
            Self::Check => "check",
            Self::Hold => "hold",
            Self::Release => "release",
            Self::Warm => "warm",
            Self::Close => "close",
        }
    }

    /// How long it may take if the program does not say. For logs it is the longest silence of one that is not
    /// followed.
    const fn limit(self) -> Duration {
        match self {
            Self::Describe => Duration::from_secs(10),
            Self::Find | Self::FindSession | Self::List | Self::Check | Self::Hold | Self::Release | Self::Logs => {
                Duration::from_mins(1)
            }
            Self::Pause | Self::Resume | Self::Delete | Self::Close => Duration::from_mins(2),
            Self::CollectGarbage => Duration::from_mins(5),
            Self::Create | Self::Warm => Duration::from_mins(10),
        }
    }
}

/// Longest time limit that a program may ask for.
const LONGEST: Duration = Duration::from_hours(1);

/// What a program tells about itself.
#[derive(Clone, Debug)]
pub(crate) struct Description {
    pub(crate) protocol: u32,
    pub(crate) capabilities: Capabilities,
    /// Optional verbs that it knows.
    verbs: Vec<String>,
    /// Variables that it wants; one that ends with `*` stands for all that begin so.
    pub(crate) environment: Vec<String>,
    limits: BTreeMap<String, f64>,
    pub(crate) poll_interval: Duration,
}

#[derive(Deserialize)]
struct Told {
    protocol: u32,
    #[serde(default)]
    capabilities: Map<String, Value>,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    environment: Vec<String>,
    #[serde(default)]
    limits: BTreeMap<String, f64>,
    #[serde(default = "one_second")]
    poll_interval: f64,
    #[serde(flatten)]
    more: Unknown,
}

const fn one_second() -> f64 {
    1.0
}

impl Description {
    /// Before the program has told anything.
    pub(crate) fn unknown() -> Self {
        Self {
            protocol: 0,
            capabilities: Capabilities::NONE,
            verbs: Vec::new(),
            environment: Vec::new(),
            limits: BTreeMap::new(),
            poll_interval: Duration::from_secs(1),
        }
    }

    /// Reads the answer to `describe`; the error is the reason for people.
    pub(crate) fn read(answer: Value) -> Result<Self, String> {
        let mut told: Told = serde_json::from_value(answer).map_err(|error| error.to_string())?;
        if !PROTOCOLS.contains(&told.protocol) {
            let ours = PROTOCOLS.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            return Err(format!(
                "it speaks version {} of the protocol, and only {ours} is known here; use a version of gloveport and \
                 one of the program that fit",
                told.protocol
            ));
        }
        for known in ["name", "version"] {
            told.more.0.remove(known);
        }
        told.more.tell("describe");
        let known = Capabilities::NONE.rows();
        told.capabilities.retain(|name, _| {
            // The protocol has no verbs for snapshots, and a wish no place for a level of isolation and for whom a secret is.
            let keep = !["snapshots", "confine", "edge_secrets", "audit"].contains(&name.as_str())
                && (name == "isolation" || known.iter().any(|(field, ..)| field == name));
            if !keep {
                tracing::debug!(name, "a capability that is not known is passed over");
            }
            keep
        });
        let capabilities: Capabilities = serde_json::from_value(Value::Object(told.capabilities))
            .map_err(|error| format!("capabilities: {error}"))?;
        if capabilities.warm && !told.verbs.iter().any(|verb| verb == Verb::Warm.word()) {
            return Err("it has the capability `warm` and not the verb of that name".to_owned());
        }
        let seconds = |time: f64| Duration::try_from_secs_f64(time).unwrap_or(LONGEST).min(LONGEST);
        Ok(Self {
            protocol: told.protocol,
            capabilities,
            verbs: told.verbs,
            environment: told.environment,
            limits: told.limits,
            poll_interval: seconds(told.poll_interval).max(Duration::from_millis(10)),
        })
    }

    /// Whether the program knows an optional verb.
    pub(crate) fn knows(&self, verb: Verb) -> bool {
        self.verbs.iter().any(|known| known == verb.word())
    }

    /// How long a verb may take.
    pub(crate) fn limit(&self, verb: Verb) -> Duration {
        let told = self.limits.get(verb.word()).and_then(|seconds| Duration::try_from_secs_f64(*seconds).ok());
        told.map_or(verb.limit(), |limit| limit.clamp(Duration::from_millis(100), LONGEST))
    }

    /// Whether the program gets this variable of the backend.
    pub(crate) fn wants(&self, name: &str) -> bool {
        const ALWAYS: &[&str] = &[
            "PATH",
            "HOME",
            "USER",
            "LOGNAME",
            "LANG",
            "LC_*",
            "TZ",
            "TMPDIR",
            "XDG_*",
            "GLOVEPORT_PROVIDER_*",
            "GLOVEPORT_LOG",
        ];
        let matches = |pattern: &str| match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == pattern,
        };
        ALWAYS.iter().copied().chain(self.environment.iter().map(String::as_str)).any(matches)
    }
}

/// The error of a program whose description cannot be used.
pub(crate) fn refused(engine: String, reason: String) -> ProviderError {
    ProviderError::Engine { engine, action: "describe itself".to_owned(), reason }
}
