//! The services that are known.

use std::fmt;

/// A service that hosts Git repositories (runtime-interface 11.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProviderType {
    /// GitHub, or a GitHub Enterprise server.
    Github,
    /// GitLab, or one that somebody runs.
    Gitlab,
    /// Bitbucket Cloud.
    Bitbucket,
    /// Azure DevOps Services.
    AzureDevops,
    /// A company's sign-on. It has a token and hosts nothing.
    EnterpriseSso,
}

impl ProviderType {
    /// All of them, in the order of the reference.
    pub const ALL: [Self; 5] = [Self::Github, Self::Gitlab, Self::Bitbucket, Self::AzureDevops, Self::EnterpriseSso];

    /// Its value on the wire and in configurations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Github => "github",
            Self::Gitlab => "gitlab",
            Self::Bitbucket => "bitbucket",
            Self::AzureDevops => "azure_devops",
            Self::EnterpriseSso => "enterprise_sso",
        }
    }

    /// The provider with this value.
    pub fn from_wire(value: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.as_str() == value)
    }

    /// The domain of its repositories unless a token names another.
    pub const fn default_domain(self) -> Option<&'static str> {
        match self {
            Self::Github => Some("github.com"),
            Self::Gitlab => Some("gitlab.com"),
            Self::Bitbucket => Some("bitbucket.org"),
            Self::AzureDevops => Some("dev.azure.com"),
            Self::EnterpriseSso => None,
        }
    }

    /// The lower-case name of the variable with its token. In a sandbox the name is in upper case.
    pub const fn env_key(self) -> &'static str {
        match self {
            Self::Github => "github_token",
            Self::Gitlab => "gitlab_token",
            Self::Bitbucket => "bitbucket_token",
            Self::AzureDevops => "azure_devops_token",
            Self::EnterpriseSso => "enterprise_sso_token",
        }
    }
}

impl fmt::Display for ProviderType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_have_the_values_of_the_table() {
        for (provider, value, domain, key) in [
            (ProviderType::Github, "github", Some("github.com"), "github_token"),
            (ProviderType::Gitlab, "gitlab", Some("gitlab.com"), "gitlab_token"),
            (ProviderType::Bitbucket, "bitbucket", Some("bitbucket.org"), "bitbucket_token"),
            (ProviderType::AzureDevops, "azure_devops", Some("dev.azure.com"), "azure_devops_token"),
            (ProviderType::EnterpriseSso, "enterprise_sso", None, "enterprise_sso_token"),
        ] {
            assert_eq!((provider.as_str(), provider.default_domain(), provider.env_key()), (value, domain, key));
            assert_eq!(ProviderType::from_wire(value), Some(provider));
            assert_eq!(provider.to_string(), value);
        }
        assert_eq!(ProviderType::from_wire("gitea"), None);
    }
}
