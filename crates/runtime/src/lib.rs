//! A session: one sandbox, its history, and all that a backend does around an action.

pub mod git_providers;
pub mod microagents;
