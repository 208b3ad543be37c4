//! Where microagents are (runtime-interface 13.1 and 13.2).
//!
//! The order of all results is: those of the organisation, the instructions of the old style, those of the repository.

use std::path::{Path, PathBuf};

use crate::git_providers::ProviderType;

/// The file with instructions of the old style.
pub const LEGACY_INSTRUCTIONS: &str = ".openhands_instructions";

/// The directory of microagents in the clone of an organisation's repository.
pub const ORG_DIRECTORY: &str = "microagents";

/// The repository in which an organisation or a user keeps microagents for all their repositories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrgRepository {
    /// The organisation or user.
    pub org: String,
    /// The full name of the repository.
    pub repository: String,
}

impl OrgRepository {
    /// The directory that it is cloned into and that is removed afterwards.
    pub fn clone_directory(&self, workspace_root: &Path) -> PathBuf {
        workspace_root.join(format!("org_openhands_{}", self.org))
    }
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

/// The root of a repository in the workspace.
pub fn repository_root(workspace_root: &Path, repository: &str) -> PathBuf {
    workspace_root.join(repository.rsplit('/').next().unwrap_or_default())
}

/// The directory of microagents of a repository, or of the workspace itself if none is selected.
pub fn microagents_directory(workspace_root: &Path, repository: Option<&str>) -> PathBuf {
    let root = repository.map_or_else(|| workspace_root.to_owned(), |name| repository_root(workspace_root, name));
    root.join(".openhands").join("microagents")
}

/// Where instructions of the old style may be. The first that can be read counts.
pub fn legacy_instructions(workspace_root: &Path, repository: Option<&str>) -> Vec<PathBuf> {
    std::iter::once(workspace_root.to_owned())
        .chain(repository.map(|name| repository_root(workspace_root, name)))
        .map(|root| root.join(LEGACY_INSTRUCTIONS))
        .collect()
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

    #[test]
    fn the_repository_is_below_the_workspace_under_the_last_part_of_its_name() {
        let root = Path::new("/workspace");
        let path = |text: &str| PathBuf::from(text);
        assert_eq!(microagents_directory(root, None), path("/workspace/.openhands/microagents"));
        assert_eq!(microagents_directory(root, Some("a/b/api")), path("/workspace/api/.openhands/microagents"));
        assert_eq!(legacy_instructions(root, None), [path("/workspace/.openhands_instructions")]);
        assert_eq!(
            legacy_instructions(root, Some("acme/api")),
            [path("/workspace/.openhands_instructions"), path("/workspace/api/.openhands_instructions")]
        );
        let org = org_config_repository(None, "acme/api").unwrap();
        assert_eq!(org.clone_directory(root), path("/workspace/org_openhands_acme"));
    }
}
