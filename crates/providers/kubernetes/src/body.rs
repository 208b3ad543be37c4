//! From a spec to the objects that the cluster is asked to make (kubernetes-runtime 6).

mod gate;
mod pod;
mod services;
mod volumes;

use std::collections::BTreeMap;

use gloveport_protocol::Secret as Hidden;
use gloveport_provider::{NetworkPolicy, ProviderError, SandboxId, SandboxSpec, Settings, Workspace};
use k8s_openapi::{
    api::core::v1::ConfigMap,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};

pub(crate) use self::{
    pod::{SESSION_VARIABLE, lead_through, once_more, shorten},
    volumes::{claim_of, on_claim},
};
use crate::{
    KubernetesOptions, SandboxApi, Storage,
    fault::{failed, wrong},
    names::{self, EDITOR, FIRST_FREE, Ports, SERVER_PORT, WORK},
    record::data,
    source::Source,
};

/// Ports of programs that a spec can ask for.
const MOST_PORTS: usize = 64;

/// All that a sandbox is made from.
pub(crate) struct Plan<'a> {
    pub(crate) options: &'a KubernetesOptions,
    pub(crate) spec: &'a SandboxSpec,
    pub(crate) id: &'a SandboxId,
    pub(crate) image: &'a str,
    /// The backend, as the record tells it.
    pub(crate) backend: &'a str,
    /// The word by which this making of it recognises its objects.
    pub(crate) token: &'a str,
    pub(crate) key: &'a Hidden,
    /// Length of our program in bytes, if it is streamed into the pod or its gate.
    pub(crate) program_size: u64,
    /// What its workspace begins with.
    pub(crate) source: Option<&'a Source>,
    /// It is no session's yet.
    pub(crate) waits: Option<Waits<'a>>,
}

/// A pod that waits for a session.
#[derive(Clone, Copy)]
pub(crate) struct Waits<'a> {
    /// The id of the backend to whose pool it belongs.
    pub(crate) pool: &'a str,
    /// What pods have in common that are made alike.
    pub(crate) alike: &'a str,
}

impl Plan<'_> {
    /// Whether it is our server that runs.
    fn is_ours(&self) -> bool {
        self.spec.command.is_none()
    }

    /// Whether the workspace outlives the pod.
    fn survives(&self) -> bool {
        self.spec.workspace != Workspace::Temporary || self.options.storage == Storage::Volume
    }

    /// Whether the editor is asked for.
    pub(crate) fn has_editor(&self) -> bool {
        self.spec.plugins.iter().any(|plugin| plugin == EDITOR.0)
            || self.spec.ports.iter().any(|port| port.name == EDITOR.0)
    }

    /// The ports of programs by name.
    pub(crate) fn ports(&self) -> Result<Ports, ProviderError> {
        if self.spec.ports.len() > MOST_PORTS {
            return Err(wrong("ports", format!("{MOST_PORTS} are possible at most")));
        }
        let mut ports: Ports = WORK.iter().map(|(name, port)| ((*name).to_owned(), *port)).collect();
        if self.has_editor() {
            ports.insert(EDITOR.0.to_owned(), EDITOR.1);
        }
        let mut free = FIRST_FREE..;
        for wanted in &self.spec.ports {
            let taken = |port: &u16| self.spec.ports.iter().any(|other| other.port == Some(*port));
            let port = match wanted.port {
                Some(port) => Some(port),
                None if wanted.name == EDITOR.0 => Some(EDITOR.1),
                None => free.find(|port| !taken(port)),
            };
            ports.insert(wanted.name.clone(), port.ok_or_else(|| wrong("ports", "no port is free"))?);
        }
        let mut seen = std::collections::BTreeSet::from([SERVER_PORT]);
        match ports.values().find(|port| !seen.insert(**port)) {
            Some(port) => Err(wrong("ports", format!("{port} is used twice"))),
            None => Ok(ports),
        }
    }

    /// The labels that all objects of the sandbox have.
    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        if let Some(Waits { pool, alike }) = self.waits {
            let id = self.id.as_str();
            return [
                (names::APP.0, names::APP.1),
                (names::ROLE, names::WARM),
                (names::UNIT, id),
                (names::POOL, pool),
                (names::ALIKE, alike),
            ]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        }
        let session = names::session_label(&self.spec.session_id);
        [
            (names::APP.0, names::APP.1),
            (names::SESSION_LABEL, session.as_str()),
            (names::ROLE, names::SANDBOX),
            (names::UNIT, self.id.as_str()),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
    }

    /// The labels of its pod: also those of the caller that can be labels of objects.
    pub(crate) fn shown_labels(&self) -> BTreeMap<String, String> {
        let wanted = self.spec.labels.iter();
        let shown = wanted.filter(|(key, value)| names::is_label_key(key) && names::is_label_value(value));
        let shown = shown.map(|(key, value)| (key.clone(), value.clone()));
        let closed = (self.spec.network != NetworkPolicy::Full).then_some(names::CLOSED);
        let closed = closed.map(|(key, value)| (key.to_owned(), value.to_owned()));
        self.labels().into_iter().chain(shown).chain(closed).collect()
    }

    /// What an object is called, and whose it is.
    fn meta(&self, name: &str, owner: Option<&OwnerReference>) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(self.labels()),
            owner_references: owner.map(|owner| vec![owner.clone()]),
            ..ObjectMeta::default()
        }
    }

    /// The record, with the pod that a paused sandbox goes on with.
    pub(crate) fn record(&self) -> Result<ConfigMap, ProviderError> {
        let json = |value: serde_json::Result<String>| value.map_err(|error| failed("be told the labels", error));
        if let Some(name) = self.spec.labels.keys().find(|name| names::is_ours(name)) {
            return Err(wrong("labels", format!("`{name}` is set by the runtime itself; take another name")));
        }
        let mut annotations: BTreeMap<String, String> = BTreeMap::new();
        let mut set = |key: &str, value: String| annotations.insert(key.to_owned(), value);
        set(names::SESSION, self.spec.session_id.to_string());
        set(names::BACKEND, self.backend.to_owned());
        set(names::KEEP, self.spec.keep_alive.to_string());
        set(names::PORTS, json(serde_json::to_string(&self.ports()?))?);
        set(names::LABELS, json(serde_json::to_string(&self.spec.labels))?);
        set(names::WORKSPACE, self.options.workspace.clone());
        set(names::IMAGE, self.image.to_owned());
        set(names::SURVIVES, self.survives().to_string());
        set(names::TOKEN, self.token.to_owned());
        if self.options.api == SandboxApi::Sandboxes {
            set(names::API, names::BY_SANDBOX.to_owned());
        }
        if let Some(time) = self.spec.time_to_live {
            set(names::TIME_TO_LIVE, time.as_secs_f64().to_string());
        }
        let meta = ObjectMeta { annotations: Some(annotations), ..self.meta(self.id.as_str(), None) };
        let settings = self.options.volume_snapshots.then(|| Settings::of(self.spec));
        let content = data(&self.pod()?, self.gate_pod()?.as_ref(), settings.as_ref())?;
        Ok(ConfigMap { metadata: meta, data: Some(content), ..ConfigMap::default() })
    }

    /// The labels by which services and policies choose its pods.
    fn selector(&self) -> BTreeMap<String, String> {
        let keys = [names::APP.0, names::SESSION_LABEL, names::UNIT];
        self.labels().into_iter().filter(|(key, _)| keys.contains(&key.as_str())).collect()
    }
}
