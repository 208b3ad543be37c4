//! Pause, resume, delete, logs.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{AsyncBufRead, AsyncBufReadExt as _, StreamExt as _, stream};
use gloveport_provider::{
    LogOptions, LogStream, Phase, Progress, ProviderError, SandboxId, SandboxState, Teller, apart,
};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{
    Api,
    api::{DeleteParams, LogParams, Preconditions},
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{
    body::{lead_through, once_more, shorten},
    create::random,
    fault::{self, NAME, failed},
    inner::Inner,
    names::{self, CONTAINER},
    record::{Record, pod_of},
    start::{NotStarted, Starting},
    view,
    watch::Seen,
};

/// Largest piece of a log.
const PIECE: usize = 64 * 1024;
/// Lines of a log that an error shows.
const SHOWN: i64 = 10;
/// Bytes of them.
const SHOWN_BYTES: i64 = 16 * 1024;
/// Time for them.
const SHOWN_WITHIN: Duration = Duration::from_secs(2);
/// How long the end of all objects of a sandbox may take.
const REMOVAL: Duration = Duration::from_mins(2);
/// Seconds that a server has to end.
const GRACE: u32 = 5;
/// How long a pod may take to end by itself before its node is asked no more.
const ENDING: Duration = Duration::from_mins(1);

impl Inner {
    /// Asks for the end of a record and of all that it owns. The cluster does the rest.
    pub(crate) async fn let_go(&self, record: &Record) -> Result<bool, ProviderError> {
        let mut parameters = DeleteParams::foreground();
        parameters.preconditions = Some(Preconditions { uid: Some(record.uid.clone()), ..Preconditions::default() });
        self.cluster.delete::<ConfigMap>(record.id.as_str(), &parameters).await
    }

    /// Removes a sandbox; whether it was there. Returns when all is gone.
    pub(crate) async fn remove(&self, record: &Record) -> Result<bool, ProviderError> {
        let was_there = self.let_go(record).await?;
        // The pods take the longest, and are not left to the cluster's own pace.
        let (_, _, gone) = tokio::join!(
            self.remove_pod(record),
            Box::pin(self.remove_gate(record)),
            self.cluster.gone::<ConfigMap>(record.id.as_str(), &record.uid, REMOVAL)
        );
        gone?;
        Ok(was_there)
    }

    /// Removes the pod of a record, if it has one. Returns when it is gone.
    pub(crate) async fn remove_pod(&self, record: &Record) -> Result<(), ProviderError> {
        self.rest(record).await?;
        let Some(pod) = self.pod(record).await? else { return Ok(()) };
        self.end_pod(&record.pod, pod.metadata.uid.as_deref().unwrap_or_default()).await
    }

    /// Ends a pod, and forgets it as soon as its containers have ended: the cluster would take some seconds more.
    pub(crate) async fn end_pod(&self, name: &str, uid: &str) -> Result<(), ProviderError> {
        let mut waiter = self.watch.pod(&self.cluster, name).await?;
        let preconditions = || Some(Preconditions { uid: Some(uid.to_owned()), ..Preconditions::default() });
        let graceful = DeleteParams { preconditions: preconditions(), ..DeleteParams::default().grace_period(GRACE) };
        if !self.cluster.delete::<Pod>(name, &graceful).await? {
            return Ok(());
        }
        let ended = timeout(ENDING, async {
            loop {
                match waiter.next().await {
                    Seen::Absent => return true,
                    Seen::Pod(pod) if pod.metadata.uid.as_deref() != Some(uid) => return true,
                    Seen::Pod(pod) if has_ended(&pod) => return false,
                    Seen::Pod(_) | Seen::Nothing => {}
                }
            }
        });
        match ended.await {
            Ok(true) => return Ok(()),
            // Nothing of it runs.
            Ok(false) => {}
            Err(_) if self.node_answers(name).await => {
                let action = format!("deleting the pod `{name}`");
                return Err(ProviderError::Timeout { action, limit: ENDING });
            }
            // Nobody is there to end it.
            Err(_) => tracing::warn!(pod = name, "the node of a pod does not answer; the pod is removed without it"),
        }
        let at_once = DeleteParams { preconditions: preconditions(), ..DeleteParams::default().grace_period(0) };
        self.cluster.delete::<Pod>(name, &at_once).await?;
        self.cluster.gone::<Pod>(name, uid, REMOVAL).await
    }

    /// Whether the node of a pod that is to end still tells of it: the cluster takes the readiness of pods back whose node is
    /// silent, while a node that ends a pod says how its containers ended.
    async fn node_answers(&self, name: &str) -> bool {
        let Ok(Some(pod)) = self.cluster.get::<Pod>(name).await else { return true };
        !is_forsaken(&pod)
    }

    pub(crate) async fn delete(&self, id: &SandboxId) -> Result<bool, ProviderError> {
        let Some(record) = self.record(id).await? else {
            self.forget(id);
            return Ok(false);
        };
        let removed = self.remove(&record).await?;
        self.forget(id);
        Ok(removed)
    }

    pub(crate) async fn pause(&self, id: &SandboxId) -> Result<(), ProviderError> {
        let record = self.existing(id).await?;
        if !record.survives {
            let what = "pausing a sandbox whose workspace ends with its pod (`storage = \"empty-dir\"`)";
            return Err(ProviderError::Unsupported { provider: NAME.to_owned(), what: what.to_owned() });
        }
        let pod = self.pod(&record).await?;
        match view::state(&record, pod.as_ref()) {
            SandboxState::Paused | SandboxState::Running => {
                tokio::try_join!(self.remove_pod(&record), Box::pin(self.remove_gate(&record))).map(drop)
            }
            state => Err(ProviderError::State { action: "pause", id: id.clone(), state }),
        }
    }

    pub(crate) async fn resume(self: &Arc<Self>, id: &SandboxId) -> Result<(), ProviderError> {
        self.check_open()?;
        let (inner, id) = (Arc::clone(self), id.clone());
        let resuming = move |tell, given_up| async move { Box::pin(inner.resume_now(&id, &tell, &given_up)).await };
        apart(&Progress::silent(), resuming).await.map_err(|error| failed("resume a sandbox", error))?
    }

    async fn resume_now(
        self: &Arc<Self>,
        id: &SandboxId,
        tell: &Teller,
        given_up: &CancellationToken,
    ) -> Result<(), ProviderError> {
        let mut record = self.existing(id).await?;
        let pod = self.pod(&record).await?;
        match view::state(&record, pod.as_ref()) {
            SandboxState::Running => return Box::pin(self.reopen_gate(&record, given_up)).await,
            SandboxState::Paused => {}
            state => return Err(ProviderError::State { action: "resume", id: id.clone(), state }),
        }
        let left = match record.expires() {
            None => None,
            // The clock of the API server is the one that its objects tell.
            Some(end) => {
                let left = end.duration_since(self.cluster.now().await?).ok();
                let state = SandboxState::Stopped("its time is over".to_owned());
                Some(left.ok_or_else(|| ProviderError::State { action: "resume", id: id.clone(), state })?)
            }
        };
        self.remove_pod(&record).await?;
        if record.pod != record.id.as_str() {
            // From now on it has a pod of its own name.
            self.cluster.annotate::<ConfigMap>(id.as_str(), &[(names::POD_NAME, None)]).await?;
            record.pod = id.to_string();
        }
        let map = self.cluster.get::<ConfigMap>(id.as_str()).await?;
        let map = map.ok_or_else(|| ProviderError::NotFound(id.clone()))?;
        let mut pod = pod_of(&map)?;
        if let Some(gate) = &record.gate {
            lead_through(&mut pod, gate);
        }
        if let Some(left) = left {
            shorten(&mut pod, left);
        }
        let token = random("make a name")?;
        let brings = once_more(&mut pod, &record.owner(), &token, self.program_size(true).await?);
        let waiter = self.watch.pod(&self.cluster, id.as_str()).await?;
        let (made, brings) = match self.bring_up(&pod, &record, &token, given_up).await {
            Ok(made) => (made, brings),
            Err(error) => {
                let Some(theirs) = self.pod(&record).await? else {
                    self.rest_again(&record).await;
                    return Err(error);
                };
                // Somebody else resumes it at the same time, and brings the program.
                (theirs, false)
            }
        };
        let (name, uid) = (made.metadata.name.unwrap_or_default(), made.metadata.uid.unwrap_or_default());
        let waiter = self.sees(Some(waiter), &name).await?;
        let starting = Starting { inner: self, pod: &name, uid: &uid, tell, phase: Phase::Resuming, given_up, brings };
        let opened = Box::pin(async { self.reopen_gate(&record, given_up).await.map_err(NotStarted::Failed) });
        match tokio::try_join!(starting.wait(waiter), opened) {
            Ok(_) => Ok(()),
            Err(not_started) => {
                // It rests again.
                self.rest_again(&record).await;
                if let Err(error) = tokio::try_join!(self.end_pod(&name, &uid), Box::pin(self.remove_gate(&record))) {
                    tracing::warn!(%error, "the pod of a sandbox that was not resumed is left");
                }
                Err(match not_started {
                    NotStarted::Failed(error) => error,
                    NotStarted::Taken(reason) => failed("resume the sandbox", reason),
                })
            }
        }
    }

    pub(crate) async fn logs(&self, id: &SandboxId, options: LogOptions) -> Result<LogStream, ProviderError> {
        let pod = self.existing(id).await?.pod;
        let parameters = LogParams {
            container: Some(CONTAINER.to_owned()),
            follow: options.follow,
            tail_lines: options.tail.map(|lines| i64::try_from(lines).unwrap_or(i64::MAX)),
            ..LogParams::default()
        };
        let action = format!("read the log of the pod `{pod}`");
        let api = self.cluster.api::<Pod>().await?;
        let lines = match self.cluster.attempt(|| api.log_stream(&pod, &parameters)).await {
            Ok(lines) => lines,
            // While it rests it has no pod, and so no log.
            Err(refusal) if refusal.status() == Some(404) => return Ok(stream::empty().boxed()),
            Err(refusal) => return Err(refusal.told(&action, self.cluster.place())),
        };
        Ok(pieces(lines, action).boxed())
    }

    /// The last lines of its log, for an error about it.
    pub(crate) async fn last_lines(&self, pod: &str) -> String {
        let Ok(api) = self.cluster.api::<Pod>().await else { return String::new() };
        let api: Api<Pod> = api;
        let parameters = LogParams {
            container: Some(CONTAINER.to_owned()),
            tail_lines: Some(SHOWN),
            limit_bytes: Some(SHOWN_BYTES),
            ..LogParams::default()
        };
        let read = timeout(SHOWN_WITHIN, api.logs(pod, &parameters)).await;
        read.ok().and_then(Result::ok).map(|log| fault::cut(&log)).unwrap_or_default()
    }
}

/// Whether the node of a pod that is to end is silent.
fn is_forsaken(pod: &Pod) -> bool {
    let Some(status) = &pod.status else { return false };
    let condition = |kind: &str| status.conditions.iter().flatten().find(|condition| condition.type_ == kind);
    let is = |kind: &str, value: &str| condition(kind).is_some_and(|condition| condition.status == value);
    let unready = is("Ready", "False") && !is("ContainersReady", "False");
    let running = status
        .container_statuses
        .iter()
        .flatten()
        .any(|status| status.state.as_ref().is_some_and(|state| state.running.is_some()));
    let lost = ["NodeLost", "NodeShutdown"].contains(&status.reason.as_deref().unwrap_or_default());
    let disrupted = is("DisruptionTarget", "True");
    pod.metadata.deletion_timestamp.is_some() && (lost || disrupted || (unready && running))
}

/// Whether no container of a pod runs any more.
fn has_ended(pod: &Pod) -> bool {
    let Some(status) = &pod.status else { return false };
    let none_was_started = || {
        // One without a node has nothing to end.
        pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_none())
    };
    let mut all = status.init_container_statuses.iter().chain(&status.container_statuses).flatten().peekable();
    if all.peek().is_none() {
        return none_was_started();
    }
    all.all(|status| {
        let state = status.state.as_ref();
        state.is_none_or(|state| state.running.is_none() && (state.terminated.is_some() || state.waiting.is_some()))
    }) && matches!(status.phase.as_deref(), Some("Failed" | "Succeeded" | "Running"))
}

