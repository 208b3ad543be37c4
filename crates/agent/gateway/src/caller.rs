//! Who asks, and how: by the connection, and by what proxies say that are trusted.

use std::net::IpAddr;

use gloveport_allow_list::Network;
use http::{
    HeaderMap,
    header::{FORWARDED, HOST},
    uri::Authority,
};

use crate::fault::Fault;

/// What is said about where a request comes from. It is believed of trusted proxies alone, and never passed on.
pub(crate) const SAID: [&str; 7] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-prefix",
    "x-forwarded-proto",
    "x-real-ip",
];
const FOR: &str = "x-forwarded-for";
const AT: &str = "x-forwarded-host";
const BY: &str = "x-forwarded-proto";

/// The address of the client, for logs and for the sandbox. It is an extension of each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientAddress(pub(crate) IpAddr);

/// Who asks, and how.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) address: IpAddr,
    pub(crate) is_https: bool,
    /// The host that was asked; none where the request names none.
    pub(crate) host: Option<Authority>,
}

impl Caller {
    /// Of a request with these headers, from this address, over TLS or not. `of_uri` is the host of its URI.
    pub(crate) fn of(
        headers: &HeaderMap,
        of_uri: Option<&Authority>,
        (peer, is_tls): (IpAddr, bool),
        trusted: &[Network],
    ) -> Result<Self, Fault> {
        let host = asked(headers, of_uri)?;
        let peer = peer.to_canonical();
        let own = Self { address: peer, is_https: is_tls, host };
        if !is_trusted(peer, trusted) {
            return Ok(own);
        }
        let forwarded = forwarded(headers);
        let by = last(headers, BY).or_else(|| forwarded.last()?.proto.clone());
        let at = last(headers, AT).or_else(|| forwarded.last()?.host.clone());
        let chain: Vec<String> = all(headers, FOR);
        let standard: Vec<String> = forwarded.into_iter().map(|part| part.client.unwrap_or_default()).collect();
        let clients = [chain, standard].map(|chain| (!chain.is_empty()).then(|| client(peer, &chain, trusted)));
        let address = match clients {
            // A proxy that sets one of them may pass the other one on as a client has sent it.
            [Some(one), Some(other)] if one != other => peer,
            [Some(one), _] | [None, Some(one)] => one,
            [None, None] => peer,
        };
        let is_https = by.map_or(is_tls, |by| by.eq_ignore_ascii_case("https"));
        let host = match at {
            Some(at) => Some(authority(&at).ok_or_else(|| Fault::wrong("X-Forwarded-Host names no host"))?),
            None => own.host,
        };
        Ok(Self { address, is_https, host })
    }
}

/// The host that a request is for. One that names two is refused: who comes after us could take the other one.
fn asked(headers: &HeaderMap, of_uri: Option<&Authority>) -> Result<Option<Authority>, Fault> {
    let mut values = headers.get_all(HOST).iter();
    let value = values.next();
    if values.next().is_some() {
        return Err(Fault::wrong("there is more than one header Host"));
    }
    let named = match value.map(|value| value.to_str().map(str::to_owned)) {
        None => None,
        Some(Ok(text)) if text.is_empty() => None,
        Some(text) => {
            let named = text.ok().and_then(|text| authority(&text));
            Some(named.ok_or_else(|| Fault::wrong("the header Host names no host"))?)
        }
    };
    match (of_uri, named) {
        (Some(of_uri), _) if of_uri.as_str().contains('@') => Err(Fault::wrong("the host must not have a user")),
        (Some(of_uri), Some(named)) if *of_uri != named => Err(Fault::wrong("the request names two hosts")),
        (Some(of_uri), _) => Ok(Some(of_uri.clone())),
        (None, named) => Ok(named),
    }
}

fn authority(text: &str) -> Option<Authority> {
    text.parse::<Authority>().ok().filter(|it| !it.as_str().contains('@') && !it.host().is_empty())
}

fn is_trusted(address: IpAddr, trusted: &[Network]) -> bool {
    trusted.iter().any(|network| network.contains(address))
}

/// All members of a header that is a list, in their order.
fn all(headers: &HeaderMap, name: &str) -> Vec<String> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(|part| part.trim().to_owned()).collect()
}

/// What the nearest proxy says.
fn last(headers: &HeaderMap, name: &str) -> Option<String> {
    all(headers, name).pop().filter(|text| !text.is_empty())
}

/// The client of a chain of proxies: the nearest address that is not trusted. Behind one that cannot be read nobody is
/// believed.
fn client(peer: IpAddr, chain: &[String], trusted: &[Network]) -> IpAddr {
    let mut nearest = peer;
    for text in chain.iter().rev() {
        let Some(address) = address(text) else { break };
        nearest = address;
        if !is_trusted(address, trusted) {
            break;
        }
    }
    nearest
}

