//! What a container may not do, beside what the engine forbids anyway.

use std::{fs, path::Path, time::Duration};

use bollard::models::{ContainerCreateBody, HealthConfig, HostConfig, Mount, MountType};
use gloveport_provider::{ProviderError, SandboxSpec, Workspace};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::fault::wrong;

/// The table of the configuration that has the keys.
const TABLE: &str = "[extended.docker]";
/// Its keys.
const KEYS: [&str; 11] = [
    "harden",
    "read_only",
    "writable",
    "cap_drop",
    "cap_add",
    "no_new_privileges",
    "seccomp",
    "pids_limit",
    "userns",
    "init",
    "health_check",
];
/// What the preset leaves of the capabilities: what root needs to own files, and to be somebody else.
const PRESET_CAPABILITIES: [&str; 7] = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID"];
/// Processes and threads that the preset allows.
const PRESET_PROCESSES: i64 = 2048;
/// Directories that are in memory where the root is read-only. Programs are built and run there.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/run"];
/// How they are mounted.
const MOUNTED: &str = "rw,exec,nosuid,nodev,mode=1777";
/// Limit of one health check, tries, and time in which a server starts.
const HEALTH_LIMIT: Duration = Duration::from_secs(5);
const HEALTH_TRIES: i64 = 3;
const HEALTH_START: Duration = Duration::from_secs(10);

/// What a container may not do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hardening {
    /// Its root is read-only. The workspace is a volume of the container then (in memory if its user is not root), and
    /// directories for temporary files are in memory.
    pub read_only: bool,
    /// More directories that it can write to: volumes that begin with what the image has there, and end with the container.
    pub writable: Vec<String>,
    /// Capabilities that it does not have.
    pub cap_drop: Vec<String>,
    /// Capabilities that it has nevertheless.
    pub cap_add: Vec<String>,
    /// No program gets more rights than its caller (`sudo` and the like do not work).
    pub no_new_privileges: bool,
    /// Which system calls it may use; `None` for what the engine says.
    pub seccomp: Option<Seccomp>,
    /// Most processes and threads.
    pub pids_limit: Option<i64>,
    /// How its users are mapped to those of the machine, as the engine names it.
    pub userns: Option<String>,
    /// The engine's own first process.
    pub init: Option<bool>,
    /// How often the engine asks the server whether it lives.
    pub health_check: Option<Duration>,
}

/// Which system calls a container may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seccomp {
    /// All.
    Unconfined,
    /// What this profile says, which is JSON.
    Profile(String),
}

/// The keys as they are written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Keys {
    harden: bool,
    read_only: Option<bool>,
    writable: Vec<String>,
    cap_drop: Option<Vec<String>>,
    cap_add: Option<Vec<String>>,
    no_new_privileges: Option<bool>,
    seccomp: Option<String>,
    pids_limit: Option<i64>,
    userns: Option<String>,
    init: Option<bool>,
    health_check: Option<f64>,
}

