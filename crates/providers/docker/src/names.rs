//! Names, labels, ports (docker-runtime 1).

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use gloveport_provider::{ProviderError, SandboxId, SessionId};

/// What the names of containers begin with.
pub(crate) const PREFIX: &str = "openhands-runtime-";

/// The session.
pub(crate) const SESSION: &str = "gloveport.session";
/// The backend that made it: `MACHINE/ID`.
pub(crate) const BACKEND: &str = "gloveport.backend";
/// Whether it outlives that backend: `true` or `false`.
pub(crate) const KEEP: &str = "gloveport.keep";
/// When its time is over, in seconds since 1970.
pub(crate) const EXPIRES: &str = "gloveport.expires";
/// When it was made, in seconds since 1970.
pub(crate) const CREATED: &str = "gloveport.created";
/// Ports in the container by name, as JSON.
pub(crate) const PORTS: &str = "gloveport.ports";
/// Names of the labels that the caller asked for, as JSON; an image brings labels, too.
pub(crate) const LABELS: &str = "gloveport.labels";
/// Where the work is.
pub(crate) const WORKSPACE: &str = "gloveport.workspace";
/// The engine's id of the closed network that a sandbox and its gate are on.
pub(crate) const NETWORK: &str = "gloveport.network";
/// What a fork is made with again, as JSON.
pub(crate) const SETTINGS: &str = "gloveport.settings";
/// The image of a fork, which ends with it.
pub(crate) const FORK: &str = "gloveport.fork";
/// Says of a container that was started ahead that a session has it; it is told, and no label of the engine.
pub(crate) const RECORDED: &str = "gloveport.recorded";
/// The volume that has the audit log of a sandbox.
pub(crate) const AUDIT: &str = "gloveport.audit.volume";
/// The file of the machine of its backend that the log is copied to, for people, and on that volume for us.
pub(crate) const AUDIT_FILE: &str = "gloveport.audit";
/// The image by which the engine reads such a volume.
pub(crate) const IMAGE: &str = "gloveport.image";
/// What else of ours it is: absent for a sandbox.
pub(crate) const ROLE: &str = "gloveport.role";

/// The role of containers that were started ahead, those that a session has among them.
pub(crate) const WARM: &str = "warm";
/// The role of volumes whose labels say what is known of such a container.
pub(crate) const CLAIM_ROLE: &str = "claim";
/// What the names of these volumes begin with; the engine's id of the container follows.
pub(crate) const RECORD_PREFIX: &str = "gloveport-claim-";

/// The role of volumes with audit logs, and of containers that are made to read them.
pub(crate) const AUDIT_ROLE: &str = "audit";

/// Labels that the provider sets itself. Those of a session may begin as ours do: `gloveport.secrets` is one.
pub(crate) const OURS: [&str; 15] = [
    SESSION, BACKEND, KEEP, EXPIRES, CREATED, PORTS, LABELS, WORKSPACE, NETWORK, SETTINGS, FORK, RECORDED, ROLE, AUDIT,
    IMAGE,
];

/// Port of the web editor in a container.
pub(crate) const EDITOR: (&str, u16) = ("vscode", 60_001);
/// Ports for programs of the user in a container (`spec/remote-runtime-api.md` 2.2).
pub(crate) const WORK: [(&str, u16); 2] = [("work-1", 12_000), ("work-2", 12_001)];
/// First port of those that a spec asks for without a number.
pub(crate) const FIRST_FREE: u16 = 12_002;

/// The id of a session's sandbox, which is the name of its container.
pub(crate) fn id_of(session: &SessionId) -> Result<SandboxId, ProviderError> {
    SandboxId::new(format!("{PREFIX}{session}")).map_err(|_| ProviderError::Spec {
        field: "session_id".to_owned(),
        reason: format!("`{session}` is too long for the name of a container; use at most 110 characters"),
    })
}

/// The name of the gate beside a container.
pub(crate) fn gate_name(container: &str) -> String {
    format!("{container}-gate")
}

/// The ports of a sandbox by name.
pub(crate) type Ports = BTreeMap<String, u16>;

/// A time as labels tell it: seconds since 1970.
pub(crate) fn seconds(time: SystemTime) -> f64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs_f64()
}
