//! The pod of a sandbox.

use std::{collections::BTreeMap, time::Duration};

use gloveport_provider::{ProviderError, container::KEY};
use k8s_openapi::{
    api::core::v1::{
        Capabilities, Container, ContainerPort, EnvVar, EnvVarSource, HTTPGetAction, LocalObjectReference, Pod,
        PodSecurityContext, PodSpec, Probe, ResourceRequirements, SeccompProfile, SecretKeySelector, SecurityContext,
        VolumeMount,
    },
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::OwnerReference, util::intstr::IntOrString},
};

use super::{
    Plan,
    volumes::{BROUGHT, IN_IMAGE, KEY_ITEM, receiver, variable_item},
};
use crate::{
    PodSecurity, ProgramFrom,
    names::{self, BRINGER, CONTAINER, EDITOR, GATE_PORT, SERVER_PORT, WORK},
    quantity,
};

/// The flag of a server that says how long it may go on.
const TIME_TO_LIVE: &str = "--time-to-live";
/// The variable with the session.
pub(crate) const SESSION_VARIABLE: &str = "OPENHANDS_SESSION_ID";
/// Time that a server has to end.
const GRACE: i64 = 5;
/// The user of pods that may not be root, where nobody names one.
const NOBODY_SPECIAL: i64 = 1000;

