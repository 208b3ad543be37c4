//! What registries ask for before they give something (`WWW-Authenticate`).

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};
use serde::Deserialize;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    /// User and password with each request.
    Basic,
    /// A token, which is given there.
    Token { realm: String, service: Option<String> },
}

/// The answer of whoever gives tokens.
#[derive(Deserialize)]
pub(super) struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

impl Token {
    pub(super) fn text(self) -> Option<String> {
        self.token.or(self.access_token).filter(|token| !token.is_empty())
    }
}

impl Challenge {
    /// The first one that is understood; a token is preferred.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let texts = || headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        let scheme = |text: &str, name: &str| {
            let (first, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
            first.eq_ignore_ascii_case(name).then(|| rest.to_owned())
        };
        let token = texts().filter_map(|text| scheme(text, "Bearer")).find_map(|rest| {
            let mut realm = None;
            let mut service = None;
            for (key, value) in parameters(&rest) {
                match key.to_ascii_lowercase().as_str() {
                    "realm" => realm = Some(value),
                    "service" => service = Some(value),
                    _ => {}
                }
            }
            Some(Self::Token { realm: realm?, service })
        });
        token.or_else(|| texts().find_map(|text| scheme(text, "Basic")).map(|_| Self::Basic))
    }
}

/// `key="value", key=value`.
fn parameters(mut text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    while let Some((key, rest)) = text.split_once('=') {
        let rest = rest.trim_start();
        let (value, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => rest.split_once(',').unwrap_or((rest, "")),
        };
        found.push((key.trim_matches([',', ' ']).to_owned(), value.trim().to_owned()));
        text = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_understood_as_registries_write_them() {
        let token = |realm: &str, service: Option<&str>| {
            Some(Challenge::Token { realm: realm.into(), service: service.map(str::to_owned) })
        };
        for (values, expected) in [
            (
                vec![r#"Bearer realm="https://a/token",service="reg,istry",scope="repository:x:pull""#],
                token("https://a/token", Some("reg,istry")),
            ),
            (vec!["bearer realm=https://a/token, scope=x"], token("https://a/token", None)),
            (vec!["Basic realm=\"x\"", "Bearer realm=\"https://a\""], token("https://a", None)),
            (vec!["Basic realm=\"x\""], Some(Challenge::Basic)),
            (vec!["Basic"], Some(Challenge::Basic)),
            (vec!["Bearer service=\"x\""], None),
            (vec!["Bearer realm=\"x"], token("x", None)),
            (vec!["Negotiate"], None),
            (vec![], None),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(WWW_AUTHENTICATE, value.parse().unwrap());
            }
            assert_eq!(Challenge::of(&headers), expected);
        }
    }
}
