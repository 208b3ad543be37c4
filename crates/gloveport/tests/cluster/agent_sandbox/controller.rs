//! A stand-in for the controllers of agent-sandbox, the kind `Sandbox` in the two versions that a backend may meet, and the
//! kinds by which sandboxes are started ahead.
//!
//! It does what the project documents of its own: a pod and a headless service for each object, owned by it; no pod where
//! `spec.replicas` is 0, `spec.operatingMode` is `Suspended` or `spec.shutdownTime` is over; conditions and addresses in the
//! status; pools that stay filled with sandboxes of a template, and claims that get one of them, or a new one where none waits.
//! What only the project's own controllers do, these tests do not show.

use std::{
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use serde_json::{Value, json};

use crate::cluster::{Place, try_kubectl};

/// How often it looks at what there is.
const PAUSE: Duration = Duration::from_millis(250);
/// The kind, as kubectl takes it.
pub(super) const SANDBOXES: &str = "sandboxes.agents.x-k8s.io";
/// The kinds by which sandboxes are started ahead.
pub(super) const TEMPLATES: &str = "sandboxtemplates.extensions.agents.x-k8s.io";
pub(super) const POOLS: &str = "sandboxwarmpools.extensions.agents.x-k8s.io";
pub(super) const CLAIMS: &str = "sandboxclaims.extensions.agents.x-k8s.io";
/// The label by which its service chooses the pod.
const HASH: &str = "agents.x-k8s.io/sandbox-name-hash";

/// The definition of the kind. The older version lets through what it has alone, so that a field of the other is lost in it.
fn definition() -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = |name: &str, stored: bool, spec: Value| {
        json!({"name": name, "served": true, "storage": stored, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": open}}}})
    };
    let mut newer = open.clone();
    newer["required"] = json!(["podTemplate"]);
    newer["properties"] =
        json!({"podTemplate": open, "operatingMode": {"type": "string", "enum": ["Running", "Suspended"]}});
    let older = json!({"type": "object", "required": ["podTemplate"], "properties": {
        "podTemplate": open, "replicas": {"type": "integer", "minimum": 0, "maximum": 1},
        "shutdownTime": {"type": "string", "format": "date-time"},
        "shutdownPolicy": {"type": "string", "enum": ["Delete", "Retain"]}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": SANDBOXES},
        "spec": {"group": "agents.x-k8s.io", "scope": "Namespaced",
            "names": {"kind": "Sandbox", "listKind": "SandboxList", "plural": "sandboxes", "singular": "sandbox"},
            "versions": [version("v1beta1", true, newer), version("v1alpha1", false, older)]}})
}

/// The definition of a kind of the extensions.
fn extension(name: &str, kind: &str) -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let plural = name.split('.').next().unwrap();
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {"group": "extensions.agents.x-k8s.io", "scope": "Namespaced",
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}}}]}})
}

/// The kinds are there. They stay: other tests may use them at the same time.
pub(super) fn install() {
    let all = [
        (SANDBOXES, definition()),
        (TEMPLATES, extension(TEMPLATES, "SandboxTemplate")),
        (POOLS, extension(POOLS, "SandboxWarmPool")),
        (CLAIMS, extension(CLAIMS, "SandboxClaim")),
    ];
    for (name, definition) in all {
        let (success, text) = try_kubectl(["apply", "--filename", "-"], &definition.to_string());
        // Two at once may both make it.
        assert!(success || text.contains("AlreadyExists") || text.contains("the object has been modified"), "{text}");
        let established = ["wait", "--for", "condition=Established", "--timeout=60s", &format!("crd/{name}")];
        let (success, text) = try_kubectl(established, "");
        assert!(success, "{text}");
    }
}

/// A controller for the namespace of a place, as long as it is not dropped.
pub(super) struct Controller {
    stop: Arc<AtomicBool>,
    works: Option<JoinHandle<()>>,
}

impl Controller {
    pub(super) fn of(place: &Place) -> Self {
        Self::working(place, true)
    }

    /// One that gives nothing to claims.
    pub(super) fn without_claims(place: &Place) -> Self {
        Self::working(place, false)
    }

    fn working(place: &Place, for_claims: bool) -> Self {
        install();
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, namespace) = (Arc::clone(&stop), place.namespace.clone());
        let works = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                look(&namespace, for_claims);
                std::thread::sleep(PAUSE);
            }
        });
        Self { stop, works: Some(works) }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.works.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking(), "the controller of the test has failed");
    }
}

