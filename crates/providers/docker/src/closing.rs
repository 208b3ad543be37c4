//! What a sandbox on a closed network may not have, because it would be a way out.
//!
//! Options are admitted by name, not refused by name: one that is new here stays out until somebody has looked at it.

use std::path::Path;

use gloveport_docker_engine::Address;
use gloveport_provider::{Mount, MountSource, ProviderError, SandboxSpec, Workspace};
use serde_json::{Map, Value};

use crate::{DockerOptions, fault::wrong};

/// Options of `sandbox.docker_runtime_kwargs` that have nothing to do with whom a sandbox reaches.
const HARMLESS: [&str; 30] = [
    "auto_remove",
    "blkio_weight",
    "cap_drop",
    "cgroup_parent",
    "cpu_period",
    "cpu_quota",
    "cpu_shares",
    "cpuset_cpus",
    "cpuset_mems",
    "domainname",
    "extra_hosts",
    "group_add",
    "hostname",
    "init",
    "mem_limit",
    "mem_reservation",
    "mem_swappiness",
    "memswap_limit",
    "nano_cpus",
    "oom_kill_disable",
    "oom_score_adj",
    "pids_limit",
    "read_only",
    "runtime",
    "shm_size",
    "stop_signal",
    "storage_opt",
    "tmpfs",
    "ulimits",
    "user",
];
/// Capabilities that reach neither the network's settings nor other parts of the machine.
const CAPABILITIES: [&str; 17] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "IPC_LOCK",
    "KILL",
    "LEASE",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
    "SYS_NICE",
    "SYS_PTRACE",
    "SYS_RESOURCE",
];
/// Beginnings of names of kernel settings that are no settings of the network.
const SYSCTLS: [&str; 2] = ["kernel.", "fs.mqueue."];
/// Beginnings of security options that take nothing away from what protects the kernel's settings.
const SECURITY: [&str; 4] = ["no-new-privileges", "seccomp=", "seccomp:", "label="];
/// Sockets over which engines take orders: whoever has one starts containers with any network.
const SOCKETS: [&str; 5] = [
    "/var/run/docker.sock",
    "/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
];

/// Whether nothing that is asked for or configured opens a closed network.
pub(crate) fn check(spec: &SandboxSpec, options: &DockerOptions) -> Result<(), ProviderError> {
    if options.host_network {
        return Err(wrong("network", "`sandbox.use_host_network` and a network policy exclude each other"));
    }
    if !options.networks.is_empty() {
        let reason = "`sandbox.additional_networks` would be a way around the network policy; leave one of them out";
        return Err(wrong("network", reason));
    }
    check_kwargs(&options.kwargs)?;
    check_capabilities("cap_add in [extended.docker]", options.hardening.cap_add.iter().map(String::as_str))?;
    let workspace = match &spec.workspace {
        Workspace::Directory(path) => Some(path.as_path()),
        Workspace::Temporary | Workspace::Volume(_) => None,
    };
    let mounted = spec.mounts.iter().filter_map(|Mount { source, .. }| match source {
        MountSource::Directory(path) | MountSource::Overlay(path) => Some(path.as_path()),
        MountSource::Volume(_) => None,
    });
    for path in mounted.chain(workspace) {
        check_mount(path, &options.endpoint.address)?;
    }
    Ok(())
}

fn opens(what: impl AsRef<str>) -> ProviderError {
    wrong("network", format!("{} could open it; leave one of them out", what.as_ref()))
}

fn check_kwargs(kwargs: &Map<String, Value>) -> Result<(), ProviderError> {
    const KEY: &str = "sandbox.docker_runtime_kwargs";
    for (name, value) in kwargs {
        match name.as_str() {
            name if HARMLESS.contains(&name) => {}
            "cap_add" => check_capabilities(&format!("cap_add in {KEY}"), texts(value))?,
            "sysctls" => {
                let names = value.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
                let opening = names.into_iter().find(|name| !SYSCTLS.iter().any(|known| name.starts_with(known)));
                if let Some(opening) = opening {
                    return Err(opens(format!("`{opening}` of `sysctls` in {KEY}")));
                }
            }
            "security_opt" => {
                if let Some(opening) = texts(value).find(|it| !SECURITY.iter().any(|known| it.starts_with(known))) {
                    return Err(opens(format!("`{opening}` of `security_opt` in {KEY}")));
                }
            }
            other => return Err(opens(format!("`{other}` in {KEY}"))),
        }
    }
    Ok(())
}

