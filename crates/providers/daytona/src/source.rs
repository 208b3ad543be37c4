//! What a sandbox is made from, what it may use up, and whom it may talk to.

use std::net::IpAddr;

use gloveport_config::SandboxConfig;
use gloveport_hosted::fault::wrong;
use gloveport_provider::{NetworkPolicy, ProviderError, ResourceLimits, SandboxSpec};

use crate::{
    inner::Inner,
    wire::{Build, Create},
};

/// Bytes of a GiB.
const GIB: u64 = 1 << 30;

/// What a sandbox is made from.
#[derive(Debug, PartialEq, Eq)]
enum Source {
    /// A snapshot; `None` is the organization's own.
    Snapshot(Option<String>),
    /// An image of a registry.
    Image(String),
}

impl Inner {
    /// Says in a wish what a sandbox is made from. `snapshot` is the one that a fork is made from.
    pub(crate) async fn choose(
        &self,
        wish: &mut Create<'_>,
        spec: &SandboxSpec,
        snapshot: Option<&str>,
    ) -> Result<(), ProviderError> {
        if let Some(snapshot) = snapshot {
            // It has the size of what it was made of.
            wish.snapshot = Some(snapshot.to_owned());
            return Ok(());
        }
        match self.source(spec.image.as_deref()).await? {
            Source::Snapshot(_) if spec.limits != ResourceLimits::default() => {
                let reason = "a snapshot of Daytona has its own size; name an image that is none";
                Err(wrong("limits", reason))
            }
            Source::Snapshot(name) => {
                wish.snapshot = name;
                Ok(())
            }
            Source::Image(image) => {
                wish.build_info = Some(Build { dockerfile_content: dockerfile(&image)? });
                (wish.cpu, wish.memory, wish.disk) = size(&spec.limits)?;
                Ok(())
            }
        }
    }

    async fn source(&self, image: Option<&str>) -> Result<Source, ProviderError> {
        let options = &self.options;
        // What OpenHands takes where nobody names an image.
        let default = SandboxConfig::default().base_container_image;
        let named = image.filter(|image| options.snapshots.contains_key(*image) || default.as_deref() != Some(image));
        let Some(image) = named else {
            return Ok(match &options.image {
                Some(image) => Source::Image(image.clone()),
                None => Source::Snapshot(options.snapshot.clone()),
            });
        };
        if let Some(snapshot) = options.snapshots.get(image) {
            return Ok(Source::Snapshot(Some(snapshot.clone())));
        }
        // The names of snapshots may look like those of images.
        let is_snapshot = self.control.snapshot(image).await?.is_some();
        let image = image.to_owned();
        Ok(if is_snapshot { Source::Snapshot(Some(image)) } else { Source::Image(image) })
    }
}

/// The file that a sandbox of an image is built from.
fn dockerfile(image: &str) -> Result<String, ProviderError> {
    if image.is_empty() || image.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(wrong("image", format!("`{image}` is neither a snapshot nor the name of an image")));
    }
    Ok(format!("FROM {image}\n"))
}

type Size = (Option<u64>, Option<u64>, Option<u64>);

/// Processors, memory and disk, as whole as the service has them. A limit is never more than was asked for.
fn size(limits: &ResourceLimits) -> Result<Size, ProviderError> {
    let cpus = limits.cpus.map(|cpus| {
        let whole = (1_u64..=1024)
            .find(|whole| u32::try_from(*whole).is_ok_and(|whole| f64::from(whole).to_bits() == cpus.to_bits()));
        whole.ok_or_else(|| wrong("limits", format!("Daytona has whole processors, and not {cpus}")))
    });
    let gib = |what: &str, bytes: u64| {
        let fits = bytes >= GIB && bytes.is_multiple_of(GIB);
        let reason = || format!("Daytona has {what} in whole GiB, and not {bytes} bytes");
        if fits { Ok(bytes / GIB) } else { Err(wrong("limits", reason())) }
    };
    let memory = limits.memory.map(|bytes| gib("memory", bytes));
    let disk = limits.disk.map(|bytes| gib("disk space", bytes));
    Ok((cpus.transpose()?, memory.transpose()?, disk.transpose()?))
}

/// Says in a wish whom a sandbox may talk to.
pub(crate) fn confine(wish: &mut Create<'_>, policy: &NetworkPolicy) -> Result<(), ProviderError> {
    let hosts = match policy {
        NetworkPolicy::Full => return Ok(()),
        NetworkPolicy::None => {
            wish.network_block_all = Some(true);
            return Ok(());
        }
        NetworkPolicy::Only(hosts) => hosts,
    };
    let (mut networks, mut domains) = (Vec::new(), Vec::new());
    for host in hosts {
        match network(host) {
            Some(network) => networks.push(network),
            None if host.contains([':', ',', '/']) => {
                let reason =
                    format!("Daytona lets through domains and networks of IPv4, and no ports; `{host}` is neither");
                return Err(wrong("network", reason));
            }
            None => domains.push(host.clone()),
        }
    }
    let list = |all: Vec<String>| (!all.is_empty()).then(|| all.join(","));
    (wish.network_allow_list, wish.domain_allow_list) = (list(networks), list(domains));
    if hosts.is_empty() {
        wish.network_block_all = Some(true);
    }
    Ok(())
}

/// A network of IPv4 as the service writes it; none for something else.
fn network(host: &str) -> Option<String> {
    let (address, length) = host.split_once('/').unwrap_or((host, "32"));
    let is_network = address.parse::<IpAddr>().is_ok_and(|address| address.is_ipv4())
        && length.parse::<u8>().is_ok_and(|length| length <= 32);
    is_network.then(|| format!("{address}/{length}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_whole_and_never_more_than_was_asked_for() {
        let limits = |cpus, memory, disk| ResourceLimits { cpus, memory, disk, ..ResourceLimits::default() };
        assert_eq!(size(&limits(None, None, None)).unwrap(), (None, None, None));
        assert_eq!(size(&limits(Some(2.0), Some(4 * GIB), Some(8 * GIB))).unwrap(), (Some(2), Some(4), Some(8)));
        for (limits, expected) in [
            (limits(Some(0.5), None, None), "whole processors, and not 0.5"),
            (limits(None, Some(256 << 20), None), "memory in whole GiB"),
            (limits(None, None, Some(GIB + 1)), "disk space in whole GiB"),
        ] {
            let error = size(&limits).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_network_is_closed_but_for_what_is_named_and_ports_are_refused() {
        let confined = |hosts: &[&str]| {
            let (mut wish, only) = (Create::default(), hosts.iter().map(|host| (*host).to_owned()).collect());
            confine(&mut wish, &NetworkPolicy::Only(only)).map(|()| wish)
        };
        let both = confined(&["pypi.org", "10.0.0.0/8", "192.0.2.1", "*.a.test"]).unwrap();
        assert_eq!(both.network_allow_list.as_deref(), Some("10.0.0.0/8,192.0.2.1/32"));
        assert_eq!((both.domain_allow_list.as_deref(), both.network_block_all), (Some("pypi.org,*.a.test"), None));
        assert_eq!(confined(&[]).unwrap().network_block_all, Some(true));
        for host in ["pypi.org:443", "fd00::/8", "a,b"] {
            assert!(confined(&[host]).unwrap_err().to_string().contains("no ports"), "{host}");
        }
    }

    #[test]
    fn an_image_is_one_word_of_a_dockerfile() {
        assert_eq!(dockerfile("debian:13").unwrap(), "FROM debian:13\n");
        for image in ["", "a b", "a\nRUN b"] {
            assert!(dockerfile(image).is_err(), "{image}");
        }
    }
}
