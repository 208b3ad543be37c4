//! The gate of a sandbox: a pod with an HTTP proxy that looks names up and lets through what is allowed.

use std::collections::BTreeMap;

use gloveport_provider::ProviderError;
use k8s_openapi::{
    api::{
        core::v1::{
            Capabilities, Container, ContainerPort, Pod, PodSecurityContext, Probe, SecurityContext, Service,
            ServicePort, ServiceSpec, TCPSocketAction,
        },
        networking::v1::NetworkPolicy,
    },
    apimachinery::pkg::{apis::meta::v1::OwnerReference, util::intstr::IntOrString},
};

use super::{
    Plan,
    pod::seccomp,
    volumes::{BIN, BROUGHT, IN_IMAGE, PROGRAM_VOLUME, mount, small},
};
use crate::{
    ProgramFrom,
    names::{self, CONTAINER, GATE_PORT},
    network,
};

/// A user without rights, in any image.
const NOBODY: i64 = 65_534;
/// Seconds that a gate has to end; it keeps nothing.
const GRACE: i64 = 1;

impl Plan<'_> {
    /// Whether it has a gate.
    pub(crate) fn has_gate(&self) -> Result<bool, ProviderError> {
        Ok(network::out(&self.spec.network)?.is_some_and(|out| out.gate.is_some()))
    }

    /// The labels by which the gate is chosen. The session is none of them: what chooses the pods of the sandbox leaves its
    /// gate alone.
    pub(super) fn gate_selector(&self) -> BTreeMap<String, String> {
        let unit = names::gate(self.id.as_str());
        [(names::APP.0, names::APP.1), (names::ROLE, names::GATE), (names::UNIT, unit.as_str())]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into()
    }

    /// The pod of its gate, if it has one. It runs where the sandbox may, with no rights at all, and belongs to nobody yet.
    pub(crate) fn gate_pod(&self) -> Result<Option<Pod>, ProviderError> {
        let Some(rules) = network::out(&self.spec.network)?.and_then(|out| out.gate) else { return Ok(None) };
        // A node keeps the image of ours if it has one, and that of the sandbox otherwise.
        let (image, program) = match &self.options.program_from {
            ProgramFrom::Stream { image } => (image.as_deref().unwrap_or(self.image), BROUGHT),
            ProgramFrom::Image(image) => (image.as_str(), IN_IMAGE),
            ProgramFrom::InImage => (self.image, IN_IMAGE),
        };
        let mut words = vec![program.to_owned(), "gate".to_owned()];
        words.extend(["--proxy".to_owned(), format!("0.0.0.0:{GATE_PORT}")]);
        words.extend(rules.texts().flat_map(|rule| ["--allow".to_owned(), rule]));
        let brought = program == BROUGHT;
        let mut volumes = Vec::new();
        let init_containers = if brought { self.program(&mut volumes, nothing()) } else { None };
        let container = Container {
            name: CONTAINER.to_owned(),
            image: Some(image.to_owned()),
            image_pull_policy: self.options.pull_policy.clone(),
            command: Some(words),
            working_dir: Some("/".to_owned()),
            ports: Some(vec![ContainerPort {
                name: Some("proxy".to_owned()),
                container_port: GATE_PORT.into(),
                ..ContainerPort::default()
            }]),
            volume_mounts: brought.then(|| vec![mount(PROGRAM_VOLUME, BIN, true)]),
            resources: Some(small()),
            readiness_probe: Some(Probe {
                tcp_socket: Some(TCPSocketAction {
                    port: IntOrString::Int(GATE_PORT.into()),
                    ..TCPSocketAction::default()
                }),
                period_seconds: Some(2),
                timeout_seconds: Some(5),
                ..Probe::default()
            }),
            security_context: Some(nothing()),
            ..Container::default()
        };
        let mut pod = self.pod()?;
        pod.metadata.name = Some(names::gate(self.id.as_str()));
        pod.metadata.labels = Some(self.gate_selector());
        if let Some(spec) = &mut pod.spec {
            spec.containers = vec![container];
            spec.init_containers = init_containers;
            spec.volumes = Some(volumes);
            // It has no state: the node starts one again that has ended.
            spec.restart_policy = Some("Always".to_owned());
            spec.termination_grace_period_seconds = Some(GRACE);
            spec.security_context = Some(PodSecurityContext {
                run_as_user: Some(NOBODY),
                run_as_group: Some(NOBODY),
                run_as_non_root: Some(true),
                seccomp_profile: Some(seccomp()),
                ..PodSecurityContext::default()
            });
        }
        Ok(Some(pod))
    }

    /// The address of its gate.
    pub(crate) fn gate_service(&self, owner: &OwnerReference) -> Service {
        Service {
            metadata: self.meta(&names::gate(self.id.as_str()), Some(owner)),
            spec: Some(ServiceSpec {
                selector: Some(self.gate_selector()),
                ports: Some(vec![ServicePort {
                    name: Some("proxy".to_owned()),
                    port: GATE_PORT.into(),
                    protocol: Some("TCP".to_owned()),
                    target_port: Some(IntOrString::Int(GATE_PORT.into())),
                    ..ServicePort::default()
                }]),
                // It is waited for until it is ready; what leads to it is set up meanwhile.
                publish_not_ready_addresses: Some(true),
                ..ServiceSpec::default()
            }),
            ..Service::default()
        }
    }

    /// Who may use its gate: the sandbox alone.
    pub(crate) fn gate_policy(&self, owner: &OwnerReference) -> NetworkPolicy {
        let metadata = self.meta(&names::gate(self.id.as_str()), Some(owner));
        network::gate_policy(metadata, self.gate_selector(), self.selector(), GATE_PORT)
    }
}

