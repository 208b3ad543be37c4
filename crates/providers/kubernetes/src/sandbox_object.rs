//! The kind `Sandbox` of agent-sandbox, as far as it is used here: one pod, which a controller of the cluster makes from the
//! template in it.

use gloveport_provider::{ProviderError, SandboxState};
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};

use crate::{
    fault::{cut, failed},
    names::AGENT_SANDBOX as GROUP,
};

/// The kind, and how it is called in addresses and rights.
pub(crate) const KIND: &str = "Sandbox";
pub(crate) const PLURAL: &str = "sandboxes";
/// The annotation with the name of the pod, where that is not the one of the object.
const POD_NAME: &str = "agents.x-k8s.io/pod-name";

/// A version of the kind. They differ in how a sandbox is told to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// `spec.operatingMode`: `Running` or `Suspended`.
    V1Beta1,
    /// `spec.replicas`: 1 or 0.
    V1Alpha1,
}

/// Whether there is to be a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Runs,
    Rests,
}

impl Version {
    /// All that are spoken, in the order in which they are preferred.
    pub(crate) const ALL: [Self; 2] = [Self::V1Beta1, Self::V1Alpha1];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::V1Beta1 => "v1beta1",
            Self::V1Alpha1 => "v1alpha1",
        }
    }

    pub(crate) fn resource(self) -> ApiResource {
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, self.name(), KIND), PLURAL)
    }

    fn mode(self, mode: Mode) -> (&'static str, Value) {
        match (self, mode) {
            (Self::V1Beta1, Mode::Runs) => ("operatingMode", "Running".into()),
            (Self::V1Beta1, Mode::Rests) => ("operatingMode", "Suspended".into()),
            (Self::V1Alpha1, Mode::Runs) => ("replicas", 1.into()),
            (Self::V1Alpha1, Mode::Rests) => ("replicas", 0.into()),
        }
    }

    /// A change that makes it rest.
    pub(crate) fn rest(self) -> Value {
        let (key, value) = self.mode(Mode::Rests);
        json!({"spec": {key: value}})
    }

    /// A change that makes it go on with this pod.
    pub(crate) fn go_on(self, pod: &Pod) -> Result<Value, ProviderError> {
        let (key, value) = self.mode(Mode::Runs);
        Ok(json!({"spec": {key: value, "podTemplate": template(pod)?}}))
    }

    /// An object of which the controller makes this pod. It ends with its owner.
    pub(crate) fn object(self, pod: &Pod, owner: &OwnerReference) -> Result<DynamicObject, ProviderError> {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let mut object = DynamicObject::new(name, &self.resource()).data(self.go_on(pod)?);
        object.metadata.labels.clone_from(&pod.metadata.labels);
        object.metadata.owner_references = Some(vec![owner.clone()]);
        Ok(object)
    }
}

pub(crate) fn template(pod: &Pod) -> Result<Value, ProviderError> {
    let spec = serde_json::to_value(&pod.spec).map_err(|error| failed("be told a pod", error))?;
    let meta = &pod.metadata;
    Ok(json!({"metadata": {"labels": meta.labels, "annotations": meta.annotations}, "spec": spec}))
}

/// What the cluster tells of a `Sandbox`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) uid: String,
    pub(crate) version: String,
    /// The name of its pod, if it is told.
    pub(crate) pod: Option<String>,
    mode: Mode,
    /// It is being removed.
    pub(crate) ends: bool,
    /// Why it is not ready: a word and a text.
    unready: Option<(String, String)>,
}

impl Told {
    pub(crate) fn of(object: &DynamicObject) -> Self {
        let (meta, spec, status) = (&object.metadata, &object.data["spec"], &object.data["status"]);
        let rests = spec["operatingMode"] == "Suspended" || spec["replicas"] == 0;
        // What was said of an earlier generation does not count.
        let counts = |condition: &&Value| {
            let seen = condition["observedGeneration"].as_i64();
            seen.is_none_or(|seen| meta.generation.is_none_or(|now| seen >= now))
        };
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let ready = conditions.filter(counts).find(|condition| condition["type"] == "Ready");
        let text = |key: &str| ready.and_then(|ready| ready[key].as_str()).unwrap_or_default().to_owned();
        let is_unready = ready.is_some_and(|ready| ready["status"] != "True");
        let annotations = meta.annotations.as_ref();
        Self {
            uid: meta.uid.clone().unwrap_or_default(),
            version: meta.resource_version.clone().unwrap_or_default(),
            pod: annotations.and_then(|all| all.get(POD_NAME)).filter(|name| !name.is_empty()).cloned(),
            mode: if rests { Mode::Rests } else { Mode::Runs },
            ends: meta.deletion_timestamp.is_some(),
            unready: is_unready.then(|| (text("reason"), text("message"))),
        }
    }

