//! What a user has for the services (runtime-interface 11.1).

use gloveport_protocol::Secret;

use super::ProviderType;

/// What a user has for one service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderToken {
    /// The token. An empty one is none.
    pub token: Option<Secret>,
    /// Who the user is there.
    pub user_id: Option<String>,
    /// The domain of a server that is not the service's own. It is checked before anything is sent there.
    pub host: Option<String>,
}

impl ProviderToken {
    /// A token for the service's own server.
    pub fn new(token: impl Into<Secret>) -> Self {
        Self { token: Some(token.into()), user_id: None, host: None }
    }

    /// The token, if it is not empty.
    pub fn secret(&self) -> Option<&Secret> {
        self.token.as_ref().filter(|token| !token.is_empty())
    }
}

/// What a user has for the services, in the order in which they are asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderTokens(Vec<(ProviderType, ProviderToken)>);

impl ProviderTokens {
    /// Puts what a user has for a service at the end, or where the service is already.
    pub fn insert(&mut self, provider: ProviderType, token: ProviderToken) {
        match self.0.iter_mut().find(|(known, _)| *known == provider) {
            Some((_, old)) => *old = token,
            None => self.0.push((provider, token)),
        }
    }

    /// What a user has for a service.
    pub fn get(&self, provider: ProviderType) -> Option<&ProviderToken> {
        self.0.iter().find(|(known, _)| *known == provider).map(|(_, token)| token)
    }

    /// All of it in order.
    pub fn iter(&self) -> impl Iterator<Item = (ProviderType, &ProviderToken)> {
        self.0.iter().map(|(provider, token)| (*provider, token))
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(ProviderType, ProviderToken)> for ProviderTokens {
    fn from_iter<T: IntoIterator<Item = (ProviderType, ProviderToken)>>(tokens: T) -> Self {
        let mut map = Self::default();
        tokens.into_iter().for_each(|(provider, token)| map.insert(provider, token));
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_insertion_and_a_service_is_there_once() {
        let mut tokens = ProviderTokens::default();
        assert!(tokens.is_empty());
        tokens.insert(ProviderType::Gitlab, ProviderToken::new("a"));
        tokens.insert(ProviderType::Github, ProviderToken::new("b"));
        tokens.insert(ProviderType::Gitlab, ProviderToken::new("c"));
        let order: Vec<_> =
            tokens.iter().map(|(provider, token)| (provider, token.secret().unwrap().expose())).collect();
        assert_eq!(order, [(ProviderType::Gitlab, "c"), (ProviderType::Github, "b")]);
        assert_eq!(tokens.get(ProviderType::Bitbucket), None);
    }

    #[test]
    fn nothing_shows_a_token() {
        let tokens: ProviderTokens = [(ProviderType::Github, ProviderToken::new("hunter2"))].into_iter().collect();
        assert!(!format!("{tokens:?}").contains("hunter2"));
    }
}