impl Plan<'_> {
    /// The pod. It belongs to nobody yet: its record has no identity before it is made.
    pub(crate) fn pod(&self) -> Result<Pod, ProviderError> {
        let Self { options, spec, .. } = self;
        let mut meta = self.meta(self.id.as_str(), None);
        meta.labels = Some(self.shown_labels());
        let mut annotations = options.annotations.clone();
        if self.waits.is_none() {
            annotations.insert(names::SESSION.to_owned(), spec.session_id.to_string());
        }
        meta.annotations = Some(annotations);
        let (mut volumes, mounts) = self.volumes()?;
        let init_containers = self.bringer(&mut volumes);
        let pull = options.pull_secrets.iter();
        let user = spec.user;
        let restricted = options.pod_security == PodSecurity::Restricted;
        let or = |id: Option<u32>| id.map(i64::from).or(restricted.then_some(NOBODY_SPECIAL));
        let context = PodSecurityContext {
            run_as_user: or(user.map(|user| user.user)),
            run_as_group: or(user.and_then(|user| user.group)),
            fs_group: or(user.and_then(|user| user.files_group.or(user.group))),
            run_as_non_root: restricted.then_some(true),
            seccomp_profile: restricted.then(seccomp),
            ..PodSecurityContext::default()
        };
        let class = spec.runtime_class.clone().or_else(|| options.runtime_class.clone());
        let filled = |map: &BTreeMap<String, String>| (!map.is_empty()).then(|| map.clone());
        Ok(Pod {
            metadata: meta,
            spec: Some(PodSpec {
                containers: vec![self.container(mounts)?],
                init_containers,
                volumes: Some(volumes),
                restart_policy: Some("Never".to_owned()),
                image_pull_secrets: (!options.pull_secrets.is_empty())
                    .then(|| pull.map(|name| LocalObjectReference { name: name.clone() }).collect()),
                node_selector: filled(&options.node_selector),
                tolerations: (!options.tolerations.is_empty()).then(|| options.tolerations.clone()),
                affinity: options.affinity.clone(),
                topology_spread_constraints: (!options.topology_spread.is_empty())
                    .then(|| options.topology_spread.clone()),
                scheduler_name: options.scheduler.clone(),
                priority_class_name: options.priority_class.clone(),
                runtime_class_name: class,
                service_account_name: options.service_account.clone(),
                // What works in a sandbox is no user of the cluster, and learns nothing of its other services.
                automount_service_account_token: Some(false),
                enable_service_links: Some(false),
                termination_grace_period_seconds: Some(GRACE),
                security_context: Some(context),
                ..PodSpec::default()
            }),
            ..Pod::default()
        })
    }

    fn container(&self, mounts: Vec<VolumeMount>) -> Result<Container, ProviderError> {
        let spec = self.spec;
        let named = |name: &str, port: u16| ContainerPort {
            name: Some(name.to_owned()),
            container_port: port.into(),
            ..ContainerPort::default()
        };
        let mut ports = vec![named("http", SERVER_PORT)];
        for (name, port) in self.ports()? {
            let name = (name == EDITOR.0).then_some(name);
            ports.push(ContainerPort { name, container_port: port.into(), ..ContainerPort::default() });
        }
        let probe = self.is_ours().then(|| Probe {
            http_get: Some(HTTPGetAction {
                path: Some("/alive".to_owned()),
                port: IntOrString::Int(SERVER_PORT.into()),
                ..HTTPGetAction::default()
            }),
            period_seconds: Some(10),
            timeout_seconds: Some(5),
            success_threshold: Some(1),
            failure_threshold: Some(3),
            ..Probe::default()
        });
        Ok(Container {
            name: CONTAINER.to_owned(),
            image: Some(self.image.to_owned()),
            image_pull_policy: self.options.pull_policy.clone(),
            command: Some(self.command()),
            working_dir: Some(spec.working_dir.clone().unwrap_or_else(|| "/".to_owned())),
            env: Some(self.environment()?),
            ports: Some(ports),
            volume_mounts: Some(mounts),
            resources: Some(self.resources()),
            readiness_probe: probe,
            security_context: Some(self.security()),
            ..Container::default()
        })
    }

    pub(super) fn security(&self) -> SecurityContext {
        let restricted = self.options.pod_security == PodSecurity::Restricted;
        SecurityContext {
            privileged: Some(self.options.privileged),
            allow_privilege_escalation: restricted.then_some(false),
            capabilities: restricted
                .then(|| Capabilities { drop: Some(vec!["ALL".to_owned()]), ..Capabilities::default() }),
            run_as_non_root: restricted.then_some(true),
            seccomp_profile: restricted.then(seccomp),
            ..SecurityContext::default()
        }
    }

    fn command(&self) -> Vec<String> {
        if let Some(command) = &self.spec.command {
            return command.iter().map(|word| literally(word)).collect();
        }
        let program = if self.options.program_from == ProgramFrom::InImage { IN_IMAGE } else { BROUGHT };
        let mut words = vec![program.to_owned(), "container-server".to_owned()];
        words.extend(["--port".to_owned(), SERVER_PORT.to_string()]);
        words.extend(["--workspace".to_owned(), literally(&self.options.workspace)]);
        if self.waits.is_some() {
            words.push("--claimed".to_owned());
            return words;
        }
        words.extend(self.spec.plugins.iter().flat_map(|plugin| ["--plugin".to_owned(), literally(plugin)]));
        let seconds = |flag: &str, time: Option<Duration>| {
            time.map(|time| [flag.to_owned(), time.as_secs_f64().to_string()]).into_iter().flatten()
        };
        words.extend(seconds(TIME_TO_LIVE, self.spec.time_to_live));
        words.extend(seconds("--idle-stop", self.spec.idle_stop));
        words.push("--input".to_owned());
        words
    }

    fn environment(&self) -> Result<Vec<EnvVar>, ProviderError> {
        let ports = self.ports()?;
        let mut all: BTreeMap<String, String> = BTreeMap::new();
        let mut set = |name: &str, value: String| all.insert(name.to_owned(), value);
        set("port", SERVER_PORT.to_string());
        set("PYTHONUNBUFFERED", "1".to_owned());
        set("PIP_BREAK_SYSTEM_PACKAGES", "1".to_owned());
        if self.waits.is_none() {
            set(SESSION_VARIABLE, self.spec.session_id.to_string());
        }
        for (name, variables) in [
            (EDITOR.0, &["VSCODE_PORT"][..]),
            (WORK[0].0, &["APP_PORT_1", "WORK_PORT_1"]),
            (WORK[1].0, &["APP_PORT_2", "WORK_PORT_2"]),
        ] {
            for variable in variables {
                if let Some(port) = ports.get(name) {
                    set(variable, port.to_string());
                }
            }
        }
        all.extend(self.spec.environment.clone());
        all.remove(KEY);
        let plain =
            all.into_iter().map(|(name, value)| EnvVar { name, value: Some(literally(&value)), ..EnvVar::default() });
        let hidden = |name: &str, item: String| EnvVar {
            name: name.to_owned(),
            value_from: Some(EnvVarSource {
                secret_key_ref: Some(SecretKeySelector {
                    name: names::secret(self.id.as_str()),
                    key: item,
                    ..SecretKeySelector::default()
                }),
                ..EnvVarSource::default()
            }),
            ..EnvVar::default()
        };
        let mut variables: Vec<EnvVar> = plain.collect();
        if !self.is_ours() {
            // A server of the caller has no other way to get them.
            let names = self.spec.secrets.keys().enumerate();
            variables.extend(names.map(|(at, name)| hidden(name, variable_item(at))));
        }
        variables.push(hidden(KEY, KEY_ITEM.to_owned()));
        Ok(variables)
    }

    fn resources(&self) -> ResourceRequirements {
        let (options, limits) = (self.options, &self.spec.limits);
        let factor = limits.factor.unwrap_or(1);
        let memory = limits.memory.map_or_else(|| quantity::times(&options.memory_limit, factor), quantity::bytes);
        let memory_request = quantity::smaller(quantity::times(&options.memory_request, factor), &memory);
        let cpus = limits.cpus.map(quantity::cpus);
        let mut cpu_request = quantity::times(&options.cpu_request, factor);
        if let Some(limit) = &cpus {
            cpu_request = quantity::smaller(cpu_request, limit);
        }
        let mut most: BTreeMap<String, Quantity> = [("memory".to_owned(), memory)].into();
        let mut least: BTreeMap<String, Quantity> =
            [("cpu".to_owned(), cpu_request), ("memory".to_owned(), memory_request)].into();
        most.extend(cpus.map(|cpus| ("cpu".to_owned(), cpus)));
        if let Some(disk) = limits.disk.map(quantity::bytes) {
            // Without a request the limit would be one.
            least.insert("ephemeral-storage".to_owned(), quantity::smaller(Quantity("64Mi".to_owned()), &disk));
            most.insert("ephemeral-storage".to_owned(), disk);
        }
        if limits.gpus {
            most.insert(options.gpu.clone(), Quantity("1".to_owned()));
        }
        ResourceRequirements { limits: Some(most), requests: Some(least), ..ResourceRequirements::default() }
    }
}

