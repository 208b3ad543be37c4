//! The tests of this crate, in one program.

mod cli;
mod dispatch;
mod environment;
mod example;
mod gate;
mod git_providers;
mod hosted;
mod hosted_config;
mod hosted_connect;
mod hosted_recovery;
mod hosted_urls;
mod llm_edit;
mod mcp;
mod operations;
mod secrets;
mod setup;
mod support;
