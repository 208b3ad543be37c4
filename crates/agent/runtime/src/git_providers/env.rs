//! Tokens as variables of a sandbox (runtime-interface 11.3 and 11.4).

use std::collections::BTreeMap;

use gloveport_protocol::Secret;

use super::{ProviderTokens, ProviderType, Refresh};

/// The tokens that are not empty, by the lower-case names of their variables. Only the given services count, or all of
/// them if none is given; `latest` fetches their newest tokens instead of those that are at hand.
pub async fn env_vars(
    tokens: &ProviderTokens,
    providers: &[ProviderType],
    latest: Option<&Refresh>,
) -> BTreeMap<String, Secret> {
    let providers = if providers.is_empty() { &ProviderType::ALL } else { providers };
    let mut variables = BTreeMap::new();
    for provider in providers {
        let Some(at_hand) = tokens.get(*provider) else { continue };
        let token = match latest {
            Some(refresh) => refresh.token(*provider).await,
            None => at_hand.secret().cloned(),
        };
        if let Some(token) = token {
            variables.insert(provider.env_key().to_owned(), token);
        }
    }
    variables
}

/// The services whose tokens a command speaks of, in whichever case.
pub fn referenced_providers(command: &str) -> Vec<ProviderType> {
    let command = command.to_lowercase();
    ProviderType::ALL.into_iter().filter(|provider| command.contains(provider.env_key())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git_providers::ProviderToken;

    #[test]
    fn a_command_speaks_of_tokens_by_the_names_of_their_variables() {
        for (command, expected) in [
            ("git push https://$GITHUB_TOKEN@github.com/a/b", vec![ProviderType::Github]),
            ("echo ${gitlab_token} $MY_GITHUB_TOKEN_2", vec![ProviderType::Github, ProviderType::Gitlab]),
            ("export BitBucket_Token=x", vec![ProviderType::Bitbucket]),
            ("$AZURE_DEVOPS_TOKEN $ENTERPRISE_SSO_TOKEN", vec![ProviderType::AzureDevops, ProviderType::EnterpriseSso]),
            ("git push", vec![]),
        ] {
            assert_eq!(referenced_providers(command), expected, "{command}");
        }
    }

    #[tokio::test]
    async fn tokens_that_are_there_become_variables() {
        let tokens: ProviderTokens = [
            (ProviderType::Gitlab, ProviderToken::new("lab")),
            (ProviderType::Github, ProviderToken::new("hub")),
            (ProviderType::Bitbucket, ProviderToken::default()),
            (ProviderType::EnterpriseSso, ProviderToken::new("")),
        ]
        .into_iter()
        .collect();
        let expected = |names: &[(&str, &str)]| -> BTreeMap<String, Secret> {
            names.iter().map(|(name, token)| ((*name).to_owned(), Secret::from(*token))).collect()
        };
        assert_eq!(env_vars(&tokens, &[], None).await, expected(&[("github_token", "hub"), ("gitlab_token", "lab")]));
        let some = [ProviderType::Gitlab, ProviderType::AzureDevops];
        assert_eq!(env_vars(&tokens, &some, None).await, expected(&[("gitlab_token", "lab")]));
        assert_eq!(env_vars(&ProviderTokens::default(), &[], None).await, expected(&[]));
    }
}
