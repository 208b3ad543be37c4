//! `[kubernetes]` (kubernetes-runtime 2).

use crate::key::section;

section! {
    /// Where and how sandboxes run in a Kubernetes cluster.
    pub struct KubernetesConfig = "kubernetes" {
        /// Namespace of all objects.
        namespace: String = "default".into();
        /// Domain under which the editor of each sandbox is reachable, as `SESSION.DOMAIN`.
        ingress_domain: String = "localhost".into();
        /// Size of the volume of each sandbox.
        pvc_storage_size: String = "2Gi".into();
        /// Storage class of that volume; unset: the default of the cluster.
        pvc_storage_class: Option<String> = None, example = "\"standard\"";
        /// CPUs that each sandbox requests.
        resource_cpu_request: String = "1".into();
        /// Memory that each sandbox requests.
        resource_memory_request: String = "1Gi".into();
        /// Maximum memory of a sandbox.
        resource_memory_limit: String = "2Gi".into();
        /// Name of the secret with the credentials of the image registry.
        image_pull_secret: Option<String> = None, example = "\"registry-login\"";
        /// Name of the secret with the certificate of the ingress; with it the editor is served over https.
        ingress_tls_secret: Option<String> = None, example = "\"sandbox-certificate\"";
        /// Label that a node must have; needs `node_selector_val`.
        node_selector_key: Option<String> = None, example = "\"pool\"";
        /// Value of that label; needs `node_selector_key`.
        node_selector_val: Option<String> = None, example = "\"sandboxes\"";
        /// List of tolerations as YAML.
        tolerations_yaml: Option<String> = None, example = "\"- {key: sandbox, operator: Exists}\"";
        /// Run the container privileged.
        privileged: bool = false;
    }
}
