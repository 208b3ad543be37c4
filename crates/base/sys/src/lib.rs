//! The few system primitives that the tools stand on, and the only crate with `unsafe`. They are Linux's, but for
//! [`beneath`], which the other half uses on every Unix.
//!
//! | module | idea |
//! |---|---|
//! | [`amounts`] | what a sandbox may use of the machine, and whether the kernel keeps it to that |
//! | [`apart`] | work on what others wrote, in a process without rights |
//! | [`confined`] | programs that the kernel keeps to a part of the machine |
//! | [`container`] | a process with a root directory, users and processes of its own |
//! | [`pty`] | a pseudo-terminal and its modes |
//! | [`spawn`] | one program started with a controlling terminal, an identity, limits and a directory |
//! | [`guard`] | a small process that owns every started program, and ends them all when its server is gone |
//! | [`mark`] | what tells the processes of a sandbox from others when all who own them were killed |
//! | [`freeze`] | all processes below a guard stopped where they are, and going on |
//! | [`surroundings`] | as whom, where and with what environment the programs of a sandbox are started |
//! | [`session`] | a started program as the server sees it: pid, exit, end |
//! | [`process`] | what `/proc` tells about processes |
//! | [`errand`] | what a confined process has done by a copy of itself from before |
//! | [`again`] | a process that is started again when it is killed |
//! | [`file_identity`] | one thread that works on files as a user |
//! | [`users`] | the user database, read from its files without the name-service switch |
//! | [`beneath`] | paths beneath a directory, resolved by the kernel |
//! | [`held`] | directories reached by a name once and held by a descriptor: given away, emptied |
//! | [`reach`] | files that a tool may use: all, or those beneath one directory |
//! | [`reap`] | the end of any child of this process |
//! | [`replace`] | files written whole, and what a killed process left of them |
//! | [`owners`] | numbers of other owners that an ordinary user may give to files |
//! | [`os_error`] | errors of the system as the wire shows them |
//! | [`turns`] | few that work at once, and few that wait |
//! | [`host`] | facts about the machine |

#[cfg(target_os = "linux")]
pub mod again;
#[cfg(target_os = "linux")]
pub mod amounts;
#[cfg(target_os = "linux")]
pub mod apart;
pub mod beneath;
#[cfg(target_os = "linux")]
mod bpf;
#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
pub mod confined;
#[cfg(target_os = "linux")]
pub mod container;
#[cfg(target_os = "linux")]
pub mod errand;
#[cfg(target_os = "linux")]
mod exit;
#[cfg(target_os = "linux")]
pub mod file_identity;
#[cfg(target_os = "linux")]
pub mod freeze;
#[cfg(target_os = "linux")]
pub mod guard;
#[cfg(target_os = "linux")]
pub mod held;
#[cfg(target_os = "linux")]
pub mod host;
#[cfg(target_os = "linux")]
pub mod mark;
#[cfg(target_os = "linux")]
pub mod os_error;
#[cfg(target_os = "linux")]
pub mod owners;
#[cfg(target_os = "linux")]
mod private;
#[cfg(target_os = "linux")]
pub mod process;
#[cfg(target_os = "linux")]
pub mod pty;
#[cfg(target_os = "linux")]
pub mod reach;
#[cfg(target_os = "linux")]
pub mod reap;
#[cfg(target_os = "linux")]
pub mod replace;
#[cfg(target_os = "linux")]
pub mod session;
#[cfg(target_os = "linux")]
mod signal;
#[cfg(target_os = "linux")]
pub mod spawn;
#[cfg(target_os = "linux")]
pub mod surroundings;
#[cfg(target_os = "linux")]
pub mod turns;
#[cfg(target_os = "linux")]
pub mod users;
#[cfg(target_os = "linux")]
mod wire;

/// Messages over a socket of this machine, with file descriptors beside them.
#[cfg(target_os = "linux")]
pub mod frames {
    pub use crate::wire::{receive, send};
}

#[cfg(target_os = "linux")]
pub use exit::Exit;
#[cfg(target_os = "linux")]
pub use guard::Guard;
#[cfg(target_os = "linux")]
pub use session::{SessionProcess, Spawner};
#[cfg(target_os = "linux")]
pub use spawn::{Identity, SpawnError, SpawnSpec};
#[cfg(target_os = "linux")]
pub use surroundings::Surroundings;
