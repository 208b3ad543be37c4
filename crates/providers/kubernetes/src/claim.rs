//! A pod that waits becomes a session's: one backend gets it by a conditional update, and tells its server what it is for.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use gloveport_provider::{
    NetworkPolicy, ProviderError, Sandbox, SandboxSpec,
    container::{CLAIM, Claimed, KEY},
};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::api::{ListParams, Patch, PatchParams};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};

use crate::{
    access::Way,
    body::{Plan, SESSION_VARIABLE, on_claim},
    fault::failed,
    inner::Inner,
    names::{self, ROLE, SERVER_PORT},
    record::{Record, data},
    view::{self, Stage},
};

/// Pods in one answer of a list.
const PAGE: u32 = 50;
/// How many are asked for that somebody else gets.
const TRIES: usize = 16;
/// Time for a server to become a session's.
const TELLING: Duration = Duration::from_secs(20);
/// Most bytes of its answer.
const ANSWER: usize = 64 * 1024;

impl Inner {
    /// Makes one of the pods that wait the sandbox of a record, if there is one that would be made for it.
    pub(crate) async fn claim(&self, plan: &Plan<'_>, record: &Record) -> Result<Option<Sandbox>, ProviderError> {
        if !can_wait(plan) {
            return Ok(None);
        }
        let alike = self.alike(plan.spec, plan.image).await?;
        let api = self.cluster.api::<Pod>().await?;
        let selector = format!("{ROLE}={},{}={alike}", names::WARM, names::ALIKE);
        // What the server remembers is new enough: a claim of what has changed since fails.
        let parameters = ListParams::default().labels(&selector).limit(PAGE).match_any();
        let listed = self.cluster.ask("list sandboxes that were started ahead", || api.list(&parameters)).await?.items;
        let mut waiting: Vec<Pod> = listed.into_iter().filter(|pod| view::stage(pod) == Stage::Runs).collect();
        if waiting.is_empty() {
            return Ok(None);
        }
        shift(&mut waiting, record);
        for pod in waiting.into_iter().take(TRIES) {
            let name = pod.metadata.name.clone().unwrap_or_default();
            let Some(pod) = self.take(&pod, plan, record).await? else { continue };
            match Box::pin(self.become_it(&pod, &name, plan, record)).await {
                Ok(()) => {
                    let found = self.find(&record.id).await?;
                    return found.map(Some).ok_or_else(|| failed("claim a sandbox", "it was removed meanwhile"));
                }
                Err(error) => {
                    tracing::warn!(%error, pod = name, "a sandbox that was started ahead is of no use");
                    self.end_pod(&name, pod.metadata.uid.as_deref().unwrap_or_default()).await?;
                }
            }
        }
        Ok(None)
    }

    /// The pod belongs to the record from now on; none if somebody else has it, or it has changed.
    async fn take(&self, pod: &Pod, plan: &Plan<'_>, record: &Record) -> Result<Option<Pod>, ProviderError> {
        let api = self.cluster.api::<Pod>().await?;
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let mut labels: BTreeMap<String, Option<String>> =
            plan.shown_labels().into_iter().map(|(key, value)| (key, Some(value))).collect();
        labels.extend([names::POOL, names::ALIKE].map(|key| (key.to_owned(), None)));
        let patch = Patch::Merge(serde_json::json!({"metadata": {
            // Of two that change this version one does.
            "resourceVersion": pod.metadata.resource_version,
            "labels": labels,
            "annotations": {names::SESSION: plan.spec.session_id.as_str(), names::TOKEN: plan.token},
            "ownerReferences": [record.owner()],
        }}));
        let parameters = PatchParams::default();
        match self.cluster.attempt(|| api.patch(name, &parameters, &patch)).await {
            Ok(taken) => Ok(Some(taken)),
            Err(refusal) => match refusal.status() {
                Some(404 | 409) => {
                    // The answer to an earlier try may have been lost.
                    let found = self.cluster.get::<Pod>(name).await?;
                    let token = |pod: &Pod| pod.metadata.annotations.as_ref()?.get(names::TOKEN).cloned();
                    Ok(found.filter(|pod| token(pod).as_deref() == Some(plan.token)))
                }
                _ => Err(refusal.told(&format!("claim the pod `{name}`"), self.cluster.place())),
            },
        }
    }

