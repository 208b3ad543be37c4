//! Names, labels, annotations, ports (kubernetes-runtime 1, 3).

use std::collections::BTreeMap;

use gloveport_provider::{ProviderError, SandboxId, SessionId};
use sha2::{Digest as _, Sha256};

/// What the names of all objects begin with.
pub(crate) const PREFIX: &str = "openhands-runtime-";
/// The label by which all objects are found, and its value.
pub(crate) const APP: (&str, &str) = ("app", "openhands-runtime");
/// The label with the session, or with a hash of it where that is no value of a label.
pub(crate) const SESSION_LABEL: &str = "session";
/// The label that says what an object is for.
pub(crate) const ROLE: &str = "gloveport/role";
/// The role of what belongs to a sandbox.
pub(crate) const SANDBOX: &str = "sandbox";
/// The role of pods that wait for a session, and of what belongs to them.
pub(crate) const WARM: &str = "warm";
/// The role of what owns those of a backend.
pub(crate) const POOL_ROLE: &str = "pool";
/// The role of copies of workspaces that somebody has asked for.
pub(crate) const SNAPSHOT_ROLE: &str = "snapshot";
/// The role of those that are made for a fork, and are gone with its making.
pub(crate) const FORK_ROLE: &str = "fork";
/// The role of the pods through which sandboxes reach hosts by name.
pub(crate) const GATE: &str = "gate";
/// The role of what belongs to a backend.
pub(crate) const BACKEND_ROLE: &str = "backend";
/// The label that the pods of a sandbox have, and by which services and policies choose them.
pub(crate) const UNIT: &str = "gloveport/unit";
/// The label of the pods of a sandbox whose network policy is its own, and its value: policies of the namespace that let
/// sandboxes out leave these alone.
pub(crate) const CLOSED: (&str, &str) = ("gloveport/network", "own");
/// The label of a pod that waits: the id of the backend whose pool it belongs to.
pub(crate) const POOL: &str = "gloveport/pool";
/// The label of a pod that waits: sandboxes that are made alike have the same.
pub(crate) const ALIKE: &str = "gloveport/alike";
/// Who is told as the one that set a field.
pub(crate) const MANAGER: &str = "gloveport";

/// The session.
pub(crate) const SESSION: &str = "gloveport/session";
/// The backend that made it: `PLACE/ID`.
pub(crate) const BACKEND: &str = "gloveport/backend";
/// Whether it outlives that backend: `true` or `false`.
pub(crate) const KEEP: &str = "gloveport/keep";
/// How long it lives, in seconds.
pub(crate) const TIME_TO_LIVE: &str = "gloveport/time-to-live";
/// Ports in the pod by name, as JSON.
pub(crate) const PORTS: &str = "gloveport/ports";
/// The labels that the caller asked for, as JSON: not all of them can be labels of objects.
pub(crate) const LABELS: &str = "gloveport/labels";
/// Where the work is.
pub(crate) const WORKSPACE: &str = "gloveport/workspace";
/// The image.
pub(crate) const IMAGE: &str = "gloveport/image";
/// Whether the workspace outlives the pod: `true` or `false`.
pub(crate) const SURVIVES: &str = "gloveport/workspace-survives";
/// The word by which whoever made an object recognises it.
pub(crate) const TOKEN: &str = "gloveport/token";
/// The group of the kinds of agent-sandbox.
pub(crate) const AGENT_SANDBOX: &str = "agents.x-k8s.io";
/// Who makes the pod: absent, or [`BY_SANDBOX`].
pub(crate) const API: &str = "gloveport/api";
/// The controller of agent-sandbox, from an object `Sandbox` with the name of the record.
pub(crate) const BY_SANDBOX: &str = "sandboxes";
/// The group of the kinds by which sandboxes are started ahead and claimed.
pub(crate) const AGENT_SANDBOX_EXTENSIONS: &str = "extensions.agents.x-k8s.io";
/// Name of the `Sandbox`, where it was made before its record.
pub(crate) const SANDBOX_NAME: &str = "gloveport/sandbox";
/// Name of the pod, where it was made before its sandbox.
pub(crate) const POD_NAME: &str = "gloveport/pod";
/// Address of the service, set when all objects are there.
pub(crate) const ADDRESS: &str = "gloveport/address";
/// Address of the service of its gate, set when all objects are there.
pub(crate) const GATE_ADDRESS: &str = "gloveport/gate";
/// What the annotations of those begin with who use it; the id of the backend follows, and its value is its label.
pub(crate) const HOLDER: &str = "gloveport/holder-";

/// Port of the server in a pod.
pub(crate) const SERVER_PORT: u16 = 8080;
/// The web editor, and its port in a pod.
pub(crate) const EDITOR: (&str, u16) = ("vscode", 8081);
/// Ports for programs of the user.
pub(crate) const WORK: [(&str, u16); 2] = [("work-1", 30_082), ("work-2", 30_083)];
/// Port of a gate.
pub(crate) const GATE_PORT: u16 = 3128;
/// First port of those that a spec asks for without a number.
pub(crate) const FIRST_FREE: u16 = 30_084;

/// Name of the container in which the server runs, and of the one of a gate.
pub(crate) const CONTAINER: &str = "runtime";
/// Name of the container that brings our program.
pub(crate) const BRINGER: &str = "program";

/// Ports of a sandbox by name.
pub(crate) type Ports = BTreeMap<String, u16>;

/// Most characters of a session that is a part of names as it is: with the longest beginning and end they have 63.
const LONGEST: usize = 36;
/// What a hash stands behind that is used instead.
const HASHED: &str = "x-";

