//! What the file of tokens has of one server.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gloveport_protocol::Secret;
use reqwest::Url;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A token is refreshed so long before it expires, or after half of its life if that is sooner.
const EARLY: Duration = Duration::from_secs(30);

/// A login at one server: who this program is there, and its tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// What the tokens are for, as the authorization server was told (RFC 8707).
    pub(crate) resource: String,
    /// The authorization server.
    pub(crate) issuer: String,
    pub(crate) token_endpoint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) revocation_endpoint: Option<String>,
    pub(crate) client: Credentials,
    pub(crate) tokens: Tokens,
}

/// Who this program is at an authorization server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Credentials {
    pub(crate) id: String,
    #[serde(default, with = "shown_if_any", skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<Secret>,
    /// Whether the server wants the secret in the body of a request instead of its `Authorization`.
    #[serde(default)]
    pub(crate) secret_in_body: bool,
}

/// What an authorization server gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tokens {
    #[serde(serialize_with = "shown")]
    pub(crate) access: Secret,
    #[serde(default, with = "shown_if_any", skip_serializing_if = "Option::is_none")]
    pub(crate) refresh: Option<Secret>,
    /// When they were received, in seconds since 1970.
    pub(crate) received: u64,
    /// How many seconds later the access token expires; none if the server did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lifetime: Option<u64>,
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
}

/// What a token endpoint answers (RFC 6749, 5.1).
#[derive(Deserialize)]
pub(crate) struct Answer {
    access_token: Secret,
    token_type: String,
    #[serde(default)]
    expires_in: Option<serde_json::Value>,
    #[serde(default)]
    refresh_token: Option<Secret>,
    #[serde(default)]
    scope: Option<String>,
}

impl Answer {
    /// The tokens of the answer, with those scopes and that refresh token if it has none itself (RFC 6749, 5.1 and 6);
    /// or what is wrong with it.
    pub(crate) fn into_tokens(self, scopes: Vec<String>, refresh: Option<Secret>) -> Result<Tokens, &'static str> {
        if !self.token_type.eq_ignore_ascii_case("bearer") {
            return Err("the tokens are of a kind that MCP does not know");
        }
        // What a header cannot have would fail later, and with it every request.
        if self.access_token.is_empty() || !self.access_token.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("the access token has characters that HTTP does not allow");
        }
        // Some servers write the number as a text.
        let seconds = |value: serde_json::Value| value.as_u64().or_else(|| value.as_str()?.parse().ok());
        Ok(Tokens {
            access: self.access_token,
            refresh: self.refresh_token.filter(|token| !token.is_empty()).or(refresh),
            received: now(),
            lifetime: self.expires_in.and_then(seconds),
            scopes: self.scope.map_or(scopes, |scope| scope.split_whitespace().map(str::to_owned).collect()),
        })
    }
}

impl Tokens {
    /// When the access token expires.
    pub(crate) fn expiry(&self) -> Option<SystemTime> {
        UNIX_EPOCH.checked_add(Duration::from_secs(self.received.checked_add(self.lifetime?)?))
    }

    /// Whether the access token has expired, or is about to.
    pub(crate) fn is_old(&self, now: u64) -> bool {
        self.lifetime.is_some_and(|lifetime| self.left(lifetime, now) <= EARLY.as_secs().min(lifetime / 2))
    }

    /// Whether the access token has expired.
    pub(crate) fn has_expired(&self, now: u64) -> bool {
        self.lifetime.is_some_and(|lifetime| self.left(lifetime, now) == 0)
    }

    fn left(&self, lifetime: u64, now: u64) -> u64 {
        self.received.saturating_add(lifetime).saturating_sub(now)
    }
}

impl Record {
    /// Whether the tokens are for this server: the same origin, and the resource's path or one below it.
    pub(crate) fn is_for(&self, server: &Url) -> bool {
        let Ok(resource) = Url::parse(&self.resource) else { return false };
        let below = resource.path().trim_end_matches('/');
        let rest = server.path().strip_prefix(below);
        resource.origin() == server.origin() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Writes what a secret hides: this is the one file that it is for.
fn shown<S: Serializer>(secret: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose())
}

mod shown_if_any {
    use super::{Deserialize as _, Deserializer, Secret, Serializer};

