//! The URL that a repository is cloned from, with the token in it (runtime-interface 11.2).

use gloveport_protocol::Secret;
use percent_encoding::{AsciiSet, utf8_percent_encode};

use super::{
    ProviderFailure, ProviderToken, ProviderType, Repository,
    api::AZURE_NAME,
    domain::domain,
    name::{UNRESERVED, encode},
};

/// What is encoded in front of the `@`. The characters of tokens in use stay as they are, and so does the colon between
/// a name and a password; nothing that ends this part, or means something to a shell, does.
const TOKEN: &AsciiSet = &USER.remove(b':');
const USER: &AsciiSet = &UNRESERVED.remove(b'=').remove(b'+');

/// The URL of a repository. It goes to the command line of `git` and nowhere else.
pub fn clone_url(repository: &Repository, token: Option<&ProviderToken>) -> Result<Secret, ProviderFailure> {
    let Repository { provider, full_name } = repository;
    let domain = domain(*provider, token)?;
    let plain = full_name.encoded();
    let Some(secret) = token.and_then(ProviderToken::secret) else {
        return Ok(Secret::new(format!("https://{domain}/{plain}.git")));
    };
    let secret = utf8_percent_encode(secret.expose(), TOKEN);
    let url = match provider {
        ProviderType::Github => format!("https://{secret}@{domain}/{plain}.git"),
        ProviderType::Gitlab => format!("https://oauth2:{secret}@{domain}/{plain}.git"),
        ProviderType::Bitbucket if secret.to_string().contains(':') => {
            format!("https://{secret}@{domain}/{plain}.git")
        }
        ProviderType::Bitbucket => format!("https://x-token-auth:{secret}@{domain}/{plain}.git"),
        ProviderType::AzureDevops => {
            let parts: Vec<&str> = full_name.parts().collect();
            match parts[..] {
                [org, project, name] => {
                    let user = utf8_percent_encode(org, USER);
                    let [org, project, name] = [org, project, name].map(encode);
                    format!("https://{user}:{secret}@{domain}/{org}/{project}/_git/{name}")
                }
                [_] | [_, _] => format!("https://user:{secret}@{domain}/{plain}.git"),
                _ => return Err(ProviderFailure::Form(AZURE_NAME)),
            }
        }
        ProviderType::EnterpriseSso => return Err(ProviderFailure::NoRepositories),
    };
    Ok(Secret::new(url))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reqwest::Url;

    use super::*;
    use crate::git_providers::RepositoryName;

    fn url(provider: ProviderType, token: Option<&str>, host: Option<&str>, name: &str) -> String {
        let repository = Repository { provider, full_name: RepositoryName::parse(name).unwrap() };
        let token = ProviderToken {
            token: token.map(Secret::from),
            user_id: Some("me".to_owned()),
            host: host.map(str::to_owned),
        };
        clone_url(&repository, Some(&token)).unwrap().expose().to_owned()
    }

    #[test]
    fn urls_have_the_forms_of_the_table() {
        use ProviderType::{AzureDevops, Bitbucket, Github, Gitlab};
        for (provider, token, host, name, expected) in [
            (Github, Some("ghp_aB1"), None, "acme/api", "https://ghp_aB1@github.com/acme/api.git"),
            (Github, Some("x-access-token:ghs_1"), None, "a/b", "https://x-access-token:ghs_1@github.com/a/b.git"),
            (Github, Some("t"), Some("ghe.acme.com"), "a/b", "https://t@ghe.acme.com/a/b.git"),
            (Gitlab, Some("glpat-1_x"), None, "g/s/api", "https://oauth2:glpat-1_x@gitlab.com/g/s/api.git"),
            (Gitlab, Some("t"), Some("git.acme.com:8443"), "g/p", "https://oauth2:t@git.acme.com:8443/g/p.git"),
            (Bitbucket, Some("user:app_password"), None, "w/r", "https://user:app_password@bitbucket.org/w/r.git"),
            (Bitbucket, Some("ATC_x=1A+"), None, "w/r", "https://x-token-auth:ATC_x=1A+@bitbucket.org/w/r.git"),
            (Bitbucket, Some("me@acme.com:p"), None, "w/r", "https://me%40acme.com:p@bitbucket.org/w/r.git"),
            (
                AzureDevops,
                Some("pat"),
                None,
                "org/My Project/r",
                "https://org:pat@dev.azure.com/org/My%20Project/_git/r",
            ),
            (AzureDevops, Some("pat"), Some("x.com"), "o/p/r", "https://o:pat@dev.azure.com/o/p/_git/r"),
            (AzureDevops, Some("pat"), None, "project/r", "https://user:pat@dev.azure.com/project/r.git"),
            (Github, None, None, "acme/api", "https://github.com/acme/api.git"),
            (Gitlab, Some(""), Some("git.acme.com"), "a/b", "https://git.acme.com/a/b.git"),
            (Bitbucket, None, None, "a/b", "https://bitbucket.org/a/b.git"),
            (AzureDevops, None, None, "o/p/r", "https://dev.azure.com/o/p/r.git"),
        ] {
            assert_eq!(url(provider, token, host, name), expected);
        }
    }

    #[test]
    fn what_is_no_repository_of_a_service_has_no_url() {
        let name = RepositoryName::parse("a/b").unwrap();
        let repository = Repository { provider: ProviderType::EnterpriseSso, full_name: name };
        assert_eq!(clone_url(&repository, None), Err(ProviderFailure::NoRepositories));
        let name = RepositoryName::parse("org/project/more/repository").unwrap();
        let repository = Repository { provider: ProviderType::AzureDevops, full_name: name };
        let refused = clone_url(&repository, Some(&ProviderToken::new("t")));
        assert_eq!(refused, Err(ProviderFailure::Form(AZURE_NAME)));
    }

    fn provider() -> impl Strategy<Value = ProviderType> {
        prop::sample::select(&ProviderType::ALL[..4])
    }

    proptest! {
        #[test]
        fn no_token_and_no_name_changes_where_a_url_leads(
            provider in provider(), token in "(\\PC|[/@:?#%\\\\'\"$ \\n;]){1,20}",
            name in "([^/\\x00-\\x1f\\x7f-\\x9f]|[@:?#%\\\\'\"$;. ]){1,8}(/([^/\\x00-\\x1f\\x7f-\\x9f]|[@:?#%\\\\'\"$;. ]){1,8}){0,2}",
        ) {
            prop_assume!(RepositoryName::parse(&name).is_ok());
            let text = url(provider, Some(&token), None, &name);
            let parsed = Url::parse(&text).unwrap();
            prop_assert_eq!(parsed.scheme(), "https");
            prop_assert_eq!(parsed.host_str(), provider.default_domain());
            prop_assert_eq!(parsed.port(), None);
            prop_assert_eq!(parsed.query(), None);
            prop_assert_eq!(parsed.fragment(), None);
            prop_assert!(text.chars().all(|sign| sign.is_ascii_alphanumeric() || ":/@%-._~=+".contains(sign)), "{}", text);
            let decoded = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8().unwrap().into_owned();
            let parts: Vec<&str> = name.split('/').collect();
            let path = match parts[..] {
                [org, project, name] if provider == ProviderType::AzureDevops => format!("/{org}/{project}/_git/{name}"),
                _ => format!("/{name}.git"),
            };
            prop_assert_eq!(decoded(parsed.path()), path);
            let user = decoded(text.trim_start_matches("https://").split_once('@').map_or("", |(user, _)| user));
            prop_assert!(user.contains(&token), "{} does not hold {}", user, token);
        }
    }
}