/// The texts of a list; anything else is refused where options are read.
fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn check_capabilities<'a>(place: &str, mut names: impl Iterator<Item = &'a str>) -> Result<(), ProviderError> {
    let is_harmless = |name: &str| {
        let upper = name.trim().to_ascii_uppercase();
        CAPABILITIES.contains(&upper.strip_prefix("CAP_").unwrap_or(&upper))
    };
    match names.find(|name| !is_harmless(name)) {
        Some(opening) => Err(opens(format!("`{opening}` of `{place}`"))),
        None => Ok(()),
    }
}

/// Whoever reaches the engine's socket reaches everything.
fn check_mount(path: &Path, engine: &Address) -> Result<(), ProviderError> {
    let own = match engine {
        Address::Unix(socket) => Some(socket.as_path()),
        Address::Pipe(_) | Address::Tcp { .. } => None,
    };
    // The name may be a link to it, and what the name leads to may be its directory.
    let resolved = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    for socket in SOCKETS.iter().map(Path::new).chain(own) {
        let real = socket.canonicalize().unwrap_or_else(|_| socket.to_owned());
        if real.starts_with(&resolved) || socket.starts_with(path) {
            return Err(opens(format!("the mount of {}, by which an engine takes orders,", path.display())));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;

    #[test]
    fn options_that_could_open_a_closed_network_are_refused() {
        for (kwargs, opening) in [
            (json!({"privileged": true}), Some("`privileged`")),
            (json!({"network": "bridge"}), Some("`network`")),
            (json!({"network_mode": "host"}), Some("`network_mode`")),
            (json!({"device_cgroup_rules": ["b *:* rwm"]}), Some("`device_cgroup_rules`")),
            (json!({"ipc_mode": "host"}), Some("`ipc_mode`")),
            (json!({"userns_mode": "host"}), Some("`userns_mode`")),
            (json!({"dns_search": ["a"]}), Some("`dns_search`")),
            (json!({"sysctls": {"net.ipv6.conf.eth0.disable_ipv6": "0"}}), Some("`net.ipv6.conf.eth0.disable_ipv6`")),
            (json!({"sysctls": {"net/ipv6/conf/all/disable_ipv6": "0"}}), Some("`net/ipv6/conf/all/disable_ipv6`")),
            (json!({"sysctls": {"kernel.shmmax": "1", "fs.mqueue.msg_max": "9"}}), None),
            (json!({"cap_add": ["SYS_PTRACE", "cap_net_raw"]}), Some("`cap_net_raw`")),
            (json!({"cap_add": ["NET_ADMIN"]}), Some("`NET_ADMIN`")),
            (json!({"cap_add": ["ALL"]}), Some("`ALL`")),
            (json!({"cap_add": ["SYS_ADMIN"]}), Some("`SYS_ADMIN`")),
            (json!({"cap_add": ["CAP_SYS_PTRACE", "chown"]}), None),
            (json!({"security_opt": ["systempaths=unconfined"]}), Some("`systempaths=unconfined`")),
            (json!({"security_opt": ["apparmor=unconfined"]}), Some("`apparmor=unconfined`")),
            (json!({"security_opt": ["no-new-privileges", "seccomp=unconfined"]}), None),
            (json!({"mem_limit": "4G", "shm_size": "1g", "ulimits": []}), None),
        ] {
            let refused = check_kwargs(kwargs.as_object().unwrap()).err().map(|error| error.to_string());
            match (&refused, opening) {
                (None, None) => {}
                (Some(text), Some(part)) => assert!(text.contains(part), "{kwargs}: {text}"),
                _ => panic!("{kwargs}: {refused:?}"),
            }
        }
    }

    #[test]
    fn the_engines_socket_and_what_contains_it_are_not_mounted() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("engine/docker.sock");
        std::fs::create_dir(directory.path().join("engine")).unwrap();
        std::fs::create_dir(directory.path().join("data")).unwrap();
        let _listens = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        std::os::unix::fs::symlink(&socket, directory.path().join("link")).unwrap();
        let engine = Address::Unix(socket.clone());
        for (path, admitted) in [
            (socket, false),
            (directory.path().join("engine"), false),
            (directory.path().join("link"), false),
            (directory.path().join("data/../engine"), false),
            (PathBuf::from("/"), false),
            (PathBuf::from("/var/run/docker.sock"), false),
            (directory.path().join("data"), true),
        ] {
            assert_eq!(check_mount(&path, &engine).is_ok(), admitted, "{}", path.display());
        }
    }
}
