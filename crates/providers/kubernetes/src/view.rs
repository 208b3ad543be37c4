//! A record and its pod as a sandbox.

use std::collections::BTreeMap;

use gloveport_provider::{
    Lifetime, Restarts, Sandbox, SandboxState,
    container::{ABANDONED, EXPIRED, UNUSED},
};
use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus, Pod};

use crate::{
    fault::{NAME, cut},
    names::{BRINGER, CONTAINER},
    record::{Maker, Record},
};

/// Reasons of pods that ended because of their node, and not by themselves.
const NODE: [&str; 11] = [
    "Evicted",
    "NodeLost",
    "NodeShutdown",
    "Shutdown",
    "Terminated",
    "Preempting",
    "Preempted",
    "NodeAffinity",
    "UnexpectedAdmissionError",
    "OutOfcpu",
    "OutOfmemory",
];
/// Reasons of containers that wait for something that does not come by itself.
const STUCK: [&str; 6] = [
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
];

/// How far a pod is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It waits for a node, a volume or an image; what it waits for.
    Waits(String),
    /// The container that brings our program runs.
    Brings,
    /// Its server has been started.
    Runs,
    /// Its server ended again and again.
    Loops(String),
    /// It has ended by itself.
    Ended(String),
    /// It has failed.
    Failed(String),
    /// Its node has ended it: another pod can go on with its workspace.
    Taken(String),
    /// Nobody can tell.
    Unknown(String),
}

fn container<'a>(list: Option<&'a Vec<ContainerStatus>>, name: &str) -> Option<&'a ContainerStatus> {
    list.into_iter().flatten().find(|status| status.name == name)
}

fn text(reason: Option<&str>, message: Option<&str>) -> String {
    match (reason.unwrap_or_default(), message.unwrap_or_default()) {
        (reason, "") => reason.to_owned(),
        ("", message) => cut(message),
        (reason, message) => format!("{reason}: {}", cut(message)),
    }
}

/// How far a pod is.
pub(crate) fn stage(pod: &Pod) -> Stage {
    let Some(status) = &pod.status else { return Stage::Waits(String::new()) };
    if pod.metadata.deletion_timestamp.is_some() {
        return Stage::Taken("its pod is being removed".to_owned());
    }
    let runtime = container(status.container_statuses.as_ref(), CONTAINER);
    let state = runtime.and_then(|status| status.state.as_ref());
    let why = || text(status.reason.as_deref(), status.message.as_deref());
    match status.phase.as_deref() {
        Some("Failed" | "Succeeded") => {
            let reason = status.reason.as_deref().unwrap_or_default();
            if reason == "DeadlineExceeded" {
                return Stage::Ended("its time is over".to_owned());
            }
            if NODE.contains(&reason) {
                return Stage::Taken(why());
            }
            let ended = state.and_then(|state| state.terminated.as_ref());
            let bringer = container(status.init_container_statuses.as_ref(), BRINGER);
            let not_brought = bringer
                .and_then(|bringer| bringer.state.as_ref()?.terminated.as_ref())
                .filter(|ended| ended.exit_code != 0);
            match (not_brought, ended) {
                (Some(ended), _) => Stage::Failed(of_bringer(ended)),
                (None, Some(ended)) => of_end(ended),
                (None, None) => Stage::Failed(why()),
            }
        }
        Some("Unknown") => Stage::Unknown(text(Some("its node does not answer"), status.message.as_deref())),
        Some("Running") => match state {
            Some(ContainerState { running: Some(_), .. }) => Stage::Runs,
            Some(ContainerState { terminated: Some(ended), .. }) => of_end(ended),
            Some(ContainerState { waiting: Some(waiting), .. })
                if waiting.reason.as_deref() == Some("CrashLoopBackOff") =>
            {
                Stage::Loops(restarts(pod).reasons.pop().unwrap_or_else(|| "CrashLoopBackOff".to_owned()))
            }
            _ => Stage::Waits(String::new()),
        },
        _ => before_start(pod, runtime),
    }
}

