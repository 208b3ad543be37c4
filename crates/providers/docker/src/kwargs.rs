//! `sandbox.docker_runtime_kwargs`: options of containers by the names of the Docker SDK for Python (docker-runtime 5).

use std::collections::HashMap;

use bollard::models::{ContainerCreateBody, DeviceMapping, HostConfig, ResourcesUlimits};
use gloveport_provider::ProviderError;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::fault::wrong;

/// The key of the configuration.
const KEY: &str = "sandbox.docker_runtime_kwargs";

/// What the provider sets itself.
const OURS: [&str; 14] = [
    "command",
    "detach",
    "device_requests",
    "entrypoint",
    "environment",
    "image",
    "labels",
    "mounts",
    "name",
    "ports",
    "stdin_open",
    "tty",
    "volumes",
    "working_dir",
];

/// Puts one option into what the engine is asked to make.
type Put = fn(&mut ContainerCreateBody, &mut HostConfig, &Value) -> Result<(), String>;

macro_rules! options {
    ($($name:literal => |$body:ident, $host:ident, $value:ident| $put:expr,)+) => {
        /// All options that are known.
        const OPTIONS: &[(&str, Put)] = &[
            $(($name, |$body: &mut ContainerCreateBody, $host: &mut HostConfig, $value: &Value| {
                // Each option touches one of the two.
                let _ = (&$body, &$host);
                $put;
                Ok(())
            }),)+
        ];
    };
}

options! {
    "auto_remove" => |body, host, value| host.auto_remove = Some(read(value)?),
    "blkio_weight" => |body, host, value| host.blkio_weight = Some(read(value)?),
    "cap_add" => |body, host, value| host.cap_add = Some(read(value)?),
    "cap_drop" => |body, host, value| host.cap_drop = Some(read(value)?),
    "cgroup_parent" => |body, host, value| host.cgroup_parent = Some(read(value)?),
    "cpu_period" => |body, host, value| host.cpu_period = Some(read(value)?),
    "cpu_quota" => |body, host, value| host.cpu_quota = Some(read(value)?),
    "cpu_shares" => |body, host, value| host.cpu_shares = Some(read(value)?),
    "cpuset_cpus" => |body, host, value| host.cpuset_cpus = Some(read(value)?),
    "cpuset_mems" => |body, host, value| host.cpuset_mems = Some(read(value)?),
    "device_cgroup_rules" => |body, host, value| host.device_cgroup_rules = Some(read(value)?),
    "devices" => |body, host, value| host.devices = Some(devices(value)?),
    "dns" => |body, host, value| host.dns = Some(read(value)?),
    "dns_opt" => |body, host, value| host.dns_options = Some(read(value)?),
    "dns_search" => |body, host, value| host.dns_search = Some(read(value)?),
    "domainname" => |body, host, value| body.domainname = Some(read(value)?),
    "extra_hosts" => |body, host, value| host.extra_hosts = Some(hosts(value)?),
    "group_add" => |body, host, value| host.group_add = Some(read(value)?),
    "hostname" => |body, host, value| body.hostname = Some(read(value)?),
    "init" => |body, host, value| host.init = Some(read(value)?),
    "ipc_mode" => |body, host, value| host.ipc_mode = Some(read(value)?),
    "mem_limit" => |body, host, value| host.memory = Some(bytes(value)?),
    "mem_reservation" => |body, host, value| host.memory_reservation = Some(bytes(value)?),
    "mem_swappiness" => |body, host, value| host.memory_swappiness = Some(read(value)?),
    "memswap_limit" => |body, host, value| host.memory_swap = Some(bytes(value)?),
    "nano_cpus" => |body, host, value| host.nano_cpus = Some(read(value)?),
    "network" => |body, host, value| host.network_mode = Some(read(value)?),
    "network_mode" => |body, host, value| host.network_mode = Some(read(value)?),
    "oom_kill_disable" => |body, host, value| host.oom_kill_disable = Some(read(value)?),
    "oom_score_adj" => |body, host, value| host.oom_score_adj = Some(read(value)?),
    "pid_mode" => |body, host, value| host.pid_mode = Some(read(value)?),
    "pids_limit" => |body, host, value| host.pids_limit = Some(read(value)?),
    "privileged" => |body, host, value| host.privileged = Some(read(value)?),
    "read_only" => |body, host, value| host.readonly_rootfs = Some(read(value)?),
    "runtime" => |body, host, value| host.runtime = Some(read(value)?),
    "security_opt" => |body, host, value| host.security_opt = Some(read(value)?),
    "shm_size" => |body, host, value| host.shm_size = Some(bytes(value)?),
    "stop_signal" => |body, host, value| body.stop_signal = Some(read(value)?),
    "storage_opt" => |body, host, value| host.storage_opt = Some(read(value)?),
    "sysctls" => |body, host, value| host.sysctls = Some(read(value)?),
    "tmpfs" => |body, host, value| host.tmpfs = Some(read(value)?),
    "ulimits" => |body, host, value| host.ulimits = Some(ulimits(value)?),
    "user" => |body, host, value| body.user = Some(read(value)?),
    "userns_mode" => |body, host, value| host.userns_mode = Some(read(value)?),
    "uts_mode" => |body, host, value| host.uts_mode = Some(read(value)?),
    "volume_driver" => |body, host, value| host.volume_driver = Some(read(value)?),
    "volumes_from" => |body, host, value| host.volumes_from = Some(read(value)?),
}

/// Whether all options are known and have values that can be understood.
pub(crate) fn check(kwargs: &Map<String, Value>) -> Result<(), ProviderError> {
    apply(kwargs, &mut ContainerCreateBody::default(), &mut HostConfig::default())
}