/// The objects of a namespace; none if the cluster does not answer.
fn listed(namespace: &str) -> Option<Vec<Value>> {
    let kinds = format!("{SANDBOXES},{TEMPLATES},{POOLS},{CLAIMS},pods,services");
    let (success, text) = try_kubectl(["get", &kinds, "--namespace", namespace, "--output", "json"], "");
    let list: Value = success.then(|| serde_json::from_str(&text).ok())??;
    list["items"].as_array().cloned()
}

/// Makes what is there what the objects ask for, once.
fn look(namespace: &str, for_claims: bool) {
    let Some(all) = listed(namespace) else { return };
    let of = |kind: &'static str| all.iter().filter(move |one| one["kind"] == kind);
    let stays = |one: &&Value| one["metadata"]["deletionTimestamp"].is_null();
    let template = |object: &Value| {
        let name = &object["spec"]["sandboxTemplateRef"]["name"];
        of("SandboxTemplate").find(|one| one["metadata"]["name"] == *name).map(|found| &found["spec"]["podTemplate"])
    };
    let mut waiting: Vec<&Value> = Vec::new();
    for pool in of("SandboxWarmPool").filter(stays) {
        let own: Vec<&Value> =
            of("Sandbox").filter(stays).filter(|one| *owner_of(one) == pool["metadata"]["uid"]).collect();
        let ready = |one: &&&Value| one["status"]["conditions"][0]["status"] == "True";
        waiting.extend(own.iter().filter(ready));
        let (wanted, count) = (pool["spec"]["replicas"].as_u64().unwrap_or_default(), own.len() as u64);
        if let Some(template) = template(pool).filter(|_| count < wanted) {
            let name = format!("{}-", pool["metadata"]["name"].as_str().unwrap());
            let _refused = create(namespace, &made_of(template, pool, json!({"generateName": name})));
        }
        set_status(
            namespace,
            POOLS,
            pool,
            &json!({"replicas": count, "readyReplicas": own.iter().filter(ready).count()}),
        );
    }
    let claims =
        of("SandboxClaim").filter(stays).filter(|one| for_claims && one["status"]["sandbox"]["name"].is_null());
    for claim in claims {
        let (pool, name) = (&claim["spec"]["sandboxTemplateRef"]["name"], &claim["metadata"]["name"]);
        let is_its = |one: &&Value| one["metadata"]["ownerReferences"][0]["name"] == *pool;
        let given = if let Some(at) = waiting.iter().position(is_its) {
            let found = &waiting.swap_remove(at)["metadata"];
            let patch =
                json!({"metadata": {"resourceVersion": found["resourceVersion"], "ownerReferences": owned_by(claim)}});
            let (kind, patch) = (["patch", SANDBOXES, found["name"].as_str().unwrap()], patch.to_string());
            let rest = ["--namespace", namespace, "--type", "merge", "--patch", &patch];
            if !try_kubectl(kind.into_iter().chain(rest), "").0 {
                continue;
            }
            &found["name"]
        } else if let Some(template) = template(claim) {
            let _there_already = create(namespace, &made_of(template, claim, json!({"name": name})));
            name
        } else {
            continue;
        };
        set_status(namespace, CLAIMS, claim, &json!({"sandbox": {"name": given}}));
    }
    for sandbox in of("Sandbox").filter(stays) {
        let uid = &sandbox["metadata"]["uid"];
        let owned = |one: &&Value| one["metadata"]["ownerReferences"][0]["uid"] == *uid;
        reconcile(namespace, sandbox, of("Pod").find(owned), of("Service").any(|one| owned(&one)));
    }
}

/// Who owns an object.
fn owner_of(object: &Value) -> &Value {
    &object["metadata"]["ownerReferences"][0]["uid"]
}

fn owned_by(owner: &Value) -> Value {
    let meta = &owner["metadata"];
    json!([{"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"],
        "controller": true, "blockOwnerDeletion": true}])
}

/// A sandbox of this template.
fn made_of(template: &Value, owner: &Value, mut meta: Value) -> Value {
    meta["ownerReferences"] = owned_by(owner);
    json!({"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": meta,
        "spec": {"podTemplate": template, "operatingMode": "Running"}})
}

fn set_status(namespace: &str, kind: &str, object: &Value, status: &Value) {
    if object["status"] == *status {
        return;
    }
    let (plural, group) = kind.split_once('.').unwrap();
    let name = object["metadata"]["name"].as_str().unwrap();
    let mut whole = object.clone();
    whole["status"] = status.clone();
    let path = format!("/apis/{group}/v1alpha1/namespaces/{namespace}/{plural}/{name}/status");
    // One that has changed meanwhile is looked at again.
    let _conflict = try_kubectl(["replace", "--raw", &path, "--filename", "-"], &whole.to_string());
}