/// What a pod waits for that has not started.
fn before_start(pod: &Pod, runtime: Option<&ContainerStatus>) -> Stage {
    let Some(status) = &pod.status else { return Stage::Waits(String::new()) };
    let bringer = container(status.init_container_statuses.as_ref(), BRINGER);
    let brings = bringer.and_then(|status| status.state.as_ref()).is_some_and(|state| state.running.is_some());
    if brings {
        return Stage::Brings;
    }
    let waiting = [bringer, runtime].into_iter().flatten().find_map(|status| status.state.as_ref()?.waiting.as_ref());
    let reason = waiting.and_then(|waiting| waiting.reason.as_deref()).unwrap_or_default();
    let told = || text(Some(reason), waiting.and_then(|waiting| waiting.message.as_deref()));
    if STUCK.contains(&reason) {
        return Stage::Failed(told());
    }
    let unscheduled = status
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    match unscheduled {
        Some(condition) => Stage::Waits(text(condition.reason.as_deref(), condition.message.as_deref())),
        None if reason == "PodInitializing" => Stage::Waits(String::new()),
        None => Stage::Waits(told()),
    }
}

/// How the container that brings our program failed.
pub(crate) fn of_bringer(ended: &ContainerStateTerminated) -> String {
    let hint = match ended.exit_code {
        127 | 128 => "; the image has no shell: set `program_image` or `loader_image` in [extended.kubernetes]",
        _ => "",
    };
    let told = text(ended.reason.as_deref(), ended.message.as_deref());
    format!("the container that brings our program ended with exit code {} ({told}){hint}", ended.exit_code)
}

/// How a server ended.
fn of_end(ended: &ContainerStateTerminated) -> Stage {
    let reason = ended.reason.as_deref().unwrap_or_default();
    if reason == "OOMKilled" {
        return Stage::Failed("it used more memory than it may have (OOMKilled)".to_owned());
    }
    match i64::from(ended.exit_code) {
        EXPIRED => Stage::Ended("its time is over".to_owned()),
        UNUSED => Stage::Ended("nobody used it".to_owned()),
        ABANDONED => Stage::Ended("its backend has ended".to_owned()),
        0 | 143 => Stage::Ended("its server was told to end".to_owned()),
        137 => Stage::Failed(
            "it was killed (exit code 137), as happens when it uses more memory than it may have".to_owned(),
        ),
        code => {
            let message = ended.message.as_deref().map(|message| format!(": {}", cut(message))).unwrap_or_default();
            Stage::Failed(format!("its server ended with exit code {code} ({reason}){message}"))
        }
    }
}

/// The same for what should go on for ever.
pub(crate) fn words_of_end(ended: &ContainerStateTerminated) -> String {
    let told = text(ended.reason.as_deref(), ended.message.as_deref());
    format!("it ended with exit code {} ({told})", ended.exit_code)
}

/// How often its server was started anew, and why.
pub(crate) fn restarts(pod: &Pod) -> Restarts {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    let Some(status) = container(statuses, CONTAINER) else { return Restarts::default() };
    let last = status.last_state.as_ref().and_then(|state| state.terminated.as_ref());
    Restarts {
        count: u32::try_from(status.restart_count).unwrap_or(0),
        reasons: last.and_then(|ended| ended.reason.clone()).into_iter().collect(),
    }
}

