//! What the labels of a sandbox say: the service is the only database.

use std::collections::BTreeMap;

use gloveport_protocol::Secret;
use gloveport_provider::{ProviderError, SandboxSpec, SessionId, Settings};
use serde::{Deserialize, Serialize};

use crate::{
    fault::wrong,
    names::{OURS, RECORD, SESSION, SETTINGS, WISH},
    seal,
};

/// Most bytes of all labels: the service keeps them in memory of its database.
const MOST: usize = 64 * 1024;

/// What is known of a sandbox beside its session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The backend that made it, as [`Backends::label`](gloveport_provider::backend::Backends::label) tells it.
    pub(crate) backend: String,
    /// It outlives that backend.
    pub(crate) kept: bool,
    /// When it was made, in seconds since 1970.
    pub(crate) created: f64,
    /// When its time is over.
    pub(crate) expires: Option<f64>,
    /// The key of its server, sealed.
    pub(crate) key: String,
    /// Port of its server.
    pub(crate) port: u16,
    /// Ports of programs by name.
    pub(crate) ports: BTreeMap<String, u16>,
    /// Directory of what our server has in it, apart from our program.
    pub(crate) directory: String,
    pub(crate) workspace: String,
    /// The image that was asked for.
    pub(crate) image: Option<String>,
    /// Its ports ask for a token.
    pub(crate) private: bool,
    /// The snapshot that it was made from and that ends with it.
    pub(crate) fork: Option<String>,
}

/// A sandbox of ours by its labels.
#[derive(Clone, Debug)]
pub(crate) struct Labelled {
    pub(crate) session: SessionId,
    pub(crate) record: Record,
    pub(crate) settings: Option<String>,
    /// Those that were asked for.
    pub(crate) labels: BTreeMap<String, String>,
}

impl Labelled {
    /// What labels say; none for a sandbox of somebody else.
    pub(crate) fn of(labels: Option<&BTreeMap<String, String>>) -> Option<Self> {
        let mut labels = labels?.clone();
        let session = SessionId::new(labels.remove(SESSION)?).ok()?;
        let record = serde_json::from_str(&labels.remove(RECORD)?).ok()?;
        labels.remove(WISH);
        let settings = labels.remove(SETTINGS);
        Some(Self { session, record, settings, labels })
    }

    /// The key of its server, if it was made with this API key.
    pub(crate) fn key(&self, api_key: &Secret) -> Option<Secret> {
        seal::open(api_key, &self.session, &self.record.key)
    }
}

impl Record {
    /// The labels of a sandbox that is made from this, for a wish of this name.
    pub(crate) fn labels(&self, spec: &SandboxSpec, wish: &str) -> Result<BTreeMap<String, String>, ProviderError> {
        let mut labels = spec.labels.clone();
        if let Some(name) = labels.keys().find(|name| OURS.contains(&name.as_str())) {
            return Err(wrong("labels", format!("`{name}` is set by the runtime itself; take another name")));
        }
        let json = |value: serde_json::Result<String>| value.map_err(|error| wrong("labels", error));
        labels.insert(SESSION.to_owned(), spec.session_id.to_string());
        labels.insert(WISH.to_owned(), wish.to_owned());
        labels.insert(RECORD.to_owned(), json(serde_json::to_string(self))?);
        labels.insert(SETTINGS.to_owned(), json(serde_json::to_string(&Settings::of(spec)))?);
        let size: usize = labels.iter().map(|(name, value)| name.len() + value.len()).sum();
        if size > MOST {
            let reason =
                format!("with the variables they have {size} bytes, and {MOST} are the most; pass secrets instead");
            return Err(wrong("labels", reason));
        }
        Ok(labels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            backend: "m/1".to_owned(),
            kept: true,
            created: 1.5,
            expires: Some(2.5),
            key: seal::seal(&Secret::new("api"), &SessionId::new("s").unwrap(), &Secret::new("hidden-key")).unwrap(),
            port: 60_000,
            ports: [("work-1".to_owned(), 12_000)].into(),
            directory: "/opt/gloveport/1".to_owned(),
            workspace: "/workspace".to_owned(),
            image: None,
            private: true,
            fork: None,
        }
    }

    #[test]
    fn labels_say_all_that_another_backend_must_know_and_no_secret() {
        let spec = SandboxSpec {
            labels: [("team".to_owned(), "a".to_owned())].into(),
            secrets: [("S".to_owned(), Secret::new("hidden-secret"))].into(),
            session_key: Some(Secret::new("hidden-key")),
            ..SandboxSpec::new(SessionId::new("s").unwrap())
        };
        let record = record();
        let labels = record.labels(&spec, "w").unwrap();
        assert!(!format!("{labels:?}").contains("hidden"), "{labels:?}");
        let read = Labelled::of(Some(&labels)).unwrap();
        assert_eq!((read.session.as_str(), &read.record, &read.labels), ("s", &record, &spec.labels));
        assert_eq!(read.key(&Secret::new("api")), Some(Secret::new("hidden-key")));
        assert_eq!(read.key(&Secret::new("other")), None);
        serde_json::from_str::<Settings>(&read.settings.unwrap()).unwrap();
    }

    #[test]
    fn a_sandbox_of_somebody_else_is_none_of_ours() {
        let labels = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        assert!(Labelled::of(None).is_none());
        for foreign in [&[][..], &[("team", "a")], &[(SESSION, "s")], &[(SESSION, "../s"), (RECORD, "{}")]] {
            assert!(Labelled::of(Some(&labels(foreign))).is_none());
        }
    }

    #[test]
    fn a_label_of_ours_and_labels_without_end_are_refused() {
        let spec = SandboxSpec::new(SessionId::new("s").unwrap());
        for (name, value, expected) in [(SESSION, "x", "set by the runtime"), ("long", &*"x".repeat(MOST), "the most")]
        {
            let spec = SandboxSpec { labels: [(name.to_owned(), value.to_owned())].into(), ..spec.clone() };
            let error = record().labels(&spec, "w").unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
