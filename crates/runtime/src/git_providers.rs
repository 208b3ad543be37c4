//! Services that host Git repositories: their types and tokens (runtime-interface 11).

mod provider;

pub use provider::ProviderType;
