//! The workspace of a sandbox as a volume snapshot, and sandboxes that begin with it, where the cluster has the API of
//! snapshots (`snapshot.storage.k8s.io/v1`) and a driver for it.
//!
//! A snapshot is an object of its own, which outlives its sandbox. Its image is known by what it says in an annotation, so
//! that `volume-snapshot://NAME` stands for both: the image, and what the workspace begins with.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, pin_mut};
use gloveport_provider::{
    MOST_SNAPSHOTS, Progress, ProviderError, Removed, Sandbox, SandboxId, SandboxSpec, SessionId, Snapshot, Teller,
    Workspace, apart, handed_over,
};
use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::ConfigMap,
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta},
};
use kube::{
    Resource,
    api::{DeleteParams, PostParams, Preconditions, TypeMeta, WatchEvent, WatchParams},
};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    body::claim_of,
    create::random,
    fault::{NAME, failed, wrong},
    inner::Inner,
    names::{self, APP, FORK_ROLE, ROLE, SNAPSHOT_ROLE},
    record::{Record, pod_of, settings_of},
    source::{GROUP, Source},
};

/// What stands before the name of a snapshot where an image is named. No reference to an image has it.
const SCHEME: &str = "volume-snapshot://";
/// What the names of ours begin with.
const PREFIX: &str = "gloveport-snapshot-";
/// Most characters of a name that somebody gives.
const LONGEST: usize = 40;
/// How long a driver may take. Some copy all of a volume.
const LIMIT: Duration = Duration::from_mins(30);
/// How long a driver may go on saying that it failed: it tries again by itself.
const FAULTY: Duration = Duration::from_mins(1);
/// Limit of one watch, in seconds.
const WATCH: u32 = 30;
/// Between two looks at what cannot be watched.
const PAUSE: Duration = Duration::from_secs(1);

