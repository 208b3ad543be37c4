//! What can be set on the provider (kubernetes-runtime 2).

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use gloveport_provider::{ProviderContext, ProviderError, backend};
use k8s_openapi::{
    api::core::v1::{Affinity, Toleration, TopologySpreadConstraint},
    apimachinery::pkg::api::resource::Quantity,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::{
    fault::{NAME, wrong},
    names, quantity,
};

/// Where the keys are that OpenHands does not have.
const TABLE: &str = "[extended.kubernetes] of the configuration";

/// How the provider works.
#[derive(Clone, Debug)]
pub struct KubernetesOptions {
    /// Namespace of all objects.
    pub namespace: String,
    /// Context of the kubeconfig; its current one if absent.
    pub context: Option<String>,
    /// Who makes the pods.
    pub api: SandboxApi,
    /// How the server of a sandbox is reached.
    pub access: AccessMode,
    /// Domain of the cluster's names.
    pub cluster_domain: String,
    /// The file that is put into pods.
    pub program: PathBuf,
    /// How it gets there.
    pub program_from: ProgramFrom,
    /// The image of a sandbox that names none.
    pub image: Option<String>,
    /// When images are pulled (`Always`, `IfNotPresent`, `Never`); the cluster's choice if absent.
    pub pull_policy: Option<String>,
    /// Secrets with credentials for registries of images.
    pub pull_secrets: Vec<String>,
    /// The workspace in pods. Absolute.
    pub workspace: String,
    /// What it is on.
    pub storage: Storage,
    /// Size of its volume.
    pub storage_size: Quantity,
    /// Class of its volume; the cluster's default if absent.
    pub storage_class: Option<String>,
    /// CPUs that a sandbox requests.
    pub cpu_request: Quantity,
    /// Memory that it requests.
    pub memory_request: Quantity,
    /// The most memory that it may use.
    pub memory_limit: Quantity,
    /// What the cluster calls a GPU.
    pub gpu: String,
    /// Domain under which the editor of each sandbox is reachable.
    pub ingress_domain: String,
    /// Secret with the certificate for that.
    pub ingress_tls_secret: Option<String>,
    /// Which controller serves ingresses; the cluster's default if absent.
    pub ingress_class: Option<String>,
    /// Labels that a node must have.
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that do not keep sandboxes away.
    pub tolerations: Vec<Toleration>,
    /// Which nodes are wanted.
    pub affinity: Option<Affinity>,
    /// How sandboxes are spread over nodes and zones.
    pub topology_spread: Vec<TopologySpreadConstraint>,
    /// Who chooses the node, if not the cluster's own scheduler.
    pub scheduler: Option<String>,
    /// The priority of pods.
    pub priority_class: Option<String>,
    /// How pods are kept apart unless a sandbox says so itself: gVisor, Kata.
    pub runtime_class: Option<String>,
    /// The account of pods; its token is not put into them.
    pub service_account: Option<String>,
    /// What pods may not do.
    pub pod_security: PodSecurity,
    /// The container is privileged (`kubernetes.privileged`).
    pub privileged: bool,
    /// The cluster's network enforces network policies, which it does not tell by itself.
    pub network_policies: bool,
    /// The cluster keeps copies of volumes as objects (`VolumeSnapshot`).
    pub volume_snapshots: bool,
    /// The class of those copies; the cluster's default if absent.
    pub snapshot_class: Option<String>,
    /// More annotations of pods.
    pub annotations: BTreeMap<String, String>,
    /// How long a pod may take until it has started.
    pub start_within: Duration,
    /// Where the files are that tell which backends of this machine live.
    pub backends: PathBuf,
    /// Variables of this process that say where the cluster is.
    pub(crate) environment: BTreeMap<String, String>,
}

/// Who makes the pods of sandboxes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxApi {
    /// The provider.
    #[default]
    Pods,
    /// The controller of [agent-sandbox](https://github.com/kubernetes-sigs/agent-sandbox), from an object `Sandbox` for each.
    Sandboxes,
}

/// How the server of a sandbox is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessMode {
    /// By the name of its service within the cluster, through the API server from outside.
    #[default]
    Auto,
    /// By the name of its service.
    Service,
    /// By the address of its service, for machines that reach the cluster's network and do not ask its DNS.
    ClusterIp,
    /// Through the API server: a port of this machine for each.
    PortForward,
}

/// How our program gets into a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramFrom {
    /// An init container takes it from its standard input, through the API server.
    Stream {
        /// The image of that container, with `sh`; the sandbox's own if absent.
        image: Option<String>,
    },
    /// An init container copies it out of this image.
    Image(String),
    /// The image of the sandbox has it as `/openhands/bin/gloveport`.
    InImage,
}

/// What the workspace is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Storage {
    /// A volume of its own, which outlives the pod: sandboxes can be paused, and survive the loss of a node.
    #[default]
    Volume,
    /// A directory of the node, which ends with the pod.
    EmptyDir,
}

/// What pods may not do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PodSecurity {
    /// What the image says counts; no token of an account, no variables of services.
    #[default]
    Image,
    /// What the pod security standard `restricted` asks for: no root, no privileges, no capabilities, a filter of system
    /// calls.
    Restricted,
}

