//! Whom a sandbox may talk to, as network policies. A policy of Kubernetes knows addresses alone: hosts that are named are
//! reached through a gate, which looks them up.

use std::collections::BTreeMap;

use gloveport_allow_list::{Network, Rules};
use gloveport_provider::{NetworkPolicy as Wanted, ProviderError};
use k8s_openapi::{
    api::networking::v1::{
        IPBlock, NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer,
        NetworkPolicyPort, NetworkPolicySpec,
    },
    apimachinery::pkg::{
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};

use crate::fault::wrong;

/// Entries of one policy.
const MOST: usize = 256;

/// What is let out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Out {
    /// Addresses that are reached directly.
    pub(crate) addresses: Vec<NetworkPolicyEgressRule>,
    /// What a gate lets through, if hosts are named: all that is allowed, as programs that ask the gate ask it for everything.
    pub(crate) gate: Option<Rules>,
}

/// What is let out; none where everything is.
pub(crate) fn out(wanted: &Wanted) -> Result<Option<Out>, ProviderError> {
    let entries = match wanted {
        Wanted::Full => return Ok(None),
        Wanted::None => return Ok(Some(Out { addresses: Vec::new(), gate: None })),
        Wanted::Only(entries) => entries,
    };
    if entries.len() > MOST {
        return Err(wrong("network", format!("{MOST} entries are possible at most")));
    }
    let rules = Rules::parse(entries).map_err(|error| wrong("network", error))?;
    let addresses = rules.networks().map(|(network, port)| to_network(network, port)).collect();
    Ok(Some(Out { addresses, gate: rules.name_hosts().then_some(rules) }))
}

fn to_network(network: Network, port: Option<u16>) -> NetworkPolicyEgressRule {
    let block = IPBlock { cidr: network.cidr(), ..IPBlock::default() };
    let peer = NetworkPolicyPeer { ip_block: Some(block), ..NetworkPolicyPeer::default() };
    NetworkPolicyEgressRule {
        to: Some(vec![peer]),
        ports: port.map(|port| ["TCP", "UDP"].map(|protocol| of_protocol(port, protocol)).to_vec()),
    }
}

/// The way to pods of the namespace, on one port.
pub(crate) fn to_pods(pods: BTreeMap<String, String>, port: u16) -> NetworkPolicyEgressRule {
    NetworkPolicyEgressRule { to: Some(vec![these(pods)]), ports: Some(vec![of_protocol(port, "TCP")]) }
}

fn these(pods: BTreeMap<String, String>) -> NetworkPolicyPeer {
    NetworkPolicyPeer { pod_selector: Some(selector(pods)), ..NetworkPolicyPeer::default() }
}

fn selector(pods: BTreeMap<String, String>) -> LabelSelector {
    LabelSelector { match_labels: Some(pods), ..LabelSelector::default() }
}

fn of_protocol(port: u16, protocol: &str) -> NetworkPolicyPort {
    NetworkPolicyPort {
        port: Some(IntOrString::Int(port.into())),
        protocol: Some(protocol.to_owned()),
        ..NetworkPolicyPort::default()
    }
}

/// The policy of the pods that this selects. Who may talk to them is not its matter: their servers ask for a key.
pub(crate) fn policy(
    metadata: ObjectMeta,
    pods: BTreeMap<String, String>,
    egress: Vec<NetworkPolicyEgressRule>,
) -> NetworkPolicy {
    NetworkPolicy {
        metadata,
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(selector(pods)),
            policy_types: Some(vec!["Egress".to_owned()]),
            egress: Some(egress),
            ..NetworkPolicySpec::default()
        }),
    }
}

/// The policy of a gate: one port, for these pods alone. Whom it may reach is left to the policies of the namespace, which
/// know what no name should lead to.
pub(crate) fn gate_policy(
    metadata: ObjectMeta,
    gate: BTreeMap<String, String>,
    sandbox: BTreeMap<String, String>,
    port: u16,
) -> NetworkPolicy {
    let rule =
        NetworkPolicyIngressRule { from: Some(vec![these(sandbox)]), ports: Some(vec![of_protocol(port, "TCP")]) };
    NetworkPolicy {
        metadata,
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(selector(gate)),
            policy_types: Some(vec!["Ingress".to_owned()]),
            ingress: Some(vec![rule]),
            ..NetworkPolicySpec::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(entries: &[&str]) -> Wanted {
        Wanted::Only(entries.iter().map(|entry| (*entry).to_owned()).collect())
    }

    /// Addresses with the ports, and what a gate lets through.
    fn view(wanted: &Wanted) -> (Vec<(String, Vec<IntOrString>)>, Option<String>) {
        let Out { addresses, gate } = out(wanted).unwrap().unwrap();
        let view = addresses.iter().map(|rule| {
            let mut peers = rule.to.iter().flatten().map(|peer| peer.ip_block.as_ref().unwrap().cidr.clone());
            let ports = rule.ports.iter().flatten().map(|port| port.port.clone().unwrap());
            (peers.next().unwrap(), ports.collect())
        });
        (view.collect(), gate.map(|rules| rules.to_string()))
    }

    #[test]
    fn addresses_are_let_out_directly_and_hosts_through_a_gate() {
        let port = IntOrString::Int(443);
        let addresses = vec![("10.0.0.0/8".to_owned(), vec![]), ("192.0.2.1/32".to_owned(), vec![port.clone(), port])];
        assert_eq!(view(&only(&["10.0.0.0/8", "192.0.2.1:443"])), (addresses.clone(), None));
        let named = "10.0.0.0/8, *.example.org:443, 192.0.2.1:443";
        assert_eq!(view(&only(&["10.0.0.0/8", "*.example.org:443", "192.0.2.1:443"])), (addresses, Some(named.into())));
        assert_eq!(view(&only(&["pypi.org"])), (vec![], Some("pypi.org".to_owned())));
        assert_eq!(view(&only(&[])), (vec![], None));
        assert_eq!(view(&Wanted::None), (vec![], None));
        assert_eq!(out(&Wanted::Full).unwrap(), None);
        for wrong in [only(&["10.0.0.1/8"]), only(&["x y"]), only(&["https://pypi.org"])] {
            out(&wrong).unwrap_err();
        }
        out(&Wanted::Only(vec!["10.0.0.1".to_owned(); 257])).unwrap_err();
    }
}
