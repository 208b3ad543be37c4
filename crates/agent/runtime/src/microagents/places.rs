//! Where microagents are (runtime-interface 13.1 and 13.2).

use crate::git_providers::ProviderType;

/// The file with instructions of the old style.
pub const LEGACY_INSTRUCTIONS: &str = ".openhands_instructions";

/// The repository in which an organisation or a user keeps microagents for all their repositories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrgRepository {
    /// The organisation or user.
    pub org: String,
    /// The full name of the repository.
    pub repository: String,
}

/// The repository with the microagents of the organisation that a repository belongs to; nothing if its name tells no
/// organisation. `provider` is nothing if it is not known, which is as good as most of them (runtime-interface 13.2).
pub fn org_config_repository(provider: Option<ProviderType>, repository: &str) -> Option<OrgRepository> {
    let parts: Vec<&str> = repository.split('/').collect();
    let [first, .., org, _] = parts.as_slice() else {
        let [org, _] = parts.as_slice() else { return None };
        return Some(config_repository(provider, org));
    };
    if provider == Some(ProviderType::AzureDevops) {
        let repository = format!("{first}/openhands-config/openhands-config");
        return Some(OrgRepository { org: (*first).to_owned(), repository });
    }
    Some(config_repository(provider, org))
}

fn config_repository(provider: Option<ProviderType>, org: &str) -> OrgRepository {
    // GitLab has no names that begin with a dot.
    let name = if provider == Some(ProviderType::Gitlab) { "openhands-config" } else { ".openhands" };
    OrgRepository { org: org.to_owned(), repository: format!("{org}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn organisations_keep_their_microagents_in_a_repository_of_the_provider_s_name() {
        use ProviderType::{AzureDevops, Bitbucket, EnterpriseSso, Github, Gitlab};
        for (provider, repository, expected) in [
            (Some(Github), "acme/api", Some(("acme", "acme/.openhands"))),
            (Some(Bitbucket), "acme/api", Some(("acme", "acme/.openhands"))),
            (Some(EnterpriseSso), "acme/api", Some(("acme", "acme/.openhands"))),
            (None, "acme/api", Some(("acme", "acme/.openhands"))),
            (None, "github.com/acme/api", Some(("acme", "acme/.openhands"))),
            (Some(Gitlab), "acme/api", Some(("acme", "acme/openhands-config"))),
            (Some(Gitlab), "group/sub/api", Some(("sub", "sub/openhands-config"))),
            (Some(AzureDevops), "org/project/api", Some(("org", "org/openhands-config/openhands-config"))),
            (Some(AzureDevops), "org/a/b/c", Some(("org", "org/openhands-config/openhands-config"))),
            (Some(AzureDevops), "project/api", Some(("project", "project/.openhands"))),
            (Some(Github), "api", None),
            (Some(Github), "", None),
        ] {
            let expected = expected
                .map(|(org, repository)| OrgRepository { org: org.to_owned(), repository: repository.to_owned() });
            assert_eq!(org_config_repository(provider, repository), expected, "{provider:?} {repository}");
        }
    }
}