/// The id of a session's sandbox, which is the name of its pod. A session that cannot be a part of names of objects is in
/// it as a hash.
pub(crate) fn id_of(session: &SessionId) -> Result<SandboxId, ProviderError> {
    let text = session.as_str();
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let fits = text.len() <= LONGEST && text.bytes().all(allowed) && !text.ends_with('-') && !text.starts_with(HASHED);
    let part = if fits { text.to_owned() } else { format!("{HASHED}{}", hash(text)) };
    Ok(SandboxId::new(format!("{PREFIX}{part}"))?)
}

/// The name of a pod that waits for a session.
pub(crate) fn warm_id(random: &str) -> Result<SandboxId, ProviderError> {
    Ok(SandboxId::new(format!("gloveport-warm-{}", random.get(..16).unwrap_or(random)))?)
}

/// Name of what owns the pods that a backend has started ahead.
pub(crate) fn pool(own: &str) -> String {
    format!("gloveport-pool-{own}")
}

/// The session as the value of a label.
pub(crate) fn session_label(session: &SessionId) -> String {
    if is_label_value(session.as_str()) { session.to_string() } else { hash(session.as_str()) }
}

fn hash(text: &str) -> String {
    gloveport_ids::hex(&Sha256::digest(text)[..10])
}

/// Whether a text can be the value of a label.
pub(crate) fn is_label_value(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let ends = |byte: Option<u8>| byte.is_none_or(|byte| byte.is_ascii_alphanumeric());
    text.len() <= 63 && text.bytes().all(inner) && ends(text.bytes().next()) && ends(text.bytes().last())
}

/// Whether a text can be the key of a label: a name, which may stand behind a domain and `/`.
pub(crate) fn is_label_key(text: &str) -> bool {
    let (domain, name) = text.split_once('/').map_or((None, text), |(domain, name)| (Some(domain), name));
    let domain_fits = domain.is_none_or(|domain| {
        let part = |part: &str| {
            let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            !part.is_empty() && part.bytes().all(allowed) && !part.starts_with('-') && !part.ends_with('-')
        };
        domain.len() <= 253 && domain.split('.').all(part)
    });
    !name.is_empty() && is_label_value(name) && domain_fits
}

/// Whether a label is one that the provider sets itself.
pub(crate) fn is_ours(key: &str) -> bool {
    key == APP.0 || key == SESSION_LABEL || key.starts_with("gloveport/")
}

/// A short text that differs where these texts differ.
pub(crate) fn digest(texts: &[&str]) -> String {
    let lengths = texts.iter().map(|text| format!("{}:{text}", text.len()));
    hash(&lengths.collect::<String>())
}

/// Name of the service of a sandbox.
pub(crate) fn service(id: &str) -> String {
    format!("{id}-svc")
}

/// Name of the service of its editor.
pub(crate) fn editor_service(id: &str) -> String {
    format!("{id}-svc-code")
}

/// Name of the ingress of its editor.
pub(crate) fn ingress(id: &str) -> String {
    format!("{id}-ingress-code")
}

/// Name of its gate, of the gate's service and of its policy. No sandbox has a pod of such a name.
pub(crate) fn gate(id: &str) -> String {
    format!("gloveport-gate-{}", id.strip_prefix(PREFIX).unwrap_or(id))
}

/// Name of its volume claim.
pub(crate) fn claim(id: &str) -> String {
    format!("{id}-pvc")
}

/// Name of the secret with its key.
pub(crate) fn secret(id: &str) -> String {
    format!("{id}-key")
}

/// Host under which its editor is reachable.
pub(crate) fn host(id: &str, domain: &str) -> String {
    format!("{}.{domain}", id.strip_prefix(PREFIX).unwrap_or(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_has_names_that_objects_may_have() {
        let id = |session: &str| id_of(&SessionId::new(session).unwrap()).unwrap().to_string();
        assert_eq!(id("conv-1"), "openhands-runtime-conv-1");
        let fits = "a".repeat(36);
        assert_eq!(id(&fits), format!("openhands-runtime-{fits}"));
        let hashed = ["A", "a_b", "a.b", "a-", "x-0123456789abcdef0123", &"a".repeat(37), &"a".repeat(128)];
        let ids: std::collections::BTreeSet<String> = hashed.into_iter().map(id).collect();
        assert_eq!(ids.len(), hashed.len());
        for id in ids {
            assert!(id.starts_with("openhands-runtime-x-") && editor_service(&id).len() <= 63, "{id}");
            assert!(id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'), "{id}");
        }
        assert_eq!(editor_service(&id(&fits)).len(), 63);
        assert_eq!((gate(&id("conv-1")).as_str(), gate(&id(&fits)).len()), ("gloveport-gate-conv-1", 51));
    }

    #[test]
    fn labels_are_what_a_cluster_takes_as_labels() {
        for value in ["", "a", "A.b_c-9", &"a".repeat(63)] {
            assert!(is_label_value(value), "{value}");
        }
        for value in ["-a", "a-", "a b", "ä", "a/b", &"a".repeat(64)] {
            assert!(!is_label_value(value), "{value}");
        }
        for key in ["team", "example.org/team", "a-b/c_d"] {
            assert!(is_label_key(key), "{key}");
        }
        for key in ["", "/a", "a/", "a/b/c", "Ex/a", ".a/b", "a b"] {
            assert!(!is_label_key(key), "{key}");
        }
        assert!(is_ours("gloveport/unit") && is_ours("app") && !is_ours("team"));
        let session = SessionId::new("a.").unwrap();
        assert_eq!(session_label(&session).len(), 20);
    }
}