impl Hardening {
    /// Takes its keys out of `[extended.docker]`. `harden = true` sets what costs programs little; keys beside it win.
    pub(crate) fn take(table: &mut Map<String, Value>) -> Result<Self, ProviderError> {
        let own = KEYS.iter().filter_map(|key| Some(((*key).to_owned(), table.remove(*key)?))).collect();
        let keys = Keys::deserialize(Value::Object(own)).map_err(|error| wrong(TABLE, error))?;
        let harden = keys.harden;
        let capabilities = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let writable_paths = keys.writable.iter().all(|path| path.starts_with('/') && path.len() > 1);
        if !writable_paths {
            return Err(wrong(format!("{TABLE} writable"), "each directory must be an absolute path below /"));
        }
        if keys.pids_limit.is_some_and(|limit| limit < 1) {
            return Err(wrong(format!("{TABLE} pids_limit"), "it must be at least 1"));
        }
        let health_check = match keys.health_check {
            None => None,
            Some(seconds) if (1.0..86_400.0).contains(&seconds) => Some(Duration::from_secs_f64(seconds)),
            Some(_) => return Err(wrong(format!("{TABLE} health_check"), "it must be from 1 to 86400 seconds")),
        };
        Ok(Self {
            read_only: keys.read_only.unwrap_or(false),
            writable: keys.writable,
            // Capabilities that are named replace both lists of the preset.
            cap_add: match (&keys.cap_drop, keys.cap_add) {
                (_, Some(named)) => named,
                (None, None) if harden => capabilities(&PRESET_CAPABILITIES),
                _ => Vec::new(),
            },
            cap_drop: match keys.cap_drop {
                Some(named) => named,
                None if harden => capabilities(&["ALL"]),
                None => Vec::new(),
            },
            no_new_privileges: keys.no_new_privileges.unwrap_or(harden),
            seccomp: keys.seccomp.as_deref().map(Seccomp::read).transpose()?.flatten(),
            pids_limit: keys.pids_limit.or(harden.then_some(PRESET_PROCESSES)),
            userns: keys.userns,
            init: keys.init,
            health_check,
        })
    }

    /// What is said here is not said in `sandbox.docker_runtime_kwargs`, too.
    pub(crate) fn check(&self, kwargs: &Map<String, Value>) -> Result<(), ProviderError> {
        let security = self.no_new_privileges || self.seccomp.is_some();
        for (name, set) in [
            ("read_only", self.read_only),
            ("tmpfs", self.read_only),
            ("cap_drop", !self.cap_drop.is_empty()),
            ("cap_add", !self.cap_add.is_empty() || !self.cap_drop.is_empty()),
            ("privileged", security || !self.cap_drop.is_empty() || self.read_only),
            ("security_opt", security),
            ("userns_mode", self.userns.is_some()),
            ("init", self.init.is_some()),
        ] {
            if set && kwargs.contains_key(name) {
                let reason = format!("it would undo what {TABLE} says; leave one of them out");
                return Err(wrong(format!("sandbox.docker_runtime_kwargs.{name}"), reason));
            }
        }
        Ok(())
    }

    /// Puts it into what the engine is asked to make. The workspace comes with whether the server works as root.
    pub(crate) fn apply(
        &self,
        spec: &SandboxSpec,
        (workspace, is_root): (&str, bool),
        health: Option<Vec<String>>,
        body: &mut ContainerCreateBody,
        host: &mut HostConfig,
    ) {
        let mut own = (self.read_only && spec.workspace == Workspace::Temporary).then_some(workspace);
        if self.read_only {
            host.readonly_rootfs = Some(true);
            // A new volume belongs to root.
            let in_memory = TEMPORARY.into_iter().chain(own.take_if(|_| !is_root));
            host.tmpfs = Some(in_memory.map(|path| (path.to_owned(), MOUNTED.to_owned())).collect());
        }
        let volumes = own.into_iter().chain(self.writable.iter().map(String::as_str)).map(|target| Mount {
            typ: Some(MountType::VOLUME),
            target: Some(target.to_owned()),
            ..Mount::default()
        });
        host.mounts.get_or_insert_default().extend(volumes);
        if !self.cap_drop.is_empty() {
            host.cap_drop = Some(self.cap_drop.clone());
        }
        if !self.cap_add.is_empty() {
            host.cap_add = Some(self.cap_add.clone());
        }
        let mut security = Vec::new();
        if self.no_new_privileges {
            security.push("no-new-privileges".to_owned());
        }
        match &self.seccomp {
            None => {}
            Some(Seccomp::Unconfined) => security.push("seccomp=unconfined".to_owned()),
            Some(Seccomp::Profile(profile)) => security.push(format!("seccomp={profile}")),
        }
        if !security.is_empty() {
            host.security_opt = Some(security);
        }
        // What a session asks for wins.
        host.pids_limit = host.pids_limit.or(self.pids_limit);
        host.userns_mode.clone_from(&self.userns);
        host.init = self.init;
        if let (Some(every), Some(test)) = (self.health_check, health) {
            let nanoseconds = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
            body.healthcheck = Some(HealthConfig {
                test: Some(["CMD".to_owned()].into_iter().chain(test).collect()),
                interval: Some(nanoseconds(every)),
                timeout: Some(nanoseconds(HEALTH_LIMIT)),
                retries: Some(HEALTH_TRIES),
                start_period: Some(nanoseconds(HEALTH_START)),
                ..HealthConfig::default()
            });
        }
    }
}

