//! From a spec to the objects that the cluster is asked to make (kubernetes-runtime 6).

use std::{collections::BTreeMap, path::Path, time::Duration};

use gloveport_protocol::Secret as Hidden;
use gloveport_provider::{
    MountSource, ProviderError, SandboxId, SandboxSpec, Workspace,
    container::{DIRECTORY, INPUT, Input, KEY, STATE},
};
use k8s_openapi::{
    ByteString,
    api::{
        core::v1::{
            Capabilities, ConfigMap, Container, ContainerPort, EmptyDirVolumeSource, EnvVar, EnvVarSource,
            HTTPGetAction, KeyToPath, LocalObjectReference, PersistentVolumeClaim, PersistentVolumeClaimSpec,
            PersistentVolumeClaimVolumeSource, Pod, PodSecurityContext, PodSpec, Probe, ResourceRequirements,
            SeccompProfile, Secret, SecretKeySelector, SecretVolumeSource, SecurityContext, Service, ServicePort,
            ServiceSpec, Volume, VolumeMount, VolumeResourceRequirements,
        },
        networking::v1::{
            HTTPIngressPath, HTTPIngressRuleValue, Ingress, IngressBackend, IngressRule, IngressServiceBackend,
            IngressSpec, IngressTLS, NetworkPolicy, ServiceBackendPort,
        },
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{ObjectMeta, OwnerReference},
        util::intstr::IntOrString,
    },
};

use crate::{
    KubernetesOptions, PodSecurity, ProgramFrom, Storage,
    fault::{failed, wrong},
    names::{self, BRINGER, CONTAINER, EDITOR, FIRST_FREE, Ports, SERVER_PORT, WORK},
    network, quantity,
    record::data,
};

/// Ports of programs that a spec can ask for.
const MOST_PORTS: usize = 64;
/// Directory of our program in a pod, and the program.
pub(crate) const BIN: &str = "/.gloveport/bin";
const BROUGHT: &str = "/.gloveport/bin/gloveport";
/// Its path in images that have it: those of `gloveport image`.
const IN_IMAGE: &str = "/openhands/bin/gloveport";
/// Names of volumes.
const WORKSPACE_VOLUME: &str = "workspace-volume";
const PROGRAM_VOLUME: &str = "program";
const STATE_VOLUME: &str = "state";
/// The flag of a server that says how long it may go on.
const TIME_TO_LIVE: &str = "--time-to-live";
/// The variable with the session.
pub(crate) const SESSION_VARIABLE: &str = "OPENHANDS_SESSION_ID";
/// Keys of the secret.
const KEY_ITEM: &str = "key";
const INPUT_ITEM: &str = "input";
/// Time that a server has to end.
const GRACE: i64 = 5;
/// The user of pods that may not be root, where nobody names one.
const NOBODY_SPECIAL: i64 = 1000;

/// All that a sandbox is made from.
pub(crate) struct Plan<'a> {
    pub(crate) options: &'a KubernetesOptions,
    pub(crate) spec: &'a SandboxSpec,
    pub(crate) id: &'a SandboxId,
    pub(crate) image: &'a str,
    /// The backend, as the record tells it.
    pub(crate) backend: &'a str,
    /// The word by which this making of it recognises its objects.
    pub(crate) token: &'a str,
    pub(crate) key: &'a Hidden,
    /// Length of our program in bytes, if it is streamed into the pod.
    pub(crate) program_size: u64,
    /// It is no session's yet.
    pub(crate) waits: Option<Waits<'a>>,
}

/// A pod that waits for a session.
#[derive(Clone, Copy)]
pub(crate) struct Waits<'a> {
    /// The id of the backend to whose pool it belongs.
    pub(crate) pool: &'a str,
    /// What pods have in common that are made alike.
    pub(crate) alike: &'a str,
}