/// A copy of a volume, as the API of the storage drivers has it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct VolumeSnapshot {
    /// What a definition of a cluster's own asks for that the types of Kubernetes know by themselves.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    types: Option<TypeMeta>,
    metadata: ObjectMeta,
    spec: SnapshotSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<SnapshotStatus>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SnapshotSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    volume_snapshot_class_name: Option<String>,
    source: SnapshotSource,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SnapshotSource {
    #[serde(skip_serializing_if = "Option::is_none")]
    persistent_volume_claim_name: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SnapshotStatus {
    ready_to_use: Option<bool>,
    restore_size: Option<Quantity>,
    error: Option<SnapshotFault>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct SnapshotFault {
    message: Option<String>,
}

impl Resource for VolumeSnapshot {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "VolumeSnapshot".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "volumesnapshots".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl VolumeSnapshot {
    fn is_ready(&self) -> bool {
        self.status.as_ref().and_then(|status| status.ready_to_use) == Some(true)
    }

    /// What its driver says has gone wrong.
    fn fault(&self) -> Option<&str> {
        self.status.as_ref()?.error.as_ref()?.message.as_deref()
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }
}

impl Inner {
    /// What an image stands for that is a snapshot; none if it is an image.
    pub(crate) async fn source(&self, image: &str, workspace: &Workspace) -> Result<Option<Source>, ProviderError> {
        let Some(name) = image.strip_prefix(SCHEME) else { return Ok(None) };
        self.check_snapshots()?;
        if *workspace != Workspace::Temporary {
            let reason = format!("`{image}` is what a workspace of its own begins with; name no volume beside it");
            return Err(wrong("workspace", reason));
        }
        let unknown = || wrong("image", format!("the namespace {} has no snapshot `{name}`", self.options.namespace));
        if !is_name(name, 253) {
            return Err(unknown());
        }
        let found = self.cluster.get::<VolumeSnapshot>(name).await?.ok_or_else(unknown)?;
        if !found.is_ready() {
            let why = found.fault().unwrap_or("its driver is not done with it");
            return Err(wrong("image", format!("the snapshot `{name}` is not ready: {why}")));
        }
        let image = found.annotation(names::IMAGE).map(str::to_owned);
        let size = found.status.and_then(|status| status.restore_size);
        Ok(Some(Source { snapshot: name.to_owned(), image, size }))
    }

    fn check_snapshots(&self) -> Result<(), ProviderError> {
        if self.options.volume_snapshots {
            return Ok(());
        }
        let what = "snapshots without `volume_snapshots = true` in [extended.kubernetes]".to_owned();
        Err(ProviderError::Unsupported { provider: NAME.to_owned(), what })
    }

    /// Keeps the workspace of a sandbox as the volume snapshot `gloveport-snapshot-NAME`.
    pub(crate) async fn snapshot(self: &Arc<Self>, id: &SandboxId, name: &str) -> Result<String, ProviderError> {
        self.check_open()?;
        self.check_snapshots()?;
        if !is_name(name, LONGEST) {
            let reason = format!(
                "`{name}` is none: up to {LONGEST} lower-case letters, digits, `-` and `.`, with a letter or digit at \
                 both ends"
            );
            return Err(wrong("the name", reason));
        }
        let (inner, id, name) = (Arc::clone(self), id.clone(), format!("{PREFIX}{name}"));
        let keeping = move |_: Teller, given_up| async move {
            inner.keep(&id, &name, SNAPSHOT_ROLE, &given_up).await.map(|()| format!("{SCHEME}{name}"))
        };
        apart(&Progress::silent(), keeping).await.map_err(|error| failed("make a snapshot", error))?
    }

    /// The snapshots that were asked for in this namespace, the newest first.
    pub(crate) async fn kept(&self) -> Result<Vec<Snapshot>, ProviderError> {
        self.check_snapshots()?;
        let selector = format!("{}={},{ROLE}={SNAPSHOT_ROLE}", APP.0, APP.1);
        let mut all = self.cluster.list::<VolumeSnapshot>(&selector).await?;
        all.sort_by(|one, other| other.metadata.creation_timestamp.cmp(&one.metadata.creation_timestamp));
        let told = all.iter().take(MOST_SNAPSHOTS).map(|kept| Snapshot {
            image: format!("{SCHEME}{}", kept.name()),
            name: kept.name().strip_prefix(PREFIX).unwrap_or(kept.name()).to_owned(),
            session: kept.annotation(names::SESSION).map(str::to_owned),
            created: kept.metadata.creation_timestamp.as_ref().map(|time| time.0.into()),
        });
        Ok(told.collect())
    }

    /// Deletes a snapshot that was asked for. Whether there was one.
    pub(crate) async fn delete_kept(&self, image: &str) -> Result<bool, ProviderError> {
        self.check_snapshots()?;
        let Some(name) = image.strip_prefix(SCHEME).filter(|name| is_name(name, 253)) else { return Ok(false) };
        let Some(found) = self.cluster.get::<VolumeSnapshot>(name).await? else { return Ok(false) };
        let labels = found.metadata.labels.unwrap_or_default();
        let has = |label: &str, value: &str| labels.get(label).is_some_and(|it| it == value);
        if !has(APP.0, APP.1) || !has(ROLE, SNAPSHOT_ROLE) {
            return Ok(false);
        }
        // Another one may get its name meanwhile.
        let preconditions = Some(Preconditions { uid: found.metadata.uid, ..Preconditions::default() });
        self.cluster.delete::<VolumeSnapshot>(name, &DeleteParams { preconditions, ..DeleteParams::default() }).await
    }

    /// Makes a sandbox of another session with the workspace and the settings of this one.
    pub(crate) async fn fork(
        self: &Arc<Self>,
        id: &SandboxId,
        session: &SessionId,
        progress: &Progress,
    ) -> Result<Sandbox, ProviderError> {
        self.check_open()?;
        self.check_snapshots()?;
        let record = self.existing(id).await?;
        let map = self.cluster.get::<ConfigMap>(id.as_str()).await?;
        let map = map.ok_or_else(|| ProviderError::NotFound(id.clone()))?;
        let settings = settings_of(&map)?.ok_or_else(|| {
            let what = format!(
                "forks of `{id}`, which was made without `volume_snapshots`; take a snapshot and start from it"
            );
            ProviderError::Unsupported { provider: NAME.to_owned(), what }
        })?;
        let random = random("name a snapshot")?;
        let name = format!("{PREFIX}fork-{}", random.get(..16).unwrap_or(&random));
        let mut spec = settings.spec(session.clone(), format!("{SCHEME}{name}"));
        // A named volume is its origin's.
        spec.workspace = Workspace::Temporary;
        let inner = Arc::clone(self);
        let forking =
            move |tell: Teller, given_up| async move { inner.forked(&record.id, &name, &spec, tell, given_up).await };
        let inner = Arc::clone(self);
        let undo = |made| async move { inner.undo(made).await };
        handed_over(progress, forking, undo).await.map_err(|error| failed("fork a sandbox", error))?
    }

    /// A snapshot, a sandbox from it, and the end of the snapshot.
    async fn forked(
        self: &Arc<Self>,
        of: &SandboxId,
        name: &str,
        spec: &SandboxSpec,
        tell: Teller,
        given_up: CancellationToken,
    ) -> Result<Sandbox, ProviderError> {
        self.keep(of, name, FORK_ROLE, &given_up).await?;
        let made = self.create_told(spec, tell, given_up).await;
        // The volume has been made of it by now, or never will be.
        if let Err(error) = self.cluster.delete::<VolumeSnapshot>(name, &DeleteParams::default()).await {
            tracing::warn!(%error, "the snapshot of a fork is left; collect garbage");
        }
        made
    }

    /// Makes a snapshot of the workspace of a sandbox, and waits until it is ready. One that does not get so is removed.
    async fn keep(
        &self,
        id: &SandboxId,
        name: &str,
        role: &str,
        given_up: &CancellationToken,
    ) -> Result<(), ProviderError> {
        let action = format!("make the snapshot `{name}`");
        let record = self.existing(id).await?;
        let map = self.cluster.get::<ConfigMap>(id.as_str()).await?;
        let map = map.ok_or_else(|| ProviderError::NotFound(id.clone()))?;
        let pod = pod_of(&map)?;
        let claim = claim_of(&pod).ok_or_else(|| {
            let what = format!("snapshots of `{id}`, whose workspace is on no volume");
            ProviderError::Unsupported { provider: NAME.to_owned(), what }
        })?;
        let wanted = self.body(&record, name, role, claim).await?;
        let api = self.cluster.api::<VolumeSnapshot>().await?;
        let parameters = PostParams { field_manager: Some(names::MANAGER.to_owned()), ..PostParams::default() };
        let made = match self.cluster.attempt(|| api.create(&parameters, &wanted)).await {
            Ok(made) => made,
            Err(refusal) if refusal.status() == Some(409) => {
                return Err(wrong("the name", format!("there is a snapshot `{name}` already; take another name")));
            }
            Err(refusal) if refusal.status() == Some(404) => {
                let reason = format!("the cluster has no {GROUP}/v1; install the API of snapshots and its controller");
                return Err(failed(action, reason));
            }
            Err(refusal) => return Err(refusal.told(&action, self.cluster.place())),
        };
        // What has its name by then may be somebody else's.
        let preconditions = Some(Preconditions { uid: made.metadata.uid.clone(), ..Preconditions::default() });
        let this_one = DeleteParams { preconditions, ..DeleteParams::default() };
        let waiting = timeout(LIMIT, self.ready(made, &action));
        let ready = tokio::select! {
            ready = waiting => {
                ready.unwrap_or_else(|_| Err(ProviderError::Timeout { action: action.clone(), limit: LIMIT }))
            }
            () = given_up.cancelled() => Err(failed(&action, "nobody waits for it any more")),
        };
        if ready.is_err()
            && let Err(error) = self.cluster.delete::<VolumeSnapshot>(name, &this_one).await
        {
            tracing::warn!(%error, snapshot = name, "a snapshot that did not get ready is left");
        }
        ready
    }

    async fn body(
        &self,
        record: &Record,
        name: &str,
        role: &str,
        claim: &str,
    ) -> Result<VolumeSnapshot, ProviderError> {
        let text = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        let backend = self.backends.label(&self.cluster).await?;
        let mut annotations: BTreeMap<String, String> =
            [(names::SESSION, record.session.as_str()), (names::BACKEND, &backend)].map(text).into();
        annotations.extend(record.image.iter().map(|image| (names::IMAGE.to_owned(), image.clone())));
        Ok(VolumeSnapshot {
            types: Some(TypeMeta::resource::<VolumeSnapshot>()),
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                labels: Some([APP, (ROLE, role)].map(text).into()),
                annotations: Some(annotations),
                ..ObjectMeta::default()
            },
            spec: SnapshotSpec {
                volume_snapshot_class_name: self.options.snapshot_class.clone(),
                source: SnapshotSource { persistent_volume_claim_name: Some(claim.to_owned()) },
            },
            status: None,
        })
    }

    /// Waits until a snapshot can be used.
    async fn ready(&self, made: VolumeSnapshot, action: &str) -> Result<(), ProviderError> {
        let api = self.cluster.api::<VolumeSnapshot>().await?;
        let (name, uid) = (made.name().to_owned(), made.metadata.uid.clone());
        let gone = || failed(action, "somebody has removed it meanwhile");
        let mut faulty: Option<Instant> = None;
        let mut seen = made;
        loop {
            match seen.fault() {
                _ if seen.is_ready() => return Ok(()),
                None => faulty = None,
                Some(fault) if faulty.is_some_and(|since| since.elapsed() >= FAULTY) => {
                    return Err(failed(action, fault));
                }
                Some(_) => faulty = faulty.or_else(|| Some(Instant::now())),
            }
            let version = seen.metadata.resource_version.clone().unwrap_or_default();
            let parameters = WatchParams::default().fields(&format!("metadata.name={name}")).timeout(WATCH);
            let mut changed = None;
            if let Ok(events) = api.watch(&parameters, &version).await {
                pin_mut!(events);
                let within = if faulty.is_some() { FAULTY } else { Duration::from_secs(u64::from(WATCH) + 5) };
                if let Ok(Some(Ok(event))) = timeout(within, events.next()).await {
                    match event {
                        WatchEvent::Added(object) | WatchEvent::Modified(object) => changed = Some(object),
                        WatchEvent::Deleted(_) => return Err(gone()),
                        WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {}
                    }
                }
            }
            seen = if let Some(object) = changed {
                object
            } else {
                sleep(PAUSE).await;
                self.cluster.get::<VolumeSnapshot>(&name).await?.ok_or_else(gone)?
            };
            if seen.metadata.uid != uid {
                return Err(gone());
            }
        }
    }

    /// Removes what backends have left that died while they made forks.
    pub(crate) async fn sweep_forks(&self, dry_run: bool) -> Result<Vec<Removed>, ProviderError> {
        let mut removed = Vec::new();
        if !self.options.volume_snapshots {
            return Ok(removed);
        }
        let selector = format!("{}={},{ROLE}={FORK_ROLE}", APP.0, APP.1);
        for snapshot in self.cluster.list::<VolumeSnapshot>(&selector).await? {
            if self.backends.lives(&self.cluster, snapshot.annotation(names::BACKEND).unwrap_or_default()).await? {
                continue;
            }
            let name = snapshot.name();
            if !dry_run {
                self.cluster.delete::<VolumeSnapshot>(name, &DeleteParams::default()).await?;
            }
            removed.push(Removed {
                id: None,
                session_id: None,
                path: None,
                reason: format!("the volume snapshot `{name}` was for a fork, and its backend has died"),
            });
        }
        Ok(removed)
    }
}

/// Whether a text can be the name, or the end of the name, of an object.
fn is_name(text: &str, longest: usize) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = |byte: Option<u8>| byte.is_some_and(allowed);
    text.len() <= longest
        && text.bytes().all(|byte| allowed(byte) || b"-.".contains(&byte))
        && ends(text.bytes().next())
        && ends(text.bytes().last())
        && text.split('.').all(|part| ends(part.bytes().next()) && ends(part.bytes().last()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_of_snapshots_are_names_of_objects() {
        for name in ["a", "before-upgrade-1.2", "0"] {
            assert!(is_name(name, LONGEST), "{name}");
        }
        for name in ["", "-a", "a-", "A", "a_b", "a/b", "a..b", "a.-b", &"a".repeat(41)] {
            assert!(!is_name(name, LONGEST), "{name}");
        }
    }

    #[test]
    fn what_a_driver_says_is_understood_and_nothing_else_is_sent() {
        let read = |status| -> VolumeSnapshot {
            serde_json::from_value(json!({"metadata": {"name": "s"}, "spec": {"source": {}}, "status": status}))
                .unwrap()
        };
        assert!(read(json!({"readyToUse": true, "restoreSize": "1Gi", "creationTime": null})).is_ready());
        assert!(!read(json!({"readyToUse": false})).is_ready() && !read(json!(null)).is_ready());
        let wrong = read(json!({"error": {"message": "no room", "time": "x"}}));
        assert_eq!((wrong.fault(), wrong.is_ready()), (Some("no room"), false));
        let sent = serde_json::to_value(VolumeSnapshot::default()).unwrap();
        assert_eq!(sent, json!({"metadata": {}, "spec": {"source": {}}}));
    }
}
