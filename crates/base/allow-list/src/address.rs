//! Networks of addresses, and the addresses that no name leads to.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

/// An address, or all that begin with the same bits: `10.0.0.1`, `10.0.0.0/8`, `2001:db8::/32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    address: IpAddr,
    prefix: u32,
}

impl Network {
    /// Whether an address is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => (own.to_bits() ^ other.to_bits()) & mask4(self.prefix) == 0,
            (IpAddr::V6(own), IpAddr::V6(other)) => (own.to_bits() ^ other.to_bits()) & mask6(self.prefix) == 0,
            _ => false,
        }
    }

    /// It with the number of bits in any case: `10.0.0.1/32`.
    pub fn cidr(&self) -> String {
        format!("{}/{}", self.address, self.prefix)
    }

    /// The network of `address` with this many leading bits; the error says what is wrong.
    fn new(address: IpAddr, prefix: u32) -> Result<Self, String> {
        // An IPv4 address in IPv6 form is the IPv4 address.
        let (address, prefix) = match (address.to_canonical(), address) {
            (v4 @ IpAddr::V4(_), IpAddr::V6(_)) if prefix >= 96 => (v4, prefix - 96),
            (IpAddr::V4(_), IpAddr::V6(_)) => (address, prefix),
            (canonical, _) => (canonical, prefix),
        };
        let (bits, first) = match address {
            IpAddr::V4(v4) => (32, IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & mask4(prefix)))),
            IpAddr::V6(v6) => (128, IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask6(prefix)))),
        };
        if prefix > bits {
            return Err(format!("the number after `/` is at most {bits}"));
        }
        if first != address {
            return Err(format!("{address} is not the first address of the network; write `{first}/{prefix}`"));
        }
        Ok(Self { address, prefix })
    }
}

fn mask4(prefix: u32) -> u32 {
    u32::MAX.checked_shl(32_u32.saturating_sub(prefix)).unwrap_or(0)
}

fn mask6(prefix: u32) -> u128 {
    u128::MAX.checked_shl(128_u32.saturating_sub(prefix)).unwrap_or(0)
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| format!("`{address}` is no address"))?;
        let prefix = match prefix {
            Some(text) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                text.parse().map_err(|_| "the number after `/` is too large".to_owned())?
            }
            Some(text) => return Err(format!("`{text}` after `/` is not a number of bits")),
            None if address.is_ipv4() => 32,
            None => 128,
        };
        Self::new(address, prefix)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = if self.address.is_ipv4() { 32 } else { 128 };
        if self.prefix == bits { write!(f, "{}", self.address) } else { write!(f, "{}/{}", self.address, self.prefix) }
    }
}

/// Where Amazon's machines ask for credentials over IPv6; the IPv4 one is link-local.
const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254);

/// Whether an address belongs to the gate's own machine or link, or to nobody. No rule for a name leads there: whoever
/// owns the name would choose what is reached.
pub fn is_closed(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            v4.octets()[0] == 0 || v4.is_loopback() || v4.is_link_local() || v4.is_multicast() || v4.octets()[0] >= 240 // reserved, and the broadcast address
        }
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || v6.is_unicast_link_local()
                || v6 == METADATA
                || translated(v6).is_some_and(|v4| is_closed(IpAddr::V4(v4)))
        }
    }
}

/// The IPv4 address that a router reaches for this one: `::a.b.c.d`, NAT64 (`64:ff9b::/96`) and 6to4 (`2002::/16`).
fn translated(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let from = |first: usize| Ipv4Addr::from_bits(u32::from(segments[first]) << 16 | u32::from(segments[first + 1]));
    match segments {
        [0 | 0x64, 0 | 0xff9b, 0, 0, 0, 0, ..] => Some(from(6)),
        [0x2002, ..] => Some(from(1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_addresses_that_begin_with_its_bits() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.2"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
            ("::/0", "::1", "10.0.0.1"),
            ("10.0.0.0/8", "::ffff:10.0.0.1", "::a00:1"),
            ("::ffff:10.0.0.0/104", "10.0.0.1", "::1"),
            ("192.168.7.128/25", "192.168.7.128", "192.168.7.127"),
        ] {
            let parsed: Network = network.parse().unwrap();
            assert!(parsed.contains(inside.parse().unwrap()), "{network} {inside}");
            assert!(!parsed.contains(outside.parse().unwrap()), "{network} {outside}");
        }
    }

    #[test]
    fn what_is_no_network_is_told() {
        for (text, part) in [
            ("10.0.0.1/8", "write `10.0.0.0/8`"),
            ("10.0.0.0/33", "at most 32"),
            ("::/129", "at most 128"),
            ("10.0.0.0/", "not a number"),
            ("10.0.0.0/+8", "not a number"),
            ("10.0.0/8", "no address"),
            ("10.0.0.0/99999999999", "too large"),
        ] {
            let error = text.parse::<Network>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn addresses_of_the_machine_and_the_link_are_closed() {
        for text in [
            "127.0.0.1",
            "127.255.0.1",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "::1",
            "::",
            "fe80::1",
            "febf::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::169.254.169.254",
            "2002:7f00:1::",
            "fd00:ec2::254",
        ] {
            assert!(is_closed(text.parse().unwrap()), "{text}");
        }
        for text in
            ["10.0.0.1", "172.17.0.1", "1.1.1.1", "2001:db8::1", "fd00::1", "64:ff9b::8.8.8.8", "::ffff:8.8.8.8"]
        {
            assert!(!is_closed(text.parse().unwrap()), "{text}");
        }
    }
}