fn reconcile(namespace: &str, sandbox: &Value, pod: Option<&Value>, has_service: bool) {
    let (meta, spec) = (&sandbox["metadata"], &sandbox["spec"]);
    let name = meta["name"].as_str().unwrap();
    let owner = json!([{"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "name": name, "uid": meta["uid"],
        "controller": true, "blockOwnerDeletion": true}]);
    let label = json!({HASH: &meta["uid"].as_str().unwrap()[..8]});
    let expired = spec["shutdownTime"].as_str().is_some_and(|time| time <= now().as_str());
    let rests = spec["replicas"] == 0 || spec["operatingMode"] == "Suspended";
    let mut refused = None;
    if let Some(pod) = pod.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null()) {
        // The labels of the template are the pod's, whatever somebody made of them.
        let of_template = spec["podTemplate"]["metadata"]["labels"].as_object().into_iter().flatten();
        if of_template.into_iter().any(|(key, value)| pod["metadata"]["labels"][key] != *value) {
            let patch = json!({"metadata": {"labels": spec["podTemplate"]["metadata"]["labels"]}}).to_string();
            let named = ["patch", "pod", name, "--namespace", namespace, "--type", "merge", "--patch", &patch];
            let _gone_meanwhile = try_kubectl(named, "");
        }
    }
    if pod.is_some_and(|pod| pod["metadata"]["deletionTimestamp"].is_null()) && (rests || expired) {
        let arguments = ["delete", "pod", name, "--namespace", namespace, "--wait=false", "--ignore-not-found"];
        let _gone_already = try_kubectl(arguments, "");
    }
    if pod.is_none() && !rests && !expired {
        let mut wanted = json!({"apiVersion": "v1", "kind": "Pod", "spec": spec["podTemplate"]["spec"],
            "metadata": spec["podTemplate"]["metadata"]});
        wanted["metadata"]["name"] = name.into();
        wanted["metadata"]["ownerReferences"] = owner.clone();
        wanted["metadata"]["labels"][HASH] = label[HASH].clone();
        refused = create(namespace, &wanted);
    }
    if !has_service {
        let wanted = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "ownerReferences": owner},
            "spec": {"clusterIP": "None", "selector": label}});
        refused = refused.or(create(namespace, &wanted));
    }
    let (ready, reason, message) = match (pod, refused) {
        _ if expired => ("False", "SandboxExpired", "Sandbox has expired".to_owned()),
        _ if rests => ("False", "SandboxSuspended", "Sandbox is suspended".to_owned()),
        (_, Some(refused)) => ("False", "ReconcilerError", refused),
        (None, None) => ("False", "DependenciesNotReady", "Pod does not exist".to_owned()),
        (Some(pod), None) => match pod["status"]["phase"].as_str().unwrap_or_default() {
            "Failed" => ("False", "PodFailed", "Pod failed".to_owned()),
            "Succeeded" => ("False", "PodSucceeded", "Pod succeeded".to_owned()),
            "Running" => ("True", "DependenciesReady", "Pod is Ready; Service Exists".to_owned()),
            phase => ("False", "DependenciesNotReady", format!("Pod exists with phase: {phase}")),
        },
    };
    let condition = json!({"type": "Ready", "status": ready, "reason": reason, "message": message,
        "observedGeneration": meta["generation"], "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let addresses = pod.map(|pod| pod["status"]["podIPs"].clone()).filter(Value::is_array).unwrap_or(json!([]));
    let addresses: Vec<&Value> = addresses.as_array().unwrap().iter().map(|one| &one["ip"]).collect();
    let status = json!({"conditions": [condition], "podIPs": addresses, "replicas": i32::from(pod.is_some()),
        "service": name, "serviceFQDN": format!("{name}.{namespace}.svc.cluster.local")});
    if sandbox["status"] != status {
        let mut whole = sandbox.clone();
        whole["status"] = status;
        let path = format!("/apis/agents.x-k8s.io/v1beta1/namespaces/{namespace}/sandboxes/{name}/status");
        // One that has changed meanwhile is looked at again.
        let _conflict = try_kubectl(["replace", "--raw", &path, "--filename", "-"], &whole.to_string());
    }
}

/// Makes an object; why not, if the cluster refuses.
fn create(namespace: &str, object: &Value) -> Option<String> {
    let (success, text) = try_kubectl(["create", "--namespace", namespace, "--filename", "-"], &object.to_string());
    (!success && !text.contains("AlreadyExists")).then_some(text)
}

fn now() -> String {
    let output = Command::new("date").args(["-u", "+%FT%TZ"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
