//! Closed networks: a sandbox that may reach nobody, or only some, is alone on a network with its gate.
//!
//! ```text
//!                   default network                 closed network: no address of the machine, no way out
//! published ports ──────────────────► gate ──────────────────────────────► sandbox
//!         allowed ◄──────────────────  (`gloveport gate`)  ◄────────────── HTTP_PROXY
//! ```
//!
//! The engine publishes no ports on a network without a way out, so the gate has them. The sandbox has no name server
//! but itself; the gate looks names up. The label of the sandbox and its gate that names the network holds all together.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    net::Ipv4Addr,
    time::{Duration, SystemTime},
};

use bollard::{
    models::{
        ContainerCreateBody, ContainerInspectResponse, ContainerStateStatusEnum as Status, EndpointIpamConfig,
        EndpointSettings, HostConfig, HostConfigLogConfig, Ipam, IpamConfig, NetworkConnectRequest,
        NetworkCreateRequest, NetworkingConfig,
    },
    query_parameters::{
        CreateContainerOptionsBuilder, ListContainersOptionsBuilder, ListNetworksOptionsBuilder,
        RemoveContainerOptionsBuilder,
    },
};
use gloveport_allow_list::Rules;
use gloveport_contract::recorder::Recorder;
use gloveport_provider::{NetworkPolicy, ProviderError, SandboxId, SandboxSpec, SandboxState};
use tokio::time::sleep;

use crate::{
    DockerOptions,
    audit::Audit,
    binary::Binary,
    body::{Plan, Published},
    closing,
    edge::Edge,
    fault::{self, failed, wrong},
    inner::Inner,
    names::{self, BACKEND, CREATED, NETWORK, ROLE, SESSION, gate_name},
    options::Variables,
};

/// Role of a gate.
pub(crate) const GATE: &str = "gate";
/// Role of a network.
const CLOSED: &str = "network";

/// The addresses of closed networks are in here, so that they use up nothing of the engine's own.
const POOL: (u8, u8) = (10, 213);
/// Bits of the address of a network of 16.
const PREFIX: u32 = 28;
/// Networks in the pool.
const NETWORKS: u16 = 4096;
/// Networks that are tried.
const TRIES: u32 = 64;
/// First port that is tried for the proxy of the gate.
const PROXY: u16 = 3128;
/// Bounds of a gate.
const GATE_MEMORY: i64 = 128 * 1024 * 1024;
const GATE_PROCESSES: i64 = 64;
/// Has a gate read what it puts into requests, from its standard input.
const ON_INPUT: &str = "--edge-on-input";
/// What to do when that is lost.
const START_ANEW: &str = "it reaches their hosts no more until it is started anew with them (`--secret NAME@HOST`)";
/// A user without rights, in any image.
const NOBODY: &str = "65534:65534";
/// Pause between looks at something that others remove, and how many there are.
const PAUSE: Duration = Duration::from_millis(50);
const LOOKS: u32 = 100;
/// A network without a sandbox is being made for this long at most.
const MAKING: Duration = Duration::from_mins(15);

/// Whom a sandbox may reach, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    /// `None`: nobody.
    rules: Option<Rules>,
    /// Whom secrets are for that the gate puts in; they are among the rules.
    secret_hosts: Vec<String>,
}

impl Policy {
    /// The policy of a spec, if there is one that closes anything.
    pub(crate) fn of(
        spec: &SandboxSpec,
        options: &DockerOptions,
        edge: Option<&Edge>,
    ) -> Result<Option<Self>, ProviderError> {
        let secret_hosts = edge.map(|edge| edge.rules.clone()).unwrap_or_default();
        let rules = match &spec.network {
            NetworkPolicy::Full if edge.is_some() => {
                let reason = "a secret for some hosts is put in by a gate, and a sandbox that reaches everybody has none; name the \
                              hosts that it may reach (`--network HOSTS`)";
                return Err(wrong("network", reason));
            }
            NetworkPolicy::None if edge.is_some() => {
                let reason =
                    "a secret is put in on the way to its hosts, and there is no way; name the hosts, or leave it out";
                return Err(wrong("network", reason));
            }
            NetworkPolicy::Full => return Ok(None),
            NetworkPolicy::None => None,
            NetworkPolicy::Only(hosts) => {
                let all = hosts.iter().chain(&secret_hosts);
                Some(Rules::parse(all).map_err(|error| wrong("network", error))?)
            }
        };
        closing::check(spec, options)?;
        Ok(Some(Self { rules, secret_hosts }))
    }
}