/// `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`.
fn address(text: &str) -> Option<IpAddr> {
    let bare = match text.strip_prefix('[') {
        Some(rest) => rest.split(']').next()?,
        None => match text.split_once(':') {
            Some((before, after)) if !after.contains(':') => before,
            _ => text,
        },
    };
    bare.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

/// A station of the header `Forwarded` (RFC 7239).
#[derive(Debug, Default)]
struct Station {
    client: Option<String>,
    proto: Option<String>,
    host: Option<String>,
}

fn forwarded(headers: &HeaderMap) -> Vec<Station> {
    let station = |text: String| {
        let mut station = Station::default();
        for pair in text.split(';') {
            let Some((name, value)) = pair.split_once('=') else { continue };
            let value = Some(value.trim().trim_matches('"').to_owned()).filter(|value| !value.is_empty());
            match name.trim().to_ascii_lowercase().as_str() {
                "for" => station.client = value,
                "proto" => station.proto = value,
                "host" => station.host = value,
                _ => {}
            }
        }
        station
    };
    all(headers, FORWARDED.as_str()).into_iter().map(station).collect()
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    fn caller(pairs: &[(&str, &str)], of_uri: Option<&str>) -> Result<Caller, Fault> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        let of_uri: Option<Authority> = of_uri.map(|text| text.parse().unwrap());
        Caller::of(&headers, of_uri.as_ref(), ([10, 0, 0, 1].into(), false), &trusted)
    }

    #[test]
    fn a_trusted_proxy_says_who_asks_and_nobody_is_believed_beyond_the_first_stranger() {
        for (pairs, expected) in [
            (&[("x-forwarded-for", "192.0.2.1")][..], "192.0.2.1"),
            (&[("x-forwarded-for", "6.6.6.6, 192.0.2.1")], "192.0.2.1"),
            (&[("x-forwarded-for", "6.6.6.6"), ("x-forwarded-for", "192.0.2.1, 10.0.0.2")], "192.0.2.1"),
            (&[("x-forwarded-for", "10.0.0.3, 10.0.0.2")], "10.0.0.3"),
            (&[("x-forwarded-for", "192.0.2.1, nonsense, 10.0.0.2")], "10.0.0.2"),
            (&[("x-forwarded-for", "192.0.2.1, ")], "10.0.0.1"),
            (&[("x-forwarded-for", "192.0.2.1:99")], "192.0.2.1"),
            (&[("x-forwarded-for", "::ffff:192.0.2.1")], "192.0.2.1"),
            (&[("forwarded", "for=6.6.6.6, for=\"[2001:db8::1]:80\";proto=https")], "2001:db8::1"),
            (&[("forwarded", "for=6.6.6.6, proto=https")], "10.0.0.1"),
            (&[("forwarded", "for=6.6.6.6"), ("x-forwarded-for", "192.0.2.1")], "10.0.0.1"),
            (&[("forwarded", "for=192.0.2.1"), ("x-forwarded-for", "192.0.2.1")], "192.0.2.1"),
            (&[("x-real-ip", "6.6.6.6")], "10.0.0.1"),
            (&[], "10.0.0.1"),
        ] {
            assert_eq!(caller(pairs, None).unwrap().address.to_string(), expected, "{pairs:?}");
        }
        let told = caller(&[("host", "a"), ("x-forwarded-host", "b:1"), ("x-forwarded-proto", "HTTPS")], None).unwrap();
        assert_eq!((told.host.unwrap().as_str(), told.is_https), ("b:1", true));
        let told = caller(&[("host", "a"), ("forwarded", "host=b;proto=https")], None).unwrap();
        assert_eq!((told.host.unwrap().as_str(), told.is_https), ("b", true));
        assert!(caller(&[("host", "a"), ("x-forwarded-host", "b/c")], None).is_err());
    }

    #[test]
    fn strangers_are_not_believed() {
        let mut headers = HeaderMap::new();
        for (name, value) in
            [("host", "a"), ("x-forwarded-for", "10.0.0.9"), ("x-forwarded-host", "b"), ("x-forwarded-proto", "https")]
        {
            headers.insert(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        let told = Caller::of(&headers, None, ([192, 0, 2, 1].into(), false), &trusted).unwrap();
        let host = Some("a".parse().unwrap());
        assert_eq!(told, Caller { address: [192, 0, 2, 1].into(), is_https: false, host });
        // A proxy that is reached over IPv6 may still be known by its IPv4 address.
        let mapped = "::ffff:10.0.0.1".parse().unwrap();
        assert!(Caller::of(&headers, None, (mapped, false), &trusted).unwrap().is_https);
    }

    #[test]
    fn a_request_names_one_host() {
        for (pairs, of_uri, expected) in [
            (&[("host", "a:1")][..], None, Some("a:1")),
            (&[("host", "A")], Some("a"), Some("a")),
            (&[], Some("a"), Some("a")),
            (&[("host", "")], None, Some("")),
            (&[("host", "a"), ("host", "a")], None, None),
            (&[("host", "a")], Some("b"), None),
            (&[("host", "me@a")], None, None),
            (&[], Some("me@a"), None),
            (&[("host", "a b")], None, None),
            (&[("host", "a/b")], None, None),
            (&[("host", ":80")], None, None),
        ] {
            let told = caller(pairs, of_uri).ok().map(|it| it.host.map_or_else(String::new, |it| it.to_string()));
            assert_eq!(told.as_deref(), expected, "{pairs:?} {of_uri:?}");
        }
    }
}
