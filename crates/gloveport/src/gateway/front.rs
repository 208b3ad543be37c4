//! What `gloveport gateway check` says about how clients reach a gateway: its URL and domain, its certificate, its proxies, and the
//! sandboxes that wait.

use std::{net::IpAddr, time::Duration};

use gloveport_gateway::{Gateway, TlsFiles, WarmPool};
use gloveport_origins::Origins;
use gloveport_provider::{Capabilities, Level};

use super::settings::Settings;
use crate::doctor::Check;

/// A certificate that ends so soon should have been renewed.
const SOON: Duration = Duration::from_hours(7 * 24);
/// Addresses that are in networks of everybody.
const ANYBODY: [IpAddr; 4] = [
    IpAddr::V4(std::net::Ipv4Addr::new(8, 8, 8, 8)),
    IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 1)),
    IpAddr::V6(std::net::Ipv6Addr::new(0x2001, 0x4860, 0x4860, 0, 0, 0, 0, 0x8888)),
    IpAddr::V6(std::net::Ipv6Addr::new(0x2a00, 0x1450, 0, 0, 0, 0, 0, 1)),
];

/// All of it, as far as the settings say anything.
pub(super) fn checks(settings: &Settings, runtime: &str, can: Option<&Capabilities>) -> Vec<Check> {
    let mut checks = Vec::new();
    let url = settings.public_url.as_deref().map(Gateway::check_public_url);
    match &url {
        None => {}
        Some(Ok(host)) => checks.push(Check::ok("public URL", format!("its host is {host}"))),
        Some(Err(error)) => {
            checks.push(Check::failed("public URL", error.to_string(), "correct `public_url`"));
        }
    }
    let host = url.and_then(Result::ok);
    if let Some(domain) = &settings.domain {
        checks.push(self::domain(domain, host.as_deref()));
    }
    checks.extend(certificate(settings, host.as_deref()));
    checks.extend(proxies(settings));
    checks.extend(origins(settings));
    checks.extend(can.and_then(|can| isolation(settings, can)));
    if let Some(can) = can.filter(|_| !settings.warm.is_empty()) {
        checks.push(match WarmPool::check(&settings.warm, runtime, can) {
            Ok(()) => {
                let most: usize = settings.warm.iter().map(|pool| pool.ceiling).sum();
                Check::ok("warm pools", format!("{} of them, with {most} sandboxes at most", settings.warm.len()))
            }
            Err(error) => Check::failed("warm pools", error, "correct the sections `[[warm]]`"),
        });
    }
    checks
}

fn isolation(settings: &Settings, can: &Capabilities) -> Option<Check> {
    const NAME: &str = "isolation";
    let level = settings.isolation.unwrap_or_default();
    match (level, can.confine) {
        (Level::None, false) => None,
        (Level::None, true) => {
            let remedy = "set `isolation = \"container\"`, unless all agents are trusted";
            Some(Check::warning(NAME, "sandboxes are not kept from this machine, nor from each other", remedy))
        }
        (_, false) => {
            let found = format!("{} has no effect with this runtime", level.name());
            Some(Check::failed(NAME, found, "leave out `isolation`"))
        }
        (_, true) if !settings.warm.is_empty() => {
            let found = format!("sandboxes that wait cannot be {} later", level.name());
            Some(Check::failed(NAME, found, "leave out `isolation` or the sections `[[warm]]`"))
        }
        (_, true) => {
            Some(Check::ok(NAME, format!("{}; `gloveport doctor` tells whether this machine has it", level.name())))
        }
    }
}

fn domain(domain: &str, host: Option<&str>) -> Check {
    const NAME: &str = "domain";
    if let Err(error) = Gateway::check_domain(domain) {
        return Check::failed(NAME, error.to_string(), "correct `domain`");
    }
    match host {
        Some(host) if host.ends_with(&format!(".{}", domain.to_ascii_lowercase())) => Check::warning(
            NAME,
            format!("the public URL has the host {host}, which is one of the sandboxes' below {domain}"),
            "let the public URL be the domain itself, or a host outside of it",
        ),
        _ => Check::ok(NAME, format!("sandboxes are at *.{domain}")),
    }
}

