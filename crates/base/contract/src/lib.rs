//! What a provider and the server that it starts in a sandbox have agreed on.
//!
//! Whoever hosts a sandbox and the server inside of it are two programs, which may even be of two versions: what one of
//! them writes, passes or means by an exit code, and the other one reads, is here and nowhere else.
//!
//! | module | idea |
//! |---|---|
//! | [`container`] | a server in a container: paths, port, the line on its standard input, exit codes |
//! | [`gate`] | what stands between a sandbox and its network, while it runs |
//! | [`local`] | a server as a process of this machine: its directory, and the socket to its backend; on Linux only |
//! | [`recorder`] | who keeps the audit log of a sandbox that has no files of this machine |
//! | [`plugins`] | the plugins that every server has |

pub mod container;
pub mod gate;
#[cfg(target_os = "linux")]
pub mod local;
pub mod plugins;
pub mod recorder;
