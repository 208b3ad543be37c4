//! The tests of this crate, in one program.

mod agent_server;
mod agent_server_settings;
mod browser;
mod common;
mod connections;
mod kernels;
mod keys;
mod mcp;
mod memory;
mod numbers;
mod ports;
mod processes;
mod strangers;
mod terminals;
mod transfer_memory;
mod transfers;
mod v0;
mod v1;
mod v1_errors;
mod v1_files;
mod viewer;
mod viewer_written;
