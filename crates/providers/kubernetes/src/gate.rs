//! Gates in a cluster: opened, told about, opened once more, and gone with what they are for.
//!
//! ```text
//!  allowed hosts ◄── gate (`gloveport gate`) ◄── service ◄── HTTP_PROXY ── sandbox
//!                                                                            │ its policy: the gate, and allowed addresses
//! ```

use std::{collections::HashMap, sync::Arc};

use gloveport_provider::{Phase, ProviderError, Sandbox, SandboxId, SandboxState, Teller};
use k8s_openapi::{
    api::core::v1::{ConfigMap, ContainerStatus, Pod},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{
    body::{Plan, once_more},
    create::random,
    fault::{failed, given_up},
    inner::Inner,
    names::{self, BRINGER},
    record::{Record, belongs_to, gate_of},
    start::{NotStarted, Starting},
    view::{self, Stage},
    watch::{Seen, Waiter},
};

/// How often a gate is made that its node has ended before it was open.
const TAKEN: u32 = 3;

impl Inner {
    /// Makes the service and the policy of a sandbox's gate, if it has one; the address of the service.
    pub(crate) async fn gate_objects(
        &self,
        plan: &Plan<'_>,
        owner: &OwnerReference,
    ) -> Result<Option<String>, ProviderError> {
        if !plan.has_gate()? {
            return Ok(None);
        }
        let (service, policy) = (plan.gate_service(owner), plan.gate_policy(owner));
        let (service, _) = tokio::try_join!(self.cluster.apply(&service), self.cluster.apply(&policy))?;
        Ok(Some(service.spec.and_then(|spec| spec.cluster_ip).unwrap_or_default()))
    }

    /// Makes the gate of a sandbox, if it has one, and waits until it is open.
    pub(crate) async fn open_gate(
        self: &Arc<Self>,
        plan: &Plan<'_>,
        owner: &OwnerReference,
        given_up: &CancellationToken,
    ) -> Result<(), ProviderError> {
        match plan.gate_pod()? {
            Some(gate) => Box::pin(self.open(gate, owner, plan.program_size, given_up)).await,
            None => Ok(()),
        }
    }

    /// Opens the gate of a record, if it has one that is not open.
    pub(crate) async fn reopen_gate(
        self: &Arc<Self>,
        record: &Record,
        given_up: &CancellationToken,
    ) -> Result<(), ProviderError> {
        if record.gate.is_none() || trouble(record, self.gate(record).await?.as_ref()).is_none() {
            return Ok(());
        }
        self.remove_gate(record).await?;
        let map = self.cluster.get::<ConfigMap>(record.id.as_str()).await?;
        let map = map.ok_or_else(|| ProviderError::NotFound(record.id.clone()))?;
        let size = self.program_size(true).await?;
        Box::pin(self.open(gate_of(&map)?, &record.owner(), size, given_up)).await
    }

    async fn open(
        self: &Arc<Self>,
        mut gate: Pod,
        owner: &OwnerReference,
        program_size: u64,
        given_up: &CancellationToken,
    ) -> Result<(), ProviderError> {
        let id = SandboxId::new(gate.metadata.name.clone().unwrap_or_default())?;
        let token = random("make a name")?;
        let brings = once_more(&mut gate, owner, &token, program_size);
        for tries in 1.. {
            let starts = self.watch.pod(&self.cluster, id.as_str()).await?;
            let opens = self.watch.pod(&self.cluster, id.as_str()).await?;
            let (pod, brings) = match self.make_pod(&gate, owner, &token).await {
                Ok(made) => (made, brings),
                // Somebody else opens it at the same time, and brings the program.
                Err(error) => match self.cluster.get::<Pod>(id.as_str()).await? {
                    Some(theirs) if belongs_to(&theirs, &owner.uid) => (theirs, false),
                    _ => return Err(error),
                },
            };
            if is_open(&pod) {
                return Ok(());
            }
            let uid = pod.metadata.uid.unwrap_or_default();
            let tell = &Teller::silent();
            let starting =
                Starting { inner: self, pod: id.as_str(), uid: &uid, tell, phase: Phase::Creating, given_up, brings };
            let opened = tokio::try_join!(starting.wait(starts), self.until_open(opens, &id, &uid, given_up));
            let reason = match opened {
                Ok(_) => return Ok(()),
                Err(NotStarted::Failed(error)) => return Err(self.of_gate(&id, error).await),
                Err(NotStarted::Taken(reason)) => reason,
            };
            if tries >= TAKEN {
                return Err(failed(format!("open the gate `{id}`"), format!("{reason}; {TAKEN} were made")));
            }
            self.end_pod(id.as_str(), &uid).await?;
        }
        Ok(())
    }

    /// Waits until a gate listens. One that ends instead never will.
    async fn until_open(
        &self,
        mut waiter: Waiter,
        id: &SandboxId,
        uid: &str,
        given_up: &CancellationToken,
    ) -> Result<(), NotStarted> {
        let limit = self.options.start_within;
        let opened = async {
            loop {
                let pod = match waiter.next().await {
                    Seen::Pod(pod) if pod.metadata.uid.as_deref() == Some(uid) => pod,
                    Seen::Absent => return Err(NotStarted::Taken("its pod was removed".to_owned())),
                    Seen::Pod(_) | Seen::Nothing => continue,
                };
                if is_open(&pod) {
                    return Ok(());
                }
                if let Some(reason) = ended(&pod) {
                    return Err(ProviderError::Start { reason, log: String::new() }.into());
                }
            }
        };
        tokio::select! {
            opened = timeout(limit, opened) => opened.unwrap_or_else(|_| {
                let action = format!("opening the gate `{id}`");
                Err(ProviderError::Timeout { action, limit }.into())
            }),
            () = given_up.cancelled() => Err(self::given_up().into()),
        }
    }

    /// An error about the pod of a gate, with what it wrote last.
    async fn of_gate(&self, id: &SandboxId, error: ProviderError) -> ProviderError {
        let ProviderError::Start { reason, mut log } = error else { return error };
        if log.is_empty() {
            log = self.last_lines(id.as_str()).await;
        }
        ProviderError::Start { reason: format!("its gate `{id}` does not open: {reason}"), log }
    }

    /// The gate of a record, if it is there.
    async fn gate(&self, record: &Record) -> Result<Option<Pod>, ProviderError> {
        let found = self.cluster.get::<Pod>(&names::gate(record.id.as_str())).await?;
        Ok(found.filter(|gate| belongs_to(gate, &record.uid)))
    }

    /// Removes the gate of a record, if it has one. Returns when it is gone.
    pub(crate) async fn remove_gate(&self, record: &Record) -> Result<(), ProviderError> {
        if record.gate.is_none() {
            return Ok(());
        }
        let Some(gate) = self.gate(record).await? else { return Ok(()) };
        let name = names::gate(record.id.as_str());
        self.end_pod(&name, gate.metadata.uid.as_deref().unwrap_or_default()).await
    }

    /// A sandbox that cannot reach its gate says so.
    pub(crate) async fn look_at_gate(&self, record: &Record, sandbox: &mut Sandbox) -> Result<(), ProviderError> {
        if record.gate.is_some() && sandbox.state == SandboxState::Running {
            tell(record, sandbox, self.gate(record).await?.as_ref());
        }
        Ok(())
    }

    /// The same for many at once, of which each has its record.
    pub(crate) async fn look_at_gates(&self, sandboxes: &mut [(Record, Sandbox)]) -> Result<(), ProviderError> {
        if sandboxes.iter().all(|(record, _)| record.gate.is_none()) {
            return Ok(());
        }
        let selector = format!("{}={},{}={}", names::APP.0, names::APP.1, names::ROLE, names::GATE);
        let gates = self.cluster.list::<Pod>(&selector).await?;
        let gates: HashMap<String, Pod> =
            gates.into_iter().filter_map(|gate| Some((gate.metadata.name.clone()?, gate))).collect();
        for (record, sandbox) in sandboxes.iter_mut().filter(|(record, _)| record.gate.is_some()) {
            let gate = gates.get(&names::gate(record.id.as_str())).filter(|gate| belongs_to(gate, &record.uid));
            tell(record, sandbox, gate);
        }
        Ok(())
    }
}

fn tell(record: &Record, sandbox: &mut Sandbox, gate: Option<&Pod>) {
    if sandbox.state == SandboxState::Running
        && let Some(trouble) = trouble(record, gate)
    {
        sandbox.state = SandboxState::Unknown(trouble);
    }
}

/// Why a gate lets nothing through, and will not by itself. What ends in a pod that is there is started again by its node.
fn trouble(record: &Record, gate: Option<&Pod>) -> Option<String> {
    let name = names::gate(record.id.as_str());
    let hint = "so no host is reached by its name; resume the sandbox to open it again";
    let Some(pod) = gate else { return Some(format!("its gate `{name}` is gone, {hint}")) };
    let is_left_to_its_node = !matches!(pod.status.as_ref().and_then(|status| status.phase.as_deref()), Some("Failed"));
    match view::stage(pod) {
        Stage::Runs | Stage::Waits(_) | Stage::Brings => None,
        Stage::Ended(_) | Stage::Failed(_) if is_left_to_its_node => None,
        Stage::Loops(reason) => Some(format!("its gate `{name}` ends again and again ({reason}), {hint}")),
        Stage::Ended(reason) | Stage::Failed(reason) | Stage::Taken(reason) | Stage::Unknown(reason) => {
            Some(format!("its gate `{name}` has ended ({reason}), {hint}"))
        }
    }
}

/// Whether a gate listens.
fn is_open(pod: &Pod) -> bool {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    pod.metadata.deletion_timestamp.is_none() && statuses.into_iter().flatten().any(|status| status.ready)
}

/// How a container of a gate ended that should not have, if one did. Its node starts it again.
fn ended(pod: &Pod) -> Option<String> {
    let told = pod.status.as_ref()?;
    let all = told.init_container_statuses.iter().chain(&told.container_statuses).flatten();
    let last = |one: &ContainerStatus| {
        let states = [one.state.as_ref(), one.last_state.as_ref()];
        states.into_iter().flatten().find_map(|state| state.terminated.clone())
    };
    all.filter_map(|one| Some((one.name == BRINGER, last(one)?)))
        .find(|(brings, ended)| !brings || ended.exit_code != 0)
        .map(|(brings, ended)| if brings { view::of_bringer(&ended) } else { view::words_of_end(&ended) })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn record() -> Record {
        let annotations = json!({"gloveport/session": "s", "gloveport/backend": "h/b", "gloveport/gate": "10.96.0.7"});
        let meta = json!({"name": "openhands-runtime-s", "labels": {"gloveport/role": "sandbox"},
            "annotations": annotations});
        Record::of(&serde_json::from_value(meta).unwrap()).unwrap()
    }

    fn gate(status: &Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "gloveport-gate-s"}, "status": status})).unwrap()
    }

    fn container(name: &str, ready: bool, state: &Value, last: &Value) -> Value {
        json!([{"name": name, "image": "", "imageID": "", "ready": ready, "restartCount": 1, "state": state,
            "lastState": last}])
    }

    fn ended_with(code: i32) -> Value {
        json!({"terminated": {"exitCode": code, "reason": "Error"}})
    }

    #[test]
    fn a_gate_that_is_not_started_again_is_told_with_what_to_do() {
        let of = |gate: Option<&Pod>| trouble(&record(), gate).unwrap_or_default();
        let running = |state: &Value| {
            gate(&json!({"phase": "Running", "containerStatuses": container("runtime", true, state, &json!({}))}))
        };
        let gone = of(None);
        assert!(gone.contains("`gloveport-gate-s` is gone") && gone.contains("resume"), "{gone}");
        // What its node starts again is no trouble.
        for state in [json!({"running": {}}), ended_with(137), json!({"waiting": {"reason": "ContainerCreating"}})] {
            assert_eq!(of(Some(&running(&state))), "", "{state}");
        }
        let loops = of(Some(&running(&json!({"waiting": {"reason": "CrashLoopBackOff"}}))));
        assert!(loops.contains("again and again"), "{loops}");
        let evicted = of(Some(&gate(&json!({"phase": "Failed", "reason": "Evicted", "message": "disk"}))));
        assert!(evicted.contains("has ended (Evicted: disk)") && evicted.contains("resume"), "{evicted}");
    }

    #[test]
    fn a_gate_is_open_when_it_listens_and_will_not_be_when_it_ends() {
        let of = |name: &str, ready, state: &Value, last: &Value| {
            let list = if name == BRINGER { "initContainerStatuses" } else { "containerStatuses" };
            let pod = gate(&json!({"phase": "Running", list: container(name, ready, state, last)}));
            (is_open(&pod), ended(&pod))
        };
        let (runs, nothing) = (json!({"running": {}}), json!({}));
        assert_eq!(of("runtime", true, &runs, &nothing), (true, None));
        assert_eq!(of("runtime", false, &runs, &nothing), (false, None));
        assert_eq!(of(BRINGER, false, &runs, &nothing), (false, None));
        assert_eq!(of(BRINGER, false, &ended_with(0), &nothing), (false, None));
        let (_, reason) = of(BRINGER, false, &json!({"waiting": {"reason": "CrashLoopBackOff"}}), &ended_with(127));
        assert!(reason.as_deref().is_some_and(|reason| reason.contains("no shell")), "{reason:?}");
        let (_, reason) = of("runtime", false, &runs, &ended_with(2));
        assert!(reason.as_deref().is_some_and(|reason| reason.contains("exit code 2")), "{reason:?}");
    }
}