    #[expect(clippy::ref_option, reason = "serde gives a reference to the field")]
    pub(super) fn serialize<S: Serializer>(secret: &Option<Secret>, serializer: S) -> Result<S::Ok, S::Error> {
        match secret {
            Some(secret) => serializer.serialize_some(secret.expose()),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Secret>, D::Error> {
        Option::deserialize(deserializer)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    pub(crate) fn record() -> Record {
        Record {
            resource: "https://host/mcp".to_owned(),
            issuer: "https://login".to_owned(),
            token_endpoint: "https://login/token".to_owned(),
            revocation_endpoint: None,
            client: Credentials {
                id: "client".to_owned(),
                secret: Some(Secret::new("hidden-1")),
                secret_in_body: false,
            },
            tokens: Tokens {
                access: Secret::new("hidden-2"),
                refresh: Some(Secret::new("hidden-3")),
                received: 1000,
                lifetime: Some(100),
                scopes: vec!["read".to_owned()],
            },
        }
    }

    #[test]
    fn a_record_is_written_with_its_secrets_and_shown_without() {
        let text = serde_json::to_string(&record()).unwrap();
        assert_eq!(text.matches("hidden-").count(), 3);
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record());
        assert!(!format!("{:?}", record()).contains("hidden-"));
    }

    #[test]
    fn a_token_is_old_a_little_before_it_expires() {
        let mut tokens = record().tokens;
        for (lifetime, now, is_old) in [
            (Some(100), 1069, false),
            (Some(100), 1070, true),
            (Some(100), 5000, true),
            (Some(10), 1004, false),
            (Some(10), 1005, true),
            (Some(0), 1000, true),
            (Some(u64::MAX), u64::MAX - 31, false),
            (None, u64::MAX, false),
        ] {
            tokens.lifetime = lifetime;
            assert_eq!(tokens.is_old(now), is_old, "{lifetime:?} {now}");
        }
        tokens.lifetime = Some(u64::MAX);
        assert_eq!(tokens.expiry(), None);
    }

    #[test]
    fn tokens_are_for_one_origin_and_for_the_paths_of_the_resource() {
        let record = record();
        for (url, is_for) in [
            ("https://host/mcp", true),
            ("https://HOST:443/mcp?tenant=a", true),
            ("https://host/mcp/", true),
            ("https://host/mcp/more", true),
            ("https://host/mcpx", false),
            ("https://host/", false),
            ("http://host/mcp", false),
            ("https://host:8443/mcp", false),
            ("https://host.example/mcp", false),
        ] {
            assert_eq!(record.is_for(&Url::parse(url).unwrap()), is_for, "{url}");
        }
    }

    #[test]
    fn answers_keep_what_they_leave_out_and_say_what_is_wrong() {
        let tokens = |value| {
            let answer: Answer = serde_json::from_value(value).unwrap();
            answer.into_tokens(vec!["a".to_owned()], Some(Secret::new("old")))
        };
        let plain = tokens(json!({"access_token": "t", "token_type": "bearer"})).unwrap();
        let expected = ("t", Some("old"), None, vec!["a".to_owned()]);
        let refresh = plain.refresh.as_ref().map(Secret::expose);
        assert_eq!((plain.access.expose(), refresh, plain.lifetime, plain.scopes.clone()), expected);
        let full = json!({
            "access_token": "t", "token_type": "Bearer", "expires_in": "60", "refresh_token": "new", "scope": "b c"
        });
        let full = tokens(full).unwrap();
        assert_eq!(full.refresh, Some(Secret::new("new")));
        assert_eq!((full.lifetime, full.scopes), (Some(60), vec!["b".to_owned(), "c".to_owned()]));
        assert!(tokens(json!({"access_token": "t", "token_type": "mac"})).is_err());
        for token in ["", "a\nb", "é"] {
            assert!(tokens(json!({"access_token": token, "token_type": "Bearer"})).is_err(), "{token:?}");
        }
    }
}
