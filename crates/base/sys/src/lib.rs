//! The few system primitives that the tools stand on, and the only crate with `unsafe`.
//!
//! | module | idea |
//! |---|---|
//! | [`apart`] | work on what others wrote, in a process without rights |
//! | [`pty`] | a pseudo-terminal and its modes |
//! | [`spawn`] | one program started with a controlling terminal, an identity, limits and a directory |
//! | [`guard`] | a small process that owns every started program, and ends them all when its server is gone |
//! | [`mark`] | what tells the processes of a sandbox from others when all who own them were killed |
//! | [`freeze`] | all processes below a guard stopped where they are, and going on |
//! | [`surroundings`] | as whom, where and with what environment the programs of a sandbox are started |
//! | [`session`] | a started program as the server sees it: pid, exit, end |
//! | [`process`] | what `/proc` tells about processes |
//! | [`file_identity`] | one thread that works on files as a user |
//! | [`users`] | the user database, read from its files without the name-service switch |
//! | [`beneath`] | paths beneath a directory, resolved by the kernel |
//! | [`held`] | directories reached by a name once and held by a descriptor: given away, emptied |
//! | [`reach`] | files that a tool may use: all, or those beneath one directory |
//! | [`reap`] | the end of any child of this process |
//! | [`replace`] | files written whole, and what a killed process left of them |
//! | [`os_error`] | errors of the system as the wire shows them |
//! | [`turns`] | few that work at once, and few that wait |
//! | [`host`] | facts about the machine |

pub mod apart;
pub mod beneath;
mod cgroup;
mod exit;
pub mod file_identity;
pub mod freeze;
pub mod guard;
pub mod held;
pub mod host;
pub mod mark;
pub mod os_error;
mod private;
pub mod process;
pub mod pty;
pub mod reach;
pub mod reap;
pub mod replace;
pub mod session;
mod signal;
pub mod spawn;
pub mod surroundings;
pub mod turns;
pub mod users;
mod wire;

/// Messages over a socket of this machine, with file descriptors beside them.
pub mod frames {
    pub use crate::wire::{receive, send};
}

pub use exit::Exit;
pub use guard::Guard;
pub use session::{SessionProcess, Spawner};
pub use spawn::{Identity, SpawnError, SpawnSpec};
pub use surroundings::Surroundings;