    /// Tells the server of the pod what it is for, and makes the rest of the sandbox.
    async fn become_it(&self, pod: &Pod, name: &str, plan: &Plan<'_>, record: &Record) -> Result<(), ProviderError> {
        let owner = record.owner();
        let (claim, first_key) = (plan.claim(&owner).is_some(), names::secret(name));
        let (secret, service) = (plan.secret(&owner)?, plan.service(&owner)?);
        let (_, service, (), ()) = tokio::try_join!(
            self.cluster.apply(&secret),
            self.cluster.apply(&service),
            self.give(name, claim, &owner),
            self.tell(pod, name, &first_key, plan.spec, plan.key.expose()),
        )?;
        let address = service.spec.and_then(|spec| spec.cluster_ip).unwrap_or_default();
        let mut later = plan.pod()?;
        if claim {
            on_claim(&mut later, &names::claim(name));
        }
        let patch = Patch::Merge(serde_json::json!({
            "metadata": {"annotations": {names::POD_NAME: name, names::ADDRESS: address}},
            "data": data(&later, None, None)?,
        }));
        let api = self.cluster.api::<ConfigMap>().await?;
        let (id, parameters) = (record.id.as_str(), PatchParams::default());
        self.cluster.ask("complete the record", || api.patch(id, &parameters, &patch)).await.map(drop)
    }

    /// Tells the server of a pod that waits what it is for. Its first key is in the secret of this name.
    pub(crate) async fn tell(
        &self,
        pod: &Pod,
        name: &str,
        secret: &str,
        spec: &SandboxSpec,
        session_key: &str,
    ) -> Result<(), ProviderError> {
        let secret = self.cluster.get::<Secret>(secret).await?;
        let key = secret.and_then(|secret| secret.data?.remove("key")).map(|key| key.0);
        let key = key.ok_or_else(|| failed("claim a sandbox", "its key is missing"))?;
        let mut environment = spec.environment.clone();
        environment.remove(KEY);
        environment.entry(SESSION_VARIABLE.to_owned()).or_insert_with(|| spec.session_id.to_string());
        let claimed = Claimed {
            session_key: session_key.to_owned(),
            environment,
            secrets: spec.secrets.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect(),
            plugins: spec.plugins.clone(),
            time_to_live: spec.time_to_live.map(|time| time.as_secs_f64()),
            idle_stop: spec.idle_stop.map(|time| time.as_secs_f64()),
        };
        let body = serde_json::to_vec(&claimed).map_err(|error| failed("claim a sandbox", error))?;
        let told = async {
            match self.way {
                Way::Forward => {
                    let api = self.cluster.api::<Pod>().await?;
                    let action = format!("be the way to the pod `{name}`");
                    let mut way = self.cluster.ask(&action, || api.portforward(name, &[SERVER_PORT])).await?;
                    let stream = way.take_stream(SERVER_PORT);
                    let stream = stream.ok_or_else(|| failed(action, "it gives no stream"))?;
                    let sent = send(stream, &key, body).await;
                    way.abort();
                    sent
                }
                Way::Service | Way::ClusterIp => {
                    let address = pod.status.as_ref().and_then(|status| status.pod_ip.as_deref()).unwrap_or_default();
                    let action = format!("connect to the pod `{name}` at {address}");
                    let address: std::net::IpAddr = address.parse().map_err(|error| failed(&action, error))?;
                    let stream = TcpStream::connect((address, SERVER_PORT)).await;
                    send(stream.map_err(|error| failed(action, error))?, &key, body).await
                }
            }
        };
        timeout(TELLING, told).await.map_err(|_| ProviderError::Timeout {
            action: format!("telling the pod `{name}` what it is for"),
            limit: TELLING,
        })?
    }
}

/// Whether a pod that waits can become this sandbox: a policy must be there before a pod is, and the editor has a port with a
/// name.
pub(crate) fn can_wait(plan: &Plan<'_>) -> bool {
    plan.spec.network == NetworkPolicy::Full && plan.spec.command.is_none() && !plan.has_editor()
}

/// Backends that claim at the same time begin at different ones of these.
pub(crate) fn shift<T>(waiting: &mut [T], record: &Record) {
    let first = record.uid.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let middle = first.checked_rem(waiting.len()).unwrap_or_default();
    waiting.rotate_left(middle);
}

/// Sends what a server is for, and understands the answer.
async fn send(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    key: &[u8],
    body: Vec<u8>,
) -> Result<(), ProviderError> {
    let broken = |error: &dyn std::fmt::Display| failed("be told what it is for", error);
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
    let request = Request::builder()
        .method(Method::POST)
        .uri(CLAIM)
        .header(http::header::HOST, "sandbox")
        .header("x-session-api-key", key)
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| broken(&error))?;
    let answered = async {
        let answer = sender.send_request(request).await.map_err(|error| broken(&error))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER).collect().await.map_err(|error| broken(&error))?;
        Ok::<_, ProviderError>((status, body.to_bytes()))
    };
    let (status, body) = tokio::select! {
        answered = answered => answered?,
        Err(error) = connection => return Err(broken(&error)),
    };
    if status == StatusCode::OK {
        return Ok(());
    }
    Err(broken(&format!("status {status}: {}", String::from_utf8_lossy(&body))))
}
