//! The URL of a repository, apart from what opens it.

use gloveport_protocol::Secret;

use crate::git_providers::ProviderType;

/// Where a repository is, and who is asking.
#[derive(Clone, Debug)]
pub(crate) struct CloneUrl {
    /// Everybody may see it.
    pub(crate) public: String,
    /// User and password.
    pub(crate) credentials: Option<(Secret, Secret)>,
    provider: ProviderType,
}

impl CloneUrl {
    /// Takes the user's part out of a URL of the forms of runtime-interface 11.2.
    pub(crate) fn new(provider: ProviderType, authenticated: &Secret) -> Self {
        let url = authenticated.expose();
        let split = url.split_once("://").and_then(|(scheme, rest)| {
            let end = rest.find('/').unwrap_or(rest.len());
            let at = rest[..end].rfind('@')?;
            Some((format!("{scheme}://{}", &rest[at + 1..]), &rest[..at]))
        });
        let Some((public, user_part)) = split else {
            return Self { public: url.to_owned(), credentials: None, provider };
        };
        let (user, password) = match user_part.split_once(':') {
            Some((user, password)) => (decoded(user), decoded(password)),
            // A token alone is the user; git would ask for a password, so it is given as one.
            None => ("x-access-token".to_owned(), decoded(user_part)),
        };
        Self { public, credentials: Some((Secret::new(user), Secret::new(password))), provider }
    }

    /// The name of the setting that says who knows the password of this URL's server.
    pub(crate) fn helper_key(&self) -> String {
        let rest = self.public.split_once("://").map_or(self.public.as_str(), |(_, rest)| rest);
        let domain = rest.split('/').next().unwrap_or_default();
        format!("credential.https://{domain}.helper")
    }

    /// A credential helper that finds the token in the variable in which the session keeps it.
    pub(crate) fn later_helper(&self) -> Option<String> {
        let (user, _) = self.credentials.as_ref()?;
        let variable = self.provider.env_key().to_uppercase();
        let (user, password) = match self.provider {
            ProviderType::Bitbucket => (
                format!("\"$(case ${variable} in (*:*) echo \"${{{variable}%%:*}}\";; (*) echo x-token-auth;; esac)\""),
                format!("\"${{{variable}#*:}}\""),
            ),
            _ => (crate::quote::bash_value(user.expose()), format!("\"${variable}\"")),
        };
        Some(format!("!f() {{ [ \"$1\" = get ] && printf 'username=%s\\npassword=%s\\n' {user} {password}; }}; f"))
    }
}

/// Undoes percent-encoding.
fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn every_form_of_url_is_split_into_what_may_be_seen_and_what_may_not() {
        for (url, public, credentials) in [
            ("https://tok@github.com/o/r.git", "https://github.com/o/r.git", Some(("x-access-token", "tok"))),
            ("https://oauth2:tok@gitlab.com/o/r.git", "https://gitlab.com/o/r.git", Some(("oauth2", "tok"))),
            ("https://user:app%40pw@bitbucket.org/o/r.git", "https://bitbucket.org/o/r.git", Some(("user", "app@pw"))),
            ("https://org:tok@dev.azure.com/o/p/_git/r", "https://dev.azure.com/o/p/_git/r", Some(("org", "tok"))),
            ("https://github.com/o/r.git", "https://github.com/o/r.git", None),
        ] {
            let split = CloneUrl::new(ProviderType::Github, &Secret::new(url));
            assert_eq!(split.public, public);
            let found = split.credentials.as_ref().map(|(user, password)| (user.expose(), password.expose()));
            assert_eq!(found, credentials, "{url}");
            assert!(!format!("{split:?}").contains("tok"));
        }
    }

    #[test]
    fn git_finds_the_fresh_token_later() {
        for (provider, url, variable, value, expected) in [
            (ProviderType::Github, "https://old@h.example/o/r.git", "GITHUB_TOKEN", "new", "x-access-token new"),
            (ProviderType::Gitlab, "https://oauth2:old@h.example/o/r.git", "GITLAB_TOKEN", "n'e w", "oauth2 n'e w"),
            (ProviderType::Bitbucket, "https://u:old@h.example/o/r.git", "BITBUCKET_TOKEN", "u2:p2", "u2 p2"),
            (
                ProviderType::Bitbucket,
                "https://x-token-auth:old@h.example/r.git",
                "BITBUCKET_TOKEN",
                "t",
                "x-token-auth t",
            ),
        ] {
            let url = CloneUrl::new(provider, &Secret::new(url));
            assert_eq!(url.helper_key(), "credential.https://h.example.helper");
            let home = tempfile::tempdir().unwrap();
            let setting = format!("{}={}", url.helper_key(), url.later_helper().unwrap());
            let script = "printf 'protocol=https\\nhost=h.example\\n\\n' | git -c \"$SETTING\" credential fill";
            let output = Command::new("bash")
                .args(["-c", script])
                .env("SETTING", setting)
                .env("HOME", home.path())
                .env("GIT_TERMINAL_PROMPT", "0")
                .env(variable, value)
                .output()
                .unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let found = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().to_owned();
            assert_eq!(format!("{} {}", found("username="), found("password=")), expected, "{text}");
        }
    }
}