fn certificate(settings: &Settings, host: Option<&str>) -> Vec<Check> {
    const NAME: &str = "certificate";
    let (certificate, key) = match (&settings.tls_cert, &settings.tls_key) {
        (Some(certificate), Some(key)) => (certificate.clone(), key.clone()),
        (None, None) => return Vec::new(),
        _ => {
            let found = "only one of `tls_cert` and `tls_key` is set";
            return vec![Check::failed(NAME, found, "set both, or none")];
        }
    };
    let files = TlsFiles { certificate, key };
    if let Err(error) = files.check() {
        return vec![Check::failed(NAME, error.to_string(), "put a certificate and its key there, in PEM form")];
    }
    let mut checks = Vec::new();
    let mut names: Vec<String> = host.map(str::to_owned).into_iter().collect();
    // Any name below the domain stands for all of them.
    names.extend(settings.domain.iter().flat_map(|domain| [domain.clone(), format!("sandbox.{domain}")]));
    names.dedup();
    let missing = files.missing_names(&names);
    if !missing.is_empty() {
        let remedy = "let the certificate be for the host of `public_url`, for `domain`, and for *.`domain`";
        checks.push(Check::failed(NAME, format!("it is not for {}", missing.join(", ")), remedy));
    }
    if files.ends_within(SOON) {
        checks.push(Check::warning(
            NAME,
            "it expires within a week",
            "renew it; the gateway takes the new one by itself",
        ));
    }
    if checks.is_empty() {
        checks.push(Check::ok(NAME, files.certificate.display().to_string()));
    }
    checks
}

fn proxies(settings: &Settings) -> Vec<Check> {
    const NAME: &str = "trusted proxies";
    if settings.trusted_proxies.is_empty() {
        return Vec::new();
    }
    let is_wide = |network: &&gloveport_allow_list::Network| ANYBODY.iter().any(|address| network.contains(*address));
    let all: Vec<String> = settings.trusted_proxies.iter().map(gloveport_allow_list::Network::cidr).collect();
    let wide: Vec<String> =
        settings.trusted_proxies.iter().filter(is_wide).map(gloveport_allow_list::Network::cidr).collect();
    if wide.is_empty() {
        return vec![Check::ok(NAME, all.join(", "))];
    }
    let found = format!("{} has strangers in it, who could say that they are anybody", wide.join(", "));
    vec![Check::failed(NAME, found, "name the addresses of the proxies themselves")]
}

fn origins(settings: &Settings) -> Option<Check> {
    const NAME: &str = "pages";
    let all = &settings.allow_origins;
    if all.is_empty() {
        return None;
    }
    Some(match Origins::new(all) {
        Ok(_) if all.iter().any(|origin| origin == "*") => {
            let remedy = "name the origins of the pages, unless anybody's page is to use it with a key";
            Check::warning(NAME, "pages of all origins may use the native API with a key", remedy)
        }
        Ok(_) => Check::ok(NAME, format!("those of {} may use the native API with a key", all.join(", "))),
        Err(error) => Check::failed(NAME, error.to_string(), "correct `allow_origins`"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    fn found(settings: &Settings) -> Vec<(String, Verdict, String)> {
        let checks = checks(settings, "local", Some(&Capabilities::NONE));
        checks.into_iter().map(|check| (check.name.into_owned(), check.verdict, check.found)).collect()
    }

    #[test]
    fn urls_domains_and_proxies_are_looked_at() {
        assert_eq!(found(&Settings::default()), []);
        let settings = |url: &str, domain: &str, proxies: &[&str]| Settings {
            public_url: Some(url.to_owned()),
            domain: Some(domain.to_owned()),
            trusted_proxies: proxies.iter().map(|proxy| proxy.parse().unwrap()).collect(),
            ..Settings::default()
        };
        let verdicts = |settings: &Settings| found(settings).into_iter().map(|it| it.1).collect::<Vec<_>>();
        let [ok, failed] = [Verdict::Ok, Verdict::Failed];
        assert_eq!(verdicts(&settings("https://example.org", "example.org", &["10.0.0.0/8"])), [ok, ok, ok]);
        assert_eq!(verdicts(&settings("example.org", "127.0.0.1", &["0.0.0.0/0"])), [failed, failed, failed]);
        assert_eq!(
            verdicts(&settings("https://x.example.org/a", "example.org", &["::/0"])),
            [ok, Verdict::Warning, failed]
        );
        let pages = |origin: &str| Settings { allow_origins: vec![origin.to_owned()], ..Settings::default() };
        for (origin, verdict, words) in [
            ("https://app.example", ok, "those of https://app.example may"),
            ("*", Verdict::Warning, "all origins"),
            ("https://app.example/", failed, "not the origin of a page"),
        ] {
            let found = found(&pages(origin));
            assert!(found[0].1 == verdict && found[0].2.contains(words), "{origin}: {found:?}");
        }
        let warm = Settings { warm: vec![WarmPool::fixed(1)], ..Settings::default() };
        assert!(found(&warm)[0].2.contains("starts no sandboxes ahead"));
    }
}
