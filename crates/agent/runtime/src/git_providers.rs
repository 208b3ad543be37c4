//! Services that host Git repositories: which of them has a repository, and how it is cloned (runtime-interface 11).
//!
//! [`GitProviders`] asks the configured services for a repository and gives the URL to clone it from. That URL holds the
//! token, so it is a [`Secret`](gloveport_protocol::Secret) like the token itself.
//!
//! | module | idea |
//! |---|---|
//! | `provider`, `tokens` | the services that are known, and what a user has for them |
//! | `name`, `domain` | names of repositories and hosts, checked before they get into a URL |
//! | `api`, `resolve` | what each service is asked, and asking them one after the other |
//! | `clone_url` | the URL with the token |
//! | `env`, `refresh` | tokens as variables of a sandbox, and how they stay valid |

mod api;
mod clone_url;
mod domain;
mod env;
mod error;
mod name;
mod provider;
mod refresh;
mod resolve;
mod tokens;

pub use clone_url::clone_url;
pub use env::{env_vars, referenced_providers};
pub use error::{GitProviderError, ProviderFailure};
pub use name::RepositoryName;
pub use provider::ProviderType;
pub use refresh::Refresh;
pub use resolve::{GitProviders, Repository, Wanted};
pub use tokens::{ProviderToken, ProviderTokens};
