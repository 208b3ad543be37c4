//! What can be done at the edge.

use gloveport_allow_list::{Host, Rules, Target};
use gloveport_edge::EdgeSecret;

use super::error::EdgeError;

/// Port of `https` URLs without one.
pub(crate) const HTTPS_PORT: u16 = 443;
/// Fewest bytes of a value: shorter ones stand in answers by chance, and would be overwritten there.
const SHORTEST_VALUE: usize = 8;
/// Fewest characters of a placeholder, so that none stands in a request by chance.
const SHORTEST_PLACEHOLDER: usize = 16;

/// Checks the secrets of a sandbox, each by itself and beside the others.
pub(crate) fn check(secrets: &[EdgeSecret]) -> Result<(), EdgeError> {
    for (index, secret) in secrets.iter().enumerate() {
        let others = &secrets[..index];
        let reason = alone(secret).or_else(|| others.iter().find_map(|other| beside(secret, other)));
        if let Some(reason) = reason {
            return Err(EdgeError::Secret { name: secret.name.clone(), reason });
        }
    }
    Ok(())
}

fn alone(secret: &EdgeSecret) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if secret.name.is_empty() {
        Some("it has no name".to_owned())
    } else if secret.value.len() < SHORTEST_VALUE {
        Some(format!(
            "its value has fewer than {SHORTEST_VALUE} bytes, which stand in answers by chance and would be overwritten there"
        ))
    } else if secret.placeholder.len() < SHORTEST_PLACEHOLDER {
        Some(format!("its placeholder has fewer than {SHORTEST_PLACEHOLDER} characters"))
    } else if !secret.placeholder.bytes().all(plain) {
        Some("its placeholder has something else than letters, digits, `_` and `-`".to_owned())
    } else if secret.value.contains(&secret.placeholder) {
        Some("its value contains its placeholder".to_owned())
    } else if secret.hosts.is_empty() {
        Some("it names no host that it goes to".to_owned())
    } else {
        None
    }
}

fn beside(secret: &EdgeSecret, other: &EdgeSecret) -> Option<String> {
    if secret.name == other.name {
        Some("another secret has the same name".to_owned())
    } else if secret.placeholder.contains(&other.placeholder) || other.placeholder.contains(&secret.placeholder) {
        Some(format!("its placeholder and that of `{}` contain each other", other.name))
    } else {
        None
    }
}

/// Whether rules name a target as it is asked for: what a name resolves to does not matter here.
pub(crate) fn names(rules: &Rules, target: &Target) -> bool {
    match &target.host {
        Host::Name(name) => rules.allow_name(name, target.port),
        Host::Address(address) => rules.allow_address(*address, target.port),
    }
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::*;

    fn secret(name: &str, placeholder: &str, value: &str) -> EdgeSecret {
        EdgeSecret {
            name: name.to_owned(),
            placeholder: placeholder.to_owned(),
            value: Zeroizing::new(value.to_owned()),
            hosts: Rules::parse(["example.com"]).unwrap(),
        }
    }

    #[test]
    fn what_would_be_replaced_or_masked_by_chance_is_refused() {
        let fine = || secret("A", "placeholder-of-a-1", "value-of-a");
        let nowhere = EdgeSecret { hosts: Rules::default(), ..fine() };
        assert!(check(&[fine(), secret("B", "placeholder-of-b-1", "value-of-b")]).is_ok());
        for (secrets, part) in [
            (vec![secret("A", "placeholder-of-a-1", "1234567")], "fewer than 8 bytes"),
            (vec![secret("A", "placeholder-1", "value-of-a")], "fewer than 16 characters"),
            (vec![secret("A", "placeholder of a 1", "value-of-a")], "something else than letters"),
            (vec![secret("", "placeholder-of-a-1", "value-of-a")], "no name"),
            (vec![secret("A", "placeholder-of-a-1", "x placeholder-of-a-1")], "contains its placeholder"),
            (vec![nowhere], "no host"),
            (vec![fine(), secret("A", "placeholder-of-b-1", "value-of-b")], "same name"),
            (vec![fine(), secret("B", "placeholder-of-a-1", "value-of-b")], "that of `A`"),
            (vec![fine(), secret("B", "placeholder-of-a-11", "value-of-b")], "that of `A`"),
            (vec![secret("B", "placeholder-of-a-11", "value-of-b"), fine()], "that of `B`"),
        ] {
            let error = check(&secrets).unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains("value-of") && !error.contains("1234567"), "{error}");
        }
    }
}
