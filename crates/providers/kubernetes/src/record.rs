//! The record of a sandbox: a config map that owns all other objects, and says in its annotations all that another backend
//! must know. Its name is the sandbox's id, so that the cluster lets each session have one only.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use gloveport_provider::{ProviderError, SandboxId, SessionId, Settings};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Pod},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time},
};

use crate::{
    fault::failed,
    names::{self, Ports},
    sandbox_object::{Told, made_for},
};

/// The key in the config map under which the pod is that a paused sandbox goes on with.
const POD: &str = "pod.json";
/// The key under which its gate is, if it has one.
const GATE: &str = "gate.json";

/// The key under which the settings are that a fork is made with.
const SETTINGS: &str = "settings.json";

/// Who makes the pod of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Maker {
    /// A backend.
    Backend,
    /// The controller of agent-sandbox, from an object; what that says, if it is there and was asked.
    Controller(Option<Told>),
}

/// What is known of a sandbox apart from its pod.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) id: SandboxId,
    pub(crate) uid: String,
    pub(crate) session: SessionId,
    /// Who made it.
    pub(crate) backend: String,
    /// It outlives who made it.
    pub(crate) keep: bool,
    pub(crate) created: Option<SystemTime>,
    pub(crate) time_to_live: Option<Duration>,
    pub(crate) ports: Ports,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) workspace: Option<String>,
    pub(crate) image: Option<String>,
    /// The workspace outlives the pod.
    pub(crate) survives: bool,
    pub(crate) token: String,
    pub(crate) maker: Maker,
    /// Name of its `Sandbox`, where a controller makes its pod.
    pub(crate) sandbox: String,
    /// Name of its pod.
    pub(crate) pod: String,
    /// All objects have been made; the address of the service.
    pub(crate) address: Option<String>,
    /// The address of the service of its gate, if it has one.
    pub(crate) gate: Option<String>,
    /// The labels of the backends that use it.
    pub(crate) holders: Vec<String>,
    /// It is being removed.
    pub(crate) ends: bool,
}

impl Record {
    /// What a config map says; none if it is no record.
    pub(crate) fn of(meta: &ObjectMeta) -> Option<Self> {
        if meta.labels.as_ref()?.get(names::ROLE)? != names::SANDBOX {
            return None;
        }
        let annotations = meta.annotations.as_ref()?;
        let text = |key: &str| annotations.get(key).cloned();
        let json = |key: &str| annotations.get(key).map_or("{}", String::as_str);
        let seconds = text(names::TIME_TO_LIVE).and_then(|text| text.parse().ok());
        let holders = annotations.iter().filter(|(key, _)| key.starts_with(names::HOLDER));
        Some(Self {
            id: SandboxId::new(meta.name.clone()?).ok()?,
            uid: meta.uid.clone().unwrap_or_default(),
            session: SessionId::new(text(names::SESSION)?).ok()?,
            backend: text(names::BACKEND)?,
            keep: text(names::KEEP).as_deref() == Some("true"),
            created: meta.creation_timestamp.as_ref().map(time),
            time_to_live: seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            // A record may have been changed by hand.
            ports: serde_json::from_str(json(names::PORTS)).unwrap_or_default(),
            labels: serde_json::from_str(json(names::LABELS)).unwrap_or_default(),
            workspace: text(names::WORKSPACE),
            image: text(names::IMAGE),
            survives: text(names::SURVIVES).as_deref() == Some("true"),
            token: text(names::TOKEN).unwrap_or_default(),
            maker: match text(names::API).as_deref() {
                Some(names::BY_SANDBOX) => Maker::Controller(None),
                _ => Maker::Backend,
            },
            sandbox: text(names::SANDBOX_NAME).or_else(|| meta.name.clone())?,
            pod: text(names::POD_NAME).or_else(|| meta.name.clone())?,
            address: text(names::ADDRESS),
            gate: text(names::GATE_ADDRESS),
            holders: holders.map(|(_, label)| label.clone()).collect(),
            ends: meta.deletion_timestamp.is_some(),
        })
    }

    /// When its time is over.
    pub(crate) fn expires(&self) -> Option<SystemTime> {
        self.created?.checked_add(self.time_to_live?)
    }

    /// What its `Sandbox` says, if there is one.
    pub(crate) fn learn(&mut self, told: Option<Told>) {
        self.pod = told.as_ref().and_then(|told| told.pod.clone()).unwrap_or_else(|| self.sandbox.clone());
        self.maker = Maker::Controller(told);
    }

    /// Whether a pod belongs to it, and not to one before it of the same name.
    pub(crate) fn owns(&self, pod: &Pod) -> bool {
        match &self.maker {
            Maker::Backend => belongs_to(pod, &self.uid),
            Maker::Controller(told) => made_for(pod, &self.sandbox, told.as_ref().map(|told| told.uid.as_str())),
        }
    }

