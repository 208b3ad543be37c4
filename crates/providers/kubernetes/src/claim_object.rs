//! The kinds by which agent-sandbox starts sandboxes ahead: a template, a pool of sandboxes that are made of it, and a claim,
//! which gives one of them away.

use gloveport_provider::ProviderError;
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};

use crate::{fault::cut, names::AGENT_SANDBOX_EXTENSIONS as GROUP, sandbox_object::template};

/// The version that is spoken.
pub(crate) const VERSION: &str = "v1alpha1";

/// A kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Template,
    Pool,
    Claim,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Template, Self::Pool, Self::Claim];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Template => "SandboxTemplate",
            Self::Pool => "SandboxWarmPool",
            Self::Claim => CLAIM,
        }
    }

    /// How it is called in addresses and rights.
    pub(crate) const fn plural(self) -> &'static str {
        match self {
            Self::Template => "sandboxtemplates",
            Self::Pool => "sandboxwarmpools",
            Self::Claim => "sandboxclaims",
        }
    }

    pub(crate) fn resource(self) -> ApiResource {
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, VERSION, self.name()), self.plural())
    }

    fn object(self, name: &str, owner: &OwnerReference, spec: &Value) -> DynamicObject {
        let mut object = DynamicObject::new(name, &self.resource()).data(json!({"spec": spec}));
        object.metadata.owner_references = Some(vec![owner.clone()]);
        object
    }
}

const CLAIM: &str = "SandboxClaim";

/// A template of which sandboxes get this pod.
pub(crate) fn template_of(name: &str, pod: &Pod, owner: &OwnerReference) -> Result<DynamicObject, ProviderError> {
    // The policies of the namespace hold for its pods; the ones that a controller makes by itself let no backend in.
    let spec = json!({"podTemplate": template(pod)?, "networkPolicyManagement": "Unmanaged"});
    let mut object = Kind::Template.object(name, owner, &spec);
    object.metadata.labels.clone_from(&pod.metadata.labels);
    Ok(object)
}

/// A pool of this many sandboxes of the template with its name.
pub(crate) fn pool_of(name: &str, count: usize, pod: &Pod, owner: &OwnerReference) -> DynamicObject {
    let spec = json!({"replicas": count, "sandboxTemplateRef": {"name": name}});
    let mut object = Kind::Pool.object(name, owner, &spec);
    object.metadata.labels.clone_from(&pod.metadata.labels);
    object
}

/// A claim of a sandbox that is made of this template.
pub(crate) fn claim_of(name: &str, template: &str, owner: &OwnerReference) -> DynamicObject {
    Kind::Claim.object(name, owner, &json!({"sandboxTemplateRef": {"name": template}}))
}

/// How many sandboxes of a pool can be claimed.
pub(crate) fn ready(pool: &DynamicObject) -> u64 {
    pool.data["status"]["readyReplicas"].as_u64().unwrap_or_default()
}

/// The name of the sandbox that a claim has got. Not all releases spell it alike.
pub(crate) fn given(claim: &DynamicObject) -> Option<&str> {
    let sandbox = &claim.data["status"]["sandbox"];
    let name = sandbox["name"].as_str().or_else(|| sandbox["Name"].as_str());
    name.filter(|name| !name.is_empty())
}

/// Why a claim gets none, as far as its controller says.
pub(crate) fn why(claim: &DynamicObject) -> Option<String> {
    let conditions = claim.data["status"]["conditions"].as_array().into_iter().flatten();
    let unready = conditions.into_iter().find(|one| one["type"] == "Ready" && one["status"] != "True")?;
    let text = |key: &str| unready[key].as_str().unwrap_or_default();
    Some(cut(&format!("{}: {}", text("reason"), text("message"))))
}

/// Whether an object is owned by a claim of this name.
pub(crate) fn is_claim_of(owner: &OwnerReference, name: &str) -> bool {
    owner.kind == CLAIM && owner.name == name && owner.api_version.split('/').next() == Some(GROUP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::owner;

    fn claim(status: &Value) -> DynamicObject {
        DynamicObject::new("s", &Kind::Claim.resource()).data(json!({"status": status}))
    }

    #[test]
    fn a_template_a_pool_and_a_claim_belong_together_by_name() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p", "labels": {"gloveport/alike": "a"}, "annotations": {"k": "v"}},
            "spec": {"containers": [{"name": "runtime", "image": "i"}]}}))
        .unwrap();
        let owner = owner("ConfigMap", "p", "u");
        let template = serde_json::to_value(template_of("p", &pod, &owner).unwrap()).unwrap();
        assert_eq!(template["apiVersion"], "extensions.agents.x-k8s.io/v1alpha1");
        assert_eq!(template["spec"]["podTemplate"]["spec"]["containers"][0]["image"], "i");
        assert_eq!(template["spec"]["networkPolicyManagement"], "Unmanaged");
        let pool = serde_json::to_value(pool_of("p", 3, &pod, &owner)).unwrap();
        assert_eq!(pool["spec"], json!({"replicas": 3, "sandboxTemplateRef": {"name": "p"}}));
        for object in [&template, &pool] {
            assert_eq!(object["metadata"]["labels"]["gloveport/alike"], "a");
            assert_eq!(object["metadata"]["ownerReferences"][0]["uid"], "u");
        }
        let claim = serde_json::to_value(claim_of("s", "p", &owner)).unwrap();
        assert_eq!((&claim["kind"], &claim["metadata"]["name"]), (&json!("SandboxClaim"), &json!("s")));
        assert_eq!(claim["spec"], json!({"sandboxTemplateRef": {"name": "p"}}));
    }

    #[test]
    fn a_claim_says_what_it_has_got_or_why_it_has_nothing() {
        for (status, expected) in [
            (json!({}), None),
            (json!({"sandbox": {"name": ""}}), None),
            (json!({"sandbox": {"name": "pool-x"}}), Some("pool-x")),
            (json!({"sandbox": {"Name": "pool-x"}}), Some("pool-x")),
            (json!({"sandbox": 1}), None),
        ] {
            assert_eq!(given(&claim(&status)), expected, "{status}");
        }
        let unready = json!({"conditions": [{"type": "Other"},
            {"type": "Ready", "status": "False", "reason": "TemplateNotFound", "message": "no p"}]});
        assert_eq!(why(&claim(&unready)).as_deref(), Some("TemplateNotFound: no p"));
        assert_eq!(why(&claim(&json!({"conditions": [{"type": "Ready", "status": "True"}]}))), None);
        for (replicas, expected) in [(json!(2), 2), (json!(-1), 0), (json!(null), 0)] {
            assert_eq!(ready(&claim(&json!({"readyReplicas": replicas}))), expected);
        }
    }

    #[test]
    fn a_sandbox_that_was_claimed_is_known_by_its_owner() {
        for (version, kind, name, expected) in [
            ("extensions.agents.x-k8s.io/v1alpha1", "SandboxClaim", "s", true),
            ("extensions.agents.x-k8s.io/v1alpha1", "SandboxClaim", "other", false),
            ("extensions.agents.x-k8s.io/v1alpha1", "SandboxWarmPool", "s", false),
            ("example.org/v1", "SandboxClaim", "s", false),
        ] {
            let owner = OwnerReference { api_version: version.to_owned(), ..owner(kind, name, "u") };
            assert_eq!(is_claim_of(&owner, "s"), expected, "{version} {kind} {name}");
        }
    }
}
