//! Histories as those who use them see them, with real files and processes.

#![expect(clippy::unwrap_used, reason = "functions that tests share stop at the first broken assumption, too")]

mod common;
mod crash;
mod disk_full;
mod listen;
mod search;
mod stores;
mod stream;
mod subscribers;
mod trajectories;