/// `[extended.kubernetes]` of the configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Extended {
    context: Option<String>,
    api: SandboxApi,
    access: AccessMode,
    cluster_domain: Option<String>,
    program_image: Option<String>,
    program_in_image: bool,
    loader_image: Option<String>,
    pull: Option<Pull>,
    image_pull_secrets: Vec<String>,
    storage: Storage,
    gpu: Option<String>,
    ingress_class: Option<String>,
    node_selector: BTreeMap<String, String>,
    tolerations: Vec<Value>,
    affinity: Option<Value>,
    topology_spread: Vec<Value>,
    scheduler: Option<String>,
    priority_class: Option<String>,
    runtime_class: Option<String>,
    service_account: Option<String>,
    pod_security: PodSecurity,
    network_policies: bool,
    volume_snapshots: bool,
    snapshot_class: Option<String>,
    annotations: BTreeMap<String, String>,
    start_within: Option<u64>,
}

/// When an image is pulled.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Pull {
    Missing,
    Always,
    Never,
}

impl Pull {
    const fn policy(self) -> &'static str {
        match self {
            Self::Missing => "IfNotPresent",
            Self::Always => "Always",
            Self::Never => "Never",
        }
    }
}

impl KubernetesOptions {
    /// The options that the configuration asks for. What OpenHands has no key for is in the table `[extended.kubernetes]` of
    /// the configuration file.
    ///
    /// # Errors
    ///
    /// A value that has no meaning, with its key.
    pub fn new(context: &ProviderContext) -> Result<Self, ProviderError> {
        let (sandbox, own) = (&context.config.sandbox, &context.config.kubernetes);
        let table = match context.config.extended.get(NAME) {
            None => Map::new(),
            Some(Value::Object(table)) => table.clone(),
            Some(other) => return Err(wrong(TABLE, format!("{other} is no table"))),
        };
        let extended = Extended::deserialize(Value::Object(table)).map_err(|error| wrong(TABLE, error))?;
        let workspace = &context.config.workspace_mount_path_in_sandbox;
        if !workspace.starts_with('/') || workspace.trim_matches('/').is_empty() {
            let reason = format!("it must be an absolute path below /, and is `{workspace}`");
            return Err(wrong("core.workspace_mount_path_in_sandbox", reason));
        }
        let program_from = match (extended.program_image, extended.program_in_image) {
            (Some(_), true) => return Err(wrong(TABLE, "`program_image` and `program_in_image` exclude each other")),
            (Some(image), false) => ProgramFrom::Image(image),
            (None, true) => ProgramFrom::InImage,
            (None, false) => ProgramFrom::Stream { image: extended.loader_image },
        };
        if extended.api == SandboxApi::Sandboxes && matches!(program_from, ProgramFrom::Stream { .. }) {
            let reason = "`sandboxes` needs `program_image` or `program_in_image`: a controller makes the pods, also when no \
                          backend is there to send the program";
            return Err(wrong("extended.kubernetes.api", reason));
        }
        let mut node_selector = extended.node_selector;
        if let (Some(key), Some(value)) = (&own.node_selector_key, &own.node_selector_val) {
            node_selector.insert(key.clone(), value.clone());
        }
        let mut tolerations = tolerations(own.tolerations_yaml.as_deref());
        for entry in extended.tolerations {
            tolerations.push(exact("extended.kubernetes.tolerations", &entry)?);
        }
        let topology = extended.topology_spread.into_iter();
        let topology = topology.map(|entry| exact("extended.kubernetes.topology_spread", &entry));
        let amount = |key: &str, value: &str| quantity::parse(value).map_err(|reason| wrong(key, reason));
        if let Some(key) = extended.annotations.keys().find(|key| !names::is_label_key(key) || names::is_ours(key)) {
            return Err(wrong("extended.kubernetes.annotations", format!("`{key}` cannot be the key of one")));
        }
        if extended.volume_snapshots && extended.storage != Storage::Volume {
            let reason = "there is nothing to keep where `storage` is `empty-dir`";
            return Err(wrong("extended.kubernetes.volume_snapshots", reason));
        }
        if extended.snapshot_class.is_some() && !extended.volume_snapshots {
            let reason = "it has no meaning without `volume_snapshots = true`";
            return Err(wrong("extended.kubernetes.snapshot_class", reason));
        }
        let seconds = extended.start_within.unwrap_or(300);
        if seconds == 0 {
            return Err(wrong("extended.kubernetes.start_within", "it must be at least one second"));
        }
        let secrets = own.image_pull_secret.iter().cloned().chain(extended.image_pull_secrets);
        Ok(Self {
            namespace: own.namespace.clone(),
            context: extended.context,
            api: extended.api,
            access: extended.access,
            cluster_domain: extended.cluster_domain.unwrap_or_else(|| "cluster.local".to_owned()),
            program: context.inside.clone(),
            program_from,
            image: sandbox.runtime_container_image.clone().or_else(|| sandbox.base_container_image.clone()),
            pull_policy: extended.pull.map(|pull| pull.policy().to_owned()),
            pull_secrets: secrets.collect(),
            workspace: workspace.clone(),
            storage: extended.storage,
            storage_size: amount("kubernetes.pvc_storage_size", &own.pvc_storage_size)?,
            storage_class: own.pvc_storage_class.clone(),
            cpu_request: amount("kubernetes.resource_cpu_request", &own.resource_cpu_request)?,
            memory_request: amount("kubernetes.resource_memory_request", &own.resource_memory_request)?,
            memory_limit: amount("kubernetes.resource_memory_limit", &own.resource_memory_limit)?,
            gpu: extended.gpu.unwrap_or_else(|| "nvidia.com/gpu".to_owned()),
            ingress_domain: own.ingress_domain.clone(),
            ingress_tls_secret: own.ingress_tls_secret.clone(),
            ingress_class: extended.ingress_class,
            node_selector,
            tolerations,
            affinity: extended.affinity.map(|value| exact("extended.kubernetes.affinity", &value)).transpose()?,
            topology_spread: topology.collect::<Result<_, _>>()?,
            scheduler: extended.scheduler,
            priority_class: extended.priority_class,
            runtime_class: extended.runtime_class,
            service_account: extended.service_account,
            pod_security: extended.pod_security,
            privileged: own.privileged,
            network_policies: extended.network_policies,
            volume_snapshots: extended.volume_snapshots,
            snapshot_class: extended.snapshot_class,
            annotations: extended.annotations,
            start_within: Duration::from_secs(seconds),
            backends: backend::directory(&context.environment),
            environment: context.environment.clone(),
        })
    }
}

