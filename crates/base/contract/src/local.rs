//! A server as a process of this machine.
//!
//! | module | idea |
//! |---|---|
//! | [`lifeline`] | how a backend and the server of a sandbox talk |
//! | [`directory`] | what is in the directory of a sandbox, and how that ends |

pub mod directory;
pub mod lifeline;
