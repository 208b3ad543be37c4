//! What each service is asked for a repository, and what it answers (runtime-interface 11.2).

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gloveport_protocol::Secret;
use reqwest::{
    Method, Request, Url,
    header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, USER_AGENT},
};
use serde_json::Value;

use super::{ProviderFailure, ProviderToken, ProviderType, RepositoryName, domain::domain, name::encode};

/// How to write the name of a repository of Azure DevOps.
pub(super) const AZURE_NAME: &str = "`organisation/project/repository`";

/// The request for a repository. `base` takes the place of the service's own interface.
pub(super) fn request(
    provider: ProviderType,
    token: &ProviderToken,
    name: &RepositoryName,
    base: Option<&Url>,
) -> Result<Request, ProviderFailure> {
    let base = match base {
        Some(base) => base.as_str().trim_end_matches('/').to_owned(),
        None => api_base(provider, &domain(provider, Some(token))?),
    };
    let path = path(provider, name)?;
    let url = Url::parse(&format!("{base}{path}")).map_err(|error| ProviderFailure::Answer(error.to_string()))?;
    let mut request = Request::new(Method::GET, url);
    *request.headers_mut() = headers(provider, token.secret())?;
    Ok(request)
}

fn api_base(provider: ProviderType, domain: &str) -> String {
    match provider {
        ProviderType::Github if domain.eq_ignore_ascii_case("github.com") => "https://api.github.com".to_owned(),
        ProviderType::Github => format!("https://{domain}/api/v3"),
        ProviderType::Gitlab => format!("https://{domain}/api/v4"),
        ProviderType::Bitbucket => format!("https://api.{domain}/2.0"),
        ProviderType::AzureDevops | ProviderType::EnterpriseSso => format!("https://{domain}"),
    }
}

fn path(provider: ProviderType, name: &RepositoryName) -> Result<String, ProviderFailure> {
    Ok(match provider {
        ProviderType::Github => format!("/repos/{}", name.encoded()),
        // One part: its slashes are encoded, too.
        ProviderType::Gitlab => format!("/projects/{}", encode(name.as_str())),
        ProviderType::Bitbucket => format!("/repositories/{}", name.encoded()),
        ProviderType::AzureDevops => {
            let parts: Vec<&str> = name.parts().collect();
            let [org, project, repository] = parts[..] else { return Err(ProviderFailure::Form(AZURE_NAME)) };
            let [org, project, repository] = [org, project, repository].map(encode);
            format!("/{org}/{project}/_apis/git/repositories/{repository}?api-version=7.1")
        }
        ProviderType::EnterpriseSso => return Err(ProviderFailure::NoRepositories),
    })
}

fn headers(provider: ProviderType, token: Option<&Secret>) -> Result<HeaderMap, ProviderFailure> {
    let accept = match provider {
        ProviderType::Github => "application/vnd.github.v3+json",
        _ => "application/json",
    };
    // GitHub wants every client to say who it is.
    let agent = concat!("gloveport/", env!("CARGO_PKG_VERSION"));
    let mut headers = HeaderMap::from_iter([
        (ACCEPT, HeaderValue::from_static(accept)),
        (USER_AGENT, HeaderValue::from_static(agent)),
    ]);
    // Without a token nothing is said about it, so that public repositories are found.
    if let Some(token) = token {
        let mut value = authorization(provider, token).map_err(|_| ProviderFailure::Token)?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    Ok(headers)
}

fn authorization(provider: ProviderType, token: &Secret) -> Result<HeaderValue, reqwest::header::InvalidHeaderValue> {
    let token = token.expose();
    let basic = |pair: &str| HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair)));
    match provider {
        // The name of a user and a password for programs.
        ProviderType::Bitbucket if token.contains(':') => basic(token),
        // Any name does; the token is the password.
        ProviderType::AzureDevops => basic(&format!(":{token}")),
        _ => HeaderValue::from_str(&format!("Bearer {token}")),
    }
}