/// A closed network that is there.
#[derive(Clone, Debug)]
pub(crate) struct Closed {
    /// The engine's id of it.
    pub(crate) network: String,
    first: Ipv4Addr,
    policy: Policy,
}

impl Closed {
    /// The n-th address. The first is that of the network, and the second one that the machine would have.
    fn address(&self, at: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.first.to_bits() + at)
    }

    fn sandbox(&self) -> Ipv4Addr {
        self.address(2)
    }

    fn gate(&self) -> Ipv4Addr {
        self.address(3)
    }

    fn endpoint(address: Ipv4Addr) -> EndpointSettings {
        let ipam = EndpointIpamConfig { ipv4_address: Some(address.to_string()), ..EndpointIpamConfig::default() };
        EndpointSettings { ipam_config: Some(ipam), ..EndpointSettings::default() }
    }

    /// Puts a sandbox on this network, and on no other.
    pub(crate) fn shut(&self, body: &mut ContainerCreateBody, host: &mut HostConfig, has_ipv6: bool) {
        if has_ipv6 {
            // The machine's end of the network has an address of the link.
            let off = ["all", "default"].map(|which| (format!("net.ipv6.conf.{which}.disable_ipv6"), "1".to_owned()));
            host.sysctls.get_or_insert_default().extend(off);
        }
        host.network_mode = Some(self.network.clone());
        let endpoints = [(self.network.clone(), Self::endpoint(self.sandbox()))].into();
        body.networking_config = Some(NetworkingConfig { endpoints_config: Some(endpoints) });
        // The engine's resolver would ask these for other names than those on the network. There is nobody.
        host.dns = Some(vec![Ipv4Addr::LOCALHOST.to_string()]);
        host.dns_search = Some(vec![".".to_owned()]);
        host.dns_options = Some(vec!["timeout:1".to_owned(), "attempts:1".to_owned()]);
        // With raw packets the machine's end of the network could be talked to, though it has no address there.
        let dropped = host.cap_drop.get_or_insert_default();
        if !dropped.iter().any(|name| ["ALL", "NET_RAW"].contains(&name.trim_start_matches("CAP_"))) {
            dropped.push("NET_RAW".to_owned());
        }
    }

    /// Tells programs in the sandbox the way out, if there is one.
    pub(crate) fn tell(&self, variables: &mut Variables, ports: &[u16]) {
        if self.policy.rules.is_none() {
            return;
        }
        let proxy = format!("http://{}:{}", self.gate(), proxy_port(ports));
        let local = "localhost,127.0.0.1,::1".to_owned();
        for (name, value) in [("HTTP_PROXY", &proxy), ("HTTPS_PROXY", &proxy), ("NO_PROXY", &local)] {
            variables.insert(name.to_owned(), value.clone());
            variables.insert(name.to_lowercase(), value.clone());
        }
    }

    /// Whom the server of the sandbox tells what happens.
    pub(crate) fn recorder(&self, audit: &Audit, ports: &[u16]) -> Recorder {
        audit.recorder(self.gate(), recorder_port(ports))
    }

    /// What a gate runs.
    fn command(&self, binary: &Binary, ports: &[u16], audit: Option<&Audit>) -> Vec<String> {
        let mut words = vec![binary.path().to_owned(), "gate".to_owned()];
        let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
        add("--sandbox", self.sandbox().to_string());
        for port in ports {
            add("--forward", format!("{port}={}:{port}", self.sandbox()));
        }
        if let Some(rules) = &self.policy.rules {
            add("--proxy", format!("{}:{}", self.gate(), proxy_port(ports)));
            rules.texts().for_each(|rule| add("--allow", rule));
            self.policy.secret_hosts.iter().for_each(|rule| add("--secret-host", rule.clone()));
            words.push("--control".to_owned());
            if !self.policy.secret_hosts.is_empty() {
                words.push(ON_INPUT.to_owned());
            }
        }
        words.extend(audit.into_iter().flat_map(|audit| audit.words(self.gate(), recorder_port(ports))));
        words
    }
}

