//! Typed configuration from TOML, environment and flags.