/// A pod that belongs to this object, with our program of today and this word in it. Whether this backend brings the program.
pub(crate) fn once_more(pod: &mut Pod, owner: &OwnerReference, token: &str, program_size: u64) -> bool {
    adopt(pod, owner, token);
    let containers = pod.spec.iter_mut().flat_map(|spec| spec.init_containers.iter_mut().flatten());
    let mut brings = false;
    for bringer in containers.filter(|container| container.name == BRINGER && container.stdin == Some(true)) {
        bringer.command = Some(receiver(program_size));
        brings = true;
    }
    brings
}

/// What is left of its time is all that a sandbox may go on for.
pub(crate) fn shorten(pod: &mut Pod, left: Duration) {
    let containers = pod.spec.iter_mut().flat_map(|spec| &mut spec.containers);
    for words in containers.filter_map(|container| container.command.as_mut()) {
        if let Some(at) = words.iter().position(|word| word == TIME_TO_LIVE)
            && let Some(value) = words.get_mut(at + 1)
        {
            *value = left.as_secs_f64().to_string();
        }
    }
}

/// Tells the programs in the pod of a sandbox the way through its gate, whose service has this address. What the session
/// says itself counts.
pub(crate) fn lead_through(pod: &mut Pod, gate: &str) {
    let host = if gate.contains(':') { format!("[{gate}]") } else { gate.to_owned() };
    let proxy = format!("http://{host}:{GATE_PORT}");
    let containers = pod.spec.iter_mut().flat_map(|spec| &mut spec.containers);
    for container in containers.filter(|container| container.name == CONTAINER) {
        let variables = container.env.get_or_insert_default();
        for (name, value) in
            [("HTTP_PROXY", proxy.as_str()), ("HTTPS_PROXY", &proxy), ("NO_PROXY", "localhost,127.0.0.1,::1")]
        {
            for name in [name.to_owned(), name.to_lowercase()] {
                if !variables.iter().any(|variable| variable.name == name) {
                    variables.push(EnvVar { name, value: Some(value.to_owned()), ..EnvVar::default() });
                }
            }
        }
    }
}

/// The pod belongs to this object, and has this word in it.
fn adopt(pod: &mut Pod, owner: &OwnerReference, token: &str) {
    pod.metadata.owner_references = Some(vec![owner.clone()]);
    pod.metadata.annotations.get_or_insert_default().insert(names::TOKEN.to_owned(), token.to_owned());
}

pub(super) fn seccomp() -> SeccompProfile {
    SeccompProfile { type_: "RuntimeDefault".to_owned(), ..SeccompProfile::default() }
}

/// A text in which the cluster replaces nothing: it takes `$(NAME)` for a variable, in commands as in values.
pub(super) fn literally(text: &str) -> String {
    text.replace('$', "$$")
}
