//! Credentials for registries: those that `docker login` writes into its file, as far as they stand there.
//!
//! Programs that keep credentials elsewhere (`credsStore`, `credHelpers`) are not run.

use std::{collections::HashMap, fmt, io::Read as _, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gloveport_platform as platform;
use serde::Deserialize;

use crate::words::shown;

/// Most bytes of the file.
const LONGEST: u64 = 1024 * 1024;
/// What the file calls Docker's own registry.
const DOCKER: [&str; 3] = ["index.docker.io", "docker.io", "registry-1.docker.io"];

/// What a registry is told, if anything; and what is to be said if it is not enough.
#[derive(Clone, Default)]
pub(super) struct Credentials {
    pub(super) login: Option<(String, String)>,
    pub(super) hint: Option<String>,
}

impl fmt::Debug for Credentials {
    /// Without the credentials.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Credentials").field("hint", &self.hint).finish_non_exhaustive()
    }
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Document {
    auths: HashMap<String, Entry>,
    creds_store: Option<String>,
    cred_helpers: HashMap<String, String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Entry {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    #[serde(rename = "identitytoken")]
    identity_token: Option<String>,
}

impl Credentials {
    /// Those for a host; none if the file is not there.
    pub(super) fn of(path: Option<&Path>, host: &str) -> Self {
        let Some(path) = path else { return Self::default() };
        let hint = |text: String| Self { login: None, hint: Some(text) };
        let mut bytes = Vec::new();
        let read = platform::open_regular(path).and_then(|file| file.take(LONGEST).read_to_end(&mut bytes));
        match read {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Self::default(),
            Err(error) => return hint(format!("the credentials in {} cannot be read: {error}", path.display())),
        }
        // What is wrong with it could show some of it.
        let Ok(document) = serde_json::from_slice::<Document>(&bytes) else {
            return hint(format!("{} is no file of credentials", path.display()));
        };
        document.find(host, path)
    }
}

impl Document {
    fn find(&self, host: &str, path: &Path) -> Credentials {
        let names: Vec<&str> = if host == "docker.io" { DOCKER.to_vec() } else { vec![host] };
        let is_meant = |key: &str| {
            let key = key.split_once("://").map_or(key, |(_, rest)| rest);
            names.contains(&key.split('/').next().unwrap_or_default())
        };
        let mut entries: Vec<_> = self.auths.iter().filter(|(key, _)| is_meant(key)).collect();
        // The plain host counts for more than one with a path.
        entries.sort_by_key(|(key, _)| key.len());
        let login = entries.iter().find_map(|(_, entry)| entry.login());
        let helper = self.cred_helpers.iter().find(|(key, _)| is_meant(key)).map(|(_, helper)| helper);
        let helper = helper.or(self.creds_store.as_ref()).filter(|helper| !helper.is_empty());
        let has_token = entries.iter().any(|(_, entry)| entry.identity_token.is_some());
        let hint = match helper {
            _ if login.is_some() => None,
            Some(helper) => Some(format!(
                "{} leaves credentials to the program `docker-credential-{}`, which is not run: only those that stand in \
                the file itself (`auths`) are used",
                path.display(),
                shown(helper, 100)
            )),
            None if has_token => {
                Some(format!("{} has an identity token for it, which is not supported", path.display()))
            }
            None => None,
        };
        Credentials { login, hint }
    }
}

impl Entry {
    fn login(&self) -> Option<(String, String)> {
        let decoded = self.auth.as_ref().and_then(|auth| STANDARD.decode(auth.trim()).ok());
        let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
        let pair = text.as_ref().and_then(|text| text.trim_end_matches('\0').split_once(':'));
        let pair = pair.or(self.username.as_deref().zip(self.password.as_deref()));
        // An identity token stands beside a user without a password.
        pair.filter(|(user, password)| !user.is_empty() && !password.is_empty())
            .map(|(user, password)| (user.to_owned(), password.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_those_of_the_host_and_helpers_are_named_and_not_run() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.json");
        let auth = |text: &str| STANDARD.encode(text);
        let text = serde_json::json!({
            "auths": {
                "https://index.docker.io/v1/": {"auth": auth("hub:one:two")},
                "ghcr.io": {"auth": auth("me:secret")},
                "localhost:5000": {"username": "u", "password": "p"},
                "token.example": {"auth": auth("me:"), "identitytoken": "t"},
                "garbage.example": {"auth": "%%%"},
                "stored.example": {},
            },
            "credHelpers": {"stored.example": "x"},
        });
        std::fs::write(&file, text.to_string()).unwrap();
        let of = |host: &str| Credentials::of(Some(&file), host);
        let login = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        for (host, expected) in [
            ("docker.io", login("hub", "one:two")),
            ("ghcr.io", login("me", "secret")),
            ("localhost:5000", login("u", "p")),
            ("localhost:5001", None),
            ("evil.ghcr.io", None),
            ("token.example", None),
            ("garbage.example", None),
        ] {
            assert_eq!(of(host).login, expected, "{host}");
        }
        assert!(of("stored.example").hint.unwrap().contains("docker-credential-x"));
        assert!(of("token.example").hint.unwrap().contains("identity token"));
        assert_eq!(of("ghcr.io").hint, None);
        assert!(!format!("{:?}", of("ghcr.io")).contains("secret"));
        std::fs::write(&file, "{").unwrap();
        assert!(of("ghcr.io").hint.unwrap().contains("is no file of credentials"));
        let none = Credentials::of(Some(&directory.path().join("none")), "ghcr.io");
        assert_eq!((none.login, none.hint), (None, None));
    }
}