    /// What the objects have that end with it.
    pub(crate) fn owner(&self) -> OwnerReference {
        owner("ConfigMap", self.id.as_str(), &self.uid)
    }
}

/// Whether a pod belongs to the object of this identity, and not to one before it of the same name.
pub(crate) fn belongs_to(pod: &Pod, uid: &str) -> bool {
    pod.metadata.owner_references.iter().flatten().any(|owner| owner.uid == uid)
}

/// What an object has that ends with this one.
pub(crate) fn owner(kind: &str, name: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        block_owner_deletion: Some(true),
        controller: None,
    }
}

/// A time of the cluster.
pub(crate) fn time(time: &Time) -> SystemTime {
    SystemTime::from(time.0)
}

/// The pod in a record.
pub(crate) fn pod_of(map: &ConfigMap) -> Result<Pod, ProviderError> {
    stored(map, POD, "pod")
}

/// The gate in a record.
pub(crate) fn gate_of(map: &ConfigMap) -> Result<Pod, ProviderError> {
    stored(map, GATE, "gate")
}

fn stored(map: &ConfigMap, key: &str, what: &str) -> Result<Pod, ProviderError> {
    let name = map.metadata.name.as_deref().unwrap_or_default();
    let broken = |reason: String| failed(format!("say how the {what} of `{name}` is made"), reason);
    let text = map.data.as_ref().and_then(|data| data.get(key)).ok_or_else(|| broken("it is missing".to_owned()))?;
    serde_json::from_str(text).map_err(|error| broken(error.to_string()))
}

/// The settings in a record, if it has them.
pub(crate) fn settings_of(map: &ConfigMap) -> Result<Option<Settings>, ProviderError> {
    let Some(text) = map.data.as_ref().and_then(|data| data.get(SETTINGS)) else { return Ok(None) };
    let name = map.metadata.name.as_deref().unwrap_or_default();
    let broken = |error| failed(format!("say how `{name}` was made"), error);
    serde_json::from_str(text).map(Some).map_err(broken)
}

/// The content of a record: the pod, and the gate and the settings if it has them.
pub(crate) fn data(
    pod: &Pod,
    gate: Option<&Pod>,
    settings: Option<&Settings>,
) -> Result<BTreeMap<String, String>, ProviderError> {
    let text = |pod| serde_json::to_string(pod).map_err(|error| failed("be told the pod", error));
    let mut content = BTreeMap::from([(POD.to_owned(), text(pod)?)]);
    if let Some(gate) = gate {
        content.insert(GATE.to_owned(), text(gate)?);
    }
    if let Some(settings) = settings {
        let text = serde_json::to_string(settings).map_err(|error| failed("be told the settings", error))?;
        content.insert(SETTINGS.to_owned(), text);
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(annotations: &[(&str, &str)]) -> ObjectMeta {
        let all = [(names::SESSION, "A.b"), (names::BACKEND, "here/1")].iter().chain(annotations);
        ObjectMeta {
            name: Some("openhands-runtime-x".to_owned()),
            labels: Some([(names::ROLE.to_owned(), names::SANDBOX.to_owned())].into()),
            annotations: Some(all.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn a_record_says_what_another_backend_must_know() {
        let record = Record::of(&meta(&[
            (names::KEEP, "true"),
            (names::TIME_TO_LIVE, "1.5"),
            (names::PORTS, "{\"web\":30084}"),
            ("gloveport/holder-a", "here/a"),
            (names::SURVIVES, "true"),
        ]))
        .unwrap();
        assert_eq!((record.session.as_str(), record.backend.as_str(), record.keep), ("A.b", "here/1", true));
        assert_eq!(record.time_to_live, Some(Duration::from_millis(1500)));
        assert_eq!(record.ports, Ports::from([("web".to_owned(), 30084)]));
        assert_eq!((record.holders, record.survives, record.ends), (vec!["here/a".to_owned()], true, false));
    }

    #[test]
    fn what_somebody_wrote_into_a_record_breaks_nothing() {
        for (key, value) in
            [(names::TIME_TO_LIVE, "-1"), (names::TIME_TO_LIVE, "1e300"), (names::PORTS, "[["), (names::LABELS, "1")]
        {
            let record = Record::of(&meta(&[(key, value)])).unwrap();
            assert_eq!((record.time_to_live, record.ports.len(), record.labels.len()), (None, 0, 0), "{key}");
        }
        assert!(Record::of(&ObjectMeta { annotations: None, ..meta(&[]) }).is_none());
        assert!(Record::of(&ObjectMeta { labels: None, ..meta(&[]) }).is_none());
    }
}