    /// Why it is not ready, in words.
    pub(crate) fn why(&self) -> String {
        match &self.unready {
            None => String::new(),
            Some((reason, message)) if message.is_empty() => reason.clone(),
            Some((reason, message)) => cut(&format!("{reason}: {message}")),
        }
    }

    /// Why there will be no pod, however long anybody waits.
    pub(crate) fn refusal(&self) -> Option<String> {
        let (reason, message) = self.unready.as_ref()?;
        let is_final = match reason.as_str() {
            "InvalidConfiguration" | "SandboxExpired" => true,
            // The controller tries again what the cluster has refused, which says the same each time.
            "ReconcilerError" => {
                ["is forbidden", "is invalid", "violates PodSecurity"].iter().any(|text| message.contains(text))
            }
            _ => false,
        };
        is_final.then(|| self.why())
    }

    /// What a sandbox without a pod does; none if it is as one whose pod nobody makes.
    pub(crate) fn without_pod(&self) -> Option<SandboxState> {
        if self.ends || self.mode == Mode::Rests {
            return None;
        }
        match self.unready.as_ref().map(|(reason, _)| reason.as_str()) {
            Some("SandboxExpired") => Some(SandboxState::Stopped(format!("its time is over ({})", self.why()))),
            Some("InvalidConfiguration") => Some(SandboxState::Failed(self.why())),
            // Its pod has ended and is gone.
            Some("PodFailed" | "PodSucceeded") => None,
            _ => Some(SandboxState::Pending),
        }
    }
}