/// The canonical name of the repository in an answer to a request for `asked`.
pub(super) fn full_name(
    provider: ProviderType,
    asked: &RepositoryName,
    answer: &Value,
) -> Result<RepositoryName, ProviderFailure> {
    let text = |pointer: &str| {
        let value = answer.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        value.ok_or_else(|| ProviderFailure::Answer(format!("it has no `{}`", pointer[1..].replace('/', "."))))
    };
    let name = match provider {
        ProviderType::Github => text("/full_name")?.to_owned(),
        ProviderType::Gitlab => text("/path_with_namespace")?.to_owned(),
        ProviderType::Bitbucket => format!("{}/{}", text("/workspace/slug")?, text("/slug")?),
        ProviderType::AzureDevops => {
            let org = asked.parts().next().unwrap_or_default();
            format!("{org}/{}/{}", text("/project/name")?, text("/name")?)
        }
        ProviderType::EnterpriseSso => return Err(ProviderFailure::NoRepositories),
    };
    RepositoryName::parse(&name).map_err(|error| ProviderFailure::Answer(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_asked_at_their_own_addresses() {
        let host = |host: &str| ProviderToken { host: Some(host.to_owned()), ..ProviderToken::new("t") };
        for (provider, token, name, url) in [
            (ProviderType::Github, ProviderToken::new("t"), "acme/api", "https://api.github.com/repos/acme/api"),
            (ProviderType::Github, host("GitHub.com"), "acme/api", "https://api.github.com/repos/acme/api"),
            (ProviderType::Github, host("ghe.acme.com:8443"), "a/b", "https://ghe.acme.com:8443/api/v3/repos/a/b"),
            (
                ProviderType::Gitlab,
                ProviderToken::new("t"),
                "g/s/api",
                "https://gitlab.com/api/v4/projects/g%2Fs%2Fapi",
            ),
            (ProviderType::Gitlab, host("git.acme.com"), "g/api", "https://git.acme.com/api/v4/projects/g%2Fapi"),
            (ProviderType::Bitbucket, ProviderToken::new("t"), "w/r", "https://api.bitbucket.org/2.0/repositories/w/r"),
            (
                ProviderType::AzureDevops,
                host("dev.azure.com/org"),
                "org/My Project/api",
                "https://dev.azure.com/org/My%20Project/_apis/git/repositories/api?api-version=7.1",
            ),
            (ProviderType::Github, ProviderToken::new("t"), "a?x/b#y", "https://api.github.com/repos/a%3Fx/b%23y"),
        ] {
            let name = RepositoryName::parse(name).unwrap();
            assert_eq!(request(provider, &token, &name, None).unwrap().url().as_str(), url);
        }
    }

    #[test]
    fn tokens_are_sent_in_the_form_of_the_service_and_only_if_there_is_one() {
        for (provider, token, expected) in [
            (ProviderType::Github, "t", Some("Bearer t")),
            (ProviderType::Gitlab, "t", Some("Bearer t")),
            (ProviderType::Bitbucket, "t", Some("Bearer t")),
            (ProviderType::Bitbucket, "user:pass", Some("Basic dXNlcjpwYXNz")),
            (ProviderType::AzureDevops, "t", Some("Basic OnQ=")),
            (ProviderType::Github, "", None),
        ] {
            let name = RepositoryName::parse("a/b/c").unwrap();
            let request = request(provider, &ProviderToken::new(token), &name, None).unwrap();
            let header = request.headers().get(AUTHORIZATION);
            assert_eq!(header.map(|value| value.to_str().unwrap()), expected);
            assert!(header.is_none_or(HeaderValue::is_sensitive));
        }
        let name = RepositoryName::parse("a/b").unwrap();
        let error = request(ProviderType::Github, &ProviderToken::new("a\nX-Y: z"), &name, None).unwrap_err();
        assert_eq!(error, ProviderFailure::Token);
    }

    #[test]
    fn what_cannot_be_asked_is_not() {
        let name = RepositoryName::parse("org/api").unwrap();
        for (provider, expected) in [
            (ProviderType::AzureDevops, ProviderFailure::Form(AZURE_NAME)),
            (ProviderType::EnterpriseSso, ProviderFailure::NoRepositories),
        ] {
            assert_eq!(request(provider, &ProviderToken::new("t"), &name, None).unwrap_err(), expected);
        }
    }
}