/// Puts all options into what the engine is asked to make.
pub(crate) fn apply(
    kwargs: &Map<String, Value>,
    body: &mut ContainerCreateBody,
    host: &mut HostConfig,
) -> Result<(), ProviderError> {
    for (name, value) in kwargs {
        if OURS.contains(&name.as_str()) {
            return Err(wrong(format!("{KEY}.{name}"), "the runtime sets it itself; leave it out"));
        }
        let Some((_, put)) = OPTIONS.iter().find(|(known, _)| known == name) else {
            let known: Vec<&str> = OPTIONS.iter().map(|(known, _)| *known).collect();
            return Err(wrong(format!("{KEY}.{name}"), format!("it is not known; there are {}", known.join(", "))));
        };
        put(body, host, value).map_err(|reason| wrong(format!("{KEY}.{name}"), reason))?;
    }
    Ok(())
}

fn read<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    T::deserialize(value).map_err(|error| error.to_string())
}

/// A number of bytes, or a text with a unit: `512m`, `4G`.
pub(crate) fn bytes(value: &Value) -> Result<i64, String> {
    if let Some(number) = value.as_i64() {
        return Ok(number);
    }
    let wrong = || "it must be a number of bytes, or one with a unit such as \"512m\" or \"4G\"".to_owned();
    let text = value.as_str().ok_or_else(wrong)?.trim().to_ascii_lowercase();
    let text = text.strip_suffix('b').unwrap_or(&text);
    let (digits, shift) = match text.chars().last() {
        Some('k') => (&text[..text.len() - 1], 10),
        Some('m') => (&text[..text.len() - 1], 20),
        Some('g') => (&text[..text.len() - 1], 30),
        Some('t') => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    let number: i64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

/// `["/dev/x:/dev/y:rwm", "/dev/z"]`.
fn devices(value: &Value) -> Result<Vec<DeviceMapping>, String> {
    let all: Vec<String> = read(value)?;
    let device = |text: String| {
        let mut parts = text.split(':').map(str::to_owned);
        let on_host = parts.next();
        let inside = parts.next().or_else(|| on_host.clone());
        DeviceMapping {
            path_on_host: on_host,
            path_in_container: inside,
            cgroup_permissions: Some(parts.next().unwrap_or_else(|| "rwm".to_owned())),
        }
    };
    Ok(all.into_iter().map(device).collect())
}

/// `{"name": "address"}` or `["name:address"]`.
fn hosts(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::Object(_) => {
            let table: HashMap<String, String> = read(value)?;
            Ok(table.into_iter().map(|(name, address)| format!("{name}:{address}")).collect())
        }
        _ => read(value),
    }
}

/// `[{"Name": "nofile", "Soft": 1024, "Hard": 2048}]`, in either case of letters.
fn ulimits(value: &Value) -> Result<Vec<ResourcesUlimits>, String> {
    let all: Vec<Map<String, Value>> = read(value)?;
    let limit = |table: Map<String, Value>| {
        let member = |name: &str| table.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        let number = |name: &str| member(name).map(read).transpose();
        let name = member("name").and_then(Value::as_str).ok_or("a limit has no name")?;
        Ok(ResourcesUlimits { name: Some(name.to_owned()), soft: number("soft")?, hard: number("hard")? })
    };
    all.into_iter().map(limit).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn applied(kwargs: Value) -> Result<(ContainerCreateBody, HostConfig), String> {
        let (mut body, mut host) = Default::default();
        let Value::Object(kwargs) = kwargs else { panic!("no table") };
        apply(&kwargs, &mut body, &mut host).map_err(|error| error.to_string())?;
        Ok((body, host))
    }

    #[test]
    fn options_have_the_names_of_the_sdk() {
        let (body, host) = applied(json!({
            "mem_limit": "4G", "memswap_limit": "4g", "cpu_period": 100_000, "cpu_quota": 50_000, "shm_size": 1024,
            "oom_kill_disable": false, "hostname": "h", "extra_hosts": {"a": "1.2.3.4"}, "cap_drop": ["ALL"],
            "devices": ["/dev/fuse"], "ulimits": [{"Name": "nofile", "Soft": 1, "Hard": 2}], "tmpfs": {"/t": "size=1m"},
        }))
        .unwrap();
        assert_eq!((host.memory, host.memory_swap, host.shm_size), (Some(4 << 30), Some(4 << 30), Some(1024)));
        assert_eq!((host.cpu_period, host.cpu_quota), (Some(100_000), Some(50_000)));
        assert_eq!(body.hostname.as_deref(), Some("h"));
        assert_eq!(host.extra_hosts.unwrap(), ["a:1.2.3.4"]);
        assert_eq!(host.devices.unwrap()[0].path_in_container.as_deref(), Some("/dev/fuse"));
        assert_eq!(host.ulimits.unwrap()[0].hard, Some(2));
    }

    #[test]
    fn what_is_unknown_ours_or_wrong_is_named() {
        for (kwargs, expected) in [
            (
                json!({"mem_limt": "1g"}),
                "sandbox.docker_runtime_kwargs.mem_limt of the sandbox cannot be used: it is not",
            ),
            (json!({"name": "x"}), "the runtime sets it itself"),
            (json!({"mem_limit": "much"}), "it must be a number of bytes"),
            (json!({"privileged": "yes"}), "sandbox.docker_runtime_kwargs.privileged"),
        ] {
            let error = applied(kwargs).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn sizes_have_units() {
        for (value, expected) in
            [(json!(7), 7), (json!("7"), 7), (json!("1k"), 1024), (json!("2MB"), 2 << 20), (json!("-1"), -1)]
        {
            assert_eq!(bytes(&value), Ok(expected), "{value}");
        }
        assert!(bytes(&json!("9999999t")).is_err() && bytes(&json!(1.5)).is_err());
    }
}