/// Whether the controller has made a pod for the object of this name, and of this identity where that is known.
pub(crate) fn made_for(pod: &Pod, name: &str, uid: Option<&str>) -> bool {
    pod.metadata.owner_references.iter().flatten().any(|owner| {
        let group = owner.api_version.split('/').next();
        owner.kind == KIND && group == Some(GROUP) && owner.name == name && uid.is_none_or(|uid| owner.uid == uid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "labels": {"app": "a"}, "annotations": {"k": "v"},
                "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "p", "uid": "u"}]},
            "spec": {"containers": [{"name": "runtime", "image": "i"}], "restartPolicy": "Never"}}))
        .unwrap()
    }

    fn told(value: &Value) -> Told {
        let mut whole = json!({"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox"});
        whole["metadata"] = json!({"name": "p", "uid": "s", "generation": 2});
        for (key, part) in value.as_object().unwrap() {
            if key == "metadata" {
                whole["metadata"].as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
            } else {
                whole[key] = part.clone();
            }
        }
        Told::of(&serde_json::from_value(whole).unwrap())
    }

    fn unready(reason: &str, message: &str, generation: u64) -> Value {
        json!({"status": {"conditions": [
            {"type": "Other", "status": "False", "reason": "PodFailed"},
            {"type": "Ready", "status": "False", "reason": reason, "message": message,
                "observedGeneration": generation}]}})
    }

    #[test]
    fn an_object_has_the_pod_as_its_template_and_says_in_the_words_of_its_version_that_it_runs() {
        let owner = crate::record::owner("ConfigMap", "p", "u");
        for (version, key, runs, rests) in [
            (Version::V1Beta1, "operatingMode", json!("Running"), json!("Suspended")),
            (Version::V1Alpha1, "replicas", json!(1), json!(0)),
        ] {
            let object = serde_json::to_value(version.object(&pod(), &owner).unwrap()).unwrap();
            let template = json!({"metadata": {"labels": {"app": "a"}, "annotations": {"k": "v"}},
                "spec": {"containers": [{"name": "runtime", "image": "i"}], "restartPolicy": "Never"}});
            let expected = json!({
                "apiVersion": format!("agents.x-k8s.io/{}", version.name()), "kind": "Sandbox",
                "metadata": {"name": "p", "labels": {"app": "a"}, "ownerReferences": [
                    {"apiVersion": "v1", "kind": "ConfigMap", "name": "p", "uid": "u", "blockOwnerDeletion": true}]},
                "spec": {key: runs, "podTemplate": template}});
            assert_eq!(object, expected);
            assert_eq!(version.rest(), json!({"spec": {key: rests}}));
            assert_eq!(version.go_on(&pod()).unwrap()["spec"], expected["spec"]);
        }
    }

    #[test]
    fn what_a_sandbox_without_a_pod_does_is_told_by_its_object() {
        let pending = Some(SandboxState::Pending);
        let expired = Some(SandboxState::Stopped("its time is over (SandboxExpired: m)".to_owned()));
        for (value, expected) in [
            (json!({}), pending.clone()),
            (json!({"spec": {"replicas": 1}}), pending.clone()),
            (json!({"spec": {"replicas": 0}}), None),
            (json!({"spec": {"operatingMode": "Running"}}), pending.clone()),
            (json!({"spec": {"operatingMode": "Suspended"}}), None),
            (json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), None),
            (unready("DependenciesNotReady", "m", 2), pending.clone()),
            (unready("ReconcilerError", "pods \"p\" is forbidden: exceeded quota", 2), pending.clone()),
            (unready("PodFailed", "m", 2), None),
            (unready("SandboxExpired", "m", 2), expired),
            (unready("InvalidConfiguration", "", 2), Some(SandboxState::Failed("InvalidConfiguration".to_owned()))),
            // It was said before the last change.
            (unready("InvalidConfiguration", "m", 1), pending),
        ] {
            assert_eq!(told(&value).without_pod(), expected, "{value}");
        }
    }

    #[test]
    fn a_refusal_that_stays_is_told_from_one_that_passes() {
        for (reason, message, expected) in [
            ("DependenciesNotReady", "Pod does not exist", false),
            ("ReconcilerError", "Operation cannot be fulfilled on pods \"p\"", false),
            ("ReconcilerError", "pods \"p\" is forbidden: exceeded quota: q", true),
            ("ReconcilerError", "Pod \"p\" is invalid: spec.x", true),
            ("InvalidConfiguration", "m", true),
            ("SandboxExpired", "m", true),
        ] {
            let refusal = told(&unready(reason, message, 2)).refusal();
            assert_eq!(refusal, expected.then(|| format!("{reason}: {message}")), "{reason}");
        }
        let ready =
            json!({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "SandboxExpired"}]}});
        assert_eq!((told(&ready).refusal(), told(&ready).why()), (None, String::new()));
    }

    #[test]
    fn the_pod_of_a_sandbox_is_told_by_its_owner_and_may_have_another_name() {
        let mut pod = pod();
        assert!(!made_for(&pod, "p", None));
        let owner = |version: &str, kind: &str, name: &str| {
            let value = json!([{"apiVersion": version, "kind": kind, "name": name, "uid": "s"}]);
            Some(serde_json::from_value::<Vec<OwnerReference>>(value).unwrap())
        };
        for (version, kind, name, uid, expected) in [
            ("agents.x-k8s.io/v1alpha1", "Sandbox", "p", None, true),
            ("agents.x-k8s.io/v1beta1", "Sandbox", "p", Some("s"), true),
            ("agents.x-k8s.io/v1beta1", "Sandbox", "p", Some("earlier"), false),
            ("agents.x-k8s.io/v1beta1", "Sandbox", "other", None, false),
            ("example.org/v1", "Sandbox", "p", None, false),
            ("agents.x-k8s.io/v1beta1", "SandboxClaim", "p", None, false),
        ] {
            pod.metadata.owner_references = owner(version, kind, name);
            assert_eq!(made_for(&pod, "p", uid), expected, "{version} {kind} {name} {uid:?}");
        }
        let named = json!({"metadata": {"annotations": {"agents.x-k8s.io/pod-name": "pool-x"}}});
        assert_eq!((told(&named).pod.as_deref(), told(&json!({})).pod), (Some("pool-x"), None));
    }
}
