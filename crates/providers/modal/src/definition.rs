//! What a sandbox is made from: what it may use, whom it reaches, which ports it has (`hosted-apis` 5.2).

use std::{net::IpAddr, time::Duration};

use gloveport_hosted::{fault::wrong, record::Record};
use gloveport_provider::{NetworkPolicy, ProviderError, ResourceLimits, SandboxSpec};

use crate::{
    ModalOptions, names,
    wire::{Definition, Network, Placement, Port, Ports, Probe, Resources},
};

/// Time beyond its own that a sandbox has until the service ends it.
const GRACE: Duration = Duration::from_mins(1);
/// A network in which nobody is. The service refuses ports of a sandbox whose network is closed, so this is all that one may reach.
const NOBODY: &str = "192.0.2.0/32";
/// How often it is looked whether our server listens.
const LOOK: Duration = Duration::from_millis(200);
/// Bytes of a MiB.
const MIB: u64 = 1024 * 1024;
/// Most processors that a wish can name.
const PROCESSORS: f64 = 1024.0;

/// What a sandbox of this wish is made from.
pub(crate) fn definition(
    options: &ModalOptions,
    spec: &SandboxSpec,
    record: &Record,
    image: String,
    mount: String,
    arguments: Vec<String>,
) -> Result<Definition, ProviderError> {
    let regions = options.regions.clone();
    Ok(Definition {
        entrypoint_args: arguments,
        mount_ids: vec![mount],
        image_id: image,
        resources: Some(resources(options, &spec.limits)?),
        timeout_secs: u32::try_from(lifetime(options, spec)?.as_secs()).unwrap_or(u32::MAX),
        scheduler_placement: (!regions.is_empty()).then_some(Placement { regions }),
        open_ports: Some(ports(record)),
        network_access: Some(network(&spec.network)?),
        cloud_provider_str: options.cloud.clone(),
        runtime: options.isolation.clone(),
        name: Some(names::of(&spec.session_id)),
        readiness_probe: Some(Probe {
            tcp_port: Some(record.port.into()),
            interval_ms: u32::try_from(LOOK.as_millis()).ok(),
        }),
    })
}

/// How long the service lets a sandbox live. It cannot be changed later.
pub(crate) fn lifetime(options: &ModalOptions, spec: &SandboxSpec) -> Result<Duration, ProviderError> {
    match spec.time_to_live {
        None => Ok(options.time_limit),
        Some(time) if time <= options.time_limit => Ok(time.saturating_add(GRACE).min(options.time_limit)),
        Some(time) => {
            let reason = format!(
                "{} s are more than time_limit in [extended.modal], which is {} s, and Modal lets none live longer than \
                 it was made for",
                time.as_secs(),
                options.time_limit.as_secs()
            );
            Err(wrong("time_to_live", reason))
        }
    }
}

/// What it gets at least, and, where that was asked for, at most.
fn resources(options: &ModalOptions, limits: &ResourceLimits) -> Result<Resources, ProviderError> {
    let factor = limits.factor.unwrap_or(1);
    let memory = match limits.memory {
        Some(bytes) => Some(u32::try_from(bytes.div_ceil(MIB)).map_err(|error| wrong("limits.memory", error))?),
        None => None,
    };
    let cpus = limits.cpus.map(thousandths).transpose()?;
    let base = thousandths(options.cpu)?;
    Ok(Resources {
        memory_mb: memory.unwrap_or_else(|| options.memory.saturating_mul(factor)),
        milli_cpu: cpus.unwrap_or_else(|| base.saturating_mul(factor)),
        memory_mb_max: memory.unwrap_or_default(),
        milli_cpu_max: cpus.unwrap_or_default(),
    })
}

/// Processors in thousandths.
pub(crate) fn thousandths(cpus: f64) -> Result<u32, ProviderError> {
    if !(0.001..=PROCESSORS).contains(&cpus) {
        return Err(wrong("limits.cpus", format!("{cpus} are none of 0.001 to {PROCESSORS}")));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was just compared")]
    let rounded = (cpus * 1000.0).round() as u32;
    Ok(rounded)
}

/// All ports that are reached from outside. No call adds one later.
fn ports(record: &Record) -> Ports {
    let mut ports: Vec<Port> =
        record.ports.values().map(|port| Port { port: (*port).into(), unencrypted: false }).collect();
    ports.insert(0, Port { port: record.port.into(), unencrypted: false });
    Ports { ports }
}

/// Whom a sandbox reaches.
fn network(policy: &NetworkPolicy) -> Result<Network, ProviderError> {
    let closed = || Network { kind: 3, allowed_cidrs: vec![NOBODY.to_owned()], allowed_domains: Vec::new() };
    let rules = match policy {
        NetworkPolicy::Full => return Ok(Network { kind: 1, ..Network::default() }),
        NetworkPolicy::None => return Ok(closed()),
        NetworkPolicy::Only(rules) if rules.is_empty() => return Ok(closed()),
        NetworkPolicy::Only(rules) => rules,
    };
    let mut network = Network { kind: 3, ..Network::default() };
    for rule in rules {
        let (address, length) = rule.split_once('/').map_or((rule.as_str(), None), |(it, length)| (it, Some(length)));
        match (address.parse::<IpAddr>(), length.map(str::parse::<u8>)) {
            (Ok(IpAddr::V4(_)), None) => network.allowed_cidrs.push(format!("{address}/32")),
            (Ok(IpAddr::V4(_)), Some(Ok(0..=32))) => network.allowed_cidrs.push(rule.clone()),
            (Err(_), None) if !rule.contains(':') => network.allowed_domains.push(rule.clone()),
            _ => {
                let reason =
                    format!("Modal lets through hosts and IPv4 networks, without ports; `{rule}` is none of both");
                return Err(wrong("network", reason));
            }
        }
    }
    Ok(network)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_closed_but_for_what_is_named_and_ports_are_refused() {
        let of = |rules: &[&str]| network(&NetworkPolicy::Only(rules.iter().map(|rule| (*rule).to_owned()).collect()));
        assert_eq!(network(&NetworkPolicy::Full).unwrap().kind, 1);
        for closed in [network(&NetworkPolicy::None).unwrap(), of(&[]).unwrap()] {
            assert_eq!((closed.kind, closed.allowed_cidrs), (3, vec![NOBODY.to_owned()]));
        }
        let some = of(&["pypi.org", "10.0.0.0/8", "1.2.3.4", "*.npmjs.org"]).unwrap();
        assert_eq!((some.kind, some.allowed_cidrs.join(" ").as_str()), (3, "10.0.0.0/8 1.2.3.4/32"));
        assert_eq!(some.allowed_domains, ["pypi.org", "*.npmjs.org"]);
        for rule in ["pypi.org:443", "10.0.0.0/33", "::1", "fd00::/8", "10.0.0.0/8:443", "a/8"] {
            let error = of(&[rule]).unwrap_err().to_string();
            assert!(error.contains("without ports"), "{rule}: {error}");
        }
    }

    #[test]
    fn processors_are_thousandths_and_some_of_them_at_least() {
        assert_eq!((thousandths(0.5).unwrap(), thousandths(2.0).unwrap()), (500, 2000));
        for cpus in [0.0, 0.0001, 4096.0, f64::NAN, f64::INFINITY] {
            assert!(thousandths(cpus).is_err(), "{cpus}");
        }
    }
}