/// A type of the cluster, of which every field that is set is understood.
fn exact<T: DeserializeOwned + serde::Serialize>(key: &str, value: &Value) -> Result<T, ProviderError> {
    let typed: T = serde_json::from_value(value.clone()).map_err(|error| wrong(key, error))?;
    let understood = serde_json::to_value(&typed).map_err(|error| wrong(key, error))?;
    match unknown(value, &understood, "") {
        Some(field) => Err(wrong(key, format!("`{field}` is no field that Kubernetes has there"))),
        None => Ok(typed),
    }
}

/// The path of the first field that was not understood.
fn unknown(given: &Value, understood: &Value, path: &str) -> Option<String> {
    match (given, understood) {
        (Value::Object(given), Value::Object(understood)) => given.iter().find_map(|(key, value)| {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            understood.get(key).map_or(Some(path.clone()), |understood| unknown(value, understood, &path))
        }),
        (Value::Array(given), Value::Array(understood)) => {
            given.iter().zip(understood).find_map(|(given, understood)| unknown(given, understood, path))
        }
        _ => None,
    }
}

/// `kubernetes.tolerations_yaml`. As in OpenHands one that cannot be used is told and left out.
fn tolerations(text: Option<&str>) -> Vec<Toleration> {
    let Some(text) = text else { return Vec::new() };
    let read = serde_saphyr::from_str::<Value>(text).map_err(|error| error.to_string()).and_then(|value| {
        let Value::Array(entries) = value else { return Err("it is no list".to_owned()) };
        let entries = entries.into_iter().map(|entry| {
            // The client library of OpenHands has the names of fields with underscores.
            let renamed = match entry {
                Value::Object(mut fields) => {
                    if let Some(seconds) = fields.remove("toleration_seconds") {
                        fields.insert("tolerationSeconds".to_owned(), seconds);
                    }
                    Value::Object(fields)
                }
                other => other,
            };
            exact::<Toleration>("kubernetes.tolerations_yaml", &renamed).map_err(|error| error.to_string())
        });
        entries.collect()
    });
    read.unwrap_or_else(|error| {
        tracing::error!(error, "kubernetes.tolerations_yaml cannot be used; sandboxes get no tolerations from it");
        Vec::new()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tolerations_are_read_with_the_names_of_both_and_left_out_where_they_cannot_be_used() {
        let read = tolerations(Some("- {key: a, operator: Exists}\n- key: b\n  toleration_seconds: 30\n"));
        let view: Vec<_> = read.iter().map(|one| (one.key.as_deref(), one.toleration_seconds)).collect();
        assert_eq!(view, [(Some("a"), None), (Some("b"), Some(30))]);
        let camel = tolerations(Some("- key: b\n  tolerationSeconds: 30\n"));
        assert_eq!(camel.first().unwrap().toleration_seconds, Some(30));
        for wrong in ["key: a", "- [", "- {kye: a}", "- 1"] {
            assert_eq!(tolerations(Some(wrong)), [], "{wrong}");
        }
        assert_eq!(tolerations(None), []);
    }

    #[test]
    fn a_field_that_a_cluster_does_not_know_is_told_with_its_path() {
        let error = exact::<Affinity>("k", &json!({"nodeAffinity": {"required": []}})).unwrap_err().to_string();
        assert!(error.contains("`nodeAffinity.required` is no field"), "{error}");
        let wanted = json!({"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"});
        assert_eq!(exact::<TopologySpreadConstraint>("k", &wanted).unwrap().max_skew, 1);
    }
}
