//! What the labels of a sandbox say: the service is the only database.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use gloveport_protocol::Secret;
use gloveport_provider::{ListFilter, ProviderError, Sandbox, SandboxSpec, SessionId, Settings};
use serde::{Deserialize, Serialize};

use crate::{fault::wrong, seal};

/// The labels that a provider sets itself.
#[derive(Clone, Copy, Debug)]
pub struct Labels {
    /// The label with the session.
    pub session: &'static str,
    /// The label with what one wish for a sandbox has for itself, by which it is found again when the answer was lost.
    pub wish: &'static str,
    /// The label with all else that is known of a sandbox, as JSON.
    pub record: &'static str,
    /// The label with what a fork is made with again, as JSON.
    pub settings: &'static str,
    /// Most bytes of all labels.
    pub most: usize,
    /// What the API key is used for when it seals keys ([`seal`]).
    pub purpose: &'static str,
}

/// What is known of a sandbox beside its session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The backend that made it, as [`Backends::label`](gloveport_provider::backend::Backends::label) tells it.
    pub backend: String,
    /// It outlives that backend.
    pub kept: bool,
    /// When it was made, in seconds since 1970.
    pub created: f64,
    /// When its time is over.
    pub expires: Option<f64>,
    /// The key of its server, sealed.
    pub key: String,
    /// Port of its server.
    pub port: u16,
    /// Ports of programs by name.
    pub ports: BTreeMap<String, u16>,
    /// Directory of what our server has in it, apart from our program.
    pub directory: String,
    /// Where the work is.
    pub workspace: String,
    /// The image that was asked for.
    pub image: Option<String>,
    /// Its ports ask for a token.
    pub private: bool,
    /// The snapshot that it was made from and that ends with it.
    pub fork: Option<String>,
}

/// A sandbox of ours by its labels.
#[derive(Clone, Debug)]
pub struct Labelled {
    /// Whose it is.
    pub session: SessionId,
    /// The wish that it was made for.
    pub wish: Option<String>,
    /// What is known of it.
    pub record: Record,
    /// What a fork is made with.
    pub settings: Option<String>,
    /// Those that were asked for.
    pub labels: BTreeMap<String, String>,
}

impl Labels {
    fn ours(&self) -> [&'static str; 4] {
        [self.session, self.wish, self.record, self.settings]
    }

    /// What labels say; none for a sandbox of somebody else.
    pub fn read(&self, labels: Option<&BTreeMap<String, String>>) -> Option<Labelled> {
        let mut labels = labels?.clone();
        let session = SessionId::new(labels.remove(self.session)?).ok()?;
        let record = serde_json::from_str(&labels.remove(self.record)?).ok()?;
        let (wish, settings) = (labels.remove(self.wish), labels.remove(self.settings));
        Some(Labelled { session, wish, record, settings, labels })
    }

    /// The labels of a sandbox that is made from this, for a wish of this name.
    ///
    /// # Errors
    ///
    /// A label that was asked for has a name of ours, or there are too many.
    pub fn write(
        &self,
        record: &Record,
        spec: &SandboxSpec,
        wish: &str,
    ) -> Result<BTreeMap<String, String>, ProviderError> {
        let mut labels = spec.labels.clone();
        if let Some(name) = labels.keys().find(|name| self.ours().contains(&name.as_str())) {
            return Err(wrong("labels", format!("`{name}` is set by the runtime itself; take another name")));
        }
        let json = |value: serde_json::Result<String>| value.map_err(|error| wrong("labels", error));
        labels.insert(self.session.to_owned(), spec.session_id.to_string());
        labels.insert(self.wish.to_owned(), wish.to_owned());
        labels.insert(self.record.to_owned(), json(serde_json::to_string(record))?);
        labels.insert(self.settings.to_owned(), json(serde_json::to_string(&Settings::of(spec)))?);
        let size: usize = labels.iter().map(|(name, value)| name.len() + value.len()).sum();
        if size > self.most {
            let reason = format!(
                "with the variables they have {size} bytes, and {} are the most; pass secrets instead",
                self.most
            );
            return Err(wrong("labels", reason));
        }
        Ok(labels)
    }

    /// A key of a session's server for its record.
    ///
    /// # Errors
    ///
    /// The system gives no random numbers.
    pub fn seal(&self, api_key: &Secret, session: &SessionId, key: &Secret) -> Result<String, seal::Failed> {
        seal::seal(self.purpose, api_key, session, key)
    }

    /// The key of a sandbox's server, if it was made with this API key.
    pub fn key(&self, api_key: &Secret, labelled: &Labelled) -> Option<Secret> {
        seal::open(self.purpose, api_key, &labelled.session, &labelled.record.key)
    }
}

impl Labelled {
    /// What a fork of it is made with; none if its labels do not tell.
    pub fn settings(&self) -> Option<Settings> {
        serde_json::from_str(self.settings.as_deref()?).ok()
    }
}

/// A time as records tell it: seconds since 1970.
pub fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs_f64()
}

/// The time of a record, if it can be one.
pub fn time(seconds: f64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::try_from_secs_f64(seconds).ok()?)
}

/// Those that a filter lets through, the oldest first.
pub fn filtered(mut found: Vec<Sandbox>, filter: &ListFilter) -> Vec<Sandbox> {
    let labelled = |one: &Sandbox| filter.labels.iter().all(|(name, value)| one.labels.get(name) == Some(value));
    found.retain(|sandbox| labelled(sandbox) && (filter.ended || sandbox.state.is_live()));
    found.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: Labels = Labels {
        session: "gloveport.test.session",
        wish: "gloveport.test.wish",
        record: "gloveport.test.record",
        settings: "gloveport.test.settings",
        most: 64 * 1024,
        purpose: "test",
    };

    fn record() -> Record {
        Record {
            backend: "m/1".to_owned(),
            kept: true,
            created: 1.5,
            expires: Some(2.5),
            key: LABELS.seal(&Secret::new("api"), &SessionId::new("s").unwrap(), &Secret::new("hidden-key")).unwrap(),
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
        let labels = LABELS.write(&record, &spec, "w").unwrap();
        assert!(!format!("{labels:?}").contains("hidden"), "{labels:?}");
        let read = LABELS.read(Some(&labels)).unwrap();
        assert_eq!((read.session.as_str(), &read.record, &read.labels), ("s", &record, &spec.labels));
        assert_eq!(LABELS.key(&Secret::new("api"), &read), Some(Secret::new("hidden-key")));
        assert_eq!(LABELS.key(&Secret::new("other"), &read), None);
        assert!(read.settings().is_some() && read.wish.as_deref() == Some("w"));
    }

    #[test]
    fn a_sandbox_of_somebody_else_is_none_of_ours() {
        let labels = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        assert!(LABELS.read(None).is_none());
        for foreign in
            [&[][..], &[("team", "a")], &[(LABELS.session, "s")], &[(LABELS.session, "../s"), (LABELS.record, "{}")]]
        {
            assert!(LABELS.read(Some(&labels(foreign))).is_none());
        }
    }

    #[test]
    fn a_label_of_ours_and_labels_without_end_are_refused() {
        let spec = SandboxSpec::new(SessionId::new("s").unwrap());
        for (name, value, expected) in
            [(LABELS.session, "x", "set by the runtime"), ("long", &*"x".repeat(LABELS.most), "the most")]
        {
            let spec = SandboxSpec { labels: [(name.to_owned(), value.to_owned())].into(), ..spec.clone() };
            let error = LABELS.write(&record(), &spec, "w").unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