/// A log as pieces that are not too large.
fn pieces(
    lines: impl AsyncBufRead + Send + 'static,
    action: String,
) -> impl futures_util::Stream<Item = Result<Bytes, ProviderError>> + Send {
    let lines = Box::pin(lines);
    stream::unfold((lines, action, false), |(mut lines, action, ended)| async move {
        if ended {
            return None;
        }
        match lines.fill_buf().await {
            Ok([]) => None,
            Ok(read) => {
                let piece = Bytes::copy_from_slice(&read[..read.len().min(PIECE)]);
                lines.as_mut().consume(piece.len());
                Some((Ok(piece), (lines, action, false)))
            }
            Err(error) => {
                let error = failed(&action, error);
                Some((Err(error), (lines, action, true)))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(ending: bool, conditions: &Value, reason: &str) -> Pod {
        let running = json!({"name": "runtime", "image": "", "imageID": "", "ready": true, "restartCount": 0,
            "state": {"running": {}}});
        let mut pod = json!({"metadata": {"name": "p"}, "status": {"phase": "Running", "reason": reason,
            "conditions": conditions, "containerStatuses": [running]}});
        if ending {
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn a_node_is_silent_where_the_cluster_has_taken_readiness_back_and_not_its_own_word() {
        let ready = |ready: &str, containers: &str| json!([{"type": "Ready", "status": ready}, {"type": "ContainersReady", "status": containers}]);
        let disrupted = json!([{"type": "DisruptionTarget", "status": "True"}]);
        for (ending, conditions, reason, expected) in [
            (true, ready("False", "True"), "", true),
            (true, disrupted, "", true),
            (true, ready("True", "True"), "NodeLost", true),
            (true, ready("True", "True"), "", false),
            (true, ready("False", "False"), "", false),
            (false, ready("False", "True"), "", false),
        ] {
            assert_eq!(is_forsaken(&pod(ending, &conditions, reason)), expected, "{ending} {conditions} {reason}");
        }
    }
}