impl Plan<'_> {
    /// Whether it is our server that runs.
    fn is_ours(&self) -> bool {
        self.spec.command.is_none()
    }

    /// Whether the workspace outlives the pod.
    fn survives(&self) -> bool {
        self.spec.workspace != Workspace::Temporary || self.options.storage == Storage::Volume
    }

    /// Whether the editor is asked for.
    pub(crate) fn has_editor(&self) -> bool {
        self.spec.plugins.iter().any(|plugin| plugin == EDITOR.0)
            || self.spec.ports.iter().any(|port| port.name == EDITOR.0)
    }

    /// The ports of programs by name.
    pub(crate) fn ports(&self) -> Result<Ports, ProviderError> {
        if self.spec.ports.len() > MOST_PORTS {
            return Err(wrong("ports", format!("{MOST_PORTS} are possible at most")));
        }
        let mut ports: Ports = WORK.iter().map(|(name, port)| ((*name).to_owned(), *port)).collect();
        if self.has_editor() {
            ports.insert(EDITOR.0.to_owned(), EDITOR.1);
        }
        let mut free = FIRST_FREE..;
        for wanted in &self.spec.ports {
            let taken = |port: &u16| self.spec.ports.iter().any(|other| other.port == Some(*port));
            let port = match wanted.port {
                Some(port) => Some(port),
                None if wanted.name == EDITOR.0 => Some(EDITOR.1),
                None => free.find(|port| !taken(port)),
            };
            ports.insert(wanted.name.clone(), port.ok_or_else(|| wrong("ports", "no port is free"))?);
        }
        let mut seen = std::collections::BTreeSet::from([SERVER_PORT]);
        match ports.values().find(|port| !seen.insert(**port)) {
            Some(port) => Err(wrong("ports", format!("{port} is used twice"))),
            None => Ok(ports),
        }
    }

    /// The labels that all objects of the sandbox have.
    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        if let Some(Waits { pool, alike }) = self.waits {
            let id = self.id.as_str();
            return [
                (names::APP.0, names::APP.1),
                (names::ROLE, names::WARM),
                (names::UNIT, id),
                (names::POOL, pool),
                (names::ALIKE, alike),
            ]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        }
        let session = names::session_label(&self.spec.session_id);
        [
            (names::APP.0, names::APP.1),
            (names::SESSION_LABEL, session.as_str()),
            (names::ROLE, names::SANDBOX),
            (names::UNIT, self.id.as_str()),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
    }

    /// The labels of its pod: also those of the caller that can be labels of objects.
    pub(crate) fn shown_labels(&self) -> BTreeMap<String, String> {
        let wanted = self.spec.labels.iter();
        let shown = wanted.filter(|(key, value)| names::is_label_key(key) && names::is_label_value(value));
        self.labels().into_iter().chain(shown.map(|(key, value)| (key.clone(), value.clone()))).collect()
    }

    /// What an object is called, and whose it is.
    fn meta(&self, name: &str, owner: Option<&OwnerReference>) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(self.labels()),
            owner_references: owner.map(|owner| vec![owner.clone()]),
            ..ObjectMeta::default()
        }
    }

    /// The record, with the pod that a paused sandbox goes on with.
    pub(crate) fn record(&self) -> Result<ConfigMap, ProviderError> {
        let json = |value: serde_json::Result<String>| value.map_err(|error| failed("be told the labels", error));
        if let Some(name) = self.spec.labels.keys().find(|name| names::is_ours(name)) {
            return Err(wrong("labels", format!("`{name}` is set by the runtime itself; take another name")));
        }
        let mut annotations: BTreeMap<String, String> = BTreeMap::new();
        let mut set = |key: &str, value: String| annotations.insert(key.to_owned(), value);
        set(names::SESSION, self.spec.session_id.to_string());
        set(names::BACKEND, self.backend.to_owned());
        set(names::KEEP, self.spec.keep_alive.to_string());
        set(names::PORTS, json(serde_json::to_string(&self.ports()?))?);
        set(names::LABELS, json(serde_json::to_string(&self.spec.labels))?);
        set(names::WORKSPACE, self.options.workspace.clone());
        set(names::IMAGE, self.image.to_owned());
        set(names::SURVIVES, self.survives().to_string());
        set(names::TOKEN, self.token.to_owned());
        if let Some(time) = self.spec.time_to_live {
            set(names::TIME_TO_LIVE, time.as_secs_f64().to_string());
        }
        let meta = ObjectMeta { annotations: Some(annotations), ..self.meta(self.id.as_str(), None) };
        Ok(ConfigMap { metadata: meta, data: Some(data(&self.pod()?)?), ..ConfigMap::default() })
    }

    /// What is secret: the key, and the variables that others may not see.
    pub(crate) fn secret(&self, owner: &OwnerReference) -> Result<Secret, ProviderError> {
        let mut data: BTreeMap<String, ByteString> = BTreeMap::new();
        data.insert(KEY_ITEM.to_owned(), ByteString(self.key.expose().as_bytes().to_vec()));
        let secrets = self.spec.secrets.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
        if self.is_ours() {
            let input = Input { secrets: secrets.collect() };
            let text = serde_json::to_vec(&input).map_err(|error| failed("be told the secrets", error))?;
            data.insert(INPUT_ITEM.to_owned(), ByteString(text));
        } else {
            let items = secrets.enumerate().map(|(at, (_, value))| (variable_item(at), ByteString(value.into_bytes())));
            data.extend(items);
        }
        Ok(Secret {
            metadata: self.meta(&names::secret(self.id.as_str()), Some(owner)),
            data: Some(data),
            ..Secret::default()
        })
    }

    /// Its volume, if it gets one of its own.
    pub(crate) fn claim(&self, owner: &OwnerReference) -> Option<PersistentVolumeClaim> {
        if self.spec.workspace != Workspace::Temporary || self.options.storage != Storage::Volume {
            return None;
        }
        Some(PersistentVolumeClaim {
            metadata: self.meta(&names::claim(self.id.as_str()), Some(owner)),
            spec: Some(PersistentVolumeClaimSpec {
                access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
                resources: Some(VolumeResourceRequirements {
                    requests: Some([("storage".to_owned(), self.options.storage_size.clone())].into()),
                    ..VolumeResourceRequirements::default()
                }),
                storage_class_name: self.options.storage_class.clone(),
                ..PersistentVolumeClaimSpec::default()
            }),
            ..PersistentVolumeClaim::default()
        })
    }

    fn selector(&self) -> BTreeMap<String, String> {
        let keys = [names::APP.0, names::SESSION_LABEL, names::UNIT];
        self.labels().into_iter().filter(|(key, _)| keys.contains(&key.as_str())).collect()
    }

    /// The service of its server, and of programs in it.
    pub(crate) fn service(&self, owner: &OwnerReference) -> Result<Service, ProviderError> {
        let server = ServicePort {
            name: Some("execution-server".to_owned()),
            port: SERVER_PORT.into(),
            // Apply tells ports apart by it.
            protocol: Some("TCP".to_owned()),
            target_port: Some(IntOrString::String("http".to_owned())),
            ..ServicePort::default()
        };
        let others = self.ports()?.into_values().map(|port| ServicePort {
            name: Some(format!("port-{port}")),
            port: port.into(),
            protocol: Some("TCP".to_owned()),
            target_port: Some(IntOrString::Int(port.into())),
            ..ServicePort::default()
        });
        Ok(Service {
            metadata: self.meta(&names::service(self.id.as_str()), Some(owner)),
            spec: Some(ServiceSpec {
                selector: Some(self.selector()),
                ports: Some([server].into_iter().chain(others).collect()),
                // The server itself says when it is ready.
                publish_not_ready_addresses: Some(true),
                ..ServiceSpec::default()
            }),
            ..Service::default()
        })
    }

    /// The service and the ingress of its editor.
    pub(crate) fn editor(&self, owner: &OwnerReference) -> Option<(Service, Ingress)> {
        if !self.has_editor() {
            return None;
        }
        let id = self.id.as_str();
        let service = Service {
            metadata: self.meta(&names::editor_service(id), Some(owner)),
            spec: Some(ServiceSpec {
                selector: Some(self.selector()),
                ports: Some(vec![ServicePort {
                    name: Some("code".to_owned()),
                    port: EDITOR.1.into(),
                    protocol: Some("TCP".to_owned()),
                    target_port: Some(IntOrString::String(EDITOR.0.to_owned())),
                    ..ServicePort::default()
                }]),
                ..ServiceSpec::default()
            }),
            ..Service::default()
        };
        let host = names::host(id, &self.options.ingress_domain);
        let rule = IngressRule {
            host: Some(host.clone()),
            http: Some(HTTPIngressRuleValue {
                paths: vec![HTTPIngressPath {
                    path: Some("/".to_owned()),
                    path_type: "Prefix".to_owned(),
                    backend: IngressBackend {
                        service: Some(IngressServiceBackend {
                            name: names::editor_service(id),
                            port: Some(ServiceBackendPort {
                                number: Some(EDITOR.1.into()),
                                ..ServiceBackendPort::default()
                            }),
                        }),
                        ..IngressBackend::default()
                    },
                }],
            }),
        };
        let certificate = self.options.ingress_tls_secret.clone();
        let mut meta = self.meta(&names::ingress(id), Some(owner));
        meta.annotations = Some([("external-dns.alpha.kubernetes.io/hostname".to_owned(), host.clone())].into());
        let ingress = Ingress {
            metadata: meta,
            spec: Some(IngressSpec {
                ingress_class_name: self.options.ingress_class.clone(),
                rules: Some(vec![rule]),
                tls: certificate.map(|secret| vec![IngressTLS { hosts: Some(vec![host]), secret_name: Some(secret) }]),
                ..IngressSpec::default()
            }),
            ..Ingress::default()
        };
        Some((service, ingress))
    }

    /// Whom it may talk to, if not everybody.
    pub(crate) fn policy(&self, owner: &OwnerReference) -> Result<Option<NetworkPolicy>, ProviderError> {
        let Some(egress) = network::egress(&self.spec.network)? else { return Ok(None) };
        let metadata = self.meta(self.id.as_str(), Some(owner));
        Ok(Some(network::policy(metadata, self.selector(), egress)))
    }

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

    fn security(&self) -> SecurityContext {
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

    fn volumes(&self) -> Result<(Vec<Volume>, Vec<VolumeMount>), ProviderError> {
        let id = self.id.as_str();
        let of_claim = |name: &str, claim: String, read_only: bool| Volume {
            name: name.to_owned(),
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: claim,
                read_only: read_only.then_some(true),
            }),
            ..Volume::default()
        };
        let workspace = match &self.spec.workspace {
            Workspace::Volume(name) => of_claim(WORKSPACE_VOLUME, name.clone(), false),
            Workspace::Temporary if self.options.storage == Storage::Volume => {
                of_claim(WORKSPACE_VOLUME, names::claim(id), false)
            }
            Workspace::Temporary | Workspace::Directory(_) => empty(WORKSPACE_VOLUME),
        };
        let mut volumes = vec![workspace];
        let mut mounts = vec![mount(WORKSPACE_VOLUME, &self.options.workspace, false)];
        for (at, wanted) in self.spec.mounts.iter().enumerate() {
            let MountSource::Volume(claim) = &wanted.source else { continue };
            if Path::new(&wanted.target).starts_with(DIRECTORY) {
                return Err(wrong("mounts", format!("{DIRECTORY} belongs to the runtime; mount it elsewhere")));
            }
            let name = format!("mount-{at}");
            volumes.push(of_claim(&name, claim.clone(), wanted.read_only));
            mounts.push(mount(&name, &wanted.target, wanted.read_only));
        }
        if self.is_ours() && self.waits.is_none() {
            let file = Path::new(INPUT).file_name().unwrap_or_default().to_string_lossy().into_owned();
            volumes.push(Volume {
                name: STATE_VOLUME.to_owned(),
                secret: Some(SecretVolumeSource {
                    secret_name: Some(names::secret(id)),
                    items: Some(vec![KeyToPath { key: INPUT_ITEM.to_owned(), path: file, mode: None }]),
                    // Whoever the server works as reads it.
                    default_mode: Some(0o444),
                    ..SecretVolumeSource::default()
                }),
                ..Volume::default()
            });
            mounts.push(mount(STATE_VOLUME, STATE, true));
        }
        if self.is_ours() && self.options.program_from != ProgramFrom::InImage {
            mounts.push(mount(PROGRAM_VOLUME, BIN, true));
        }
        Ok((volumes, mounts))
    }

    /// What brings our program into the pod.
    fn bringer(&self, volumes: &mut Vec<Volume>) -> Option<Vec<Container>> {
        if !self.is_ours() {
            return None;
        }
        let (image, command, streamed) = match &self.options.program_from {
            ProgramFrom::InImage => return None,
            ProgramFrom::Image(image) => {
                let words = [IN_IMAGE, "container-install", BROUGHT];
                (image.as_str(), words.map(str::to_owned).to_vec(), false)
            }
            ProgramFrom::Stream { image } => {
                (image.as_deref().unwrap_or(self.image), receiver(self.program_size), true)
            }
        };
        volumes.push(empty(PROGRAM_VOLUME));
        let small = |cpu: &str, memory: &str| {
            [("cpu", cpu), ("memory", memory)].map(|(key, value)| (key.to_owned(), Quantity(value.to_owned()))).into()
        };
        Some(vec![Container {
            name: BRINGER.to_owned(),
            image: Some(image.to_owned()),
            image_pull_policy: self.options.pull_policy.clone(),
            command: Some(command),
            stdin: streamed.then_some(true),
            stdin_once: streamed.then_some(true),
            volume_mounts: Some(vec![mount(PROGRAM_VOLUME, BIN, false)]),
            resources: Some(ResourceRequirements {
                requests: Some(small("10m", "16Mi")),
                limits: Some(small("1", "128Mi")),
                ..ResourceRequirements::default()
            }),
            security_context: Some(SecurityContext { privileged: Some(false), ..self.security() }),
            ..Container::default()
        }])
    }
}

