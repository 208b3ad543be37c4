//! Values of configuration that every service has. `table` is where a value stands, for messages:
//! `[extended.e2b] of the configuration`.

use std::{fs, net::IpAddr, path::PathBuf};

use gloveport_protocol::Secret;
use gloveport_provider::ProviderError;
use http::Uri;

use crate::fault::wrong;

/// The key of a service: that of a variable, else what is in a file. None if neither says one.
///
/// # Errors
///
/// The file cannot be read, or no header can have the key.
pub fn key(service: &str, variable: Option<String>, file: Option<PathBuf>) -> Result<Option<Secret>, ProviderError> {
    let read = |path: PathBuf| {
        let content = fs::read_to_string(&path);
        content.map_err(|source| ProviderError::File { action: "read the key of a service in", path, source })
    };
    let key = match variable {
        Some(key) => Some(key),
        None => file.map(read).transpose()?,
    };
    let key = key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty()).map(Secret::from);
    if key.as_ref().is_some_and(|key| !key.expose().bytes().all(|byte| byte.is_ascii_graphic())) {
        return Err(wrong(format!("the key of {service}"), "it has characters that no header can have"));
    }
    Ok(key)
}

/// Whether a text can be the name of a host.
pub fn is_host(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
    !text.is_empty() && text.len() <= 253 && text.bytes().all(allowed) && !text.starts_with(['.', '-'])
}

/// Whether a URL leads to this machine.
pub fn is_at_hand(url: &str) -> bool {
    let parsed = url.parse::<Uri>().ok();
    let host = parsed.as_ref().and_then(Uri::host).unwrap_or_default();
    host == "localhost" || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether keys may be sent to a URL: it goes over TLS, or stays within this machine.
pub fn is_safe(url: &str) -> bool {
    let parsed = url.parse::<Uri>().ok().filter(|uri| uri.query().is_none() && !url.contains('@'));
    match parsed.as_ref().and_then(Uri::scheme_str) {
        Some("https") => parsed.as_ref().and_then(Uri::host).is_some_and(|host| !host.is_empty()),
        Some("http") => is_at_hand(url),
        _ => false,
    }
}

/// A URL to which keys may be sent, without a slash at its end.
///
/// # Errors
///
/// It is none.
pub fn url(table: &str, key: &str, given: &str) -> Result<String, ProviderError> {
    let trimmed = given.trim_end_matches('/');
    if is_safe(trimmed) {
        return Ok(trimmed.to_owned());
    }
    let reason = "it must be https://HOST, or http:// to this machine: keys go over it";
    Err(wrong(format!("{key} in {table}"), reason))
}

/// An absolute path that needs no quoting anywhere.
///
/// # Errors
///
/// It is none.
pub fn path(table: &str, key: &str, given: String) -> Result<String, ProviderError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    let goes_up = given.split('/').any(|part| part == "..");
    if given.starts_with('/') && given.len() > 1 && !given.ends_with('/') && given.bytes().all(plain) && !goes_up {
        return Ok(given);
    }
    let reason = format!("`{given}` is no absolute path of letters, digits, `.`, `_` and `-`");
    Err(wrong(format!("{key} in {table}"), reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_go_over_tls_or_stay_on_this_machine() {
        for url in
            ["https://a.test", "https://a.test/api", "http://127.0.0.1:1/api", "http://localhost", "http://[::1]:2"]
        {
            assert!(is_safe(url), "{url}");
        }
        for url in
            ["http://a.test", "ftp://localhost", "https://key@a.test", "https://a.test?key", "a.test", "", "https://"]
        {
            assert!(!is_safe(url), "{url}");
        }
    }

    #[test]
    fn a_key_is_that_of_the_variable_or_of_the_file_without_its_line_end() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "of_file\n").unwrap();
        let of_file = |variable: Option<&str>| key("X", variable.map(str::to_owned), Some(file.path().to_owned()));
        assert_eq!(of_file(None).unwrap(), Some(Secret::new("of_file")));
        assert_eq!(of_file(Some("v")).unwrap(), Some(Secret::new("v")));
        assert_eq!(key("X", None, None).unwrap(), None);
        assert!(key("X", Some("a b".to_owned()), None).unwrap_err().to_string().contains("the key of X"));
    }
}