impl Seccomp {
    /// `default`, `unconfined`, or the path of a profile.
    fn read(text: &str) -> Result<Option<Self>, ProviderError> {
        let field = || format!("{TABLE} seccomp");
        match text {
            "default" => Ok(None),
            "unconfined" => Ok(Some(Self::Unconfined)),
            path => {
                let profile = fs::read_to_string(Path::new(path)).map_err(|error| {
                    let known = "it is `default`, `unconfined`, or the file of a profile";
                    wrong(field(), format!("{known}, and `{path}` cannot be read: {error}"))
                })?;
                match serde_json::from_str::<Value>(&profile) {
                    Ok(Value::Object(_)) => Ok(Some(Self::Profile(profile))),
                    Ok(_) => Err(wrong(field(), format!("`{path}` is no profile: it is not a JSON object"))),
                    Err(error) => Err(wrong(field(), format!("`{path}` is no profile: {error}"))),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn take(keys: &Value) -> Result<Hardening, ProviderError> {
        Hardening::take(&mut keys.as_object().unwrap().clone())
    }

    #[test]
    fn nothing_is_hardened_unless_it_is_asked_for() {
        let mut table = json!({"binary": "copy", "harden": false}).as_object().unwrap().clone();
        assert_eq!(Hardening::take(&mut table).unwrap(), Hardening::default());
        assert_eq!(Value::Object(table), json!({"binary": "copy"}));
    }

    #[test]
    fn the_preset_gives_way_to_keys_beside_it() {
        let preset = take(&json!({"harden": true})).unwrap();
        assert_eq!(preset.cap_drop, ["ALL"]);
        assert_eq!(preset.cap_add, PRESET_CAPABILITIES);
        assert!(preset.no_new_privileges && !preset.read_only);
        assert_eq!(preset.pids_limit, Some(PRESET_PROCESSES));
        let keys = json!({"harden": true, "cap_drop": ["NET_RAW"], "no_new_privileges": false, "pids_limit": 7});
        let changed = take(&keys).unwrap();
        assert_eq!((changed.cap_drop, changed.cap_add), (vec!["NET_RAW".to_owned()], Vec::new()));
        assert_eq!((changed.no_new_privileges, changed.pids_limit), (false, Some(7)));
    }

    #[test]
    fn wrong_values_are_refused_with_their_key() {
        for (keys, part) in [
            (json!({"seccomp": "/no/such/file"}), "/no/such/file"),
            (json!({"seccomp": "/proc/self/status"}), "is no profile"),
            (json!({"writable": ["home"]}), "absolute path"),
            (json!({"pids_limit": 0}), "at least 1"),
            (json!({"health_check": 0}), "from 1 to"),
            (json!({"harden": "yes"}), "boolean"),
        ] {
            let error = take(&keys).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("[extended.docker]"), "{keys}: {error}");
        }
        let hardening = take(&json!({"harden": true})).unwrap();
        for name in ["privileged", "cap_add", "security_opt"] {
            let kwargs = json!({ name: true }).as_object().unwrap().clone();
            assert!(hardening.check(&kwargs).unwrap_err().to_string().contains(name));
            Hardening::default().check(&kwargs).unwrap();
        }
    }
}