/// What a container may do that may do nothing.
fn nothing() -> SecurityContext {
    SecurityContext {
        privileged: Some(false),
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), ..Capabilities::default() }),
        read_only_root_filesystem: Some(true),
        run_as_non_root: Some(true),
        seccomp_profile: Some(seccomp()),
        ..SecurityContext::default()
    }
}

#[cfg(test)]
mod tests {
    use gloveport_config::Config;
    use gloveport_protocol::Secret as Hidden;
    use gloveport_provider::{NetworkPolicy as Wanted, ProviderContext, SandboxId, SandboxSpec, SessionId};
    use serde_json::{Value, json};

    use super::*;
    use crate::{KubernetesOptions, body::lead_through};

    fn options(program_from: ProgramFrom) -> KubernetesOptions {
        let mut config = Config::default();
        config.kubernetes.image_pull_secret = Some("registry".to_owned());
        config.kubernetes.privileged = true;
        let context = ProviderContext {
            config,
            program: "gloveport".into(),
            inside: "gloveport".into(),
            environment: BTreeMap::new(),
            argument: None,
        };
        KubernetesOptions { program_from, ..KubernetesOptions::new(&context).unwrap() }
    }

    /// What a plan that allows this makes of it.
    fn planned<T>(options: &KubernetesOptions, allowed: &[&str], make: impl Fn(&Plan<'_>) -> T) -> T {
        let (id, key) = (SandboxId::new("openhands-runtime-s").unwrap(), Hidden::new("hidden".to_owned()));
        let allowed = allowed.iter().map(|entry| (*entry).to_owned()).collect();
        let spec = SandboxSpec {
            network: Wanted::Only(allowed),
            environment: [("no_proxy".to_owned(), "own".to_owned()), ("TOKEN".to_owned(), "shown".to_owned())].into(),
            ..SandboxSpec::new(SessionId::new("s").unwrap())
        };
        let (image, backend, token) = ("debian:13", "h/b", "t");
        let plan = Plan {
            options,
            spec: &spec,
            id: &id,
            image,
            backend,
            token,
            key: &key,
            program_size: 7,
            source: None,
            waits: None,
        };
        make(&plan)
    }

    fn json_of(object: &impl serde::Serialize) -> Value {
        serde_json::to_value(object).unwrap()
    }

    #[test]
    fn a_gate_lets_out_what_is_allowed_and_has_no_rights_and_bounds() {
        let options = options(ProgramFrom::Stream { image: None });
        let pod = planned(&options, &["10.0.0.0/8", "*.example.org:443"], |plan| plan.gate_pod().unwrap().unwrap());
        let pod = json_of(&pod);
        assert_eq!(
            pod["metadata"],
            json!({"name": "gloveport-gate-s", "annotations": {"gloveport/session": "s"}, "labels": {
                "app": "openhands-runtime", "gloveport/role": "gate", "gloveport/unit": "gloveport-gate-s"}})
        );
        let spec = &pod["spec"];
        assert_eq!(
            (&spec["restartPolicy"], &spec["automountServiceAccountToken"], &spec["enableServiceLinks"]),
            (&json!("Always"), &json!(false), &json!(false))
        );
        assert_eq!(spec["imagePullSecrets"], json!([{"name": "registry"}]));
        let profile = json!({"type": "RuntimeDefault"});
        assert_eq!(
            spec["securityContext"],
            json!({"runAsUser": 65534, "runAsGroup": 65534, "runAsNonRoot": true, "seccompProfile": profile})
        );
        let rights = json!({"privileged": false, "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true, "runAsNonRoot": true, "seccompProfile": profile});
        let bounds = json!({"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}});
        for (list, count) in [("containers", 1), ("initContainers", 1)] {
            let containers = spec[list].as_array().unwrap();
            assert_eq!(containers.len(), count);
            for container in containers {
                assert_eq!((&container["securityContext"], &container["resources"]), (&rights, &bounds), "{list}");
                assert_eq!((&container["image"], &container["env"]), (&json!("debian:13"), &Value::Null), "{list}");
            }
        }
        assert_eq!(
            spec["containers"][0]["command"],
            json!([
                "/.gloveport/bin/gloveport",
                "gate",
                "--proxy",
                "0.0.0.0:3128",
                "--allow",
                "10.0.0.0/8",
                "--allow",
                "*.example.org:443"
            ])
        );
        assert_eq!(spec["volumes"], json!([{"name": "program", "emptyDir": {}}]));
        assert_eq!(
            (&spec["initContainers"][0]["stdin"], &spec["initContainers"][0]["stdinOnce"]),
            (&json!(true), &json!(true))
        );
    }

    #[test]
    fn a_gate_takes_our_program_from_where_its_sandbox_does() {
        let view = |program_from| {
            let pod = planned(&options(program_from), &["a.test"], |plan| plan.gate_pod().unwrap().unwrap());
            let spec = json_of(&pod)["spec"].clone();
            let container = &spec["containers"][0];
            (container["image"].clone(), container["command"][0].clone(), spec["initContainers"][0]["image"].clone())
        };
        let in_image = json!("/openhands/bin/gloveport");
        let loader = ProgramFrom::Stream { image: Some("busybox".to_owned()) };
        assert_eq!(view(loader), (json!("busybox"), json!("/.gloveport/bin/gloveport"), json!("busybox")));
        assert_eq!(view(ProgramFrom::Image("g:1".to_owned())), (json!("g:1"), in_image.clone(), Value::Null));
        assert_eq!(view(ProgramFrom::InImage), (json!("debian:13"), in_image, Value::Null));
    }

    #[test]
    fn a_sandbox_reaches_its_gate_and_allowed_addresses_and_nobody_else_reaches_the_gate() {
        let owner = OwnerReference { name: "openhands-runtime-s".to_owned(), ..OwnerReference::default() };
        let options = options(ProgramFrom::InImage);
        let (own, gate, service) = planned(&options, &["a.test", "192.0.2.1:443"], |plan| {
            (plan.policy(&owner).unwrap().unwrap(), plan.gate_policy(&owner), plan.gate_service(&owner))
        });
        let sandbox = json!({"app": "openhands-runtime", "session": "s", "gloveport/unit": "openhands-runtime-s"});
        let labels =
            json!({"app": "openhands-runtime", "gloveport/role": "gate", "gloveport/unit": "gloveport-gate-s"});
        let port = |port: u16, protocol: &str| json!({"port": port, "protocol": protocol});
        assert_eq!(
            json_of(&own)["spec"],
            json!({"podSelector": {"matchLabels": sandbox}, "policyTypes": ["Egress"], "egress": [
                {"to": [{"ipBlock": {"cidr": "192.0.2.1/32"}}], "ports": [port(443, "TCP"), port(443, "UDP")]},
                {"to": [{"podSelector": {"matchLabels": labels}}], "ports": [port(3128, "TCP")]}]})
        );
        assert_eq!(
            json_of(&gate)["spec"],
            json!({"podSelector": {"matchLabels": labels}, "policyTypes": ["Ingress"], "ingress": [
                {"from": [{"podSelector": {"matchLabels": sandbox}}], "ports": [port(3128, "TCP")]}]})
        );
        assert_eq!(json_of(&service)["spec"]["selector"], labels);
        for (meta, name) in [
            (own.metadata, "openhands-runtime-s"),
            (gate.metadata, "gloveport-gate-s"),
            (service.metadata, "gloveport-gate-s"),
        ] {
            assert_eq!((meta.name.as_deref(), meta.owner_references), (Some(name), Some(vec![owner.clone()])));
        }
    }

    #[test]
    fn only_a_sandbox_that_names_hosts_has_a_gate_and_what_has_a_policy_of_its_own_says_so() {
        let options = options(ProgramFrom::InImage);
        for (allowed, expected) in [(&["a.test"][..], true), (&["10.0.0.0/8"], false), (&[], false)] {
            planned(&options, allowed, |plan| {
                assert_eq!(plan.has_gate().unwrap(), expected, "{allowed:?}");
                assert_eq!(plan.gate_pod().unwrap().is_some(), expected, "{allowed:?}");
                let content = plan.record().unwrap().data.unwrap();
                assert_eq!(content.contains_key("gate.json"), expected, "{allowed:?}");
                let labels = plan.pod().unwrap().metadata.labels.unwrap();
                assert_eq!(labels.get("gloveport/network").map(String::as_str), Some("own"), "{allowed:?}");
                assert_eq!(labels.get("gloveport/role").map(String::as_str), Some("sandbox"), "{allowed:?}");
            });
        }
    }

    #[test]
    fn programs_are_told_the_way_through_the_gate_and_what_the_session_says_counts() {
        for (address, host) in [("10.96.0.7", "10.96.0.7"), ("fd00::7", "[fd00::7]")] {
            let mut pod = planned(&options(ProgramFrom::InImage), &["a.test"], |plan| plan.pod().unwrap());
            let before = json_of(&pod);
            lead_through(&mut pod, address);
            let variables = pod.spec.as_ref().unwrap().containers[0].env.clone().unwrap();
            let proxy = format!("http://{host}:3128");
            let value = |name: &str| {
                let found: Vec<_> = variables.iter().filter(|variable| variable.name == name).collect();
                assert_eq!(found.len(), 1, "{name}");
                found[0].value.clone().unwrap()
            };
            for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
                assert_eq!(value(name), proxy, "{name}");
            }
            assert_eq!((value("NO_PROXY").as_str(), value("no_proxy").as_str()), ("localhost,127.0.0.1,::1", "own"));
            // Once more changes nothing.
            let once = json_of(&pod);
            lead_through(&mut pod, address);
            assert_ne!(before, once);
            assert_eq!(json_of(&pod), once);
        }
    }
}