/// A port of the gate that is not one of the sandbox.
fn proxy_port(ports: &[u16]) -> u16 {
    (PROXY..=u16::MAX).find(|port| !ports.contains(port)).unwrap_or(PROXY)
}

/// The same for its recorder.
fn recorder_port(ports: &[u16]) -> u16 {
    let proxy = proxy_port(ports);
    (proxy..=u16::MAX).find(|port| *port != proxy && !ports.contains(port)).unwrap_or(PROXY)
}

/// The closed network of a container, by its labels.
pub(crate) fn network_of(container: &ContainerInspectResponse) -> Option<&str> {
    container.config.as_ref()?.labels.as_ref()?.get(NETWORK).map(String::as_str).filter(|network| !network.is_empty())
}

/// What the gate of a sandbox does to the sandbox's state.
pub(crate) fn state(of_sandbox: SandboxState, id: &SandboxId, gate: Option<&ContainerInspectResponse>) -> SandboxState {
    if of_sandbox != SandboxState::Running {
        return of_sandbox;
    }
    let name = gate_name(id.as_str());
    let Some(found) = gate else {
        return SandboxState::Unknown(format!("its gate `{name}` is gone, so nothing can reach it; delete it"));
    };
    let state = found.state.clone().unwrap_or_default();
    match state.status {
        Some(Status::RUNNING) => of_sandbox,
        Some(Status::CREATED) => SandboxState::Pending,
        _ => {
            let code = state.exit_code.unwrap_or(0);
            let why = match state.oom_killed {
                Some(true) => "it used more memory than it may have".to_owned(),
                _ => format!("exit code {code}"),
            };
            let status = state.status.map(|status| status.to_string()).unwrap_or_default();
            SandboxState::Unknown(format!(
                "its gate `{name}` is {status} ({why}), so nothing can reach it; resume the sandbox to start the gate again"
            ))
        }
    }
}

