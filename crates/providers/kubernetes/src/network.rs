//! Whom a sandbox may talk to, as a network policy.

use std::collections::BTreeMap;

use gloveport_allow_list::{Network, Rules};
use gloveport_provider::{NetworkPolicy as Wanted, ProviderError};
use k8s_openapi::{
    api::networking::v1::{
        IPBlock, NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec,
    },
    apimachinery::pkg::{
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};

use crate::fault::wrong;

/// Entries of one policy.
const MOST: usize = 256;

/// What is let out; none where everything is.
pub(crate) fn egress(wanted: &Wanted) -> Result<Option<Vec<NetworkPolicyEgressRule>>, ProviderError> {
    let entries = match wanted {
        Wanted::Full => return Ok(None),
        Wanted::None => return Ok(Some(Vec::new())),
        Wanted::Only(entries) => entries,
    };
    if entries.len() > MOST {
        return Err(wrong("network", format!("{MOST} entries are possible at most")));
    }
    let rules = Rules::parse(entries).map_err(|error| wrong("network", error))?;
    let networks = rules.networks().map_err(|host| {
        let hint =
            "a policy of Kubernetes knows addresses alone: name networks like 10.0.0.0/8, or use the runtime `docker`";
        wrong("network", format!("`{host}` names a host; {hint}"))
    })?;
    Ok(Some(networks.into_iter().map(|(network, port)| rule(network, port)).collect()))
}

fn rule(network: Network, port: Option<u16>) -> NetworkPolicyEgressRule {
    let block = IPBlock { cidr: network.cidr(), ..IPBlock::default() };
    let peer = NetworkPolicyPeer { ip_block: Some(block), ..NetworkPolicyPeer::default() };
    let of_protocol = |port: u16, protocol: &str| NetworkPolicyPort {
        port: Some(IntOrString::Int(port.into())),
        protocol: Some(protocol.to_owned()),
        ..NetworkPolicyPort::default()
    };
    NetworkPolicyEgressRule {
        to: Some(vec![peer]),
        ports: port.map(|port| ["TCP", "UDP"].map(|protocol| of_protocol(port, protocol)).to_vec()),
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
            pod_selector: Some(LabelSelector { match_labels: Some(pods), ..LabelSelector::default() }),
            policy_types: Some(vec!["Egress".to_owned()]),
            egress: Some(egress),
            ..NetworkPolicySpec::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_networks_are_let_out_and_names_are_refused() {
        let only = |entries: &[&str]| Wanted::Only(entries.iter().map(|entry| (*entry).to_owned()).collect());
        let rules = egress(&only(&["10.0.0.0/8", "192.0.2.1:443"])).unwrap().unwrap();
        let view: Vec<_> = rules
            .iter()
            .map(|rule| {
                let peers = rule.to.iter().flatten().map(|peer| peer.ip_block.as_ref().unwrap().cidr.clone());
                let ports = rule.ports.iter().flatten().map(|port| port.port.clone().unwrap());
                (peers.collect::<Vec<_>>(), ports.collect::<Vec<_>>())
            })
            .collect();
        let port = IntOrString::Int(443);
        let expected =
            [(vec!["10.0.0.0/8".to_owned()], vec![]), (vec!["192.0.2.1/32".to_owned()], vec![port.clone(), port])];
        assert_eq!(view, expected);
        for wrong in [only(&["example.org"]), only(&["*.example.org:443"]), only(&["10.0.0.1/8"]), only(&["x y"])] {
            egress(&wrong).unwrap_err();
        }
        egress(&Wanted::Only(vec!["10.0.0.1".to_owned(); 257])).unwrap_err();
        assert_eq!(egress(&Wanted::Full).unwrap(), None);
        assert_eq!(egress(&Wanted::None).unwrap(), Some(Vec::new()));
    }
}