/// What a sandbox does.
pub(crate) fn state(record: &Record, pod: Option<&Pod>) -> SandboxState {
    if record.ends {
        return SandboxState::Stopped("it is being removed".to_owned());
    }
    let Some(pod) = pod else {
        if let Maker::Controller(Some(told)) = &record.maker
            && let Some(state) = told.without_pod()
        {
            return state;
        }
        return match (&record.address, record.survives) {
            (None, _) => SandboxState::Pending,
            (Some(_), true) => SandboxState::Paused,
            (Some(_), false) => SandboxState::Stopped("its pod is gone, and its files with it".to_owned()),
        };
    };
    match stage(pod) {
        Stage::Waits(_) | Stage::Brings => SandboxState::Pending,
        Stage::Runs => SandboxState::Running,
        Stage::Loops(reason) => SandboxState::CrashLooping(reason),
        Stage::Failed(reason) => SandboxState::Failed(reason),
        Stage::Taken(_) if record.survives => SandboxState::Paused,
        Stage::Ended(reason) | Stage::Taken(reason) => SandboxState::Stopped(reason),
        Stage::Unknown(reason) => SandboxState::Unknown(reason),
    }
}

/// A sandbox without what it is reached by.
pub(crate) fn sandbox(record: &Record, pod: Option<&Pod>, lifetime: Lifetime) -> Sandbox {
    Sandbox {
        id: record.id.clone(),
        session_id: record.session.clone(),
        provider: NAME.to_owned(),
        state: state(record, pod),
        url: None,
        session_key: None,
        urls: BTreeMap::new(),
        ports: record.ports.clone(),
        headers: BTreeMap::new(),
        labels: record.labels.clone(),
        image: record.image.clone(),
        workspace: record.workspace.clone(),
        lifetime,
        created: record.created,
        expires: record.expires(),
        restarts: pod.map(restarts).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::sandbox_object::Told;

    fn pod(status: &Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "p"}, "status": status})).unwrap()
    }

    fn terminated(code: i32, reason: &str) -> Value {
        json!({"phase": "Failed", "containerStatuses": [container(&json!({"terminated": {"exitCode": code, "reason": reason}}))]})
    }

    fn container(state: &Value) -> Value {
        json!({"name": "runtime", "image": "", "imageID": "", "ready": false, "restartCount": 2, "state": state,
               "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}})
    }

    fn bringer(state: &Value) -> Value {
        json!({"phase": "Pending", "initContainerStatuses": [
            {"name": "program", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state}]})
    }

    #[test]
    fn the_stage_of_a_pod_is_told_from_its_status() {
        let waiting = |reason: &str| json!({"waiting": {"reason": reason, "message": "m"}});
        for (status, expected) in [
            (json!({"phase": "Pending"}), Stage::Waits(String::new())),
            (
                json!({"phase": "Pending", "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}]}),
                Stage::Waits("Unschedulable: 0/1 nodes".to_owned()),
            ),
            (bringer(&json!({"running": {}})), Stage::Brings),
            (bringer(&waiting("ImagePullBackOff")), Stage::Failed("ImagePullBackOff: m".to_owned())),
            (bringer(&waiting("ErrImagePull")), Stage::Waits("ErrImagePull: m".to_owned())),
            (json!({"phase": "Running", "containerStatuses": [container(&json!({"running": {}}))]}), Stage::Runs),
            (
                json!({"phase": "Running", "containerStatuses": [container(&waiting("CrashLoopBackOff"))]}),
                Stage::Loops("Error".to_owned()),
            ),
            (
                json!({"phase": "Failed", "reason": "Evicted", "message": "disk"}),
                Stage::Taken("Evicted: disk".to_owned()),
            ),
            (json!({"phase": "Failed", "reason": "DeadlineExceeded"}), Stage::Ended("its time is over".to_owned())),
            (terminated(80, "Error"), Stage::Ended("its time is over".to_owned())),
            (terminated(81, "Error"), Stage::Ended("nobody used it".to_owned())),
            (terminated(0, "Completed"), Stage::Ended("its server was told to end".to_owned())),
            (
                terminated(137, "OOMKilled"),
                Stage::Failed("it used more memory than it may have (OOMKilled)".to_owned()),
            ),
            (terminated(3, "Error"), Stage::Failed("its server ended with exit code 3 (Error)".to_owned())),
        ] {
            assert_eq!(stage(&pod(&status)), expected, "{status}");
        }
        let Stage::Failed(reason) = stage(&pod(&{
            let mut status = bringer(&json!({"terminated": {"exitCode": 127, "reason": "ContainerCannotRun"}}));
            status["phase"] = "Failed".into();
            status
        })) else {
            panic!("it has failed")
        };
        assert!(reason.contains("no shell") && reason.contains("program_image"), "{reason}");
    }

    #[test]
    fn a_sandbox_whose_pod_a_controller_makes_waits_for_it_unless_it_rests() {
        let meta = json!({"name": "p", "labels": {"gloveport/role": "sandbox"}, "annotations": {
            "gloveport/session": "s", "gloveport/backend": "h/b", "gloveport/address": "a", "gloveport/api": "sandboxes",
            "gloveport/workspace-survives": "true"}});
        let record = Record::of(&serde_json::from_value(meta).unwrap()).unwrap();
        assert_eq!((record.maker.clone(), state(&record, None)), (Maker::Controller(None), SandboxState::Paused));
        let with = |spec: &Value| {
            let object = json!({"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox",
                "metadata": {"name": "p", "uid": "u", "annotations": {"agents.x-k8s.io/pod-name": "q"}}, "spec": spec});
            let mut record = record.clone();
            record.learn(Some(Told::of(&serde_json::from_value(object).unwrap())));
            record
        };
        let runs = with(&json!({"operatingMode": "Running"}));
        assert_eq!((runs.pod.as_str(), state(&runs, None)), ("q", SandboxState::Pending));
        assert_eq!(state(&with(&json!({"operatingMode": "Suspended"})), None), SandboxState::Paused);
        let evicted = pod(&json!({"phase": "Failed", "reason": "Evicted"}));
        assert_eq!(state(&runs, Some(&evicted)), SandboxState::Paused);
        let failed = pod(&terminated(3, "Error"));
        assert_eq!(state(&runs, Some(&failed)).word(), "failed");
        // Of an earlier object of the same name, and of its own.
        for (uid, expected) in [("earlier", false), ("u", true)] {
            let owner = json!([{"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "name": "p", "uid": uid}]);
            let mut pod = pod(&json!({}));
            pod.metadata.owner_references = serde_json::from_value(owner).unwrap();
            assert_eq!(runs.owns(&pod), expected, "{uid}");
        }
    }

    #[test]
    fn what_its_node_has_ended_rests_if_its_workspace_is_left() {
        let record = |survives: bool, address: Option<&str>| {
            let annotations = json!({"gloveport/session": "s", "gloveport/backend": "h/b",
                "gloveport/workspace-survives": survives.to_string()});
            let mut meta = json!({"name": "p", "labels": {"gloveport/role": "sandbox"}, "annotations": annotations});
            if let Some(address) = address {
                meta["annotations"]["gloveport/address"] = address.into();
            }
            Record::of(&serde_json::from_value(meta).unwrap()).unwrap()
        };
        let evicted = pod(&json!({"phase": "Failed", "reason": "Evicted"}));
        for (survives, address, there, expected) in [
            (true, Some("10.0.0.1"), true, "paused"),
            (false, Some("10.0.0.1"), true, "stopped"),
            (true, Some("10.0.0.1"), false, "paused"),
            (false, Some("10.0.0.1"), false, "stopped"),
            (true, None, false, "pending"),
        ] {
            let found = state(&record(survives, address), there.then_some(&evicted));
            assert_eq!(found.word(), expected, "{survives} {address:?} {there}");
        }
        let running = pod(&json!({"phase": "Running", "containerStatuses": [container(&json!({"running": {}}))]}));
        let sandbox = sandbox(&record(true, Some("a")), Some(&running), Lifetime::Kept);
        assert_eq!((sandbox.state, sandbox.restarts.count), (SandboxState::Running, 2));
    }
}