/// What takes our program from standard input. Its end cannot be told through every API server, so the length is.
fn receiver(size: u64) -> Vec<String> {
    let script = format!(
        "umask 022; cd {BIN} && head -c {size} >new && [ \"$(wc -c <new)\" -eq {size} ] && chmod 755 new && mv new \
         gloveport"
    );
    vec!["sh".to_owned(), "-c".to_owned(), literally(&script)]
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

/// The pod works on another volume than it was made for.
pub(crate) fn on_claim(pod: &mut Pod, claim: &str) {
    let volumes = pod.spec.iter_mut().flat_map(|spec| spec.volumes.iter_mut().flatten());
    for volume in volumes.filter(|volume| volume.name == WORKSPACE_VOLUME) {
        if let Some(source) = &mut volume.persistent_volume_claim {
            claim.clone_into(&mut source.claim_name);
        }
    }
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

/// The pod belongs to this object, and has this word in it.
fn adopt(pod: &mut Pod, owner: &OwnerReference, token: &str) {
    pod.metadata.owner_references = Some(vec![owner.clone()]);
    pod.metadata.annotations.get_or_insert_default().insert(names::TOKEN.to_owned(), token.to_owned());
}

/// The key in the secret of a variable of a server that the caller brings.
fn variable_item(at: usize) -> String {
    format!("variable-{at}")
}

fn seccomp() -> SeccompProfile {
    SeccompProfile { type_: "RuntimeDefault".to_owned(), ..SeccompProfile::default() }
}

fn empty(name: &str) -> Volume {
    Volume { name: name.to_owned(), empty_dir: Some(EmptyDirVolumeSource::default()), ..Volume::default() }
}

fn mount(name: &str, path: &str, read_only: bool) -> VolumeMount {
    VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        read_only: read_only.then_some(true),
        ..VolumeMount::default()
    }
}

/// A text in which the cluster replaces nothing: it takes `$(NAME)` for a variable, in commands as in values.
fn literally(text: &str) -> String {
    text.replace('$', "$$")
}
