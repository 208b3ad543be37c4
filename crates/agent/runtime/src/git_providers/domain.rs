//! The domain of a service, which users may name.

use super::{ProviderFailure, ProviderToken, ProviderType};

/// The domain of the repositories of a service: that of the token if it names one, else the service's own. Azure DevOps
/// has only its own (runtime-interface 11.2).
pub(super) fn domain(provider: ProviderType, token: Option<&ProviderToken>) -> Result<String, ProviderFailure> {
    let host = token.and_then(|token| token.host.as_deref()).map(str::trim).filter(|host| !host.is_empty());
    match host {
        Some(host) if provider != ProviderType::AzureDevops => {
            checked(host).ok_or_else(|| ProviderFailure::Host(host.escape_debug().to_string()))
        }
        _ => provider.default_domain().map(str::to_owned).ok_or(ProviderFailure::NoRepositories),
    }
}

/// A domain with or without a port; nothing if it is anything else, so that a token goes nowhere else. `https://` and a
/// slash at the end say nothing new.
pub(super) fn checked(host: &str) -> Option<String> {
    let host = host.strip_prefix("https://").unwrap_or(host);
    let host = host.strip_suffix('/').unwrap_or(host);
    let (name, port) = host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port)));
    let is_label = |label: &str| {
        let is_inside = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_');
        (1..=63).contains(&label.len()) && label.chars().all(is_inside) && !label.starts_with('-')
    };
    let is_port =
        |port: &str| port.bytes().all(|digit| digit.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0);
    let is_domain = name.len() <= 253 && name.split('.').all(is_label) && port.is_none_or(is_port);
    is_domain.then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_domain_with_or_without_a_port() {
        for (host, domain) in [
            ("ghe.example.com", Some("ghe.example.com")),
            ("localhost:8443", Some("localhost:8443")),
            ("https://gitlab.example.com/", Some("gitlab.example.com")),
            ("10.0.0.1", Some("10.0.0.1")),
            ("http://gitlab.example.com", None),
            ("example.com/path", None),
            ("user@example.com", None),
            ("good.com@evil.com", None),
            ("good.com\\@evil.com", None),
            ("exa mple.com", None),
            ("example.com?x", None),
            ("example.com#x", None),
            ("example.com:0", None),
            ("example.com:+80", None),
            ("example.com:99999", None),
            ("example.com:80:80", None),
            ("example..com", None),
            ("-x.com", None),
            ("exämple.com", None),
            ("%65xample.com", None),
            ("[::1]", None),
            ("", None),
        ] {
            assert_eq!(checked(host).as_deref(), domain, "{host}");
        }
    }

    #[test]
    fn a_token_names_the_domain_but_not_that_of_azure() {
        let with = |host: &str| ProviderToken { host: Some(host.to_owned()), ..ProviderToken::default() };
        for (provider, token, expected) in [
            (ProviderType::Github, None, "github.com"),
            (ProviderType::Github, Some(with(" ")), "github.com"),
            (ProviderType::Gitlab, Some(with("git.example.com")), "git.example.com"),
            (ProviderType::AzureDevops, Some(with("dev.azure.com/org")), "dev.azure.com"),
        ] {
            assert_eq!(domain(provider, token.as_ref()).unwrap(), expected);
        }
        let error = domain(ProviderType::Github, Some(&with("a/b"))).unwrap_err().to_string();
        assert_eq!(error, "the host `a/b` is not a domain such as git.example.com");
        let error = domain(ProviderType::EnterpriseSso, None).unwrap_err().to_string();
        assert_eq!(error, "it hosts no repositories");
    }
}
