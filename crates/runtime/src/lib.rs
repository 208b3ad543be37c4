//! A session: one sandbox, its history, and all that a backend does around an action.

pub mod git_providers;
mod http_answer;
pub mod lines;
pub mod llm_edit;
pub mod microagents;
