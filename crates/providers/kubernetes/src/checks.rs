//! Why a cluster cannot be used, for `doctor`.

use std::fs;

use gloveport_provider::{Check, ProviderError};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::{Api, api::PostParams};

use crate::{ProgramFrom, SandboxApi, Storage, agent_sandbox::RIGHT, claims, inner::Inner};

/// What a backend does: group, resource, verbs.
const RIGHTS: [(&str, &str, &[&str]); 6] = [
    ("", "configmaps", &["create", "get", "list", "watch", "patch", "delete"]),
    ("", "secrets", &["create", "get", "patch"]),
    ("", "pods", &["create", "get", "list", "watch", "patch", "delete"]),
    ("", "services", &["create", "patch"]),
    ("", "pods/log", &["get"]),
    ("coordination.k8s.io", "leases", &["create", "patch", "list", "delete"]),
];
/// What it needs beside for some settings.
const CLAIMS: (&str, &str, &[&str]) = ("", "persistentvolumeclaims", &["create", "patch"]);
// An upgrade to a WebSocket is a GET, which some API servers take for `create`.
const ATTACH: (&str, &str, &[&str]) = ("", "pods/attach", &["create", "get"]);
const FORWARD: (&str, &str, &[&str]) = ("", "pods/portforward", &["create", "get"]);
const POLICIES: (&str, &str, &[&str]) = ("networking.k8s.io", "networkpolicies", &["create", "patch"]);
const SNAPSHOTS: (&str, &str, &[&str]) =
    ("snapshot.storage.k8s.io", "volumesnapshots", &["create", "get", "list", "watch", "delete"]);

impl Inner {
    pub(crate) async fn check(&self) -> Vec<Check> {
        let mut checks = vec![self.server_check().await];
        if checks.iter().all(|check| check.works) {
            checks.push(self.rights_check().await);
            if self.options.volume_snapshots {
                checks.push(self.snapshots_check().await);
            }
            checks.extend(self.kind_check().await);
        }
        if let ProgramFrom::Stream { .. } = self.options.program_from {
            checks.push(self.program_check());
        }
        checks
    }

    async fn server_check(&self) -> Check {
        let name = "cluster".to_owned();
        let told = |error: &ProviderError| {
            let remedy = match error {
                ProviderError::Unreachable { hint, .. } | ProviderError::Access { hint, .. } => hint.clone(),
                _ => "look at the API server (`kubectl cluster-info`)".to_owned(),
            };
            let found = error.to_string();
            // What to do is told apart.
            let found = found.strip_suffix(&format!("; {remedy}")).unwrap_or(&found).to_owned();
            Check { name: name.clone(), works: false, found, remedy: Some(remedy) }
        };
        let version = async {
            let client = self.cluster.client().await?;
            self.cluster.ask("tell its version", || client.apiserver_version()).await
        };
        match version.await {
            Ok(version) => {
                let storage = match self.options.storage {
                    Storage::Volume => "workspaces on volumes",
                    Storage::EmptyDir => "workspaces that end with their pods",
                };
                let found = format!(
                    "Kubernetes {} at {}, namespace {}, {storage}",
                    version.git_version,
                    self.cluster.place(),
                    self.options.namespace
                );
                Check { name, works: true, found, remedy: None }
            }
            Err(error) => told(&error),
        }
    }

    /// Whether this user may do all that a backend does.
    async fn rights_check(&self) -> Check {
        let name = "rights".to_owned();
        let mut wanted = RIGHTS.to_vec();
        if self.way == crate::access::Way::Forward {
            wanted.push(FORWARD);
        }
        if self.options.storage == Storage::Volume {
            wanted.push(CLAIMS);
        }
        if let ProgramFrom::Stream { .. } = self.options.program_from {
            wanted.push(ATTACH);
        }
        if self.options.network_policies {
            wanted.push(POLICIES);
        }
        if self.options.volume_snapshots {
            wanted.push(SNAPSHOTS);
        }
        if self.options.api == SandboxApi::Sandboxes {
            wanted.push(RIGHT);
            if self.options.storage == Storage::EmptyDir {
                wanted.extend(claims::RIGHTS);
            }
        }
        let asked = wanted.iter().flat_map(|(group, resource, verbs)| {
            verbs.iter().map(move |verb| async move { (self.may(group, resource, verb).await, *resource, *verb) })
        });
        let mut missing = Vec::new();
        for (may, resource, verb) in futures_util::future::join_all(asked).await {
            match may {
                Ok(true) => {}
                Ok(false) => missing.push(format!("{verb} {resource}")),
                Err(error) => {
                    return Check { name, works: false, found: error.to_string(), remedy: None };
                }
            }
        }
        if missing.is_empty() {
            return Check { name, works: true, found: "all that are needed".to_owned(), remedy: None };
        }
        let found = format!("this user may not: {}", missing.join(", "));
        let remedy = "apply deploy/kubernetes, or give the rights that docs/kubernetes.md lists".to_owned();
        Check { name, works: false, found, remedy: Some(remedy) }
    }

    async fn may(&self, group: &str, resource: &str, verb: &str) -> Result<bool, ProviderError> {
        let api: Api<SelfSubjectAccessReview> = Api::all(self.cluster.client().await?.clone());
        let (resource, part) = resource.split_once('/').map_or((resource, None), |(whole, part)| (whole, Some(part)));
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    namespace: Some(self.options.namespace.clone()),
                    group: Some(group.to_owned()),
                    resource: Some(resource.to_owned()),
                    subresource: part.map(str::to_owned),
                    verb: Some(verb.to_owned()),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let parameters = PostParams::default();
        let answer = self.cluster.ask("tell what this user may do", || api.create(&parameters, &review)).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }

    /// Whether the cluster has the API of snapshots.
    async fn snapshots_check(&self) -> Check {
        let name = "volume snapshots".to_owned();
        let version = format!("{}/v1", SNAPSHOTS.0);
        let asked = async {
            let client = self.cluster.client().await?;
            self.cluster.ask("tell its APIs", || client.list_api_groups()).await
        };
        match asked.await {
            Ok(groups) => {
                let mut versions = groups.groups.iter().flat_map(|group| &group.versions);
                if versions.any(|one| one.group_version == version) {
                    return Check { name, works: true, found: format!("the cluster has {version}"), remedy: None };
                }
                let remedy = "install the API of snapshots, its controller and a storage driver that has them, or unset \
                              `volume_snapshots`";
                Check {
                    name,
                    works: false,
                    found: format!("the cluster has no {version}"),
                    remedy: Some(remedy.to_owned()),
                }
            }
            Err(error) => Check { name, works: false, found: error.to_string(), remedy: None },
        }
    }

    /// The file that is put into pods.
    fn program_check(&self) -> Check {
        let path = &self.options.program;
        let name = "program for pods".to_owned();
        let remedy = Some("install gloveport where this user may read it, or set `program_image`".to_owned());
        match fs::metadata(path) {
            Ok(meta) if gloveport_platform::is_executable(&meta) => {
                Check { name, works: true, found: path.display().to_string(), remedy: None }
            }
            Ok(_) => Check { name, works: false, found: format!("{} is no program", path.display()), remedy },
            Err(error) => Check { name, works: false, found: format!("{}: {error}", path.display()), remedy },
        }
    }
}