impl Inner {
    /// Makes the network of a sandbox.
    pub(crate) async fn closed_network(
        &self,
        id: &SandboxId,
        policy: Policy,
        backend: &str,
    ) -> Result<Closed, ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let podman = self.engine.about().await.map_err(fault::of)?.podman;
        let action = format!("make a closed network for `{id}`");
        let mut last = String::new();
        for _ in 0..TRIES {
            let number = random().map_err(|error| failed(&action, error))? % NETWORKS;
            let [third, fourth] = (number << 4).to_be_bytes();
            let first = Ipv4Addr::new(POOL.0, POOL.1, third, fourth);
            let subnet = IpamConfig { subnet: Some(format!("{first}/{PREFIX}")), ..IpamConfig::default() };
            // Podman gives its machine no address on internal networks anyway.
            let no_address = ("com.docker.network.bridge.inhibit_ipv4".to_owned(), "true".to_owned());
            let request = NetworkCreateRequest {
                // Two of the same name can be there, and then the engine does not know which one is meant.
                name: format!("{id}-net-{number:03x}"),
                driver: Some("bridge".to_owned()),
                internal: Some(true),
                enable_ipv6: Some(false),
                ipam: Some(Ipam { config: Some(vec![subnet]), ..Ipam::default() }),
                options: (!podman).then(|| [no_address].into()),
                labels: Some(labels(CLOSED, id, backend, None)),
                ..NetworkCreateRequest::default()
            };
            let error = match self.engine.ask(&action, docker.create_network(request)).await {
                Ok(made) => return Ok(Closed { network: made.id, first, policy }),
                Err(error) => error,
            };
            let message = error.to_string();
            if !["overlap", "already used", "being used", "in use"].iter().any(|text| message.contains(text)) {
                return Err(fault::of(error));
            }
            last = message;
        }
        Err(failed(action, format!("no network is free in {}.{}.0.0/16: {last}", POOL.0, POOL.1)))
    }

    /// Makes and starts the gate of a sandbox whose container is there, and gives it what it puts into requests.
    pub(crate) async fn start_gate(
        &self,
        plan: &Plan<'_>,
        closed: &Closed,
        binary: &Binary,
        for_requests: Option<&[u8]>,
    ) -> Result<(), ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let podman = self.engine.about().await.map_err(fault::of)?.podman;
        let name = gate_name(plan.id.as_str());
        let action = format!("make the gate `{name}`");
        let published = plan.published()?;
        let ports: Vec<u16> = published.ports.clone();
        if let Some(audit) = plan.audit {
            self.make_audit_volume(audit, plan.image, plan.backend).await?;
        }
        let mut attempt = 0;
        let gate = loop {
            let mut options = CreateContainerOptionsBuilder::default().name(&name);
            if let Some(platform) = &self.options.platform {
                options = options.platform(platform);
            }
            let body = gate_body(plan, closed, binary, &ports, &published, podman);
            match self.engine.ask(&action, docker.create_container(Some(options.build()), body)).await {
                Ok(made) => break made.id,
                Err(error) if error.is_conflict() && attempt < LOOKS => {
                    // The sandbox is ours, so this is what is left of an earlier one, or is just going away.
                    attempt += 1;
                    let old = self.engine.ask(&action, docker.inspect_container(&name, None)).await;
                    if let Ok(old) = old
                        && network_of(&old) != Some(&closed.network)
                        && let Some(id) = old.id
                    {
                        self.remove(&id).await?;
                    } else {
                        sleep(PAUSE).await;
                    }
                }
                Err(error) => return Err(fault::of(error)),
            }
        };
        let request =
            NetworkConnectRequest { container: gate.clone(), endpoint_config: Some(Closed::endpoint(closed.gate())) };
        let connected = docker.connect_network(&closed.network, request);
        self.engine.ask(&format!("connect the gate `{name}` to its network"), connected).await.map_err(fault::of)?;
        if plan.audit.is_some() {
            self.lay_log(&gate).await?;
        }
        if let Some(line) = for_requests {
            return self.start_and_give(&gate, &name, line).await;
        }
        let started = docker.start_container(&gate, None);
        self.engine.ask(&format!("start the gate `{name}`"), started).await.map_err(fault::of_start)
    }

    /// The gate of a sandbox, if it is there.
    pub(crate) async fn gate(
        &self,
        id: &str,
        network: &str,
    ) -> Result<Option<ContainerInspectResponse>, ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let name = gate_name(id);
        match self.engine.ask(&format!("look at the gate `{name}`"), docker.inspect_container(&name, None)).await {
            Ok(found) if network_of(&found) == Some(network) => Ok(Some(found)),
            Ok(_) => Ok(None),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(fault::of(error)),
        }
    }

    /// Freezes the gate of a sandbox that is frozen.
    pub(crate) async fn pause_gate(&self, id: &SandboxId, network: &str) -> Result<(), ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let name = gate_name(id.as_str());
        match self.engine.ask(&format!("pause the gate `{name}`"), docker.pause_container(&name)).await {
            Err(error) if self.gate_does(id, network, Status::RUNNING).await? => Err(fault::of(error)),
            _ => Ok(()),
        }
    }

    /// Lets the gate of a sandbox go on, from whatever state.
    pub(crate) async fn resume_gate(&self, id: &SandboxId, network: &str) -> Result<(), ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let name = gate_name(id.as_str());
        let action = format!("resume the gate `{name}`");
        if let Some(gate) = self.gate_without_secrets(id, network).await? {
            tracing::warn!(sandbox = %id, "its gate was stopped and has lost the secrets that it put in: {START_ANEW}");
            return self.start_and_give_nothing(&gate, &name).await;
        }
        let resumed = if self.gate_does(id, network, Status::PAUSED).await? {
            self.engine.ask(&action, docker.unpause_container(&name)).await
        } else {
            // Of one that runs it is no error.
            self.engine.ask(&action, docker.start_container(&name, None)).await
        };
        match resumed {
            Err(error) if !self.gate_does(id, network, Status::RUNNING).await? => Err(fault::of(error)),
            _ => Ok(()),
        }
    }

    /// Whether the gate of a sandbox has stopped and so has lost what it puts into requests. Its engine's id.
    async fn gate_without_secrets(&self, id: &SandboxId, network: &str) -> Result<Option<String>, ProviderError> {
        let gate = self.gate(id.as_str(), network).await?;
        let has_stopped = |gate: &ContainerInspectResponse| {
            let status = gate.state.as_ref().and_then(|state| state.status);
            !matches!(status, Some(Status::RUNNING | Status::PAUSED))
        };
        let was_given = |gate: &ContainerInspectResponse| {
            let words = gate.config.as_ref().and_then(|config| config.cmd.as_deref()).unwrap_or_default();
            words.iter().any(|word| word == ON_INPUT)
        };
        Ok(gate.filter(|gate| has_stopped(gate) && was_given(gate)).and_then(|gate| gate.id))
    }

    async fn gate_does(&self, id: &SandboxId, network: &str, wanted: Status) -> Result<bool, ProviderError> {
        let gate = self.gate(id.as_str(), network).await?;
        Ok(gate.and_then(|gate| gate.state?.status) == Some(wanted))
    }

    /// Removes what is left of a closed network: its gate, and itself. Of what is gone it is no error.
    pub(crate) async fn remove_closed(&self, network: &str) -> Result<(), ProviderError> {
        self.remove_gates(network).await?;
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let action = format!("remove the network `{network}`");
        for look in 0.. {
            match self.engine.ask(&action, docker.remove_network(network)).await {
                Ok(()) => break,
                Err(error) if error.is_not_found() => break,
                // The container that was on it is just going away.
                Err(error) if error.to_string().contains("active endpoints") && look < LOOKS => sleep(PAUSE).await,
                Err(error) => return Err(fault::of(error)),
            }
        }
        Ok(())
    }

    async fn remove_gates(&self, network: &str) -> Result<(), ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let wanted = vec![format!("{NETWORK}={network}"), format!("{ROLE}={GATE}")];
        let query = ListContainersOptionsBuilder::default().all(true).filters(&[("label".to_owned(), wanted)].into());
        let listed = self.engine.ask("list gates", docker.list_containers(Some(query.build()))).await;
        for gate in listed.map_err(fault::of)?.into_iter().filter_map(|gate| gate.id) {
            let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
            match self.engine.ask("remove a gate", docker.remove_container(&gate, Some(options))).await {
                // Whoever removes it at the same time is done when the network can be removed.
                Err(error) if !error.is_not_found() && !error.is_conflict() => return Err(fault::of(error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Closed networks without a sandbox, and which sandbox it was: those of dead backends, and old ones.
    pub(crate) async fn left_networks(
        &self,
        used: &HashSet<String>,
    ) -> Result<BTreeMap<String, String>, ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let wanted = vec![format!("{ROLE}={CLOSED}")];
        let query = ListNetworksOptionsBuilder::default().filters(&[("label".to_owned(), wanted)].into()).build();
        let networks = self.engine.ask("list networks", docker.list_networks(Some(query))).await.map_err(fault::of)?;
        let old = |created: Option<&String>| {
            let created = created.and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
            names::seconds(SystemTime::now()) - created > MAKING.as_secs_f64()
        };
        let mut left = BTreeMap::new();
        for network in networks {
            let labels = network.labels.unwrap_or_default();
            let lives = labels.get(BACKEND).is_some_and(|backend| self.holders.lives(backend));
            if let Some(id) = network.id.filter(|id| !used.contains(id))
                && (!lives || old(labels.get(CREATED)))
            {
                left.insert(id, network.name.unwrap_or_default());
            }
        }
        Ok(left)
    }
}

/// A number that nobody can foresee.
fn random() -> Result<u16, getrandom::Error> {
    let mut bytes = [0; 2];
    getrandom::fill(&mut bytes)?;
    Ok(u16::from_be_bytes(bytes))
}

fn labels(role: &str, id: &SandboxId, backend: &str, network: Option<&str>) -> HashMap<String, String> {
    let mut labels: HashMap<String, String> = [
        (ROLE, role.to_owned()),
        (SESSION, id.as_str().trim_start_matches(names::PREFIX).to_owned()),
        (BACKEND, backend.to_owned()),
        (CREATED, names::seconds(SystemTime::now()).to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    labels.extend(network.map(|network| (NETWORK.to_owned(), network.to_owned())));
    labels
}

fn gate_body(
    plan: &Plan<'_>,
    closed: &Closed,
    binary: &Binary,
    ports: &[u16],
    published: &Published,
    podman: bool,
) -> ContainerCreateBody {
    let (mut binds, mut mounts) = (Vec::new(), Vec::new());
    binary.mount(&mut binds, &mut mounts);
    binds.extend(plan.audit.map(Audit::bind));
    // What is in the sandbox makes the gate write, so the log has a bound.
    let log = [("max-size".to_owned(), "1m".to_owned()), ("max-file".to_owned(), "2".to_owned())].into();
    let takes_input = !closed.policy.secret_hosts.is_empty();
    let log = HostConfigLogConfig { typ: Some("json-file".to_owned()), config: Some(log) };
    let host = HostConfig {
        binds: Some(binds),
        mounts: Some(mounts),
        network_mode: Some("bridge".to_owned()),
        port_bindings: Some(published.bindings.clone()),
        readonly_rootfs: Some(true),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        memory: Some(GATE_MEMORY),
        memory_swap: Some(GATE_MEMORY),
        pids_limit: Some(GATE_PROCESSES),
        log_config: (!podman).then_some(log),
        ..HostConfig::default()
    };
    ContainerCreateBody {
        image: Some(plan.image.to_owned()),
        entrypoint: Some(Vec::new()),
        cmd: Some(closed.command(binary, ports, plan.audit)),
        open_stdin: Some(takes_input),
        stdin_once: Some(takes_input),
        attach_stdin: Some(takes_input),
        user: Some(NOBODY.to_owned()),
        working_dir: Some("/".to_owned()),
        labels: Some(labels(GATE, plan.id, plan.backend, Some(&closed.network))),
        exposed_ports: Some(published.names.clone()),
        host_config: Some(host),
        ..ContainerCreateBody::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(hosts: Option<&[&str]>) -> Closed {
        let rules = hosts.map(|hosts| Rules::parse(hosts).unwrap());
        Closed {
            network: "n".to_owned(),
            first: Ipv4Addr::new(10, 213, 7, 16),
            policy: Policy { rules, secret_hosts: Vec::new() },
        }
    }

    #[test]
    fn a_gate_leads_to_the_ports_of_its_sandbox_and_lets_out_what_is_allowed() {
        let binary = Binary::Image;
        let words = closed(Some(&["a.test:443", "*.b.test"])).command(&binary, &[60_000, 3128], None).join(" ");
        assert_eq!(
            words,
            "/openhands/bin/gloveport gate --sandbox 10.213.7.18 --forward 60000=10.213.7.18:60000 --forward \
             3128=10.213.7.18:3128 --proxy 10.213.7.19:3129 --allow a.test:443 --allow *.b.test --control"
        );
        let mut with_secrets = closed(Some(&["a.test:443"]));
        with_secrets.policy.secret_hosts = vec!["a.test:443".to_owned()];
        let words = with_secrets.command(&binary, &[60_000], None).join(" ");
        assert!(words.ends_with("--allow a.test:443 --secret-host a.test:443 --control --edge-on-input"), "{words}");
        let words = closed(None).command(&binary, &[60_000], None).join(" ");
        assert_eq!(words, "/openhands/bin/gloveport gate --sandbox 10.213.7.18 --forward 60000=10.213.7.18:60000");
    }

    #[test]
    fn programs_are_told_the_proxy_only_if_there_is_one() {
        let mut variables = Variables::new();
        closed(None).tell(&mut variables, &[]);
        assert!(variables.is_empty());
        closed(Some(&[])).tell(&mut variables, &[]);
        let names: Vec<_> = variables.keys().map(String::as_str).collect();
        assert_eq!(names, ["HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"]);
        assert_eq!(variables["https_proxy"], "http://10.213.7.19:3128");
    }

    #[test]
    fn a_gate_that_does_not_run_is_told() {
        let id = SandboxId::new("openhands-runtime-s").unwrap();
        let gate = |status| ContainerInspectResponse {
            state: Some(bollard::models::ContainerState {
                status: Some(status),
                exit_code: Some(7),
                ..bollard::models::ContainerState::default()
            }),
            ..ContainerInspectResponse::default()
        };
        let of = |gate: Option<ContainerInspectResponse>| state(SandboxState::Running, &id, gate.as_ref());
        assert_eq!(of(Some(gate(Status::RUNNING))), SandboxState::Running);
        assert_eq!(of(Some(gate(Status::CREATED))), SandboxState::Pending);
        assert!(of(None).reason().contains("`openhands-runtime-s-gate` is gone"));
        assert!(of(Some(gate(Status::EXITED))).reason().contains("is exited (exit code 7)"));
        assert_eq!(state(SandboxState::Paused, &id, None), SandboxState::Paused);
    }
}
